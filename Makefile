# Two commands for everybody:  make demo  (look at the sample threads)   make test  (run the tests)
# Each makes .venv and installs what it needs; Python 3.11 or newer and a connection to the package index are enough.

VENV ?= .venv
PYTHON ?= $(shell for p in python3.14 python3.13 python3.12 python3.11 python3; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip -qq --disable-pip-version-check install --constraint constraints.txt
INPUTS := pyproject.toml constraints.txt hatch_build.py package.json package-lock.json static/src/editor-bundle.js
PYTEST_ARGS ?= -n 2 --dist loadfile

.PHONY: help demo test lint check format bench samples wheel clean
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.for-use ## open the sample threads in the browser
	@echo "make: the sample threads in your browser; it keeps serving them until you stop it with Ctrl+C"
	@$(BIN)/studio demo

test: $(VENV)/.for-work ## run the tests
	@echo "make: the tests, some minutes on two cores …"
	@$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(VENV)/.for-work ## style, types, and which package may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test ## all of it, before a change goes in

format: $(VENV)/.for-work ## lay out the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.for-work ## measure the budgets; figures go to benchmarks/README.md
	$(BIN)/python benchmarks/measure.py

samples: $(VENV)/.for-work ## make the sample databases and the sample session again
	$(BIN)/python sample_threads/build.py
	$(BIN)/python sample_threads/build_session.py

wheel: $(VENV)/.for-work ## build dist/*.whl with the browser code inside
	$(BIN)/python -m build --wheel

clean: ## remove what these targets made
	rm -rf $(VENV) dist build static/vendor .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# pip is heard only when it fails
define environment
@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with its venv module is needed (on Debian: apt install python3-venv)." >&2; exit 1; }
@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
endef

$(VENV)/.for-use: $(INPUTS)
	@echo "make: setting up the studio in $(VENV) (about a minute, once) …"
	$(environment)
	@$(INSTALL) --editable .
	@$(BIN)/python -m compileall -q studio || true
	@touch $@

$(VENV)/.for-work: $(INPUTS)
	@echo "make: setting up the studio and its tests in $(VENV) (about two minutes, once) …"
	$(environment)
	@$(INSTALL) --upgrade pip
	@$(INSTALL) --group dev --editable .
	@$(BIN)/python -m compileall -q studio || true
	@touch $@ $(VENV)/.for-use
