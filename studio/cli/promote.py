"""`studio promote`: put a branch of the scratch file into the opened file itself, after showing exactly what that adds."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from studio.cli.common import confirmed, opened
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.render import labels
from studio.render.gate import line
from studio.render.promotions import head_words, place_words
from studio.render.threadnames import thread_name
from studio.requests import Promotion
from studio.session import Session


def run(options: Namespace, out: Out) -> int:
    with opened(options, out) as session:
        found = session.promotion(session.resolve(options.ref, options.thread, options.ns))
        if not out.as_json:
            _text(session, found, out)
        if options.dry_run:
            if out.as_json:
                out.document(_document(found, out, added=False))
            else:
                out.say(out.paint("nothing was added (--dry-run)", "dim"))
            return 0
        count = labels.plural(len(found.rows), "checkpoint")
        confirmed(
            options,
            out,
            f"This adds {count} to {line(session.location)} itself; no row that is there changes.",
            f"promote adds {count} to {session.location} itself",
        )
        notices = session.promote(found)
        if out.as_json:
            out.document(_document(found, out, added=True, notices=notices))
        else:
            out.say(f"{out.paint('added', 'bold')} {count} to {line(found.location)}, read back and equal")
            for notice in notices:
                out.say(out.paint(f"! {line(notice, 400)}", "yellow"))
    return 0


def _document(found: Promotion, out: Out, *, added: bool, notices: Sequence[str] = ()) -> dict[str, Any]:
    documents = Documents(out.show_secrets)
    return {
        **documents.address(found.address),
        "stored_in": found.location,
        "rows": [
            {
                **documents.address(row.address),
                "parent_checkpoint_id": row.parent_checkpoint_id,
                "kind": row.kind,
                "size_bytes": row.size_bytes,
                "writes": row.writes,
            }
            for row in found.rows
        ],
        "writes": found.writes,
        "head_before": found.head_before,
        "head_after": found.head_after,
        "forked_from": documents.address(found.forked_from) if found.forked_from is not None else None,
        "added": added,
        "warnings": [*found.warnings],
        "surprises": [*notices],
    }


def _text(session: Session, found: Promotion, out: Out) -> None:
    tree = session.tree(found.address.thread_id)

    out.say(f"{out.paint('to add', 'bold')} to thread {thread_name(found.address.thread_id)} of {line(found.location)}")
    out.table(
        [
            [
                f"  #{tree.number(row.address)}",
                line(row.address.checkpoint_id),
                line(row.kind),
                labels.size(row.size_bytes),
                labels.plural(row.writes, "write"),
                line(row.address.checkpoint_ns),
            ]
            for row in found.rows
        ],
        [("bold", "magenta"), (), (), (), (), ("dim",)],
    )
    out.say(
        f"  {labels.plural(len(found.rows), 'checkpoint')} ({labels.size(found.size_bytes)}),"
        f" {labels.plural(found.writes, 'write')}"
    )
    out.table([["  place", place_words(found, tree)], ["  head", head_words(found, tree)]], [("dim",), ()])
    for warning in found.warnings:
        out.say(out.paint(f"! {line(warning, 400)}", "yellow"))
