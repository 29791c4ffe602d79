"""Finding the user's graph and the interpreter that can run it, without importing or running anything.

A graph is a name in `langgraph.json` (searched from the working folder upward, then from the opened location upward), or
`module:attr`, or `path.py:attr`. The interpreter is the one asked for, else that of `VIRTUAL_ENV`, else `.venv` beside
`langgraph.json`, else the studio's own.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from studio.errors import RunError, UsageError
from studio.render.gate import line
from studio.requests import GraphSpec

CONFIG_NAME = "langgraph.json"


class GraphFound(Struct, frozen=True):
    """Where a graph is and with what it runs."""

    name: str | None
    """Its name in `langgraph.json`; None when it was given as module or path."""
    target: str
    """`/path/graphs.py:support_agent` or `package.module:graph`."""
    attr: str
    file: str | None
    """The code file; None for a module, whose file only its interpreter knows."""
    module: str | None
    interpreter: str
    chosen_by: str
    """Why this interpreter: `--python`, `VIRTUAL_ENV`, `.venv beside langgraph.json`, `the studio's own`."""
    project_dir: str
    """Working folder of the run and first entry of its import path."""
    config_file: str | None = None
    env_file: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    """Further import paths: the local `dependencies` of `langgraph.json`."""

    @property
    def title(self) -> str:
        return f"{self.name} = {self.target}" if self.name else self.target

    def request(self) -> dict[str, Any]:
        """What the child needs to load it."""
        return {
            "file": self.file, "module": self.module, "attr": self.attr, "project_dir": self.project_dir,
            "paths": list(self.paths), "env_file": self.env_file, "env": self.env,
        }  # fmt: skip


class _Config(Struct, frozen=True):
    path: Path
    document: dict[str, Any]

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def graphs(self) -> dict[str, str]:
        """name -> `path.py:attr` or `module:attr`; newer files also write `{"path": …}`."""
        listed = self.document.get("graphs")
        if not isinstance(listed, dict):
            return {}
        paths = {name: value.get("path") if isinstance(value, dict) else value for name, value in listed.items()}
        return {name: path for name, path in paths.items() if isinstance(path, str)}

    def env(self) -> tuple[str | None, dict[str, str]]:
        given = self.document.get("env")
        if isinstance(given, dict):
            return None, {str(key): str(value) for key, value in given.items()}
        if isinstance(given, str) and (self.folder / given).is_file():
            return str(self.folder / given), {}
        return None, {}

    def paths(self) -> tuple[str, ...]:
        listed = self.document.get("dependencies")
        found = []
        for item in listed if isinstance(listed, list) else ():
            folder = self.folder / item if isinstance(item, str) and item.startswith(".") else None
            if folder is not None:
                found += [str(path.resolve()) for path in (folder, folder / "src") if path.is_dir()]
        return tuple(dict.fromkeys(found))


def find_graph(spec: GraphSpec, location: str | None = None) -> GraphFound:
    """Where the graph of `spec` is.

    Raises UsageError when there is none or a choice is missing, RunError for an interpreter that is not there.
    """
    cwd = Path(spec.cwd or os.getcwd()).resolve()
    config = _find_config(cwd, location, spec.graph)
    name, target = _choose(spec.graph, config, cwd)
    base = config.folder if config is not None and name is not None else cwd
    file, module, attr = _split(target, base, location)
    folder = config.folder if config is not None else (Path(file).parent if file else cwd)
    interpreter, chosen_by = find_interpreter(spec.python, config.folder if config is not None else folder, cwd)
    env_file, env = config.env() if config is not None else (None, {})
    return GraphFound(
        name=name, target=f"{file or module}:{attr}", attr=attr, file=file, module=module, interpreter=interpreter,
        chosen_by=chosen_by, project_dir=str(folder), config_file=str(config.path) if config is not None else None,
        env_file=env_file, env=env, paths=config.paths() if config is not None else (),
    )  # fmt: skip


def graph_names(cwd: str | None = None, location: str | None = None) -> tuple[str, ...]:
    """The graphs that `langgraph.json` lists, in its order; () without such a file. Raises UsageError when it is broken."""
    config = _find_config(Path(cwd or os.getcwd()).resolve(), location)
    return tuple(config.graphs) if config is not None else ()


def called_like(location: str, names: Iterable[str]) -> str | None:
    """Of several graphs the one that is called like the opened file."""
    stem = os.path.splitext(os.path.basename(location))[0]
    return stem if stem in names else None


def _find_config(cwd: Path, location: str | None, wanted: str | None = None) -> _Config | None:
    """`langgraph.json` upward from the working folder, else from the location; a name that only the second lists counts."""
    first: _Config | None = None
    for start in [cwd] + ([Path(location).resolve()] if location and "://" not in location else []):
        path = next((folder / CONFIG_NAME for folder in (start, *start.parents) if is_file(folder / CONFIG_NAME)), None)
        if path is None:
            continue
        found = _read_config(path)
        if first is None and (wanted is None or ":" in wanted) or wanted in found.graphs:
            return found
        first = first or found
    return first


def _read_config(path: Path) -> _Config:
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", "check its permissions", "bad-langgraph-json") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not valid JSON: {error}", "repair the file", "bad-langgraph-json") from None
    if not isinstance(document, dict):
        hint = 'it should look like {"graphs": {"agent": "./agent.py:graph"}}'
        raise UsageError(f"{path} holds no JSON object", hint, "bad-langgraph-json")
    return _Config(path, document)


def _choose(wanted: str | None, config: _Config | None, cwd: Path) -> tuple[str | None, str]:
    """(name in langgraph.json or None, target)."""
    graphs = config.graphs if config is not None else {}
    if wanted is not None and wanted in graphs:
        return wanted, graphs[wanted]
    if wanted is not None and ":" in wanted:
        return None, wanted
    names = tuple(graphs)
    if config is None or not graphs:
        asked = f"no graph named {wanted!r}: " if wanted is not None else ""
        where = f"{config.path} lists no graphs" if config is not None else f"there is no {CONFIG_NAME} in {cwd} or above it"
        raise UsageError(asked + where, "name the graph: --graph FILE.py:ATTR or MODULE:ATTR", "no-graph")
    if wanted is not None:
        message = f"{config.path} has no graph named {wanted!r}"
        raise UsageError(message, f"its graphs: {', '.join(names)}", "no-graph", candidates=names)
    if len(graphs) > 1:
        hint = f"choose one with --graph: {', '.join(names)}"
        raise UsageError(f"{config.path} has several graphs", hint, "several-graphs", candidates=names)
    return next(iter(graphs.items()))


def _split(target: str, base: Path, location: str | None) -> tuple[str | None, str | None, str]:
    """(file, module, attr) of `path.py:attr` or `module:attr`; a path is tried from `base`, then from the location's folder."""
    path, colon, attr = target.rpartition(":")
    if not colon or not path or not attr:
        raise UsageError(f"{target!r} names no graph", "write FILE.py:ATTR or MODULE:ATTR", "no-graph")
    if not path.endswith(".py") and "/" not in path and os.sep not in path:
        return None, path, attr
    for folder in (base, *_folders(location)):
        if is_file(folder / path):
            return str((folder / path).resolve()), None, attr
    missing = line(str(base / path), 300)
    raise UsageError(f"there is no file {missing}", "give --graph a path from here, or an absolute one", "no-graph-file")


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name that the system refuses (too long, a null byte) names none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _folders(location: str | None) -> Iterator[Path]:
    if location and "://" not in location:
        path = Path(location).resolve()
        yield path if path.is_dir() else path.parent


def find_interpreter(wanted: str | None, project: Path, cwd: Path) -> tuple[str, str]:
    """(interpreter, why this one)."""
    if wanted is not None:
        return _given_interpreter(wanted, cwd), "--python"
    active = os.environ.get("VIRTUAL_ENV")
    if active and (found := _python_of(Path(active))):
        return found, "VIRTUAL_ENV"
    if found := _python_of(project / ".venv"):
        return found, f".venv beside {CONFIG_NAME}"
    return sys.executable, "the studio's own"


def _given_interpreter(wanted: str, cwd: Path) -> str:
    path = cwd / Path(wanted).expanduser()
    if os.path.isdir(path):
        found = _python_of(path)
    elif is_file(path):
        # Not resolved: a venv's python is a link, and where it leads to has none of the venv's packages.
        found = str(path) if os.access(path, os.X_OK) else None
    else:
        found = shutil.which(wanted) if os.sep not in wanted else None
    if found is None:
        hint = "give --python the path of a python, or of a virtual environment"
        raise RunError(f"{line(wanted, 300)} is no Python interpreter", hint, "no-interpreter")
    return found


def _python_of(environment: Path) -> str | None:
    for path in (environment / "bin" / "python", environment / "Scripts" / "python.exe"):
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    return None
