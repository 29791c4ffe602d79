"""The arguments of every command. What a command takes is said here and nowhere else."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any, NoReturn

from studio import __version__
from studio.errors import UsageError

COMMANDS = {
    "open": "terminal UI; the same as `studio LOCATION`",
    "web": "browser view: a local server, prints its link",
    "ls": "the threads of a file",
    "tree": "the checkpoints of a thread as a tree",
    "show": "one checkpoint: state, tasks, questions, what runs next",
    "diff": "what changed, and who wrote it",
    "compare": "two branches side by side, from where they part",
    "edges": "the graph as it ran: which node led to which, how often",
    "search": "checkpoints and paths whose values hold a text",
    "tables": "what else the file holds: stores, caches, other tables",
    "export": "everything as JSON lines, oldest first",
    "files": "the files of an agent's session as they were at a turn",
    "fork": "fork from a checkpoint, with changed values or another next node",
    "run": "run your graph again from a checkpoint",
    "promote": "put a branch of the scratch file into the file itself",
    "demo": "the sample threads in the browser",
    "scratch": "the files where forks are kept: ls, path, rm",
}
_REF = "a number as the tree shows it, a checkpoint id or a part of it, head, head~N, root, at:TIME"


class _Parser(argparse.ArgumentParser):
    """Raises instead of printing usage: one line and one hint, as every other error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"see `{self.prog} --help`")


def parse(argv: list[str]) -> argparse.Namespace | int:
    """The options of a call; an exit code when nothing is left to do (`--help`, `--version`)."""
    first = _named(argv)
    parser = _build(first)
    try:
        options, others = parser.parse_known_args(_with_command(argv))
        if first is not None and first not in COMMANDS and (others or not os.path.lexists(first)):
            from studio.cli import mistyped

            if (error := mistyped.told(first, others, COMMANDS)) is not None:
                raise error
        if others:
            parser.error(f"unrecognized arguments: {' '.join(others)}")
    except SystemExit as leave:
        return int(leave.code or 0)
    if options.command is None:
        from studio.locations import on_this_machine

        if argv or not on_this_machine(os.getcwd()):
            parser.print_help()
            return 2
        return argparse.Namespace(command="here", json=False, show_secrets=False, debug=False)
    if getattr(options, "thread", None) is not None:
        options.thread = thread_name(options.thread)
    for name, value in vars(options).items():
        if name not in _PATHS:
            _check_text(name, value)
        elif value == "":  # a shell variable that is not set, most likely: it would be taken as the current folder
            option = "LOCATION" if name == "location" else f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is empty", "name a file or a folder; `.` is the current one")
    return options


_PATHS = ("location", "file", "out", "graph", "python", "scratch", "patch", "aes_key_env", "prices")
"""Names of files may be any bytes."""
_STORED = ("thread", "ns", "ref", "ref2", "around", "at", "namespace", "key")
"""Names of what a file holds, which need not be UTF-8: such a byte is read as half of a surrogate pair, U+DC80 to U+DCFF."""


def _check_text(name: str, value: Any) -> None:
    """UsageError for text that no database can hold, so that nothing can be looked up by it: half of a surrogate pair."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str):
            try:
                text.encode(errors="surrogateescape" if name in _STORED else "strict")
            except UnicodeEncodeError as error:
                option = name.upper() if name in ("ref", "ref2", "text") else f"--{name.replace('_', '-')}"
                raise UsageError(f"{option}: {text!r} is no valid text", "write it in UTF-8, \\u escapes in pairs") from error


def _named(argv: list[str]) -> str | None:
    """The command that a call names, so that only its own parser has to be built."""
    return next((word for word in argv if not word.startswith("-")), None)


def _with_command(argv: list[str]) -> list[str]:
    """`studio FILE` is `studio open FILE`."""
    first = _named(argv)
    return ["open", *argv] if first is not None and first not in COMMANDS else argv


def thread_name(text: str) -> str:
    """A thread's id as given, or written as a JSON string where no shell can pass it."""
    if len(text) >= 2 and text[0] == text[-1] == '"':
        try:
            found = json.loads(text)
        except ValueError:
            return text
        return found if isinstance(found, str) else text
    return text


def _build(command: str | None) -> _Parser:
    parser = _Parser(
        prog="studio", allow_abbrev=False,
        description="A visual time-travel debugger for LangGraph checkpoint databases and agents' transcripts.",
        epilog="`studio` alone lists what can be opened here. `studio FILE` opens the terminal UI. "
        "`studio COMMAND --help` explains a command.",
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"studio {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser, title="commands")
    only = command if command in COMMANDS else "open" if command is not None else None
    for name, text in COMMANDS.items():
        if only in (None, name):
            found = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False)
            _BUILDERS[name](found)
            for flag, words in _ALWAYS.items():
                found.add_argument(flag, action="store_true", help=words)
    return parser


_ALWAYS = {
    "--json": "one JSON document (JSON lines for export and run), pure ASCII",
    "--show-secrets": "print values that are masked otherwise",
    "--debug": "show the traceback of an error",
}


def _location(parser: Any, ref: bool = False, thread: bool = True, ns: bool = True) -> None:
    parser.add_argument("location", metavar="LOCATION", help="a checkpoint database, an agent's transcript, or a folder of them")
    parser.add_argument("--file", metavar="NAME", help="one file of a folder")
    parser.add_argument(
        "--aes-key-env", metavar="NAME", help="read encrypted rows with the key that this environment variable holds"
    )
    _view(parser)
    parser.add_argument(
        "--prices", metavar="FILE", help="estimate what a transcript cost by this table (or the one that STUDIO_PRICES names)"
    )
    parser.add_argument("--active", metavar="REF", help="take the branch of a session through this turn for the active one")
    parser.add_argument("--scratch", metavar="FILE", help="the file that keeps the forks, instead of the one in your data folder")
    if ref:
        parser.add_argument("ref", metavar="REF", help=_REF)
    if thread:
        parser.add_argument(
            "--thread", metavar="ID", help="the thread; needed where a file holds several (a JSON string works too)"
        )
    if ns:
        parser.add_argument("--ns", metavar="NS", help="a namespace; empty is the root graph")


def _view(parser: Any) -> None:
    parser.add_argument("--tables", metavar="NAME", help="the table of checkpoints to show, where a file holds several")
    parser.add_argument("--without-wal", action="store_true", help="show the file as it is without its -wal")


def _graph(parser: Any) -> None:
    parser.add_argument(
        "--graph", metavar="NAME|M:A", help="a graph of langgraph.json, or module:attribute, or path.py:attribute"
    )
    parser.add_argument("--python", metavar="PATH", help="the interpreter that runs the graph")


def _acts(parser: Any) -> None:
    _graph(parser)
    parser.add_argument("--in-place", action="store_true", help="write into the opened file itself (rows are only added)")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--trust-types", action="store_true", help="let the run import stored types outside the safe list")
    parser.add_argument("--recursion-limit", type=_count, metavar="N", help="LangGraph's limit of supersteps")
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an entry of the run's `configurable` (configurable.KEY means the same)",
    )


def _open(parser: Any) -> None:
    _location(parser, ns=False)
    parser.add_argument("--at", metavar="REF", help="stand on this checkpoint: " + _REF)
    _graph(parser)


def _web(parser: Any) -> None:
    _location(parser, thread=False, ns=False)
    _server(parser)
    parser.add_argument("--at", metavar="PATH?QUERY", help="the page to open")
    _graph(parser)


def _server(parser: Any) -> None:
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="the port; 0 = any free one")
    parser.add_argument("--no-browser", action="store_true", help="only print the link")
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="another name this machine may be called by"
    )


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text[:20]) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number from 0 to 65535")
    return int(text)


def _ls(parser: Any) -> None:
    _location(parser, ns=False)


def _tree(parser: Any) -> None:
    _location(parser)
    parser.add_argument("--all-ns", action="store_true", help="subgraphs too")
    parser.add_argument("--limit", type=_count, metavar="N", help="at most N rows: the last ones, or those around --around")
    parser.add_argument("--around", metavar="REF", help="show the rows around this one")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text[:20]) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text[:20])


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e7:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return found


def _show(parser: Any) -> None:
    _location(parser, ref=True)
    parser.add_argument("--path", metavar="P", help="one value, such as /messages/3/content")
    parser.add_argument("--raw", action="store_true", help="the stored record, nothing derived")
    parser.add_argument("--sizes", action="store_true", help="how many bytes each channel takes, and what grew")


def _diff(parser: Any) -> None:
    _location(parser, ref=True)
    parser.add_argument("ref2", metavar="REF2", nargs="?", help="compare REF with this one instead of the parent with REF")
    parser.add_argument("--origin", action="store_true", help="compare a fork with the checkpoint it was made from")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when there are changes")


def _compare(parser: Any) -> None:
    _location(parser, ref=True)
    parser.add_argument("ref2", metavar="REF2", help="the end of the other branch")
    parser.add_argument("--thread2", metavar="ID", help="the thread of REF2, where it is another one")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when the branches differ")


def _edges(parser: Any) -> None:
    _location(parser)
    _graph(parser)


def _search(parser: Any) -> None:
    _location(parser, ns=False)
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("--limit", type=_count, default=200, metavar="N", help="stop after N hits (200)")


def _files(parser: Any) -> None:
    _location(parser, ref=True)
    parser.add_argument("--out", metavar="DIR", help="write those whose content is known into this new folder")


def _tables(parser: Any) -> None:
    _location(parser, thread=False, ns=False)
    parser.add_argument("name", metavar="NAME", nargs="?", help="the table whose entries to list")
    parser.add_argument("--namespace", metavar="NS", help="only this namespace of a store or cache, and those below it")
    parser.add_argument("--key", metavar="KEY", help="only this key, with its whole value")
    parser.add_argument("--limit", type=_count, default=50, metavar="N", help="at most N entries (50)")


def _export(parser: Any) -> None:
    _location(parser, ns=False)
    parser.add_argument(
        "--values", choices=("all", "changed", "heads", "none"), default="all", help="which lines carry their state"
    )


_FORK_WORDS = """three acts, each with --dry-run to see what it would do:
  set the state        --set, --unset, --patch: these values stand there afterwards, none of your code runs,
                       and what was to run next still does (--goto NODE lets another node run)
  write as a node      --as-node NODE --update JSON: as if NODE had just returned these values; your graph's
                       reducers take them in, and its edges decide what runs next (LangGraph's update_state).
                       --nodes lists the nodes, best first. Several pairs write in one superstep
  the same point again nothing of the above: a copy, to see what chance, a new prompt or new code does

each of them goes into a thread of its own with --new-thread ID. A question is answered with `studio run`.

An agent's session is forked into a new session file that its program goes on from: --set /messages/N/content=... edits
a message, --unset /messages/N drops one, --install puts the file where the program looks, and the command that goes on
is printed.
"""


def _fork(parser: Any) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _FORK_WORDS
    _location(parser, ref=True)
    parser.add_argument("--set", action="append", default=[], metavar="P=VALUE", help="set the value at a path (VALUE is JSON)")
    parser.add_argument("--unset", action="append", default=[], metavar="P", help="remove the value at a path")
    parser.add_argument("--patch", metavar="FILE", help='a JSON file {"set": {path: value}, "unset": [path]}; - reads stdin')
    parser.add_argument("--goto", metavar="NODE", help="let this node run next")
    parser.set_defaults(write_words=[])
    parser.add_argument("--as-node", action=_InOrder, metavar="NODE", help="write --update as this node would (needs the graph)")
    parser.add_argument("--update", action=_InOrder, metavar="JSON", help="what the node returns; goes through the reducers")
    parser.add_argument(
        "--overwrite",
        action=_InOrder,
        metavar="CHANNEL",
        help="let the value of --update replace what this channel holds, past its reducer",
    )
    parser.add_argument("--nodes", action="store_true", help="only list the nodes to write as, and what would run after each")
    parser.add_argument("--new-thread", metavar="ID", help="fork into a thread of its own")
    parser.add_argument(
        "--install", action="store_true", help="an agent's session: also put the fork where its program looks for sessions"
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would change and what would run next")
    _acts(parser)


class _InOrder(argparse.Action):
    """Keeps options that belong together in the order in which they were given: as `write_words`, and each by itself."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or ()), values])
        namespace.write_words = [*namespace.write_words, self.dest, values]


def _run(parser: Any) -> None:
    _location(parser, ref=True)
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--input", metavar="JSON", help="a new input")
    given.add_argument("--resume", metavar="JSON", help="the answer to the open question")
    given.add_argument("--answer", action="append", default=[], metavar="ID=JSON", help="the answer to one of several questions")
    parser.add_argument("--before", action="append", default=[], metavar="NODE", help="stop before this node")
    parser.add_argument("--after", action="append", default=[], metavar="NODE", help="stop after this node")
    parser.add_argument("--steps", type=_count, metavar="N", help="stop after N supersteps; go on from where it stands")
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="end the run when it takes longer")
    parser.add_argument("--context", metavar="JSON", help="the run-time context of the graph, an object")
    parser.add_argument("--new-thread", metavar="ID", help="run a copy in a thread of its own")
    parser.add_argument("--dry-run", action="store_true", help="only print the plan")
    _acts(parser)


def _promote(parser: Any) -> None:
    _location(parser, ref=True)
    parser.add_argument(
        "--dry-run", action="store_true", help="only show the rows that would be added, and the thread's new head"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _demo(parser: Any) -> None:
    parser.add_argument("--tui", action="store_true", help="in the terminal instead of the browser")
    _server(parser)


def _scratch(parser: Any) -> None:
    parser.add_argument("act", choices=("ls", "path", "rm"), help="list them, print where a file's forks go, delete one")
    parser.add_argument("location", metavar="LOCATION", nargs="?", help="the opened file, or the scratch file itself")
    _view(parser)
    parser.add_argument("--notes", action="store_true", help="rm: the history of runs too")
    parser.add_argument("--yes", action="store_true", help="do not ask")


_BUILDERS = {
    "open": _open, "web": _web, "ls": _ls, "tree": _tree, "show": _show, "diff": _diff,
    "compare": _compare, "edges": _edges, "search": _search, "tables": _tables,
    "export": _export, "files": _files, "fork": _fork, "run": _run, "promote": _promote, "demo": _demo, "scratch": _scratch,
}  # fmt: skip
