"""Loading the user's graph in the child process: import it, build it, and see whether it must run asynchronously.

An attribute may be a compiled graph, a builder with `compile()`, or a factory of either: a sync or async function, with or
without a `config` parameter, also one that returns a context manager.

Standard library only and valid for Python 3.9: `child.py` loads this file by path inside the user's interpreter.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from pathlib import Path
from typing import Any


class LoadError(Exception):
    """Why the graph cannot be loaded, in one line; `detail` holds the traceback in the user's code, `place` its last own line."""

    def __init__(self, message: str, error: BaseException | None = None) -> None:
        super().__init__(message)
        self.detail = user_traceback(error) if error is not None else ""
        self.place = user_place(error) if error is not None else ""


def prepare(spec: dict[str, Any]) -> None:
    """Working folder, import path and environment as the user's own program has them."""
    folder = spec["project_dir"]
    os.chdir(folder)
    for path in reversed([folder, *spec.get("paths", ())]):
        if path not in sys.path:
            sys.path.insert(0, path)
    values = dict(read_env(spec["env_file"])) if spec.get("env_file") else {}
    values.update(spec.get("env") or {})
    for key, value in values.items():
        os.environ.setdefault(key, value)


def read_env(path: str) -> dict[str, str]:
    """The variables of a `.env` file; python-dotenv reads it where it is installed."""
    try:
        from dotenv import dotenv_values  # type: ignore[import-not-found]

        return {key: value for key, value in dotenv_values(path).items() if value is not None}
    except ImportError:
        pass
    values = {}
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise LoadError(f"cannot read the environment file {path}: {error.strerror}") from error
    for line in lines:
        found = re.match(r"\s*(?:export\s+)?([A-Za-z_][\w.]*)\s*=\s*(.*?)\s*$", line)
        if found:
            values[found.group(1)] = _unquote(found.group(2))
    return values


def _unquote(text: str) -> str:
    if text[:1] in ("'", '"'):
        end = text.find(text[0], 1)
        if end > 0:
            inner = text[1:end]
            return inner.replace("\\n", "\n").replace('\\"', '"') if text[0] == '"' else inner
    return re.split(r"\s+#", text)[0]


def import_attribute(spec: dict[str, Any]) -> tuple[Any, str]:
    """The object that the spec names, and the name of its module."""
    where = spec.get("file") or spec["module"]
    try:
        module = _import_file(spec["file"]) if spec.get("file") else importlib.import_module(spec["module"])
    except ModuleNotFoundError as error:
        message = f"{where} needs the module {error.name!r}, which {sys.executable} does not have"
        raise LoadError(message, error) from error
    except BaseException as error:  # a script may also call sys.exit while it is imported
        if isinstance(error, KeyboardInterrupt):
            raise
        raise LoadError(f"{where} cannot be imported: {describe(error)}", error) from error
    found: Any = module
    for step in spec["attr"].split("."):
        if not hasattr(found, step):
            names = [name for name, value in vars(module).items() if is_graph(value) or is_builder(value)]
            hint = "; graphs there: " + ", ".join(sorted(names)) if names else ""
            raise LoadError(f"{where} has no attribute {spec['attr']!r}{hint}")
        found = getattr(found, step)
    return found, module.__name__


def _import_file(file: str) -> Any:
    """Import a file under the dotted name that its package gives it, so that stored types keep their module."""
    path = Path(file)
    if not path.is_file():
        raise LoadError(f"there is no file {file}")
    root = path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    for folder in ([str(root)] if root != path.parent else []) + sys.path:
        dotted = _dotted_name(path, folder)
        if dotted is None:
            continue
        if folder not in sys.path:
            sys.path.insert(0, folder)
        spec = importlib.util.find_spec(dotted)
        if spec is not None and spec.origin and os.path.realpath(spec.origin) == os.path.realpath(file):
            return importlib.import_module(dotted)
    name = re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise LoadError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.append(str(path.parent))
    spec.loader.exec_module(module)
    return module


def _dotted_name(path: Path, folder: str) -> str | None:
    """`agent.graph` for FOLDER/agent/graph.py; None when the file is not below or a part is no identifier."""
    try:
        parts = path.resolve().relative_to(Path(folder).resolve()).with_suffix("").parts
    except (ValueError, OSError):
        return None
    if parts and parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts) if parts and all(part.isidentifier() for part in parts) else None


def is_graph(value: Any) -> bool:
    return any(cls.__name__ == "Pregel" for cls in type(value).__mro__)


def is_builder(value: Any) -> bool:
    if is_graph(value) or isinstance(value, type):
        return False
    return callable(getattr(value, "compile", None)) and hasattr(value, "nodes")


def unwrap(value: Any) -> Any:
    """The graph inside `graph.with_retry()` and the like."""
    while not is_graph(value) and "bound" in getattr(type(value), "model_fields", {}):
        value = value.bound
    return value


def needs_loop(value: Any) -> bool:
    """Whether building this object needs an event loop: an async factory, or one that returns something to await or enter."""
    return inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(inspect.unwrap(value) if callable(value) else value)


def call_factory(factory: Any, config: dict[str, Any]) -> Any:
    """Call a factory with as many of (config, …) as it requires."""
    try:
        parameters = list(inspect.signature(factory).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    wants_config = any(p.default is p.empty or p.name == "config" for p in positional)
    if sum(p.default is p.empty for p in positional) > 1:
        raise LoadError("the factory takes more than one argument; only `config` can be given")
    return factory(config) if wants_config else factory()


def build(value: Any, config: dict[str, Any], stack: contextlib.ExitStack) -> Any:
    """Compile a builder, call a factory, enter a context manager, until there is a graph."""
    for _ in range(5):
        value, done = _step(value, config)
        if done:
            return value
        if inspect.isawaitable(value) or hasattr(value, "__aenter__"):
            raise LoadError("the factory returned something that needs an event loop; make it an `async def`")
        if hasattr(value, "__enter__"):
            value = stack.enter_context(value)
    raise LoadError("the factory does not end in a graph")


async def abuild(value: Any, config: dict[str, Any], stack: contextlib.AsyncExitStack) -> Any:
    """As `build`, inside the event loop in which the graph will run."""
    for _ in range(5):
        value, done = _step(value, config)
        if done:
            return value
        if inspect.isawaitable(value):
            value = await value
        if hasattr(value, "__aenter__"):
            value = await stack.enter_async_context(value)
        elif hasattr(value, "__enter__"):
            value = stack.enter_context(value)
    raise LoadError("the factory does not end in a graph")


def _step(value: Any, config: dict[str, Any]) -> tuple[Any, bool]:
    value = unwrap(value)
    if is_graph(value):
        return value, True
    try:
        if is_builder(value):
            return value.compile(), True
        if callable(value) and not hasattr(value, "invoke"):
            return call_factory(value, config), False
    except LoadError:
        raise
    except Exception as error:
        raise LoadError(f"the graph cannot be built: {describe(error)}", error) from error
    if inspect.isawaitable(value) or hasattr(value, "__enter__") or hasattr(value, "__aenter__"):
        return value, False
    raise LoadError(f"this is a {type(value).__module__}.{type(value).__qualname__}, not a LangGraph graph, builder or factory")


def needs_async(graph: Any) -> bool:
    """Whether some node, branch or tool of the graph, or of a subgraph in it, exists only as a coroutine."""
    seen: set[int] = set()
    queue = [graph]
    while queue:
        part = queue.pop()
        if part is None or id(part) in seen or isinstance(part, (str, bytes, type)):
            continue
        seen.add(id(part))
        if _only_async(part):
            return True
        queue += _parts(part)
    return False


def _only_async(part: Any) -> bool:
    if hasattr(part, "coroutine") and hasattr(part, "args_schema"):  # a LangChain tool
        return part.coroutine is not None and getattr(part, "func", None) is None
    return getattr(part, "afunc", None) is not None and getattr(part, "func", None) is None


def _parts(part: Any) -> list[Any]:
    """What a runnable is made of, as far as its public attributes tell."""
    found: list[Any] = []
    if is_graph(part):
        found += list(getattr(part, "nodes", {}).values())
        for branches in getattr(getattr(part, "builder", None), "branches", {}).values():
            found += [branch.path for branch in branches.values() if hasattr(branch, "path")]
    for name in ("bound", "first", "last"):
        found.append(getattr(part, name, None))
    for name in ("steps", "middle", "subgraphs"):
        listed = getattr(part, name, None)
        found += list(listed) if isinstance(listed, (list, tuple)) else []
    tools = getattr(part, "tools_by_name", None)
    found += list(tools.values()) if isinstance(tools, dict) else []
    return found


def cut(text: str, limit: int = 20_000) -> str:
    """A text as far as anybody reads it, with a note of what is left out."""
    return text if len(text) <= limit else "{}… (+{:,} characters)".format(text[:limit], len(text) - limit)


def describe(error: BaseException) -> str:
    """`ValueError: text` in one line, as a traceback ends."""
    return " ".join("".join(traceback.format_exception_only(type(error), error)).split()) or type(error).__name__


def user_traceback(error: BaseException, limit: int = 20_000) -> str:
    """The traceback from the user's first own line on, without the frames of this program and of libraries above it."""
    trace = error.__traceback__
    while trace is not None and _is_foreign(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace or error.__traceback__))
    return text if len(text) <= limit else "…\n" + text[-limit:]


def user_place(error: BaseException) -> str:
    """Where in the user's own code an error came up: `File "graphs.py", line 3, in ask`; "" when it never was in there."""
    if isinstance(error, SyntaxError) and error.filename and not _is_foreign(error.filename):
        return 'File "{}", line {}'.format(error.filename, error.lineno)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_foreign(frame.filename)]
    return 'File "{0.filename}", line {0.lineno}, in {0.name}'.format(frames[-1]) if frames else ""


def own_files() -> list[str]:
    """The files that the user's own modules were loaded from: with any of them the graph may change."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return sorted({os.path.abspath(file) for file in files if isinstance(file, str) and not _is_foreign(file)})


def _is_foreign(file: str) -> bool:
    """Whether a file is a library's, Python's own or ours, and not below the project's folder."""
    if file.startswith("<"):
        return True
    path = os.path.abspath(file)
    below = path[len(os.getcwd()) :] if path.startswith(os.getcwd() + os.sep) else None
    if below is not None and "site-packages" not in below:
        return False
    if "site-packages" in path or os.path.dirname(path) == os.path.dirname(os.path.abspath(__file__)):
        return True
    return path.startswith(os.path.dirname(os.path.abspath(os.__file__)) + os.sep)
