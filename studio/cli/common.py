"""What several commands share: opening, naming, confirming, reading JSON arguments."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from studio.cli.out import Out
from studio.errors import PatchError, StudioError, UsageError
from studio.locations import Inside, files_of, one_file
from studio.model import Problem
from studio.render.gate import line

if TYPE_CHECKING:
    from studio.prices import Prices
    from studio.session import Session
    from studio.stores.sealed import AesKey
    from studio.stores.view import View

PRICES = "STUDIO_PRICES"
"""The environment variable that names a price table."""
_MAKE_FORKS = ("fork", "run", "open", "web")


@contextmanager
def opened(options: Namespace, out: Out) -> Iterator[Session]:
    """The session of a call; closed afterwards. Of a folder, the file that `--file` or the thread names."""
    inside = one_file(options.location, getattr(options, "file", None), getattr(options, "thread", None), view_in(options))
    session = open_session(inside.files[0], options, out)
    session.lost_beside = inside.problems
    note_no_forks(session, options, out)
    try:
        yield session
    finally:
        session.close()


def files_in(options: Namespace) -> Inside:
    """The files of a call that shows all of a folder, and what is lost. UsageError where they would share a scratch file."""
    if options.file is not None:
        return one_file(options.location, options.file, view=view_in(options))
    inside = files_of(options.location)
    if options.scratch is not None and len(inside.files) > 1:
        names = tuple(os.path.basename(path) for path in inside.files)
        message = f"{options.location} holds {len(names)} files, and --scratch keeps the forks of one: choose it with --file"
        raise UsageError(message, "", "choose-file", candidates=names)
    return inside


def note_no_forks(session: Session, options: Namespace, out: Out) -> None:
    """Say that a scratch file which a looking call names is not there: its name may be mistyped."""
    if options.scratch is not None and options.command not in _MAKE_FORKS and not session.scratch.exists():
        out.note(f"no forks are kept in {line(session.scratch_path, 300)}")


def open_session(path: str, options: Namespace, out: Out) -> Session:
    """A session on one file with what the call says about its graph and its scratch file."""
    from studio.session import Session

    spec = None
    if getattr(options, "graph", None) or getattr(options, "python", None):
        from studio.requests import GraphSpec

        spec = GraphSpec(options.graph, options.python)
    key = key_in(options)
    view = view_in(options)
    session = Session.open(
        path,
        scratch=options.scratch,
        show_secrets=out.show_secrets,
        graph=spec,
        aes_key=key,
        view=view,
        prices=prices_in(options),
    )
    if (active := getattr(options, "active", None)) is not None:
        try:
            session.take_branch(session.resolve(active, getattr(options, "thread", None)))
        except StudioError:
            session.close()
            raise
    return session


def prices_in(options: Namespace) -> Prices | None:
    """The price table that a call or the environment names; read once for a call."""
    path = getattr(options, "prices", None)
    if path is None and not os.environ.get(PRICES):
        return None
    from studio.prices import load

    if not hasattr(options, "read_prices"):
        options.read_prices = load(path, "--prices") if path is not None else load(os.environ[PRICES], PRICES)
    found: Prices | None = options.read_prices
    return found


def key_in(options: Namespace) -> AesKey | None:
    """The AES key that a call names. Raises UsageError (there is none) or OpenError (no library to use it with)."""
    if options.aes_key_env is None:
        return None
    from studio.stores.sealed import AesKey

    return AesKey.from_environment(options.aes_key_env)


def view_in(options: Namespace) -> View:
    """Which part of a file a call asks for."""
    from studio.stores.view import View

    return View(options.tables, options.without_wal)


def json_argument(text: str, option: str) -> Any:
    """An argument that must be JSON; UsageError with an example when it is not."""
    from studio.tagged import loads

    try:
        return loads(text)
    except PatchError as error:
        raise UsageError(f"{option}: {error.message}", f"""texts need double quotes inside: {option} '"text"'""") from error


def object_argument(text: str, option: str) -> dict[str, Any]:
    """As `json_argument`, for a JSON object."""
    found = json_argument(text, option)
    if not isinstance(found, dict):
        raise UsageError(f"{option} must be a JSON object", f"""for instance: {option} '{{"user": "mara"}}'""")
    return found


def pair_argument(text: str, option: str) -> tuple[str, Any]:
    """`NAME=JSON`, split at the first `=` that leaves valid JSON."""
    from studio.tagged import loads

    if "=" not in text:
        raise UsageError(f"{option}: an argument has no value", f"write {option} NAME=VALUE")
    at = text.find("=")
    why = ""
    while at >= 0:
        try:
            return text[:at], loads(text[at + 1 :])
        except PatchError as error:
            why = why or error.message.removeprefix("no valid JSON: ")
            at = text.find("=", at + 1)
    name = text.partition("=")[0]
    hint = f"""texts need double quotes inside: {option} '{name}="text"'"""
    raise UsageError(f"{option} {name}: the value is no JSON: {why}", hint)


def config_arguments(texts: list[str]) -> dict[str, Any]:
    """The `KEY=VALUE`s of `--config`: JSON where it is, else a text."""
    from studio.running.options import pair

    return dict(pair(text, "--config") for text in texts)


def confirmed(options: Namespace, out: Out, question: str, refusal: str) -> None:
    """Ask on a terminal; UsageError where nobody can answer and `--yes` is missing, or the answer is no."""
    if options.yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(refusal, "add --yes to do it", "not-confirmed")
    out.note(question)
    sys.stderr.write("Go on? [y/N] ")  # `input` would print it on stdout, into the result
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was done", "", "not-confirmed", exit_code=1)


def note_problems(out: Out, session: Session, more: Sequence[Problem] = ()) -> None:
    """What is lost or odd in the whole file, on stderr: beside a result that is about one of its checkpoints or values."""
    for problem in [*more, *(one for one in session.problems() if one.kind != "second-table")][:20]:
        out.note(_in_words(problem))


def say_problems(out: Out, problems: list[Problem] | tuple[Problem, ...]) -> None:
    """What is lost or odd in the file, after the result."""
    for problem in problems[:20]:
        out.say(out.paint(_in_words(problem), "yellow"))
    if len(problems) > 20:
        out.say(out.paint(f"! and {len(problems) - 20} more (--json lists all)", "yellow"))


def _in_words(problem: Problem) -> str:
    return f"! {line(problem.kind)} {line(problem.where, 80)}: {line(problem.message, 300)}"
