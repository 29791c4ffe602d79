"""`studio fork`: a new checkpoint beside an old one, with other values or another next node."""

from __future__ import annotations

import os
import stat
import sys
from argparse import Namespace
from contextlib import nullcontext

from msgspec.structs import replace

from studio.cli import fork_preview
from studio.cli.common import config_arguments, confirmed, json_argument, opened, pair_argument
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.cli.waiting import waiting
from studio.errors import UsageError
from studio.model import Address, Tagged_JSON
from studio.render import secrets, shell
from studio.render.gate import line
from studio.render.threadnames import thread_name
from studio.requests import ForkRequest, ForkResult, NodeUpdate, Patch
from studio.session import Session

_LARGEST_PATCH = 64 << 20
_PATCH_HINT = "give a JSON file, or - for stdin"


def run(options: Namespace, out: Out) -> int:
    patch = _patch(options)
    updates = _updates(options.write_words)
    if updates and (patch or options.goto is not None):
        raise UsageError(
            "--as-node and --update cannot be mixed with --set, --unset, --patch or --goto", "make two forks, one after the other"
        )
    if not updates and (options.config or options.recursion_limit is not None):
        raise UsageError(
            "--config and --recursion-limit need a graph that runs, and this fork runs none",
            "give them to `studio run`, or fork with --as-node",
        )
    with opened(options, out) as session:
        address = session.resolve(options.ref, options.thread, options.ns)
        if session.is_transcript:
            from studio.cli import fork_session

            return fork_session.run(session, fork_session.request_of(options, address, patch), options, out)
        if options.install:
            raise UsageError("--install is for agents' sessions", "a checkpoint is put into its file with `studio promote`")
        if options.nodes:
            with waiting(out, options.graph) if options.graph else nullcontext():
                return fork_preview.nodes(session, address, out, look=bool(options.graph))
        if options.in_place and not options.dry_run:
            confirmed(
                options,
                out,
                f"This adds rows to {line(session.location)} itself.",
                f"--in-place writes into {session.location} itself",
            )
        first = updates[0] if updates else NodeUpdate()
        request = ForkRequest(
            address,
            patch,
            options.goto,
            first.as_node,
            first.values,
            bool(updates),
            options.new_thread,
            options.in_place,
            trust_types=options.trust_types,
            config=config_arguments(options.config),
            recursion_limit=options.recursion_limit,
            overwrite=first.overwrite,
            beside=updates[1:],
        )
        if options.dry_run:
            with waiting(out, options.graph) if updates else nullcontext():
                return fork_preview.show(session, request, out)
        if patch and not out.as_json:
            for warning in session.preview(request).warnings:
                out.note(out.paint(f"! {line(warning if out.show_secrets else secrets.mask_text(warning), 400)}", "yellow"))
        with waiting(out, options.graph) if updates else nullcontext():
            result = session.fork(request)
        if out.as_json:
            out.document(Documents(out.show_secrets).fork(result))
        else:
            _text(session, address, result, out, in_place=options.in_place)
    return 0 if result.verified else 1


def _updates(words: list[str]) -> tuple[NodeUpdate, ...]:
    """The writes that --as-node, --update and --overwrite ask for: each --as-node begins one, and the others belong to it."""
    given = list(zip(words[::2], words[1::2], strict=True))
    found: list[NodeUpdate] = []
    valued = False
    one = sum(name == "as_node" for name, _ in given) < 2
    if one:  # the order of the options of a single write says nothing
        given.sort(key=lambda pair: ("as_node", "update", "overwrite").index(pair[0]))
    for name, text in given:
        if name == "as_node":
            found.append(NodeUpdate(text))
            valued = False
        elif name == "update":
            if (valued or not found) and not one:
                raise UsageError("--update: each needs the --as-node that it belongs to before it", _PAIRS)
            if valued:
                raise UsageError("--update is given twice for one node", _PAIRS)
            last = found.pop() if found else NodeUpdate()
            found.append(replace(last, values=json_argument(text, "--update")))
            valued = True
        else:
            if not found:
                raise UsageError("--overwrite: there is no --update whose value would replace anything", "add --update JSON")
            found.append(replace(last := found.pop(), overwrite=(*last.overwrite, text)))
    return tuple(found)


_PAIRS = "several writes in one superstep: --as-node A --update JSON --as-node B --update JSON"


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
        ("thread", thread_name(result.address.thread_id) if result.address.thread_id != origin.thread_id else ""),
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
