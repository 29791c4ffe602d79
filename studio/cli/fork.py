"""`studio fork`: a new checkpoint beside an old one, with other values or another next node."""

from __future__ import annotations

import os
import stat
import sys
from argparse import Namespace

from studio.cli.common import config_arguments, confirmed, json_argument, opened, pair_argument
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.errors import UsageError
from studio.model import Address, Tagged_JSON
from studio.render import secrets, shell
from studio.render.gate import line
from studio.requests import ForkRequest, ForkResult, Patch
from studio.session import Session

_LARGEST_PATCH = 64 << 20
_PATCH_HINT = "give a JSON file, or - for stdin"


def run(options: Namespace, out: Out) -> int:
    patch = _patch(options)
    is_update = options.as_node is not None or options.update is not None
    if is_update and (patch or options.goto is not None):
        raise UsageError(
            "--as-node and --update cannot be mixed with --set, --unset, --patch or --goto", "make two forks, one after the other"
        )
    if not is_update and (options.config or options.recursion_limit is not None):
        raise UsageError(
            "--config and --recursion-limit need a graph that runs, and this fork runs none",
            "give them to `studio run`, or fork with --as-node",
        )
    update = json_argument(options.update, "--update") if options.update is not None else None
    with opened(options, out) as session:
        address = session.resolve(options.ref, options.thread, options.ns)
        if options.in_place:
            confirmed(
                options,
                out,
                f"This adds rows to {line(session.location)} itself.",
                f"--in-place writes into {session.location} itself",
            )
        request = ForkRequest(
            address,
            patch,
            options.goto,
            options.as_node,
            update,
            is_update,
            options.new_thread,
            options.in_place,
            trust_types=options.trust_types,
            config=config_arguments(options.config),
            recursion_limit=options.recursion_limit,
        )
        if patch and not out.as_json:
            for warning in session.preview(request).warnings:
                out.note(out.paint(f"! {line(warning if out.show_secrets else secrets.mask_text(warning), 400)}", "yellow"))
        result = session.fork(request)
        if out.as_json:
            out.document(Documents(out.show_secrets).fork(result))
        else:
            _text(session, address, result, out, in_place=options.in_place)
    return 0 if result.verified else 1


def _patch(options: Namespace) -> Patch:
    found: dict[str, Tagged_JSON] = {}
    unset: list[str] = []
    if options.patch is not None:
        document = json_argument(_read(options.patch), "--patch")
        good = isinstance(document, dict) and not set(document) - {"set", "unset"}
        if not good or not isinstance(document.get("set", {}), dict) or not isinstance(document.get("unset", []), list):
            raise UsageError("--patch: the file holds no patch", 'a patch is {"set": {"/path": value}, "unset": ["/path"]}')
        found.update(document.get("set", {}))
        unset.extend(str(path) for path in document.get("unset", []))
    for text in options.set:
        path, value = pair_argument(text, "--set")
        found[path] = value
    unset.extend(options.unset)
    for path in (*found, *unset):
        if not path.startswith("/"):
            raise UsageError(f"the path {path!r} does not begin with /", "a path looks like /messages/3/content")
    return Patch(found, tuple(unset))


def _read(name: str) -> str:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(_LARGEST_PATCH + 1)
        else:
            if not stat.S_ISREG(os.stat(name).st_mode):  # a device or a pipe may never end
                raise UsageError(f"--patch {name}: not a file", _PATCH_HINT)
            with open(name, "rb") as file:
                data = file.read(_LARGEST_PATCH + 1)
        if len(data) > _LARGEST_PATCH:
            raise UsageError(f"--patch {name}: larger than {_LARGEST_PATCH >> 20} MB", "make several forks, one after the other")
        return data.decode("utf-8")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or ("not a UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error))
        raise UsageError(f"--patch {name}: {why}", _PATCH_HINT) from error


def _text(session: Session, origin: Address, result: ForkResult, out: Out, *, in_place: bool) -> None:
    tree = session.tree(result.address.thread_id)
    number = f"#{tree.number(result.address)} " if result.address in tree else ""
    base = session.tree(origin.thread_id)
    came_from = f"#{base.number(origin)}" if origin in base else line(origin.checkpoint_id)
    out.say(
        f"{out.paint('forked', 'bold')} {came_from} → {out.paint(number, 'bold', 'magenta')}{line(result.address.checkpoint_id)}"
    )
    nodes = "not known" if result.next is None else ", ".join(line(name or "?") for name in result.next) or "nothing"
    inside = result.root != result.address and result.root in tree
    root = f"#{tree.number(result.root)} {line(result.root.checkpoint_id)}" if inside else ""
    facts = [
        ("thread", line(result.address.thread_id) if result.address.thread_id != origin.thread_id else ""),
        ("namespace", line(result.address.checkpoint_ns)),
        ("recipe", line(result.recipe)),
        ("next", nodes),
        ("stored in", line(result.stored_in)),
        ("verified", "yes, read back and equal" if result.verified else "NO: what is stored differs from what was asked for"),
    ]
    if inside:
        facts.append(("runs from", f"{root}, the new checkpoint of the outer graph that calls this subgraph"))
        facts.append(("run it", _command(session, result, tree.number(result.address), in_place)))
    out.table([["  " + name, value] for name, value in facts if value], [("dim",), ()])
    for surprise in result.surprises:
        out.say(out.paint(f"! {line(surprise if out.show_secrets else secrets.mask_text(surprise), 400)}", "yellow"))


def _command(session: Session, result: ForkResult, number: str, in_place: bool) -> str:
    """The command that runs a fork, to be copied as it is."""
    place = [session.location, *session.view_options, "--thread", result.address.thread_id]
    return " ".join(map(shell.word, ["studio", "run", *place, number, *(["--in-place"] if in_place else [])]))
