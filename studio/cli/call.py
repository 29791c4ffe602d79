"""One call of the command line, from arguments to exit code: the only place where errors are caught."""

from __future__ import annotations

import errno
import importlib
import os
import sys

from studio.cli import arguments
from studio.cli.out import Out
from studio.errors import StudioError

CANCELLED = 130
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_MODULES = {"open": "tui", "web": "serve", "demo": "serve"}


def run(argv: list[str]) -> int:
    """Parse, call the command's module, report what went wrong."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open until the process ends
    out = Out(debug="--debug" in argv)
    try:
        options = arguments.parse(argv)
        if isinstance(options, int):
            return options
        out.as_json = options.json
        out.show_secrets = options.show_secrets
        module = importlib.import_module(f"studio.cli.{_MODULES.get(options.command, options.command)}")
        code: int = getattr(module, options.command if options.command in _MODULES else "run")(options, out)
        sys.stdout.flush()
        return code
    except StudioError as error:
        return out.error(error)
    except KeyboardInterrupt:
        return CANCELLED
    except BrokenPipeError:
        _stop_writing()
        return 0
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            return out.crash(error)
        _stop_writing()
        return out.error(StudioError(f"the output cannot be written: {error.strerror}", "make room, or write it elsewhere"))
    except Exception as error:
        return out.crash(error)


def _stop_writing() -> None:
    """The reader of our output is gone (`| head`): nothing more may be written, not even at exit."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError):
        pass
