"""`studio files`: the files of an agent's session as they were at a turn, listed, or written into a new folder."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from studio.cli.common import opened, say_problems
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.render import labels
from studio.render.gate import line

if TYPE_CHECKING:
    from studio.session import Session

NOTE = "What shell commands changed is not seen: the list may not be whole."
_WORDS = {"content": "known", "patch": "only as a patch", "absent": "not there", "unknown": "not known"}


def run(options: Namespace, out: Out) -> int:
    with opened(options, out) as session:
        address = session.resolve(options.ref, options.thread, options.ns)
        moment = session.files_at(address)
        written = session.lay_files(moment, options.out) if options.out is not None else {}
        if out.as_json:
            documents = Documents(out.show_secrets)
            out.document({
                **documents.address(address),
                "cwd": moment.cwd,
                "git_branch": moment.git_branch,
                "out": options.out,
                "files": [
                    {
                        "path": one.path,
                        "known": one.known,
                        "source": one.source,
                        "changed_by": one.turn,
                        "edits": one.edits,
                        "size_bytes": len(one.data) if one.data is not None else None,
                        "sha256": one.sha256,
                        "patch": documents.text(one.patch) if one.known == "patch" else None,
                        "written": written.get(one.path),
                    }
                    for one in moment.files
                ],
                "problems": documents.problems(moment.problems),
                "notes": [NOTE],
            })  # fmt: skip
        else:
            _text(session, moment, written, options.out, out)
    return 1 if moment.problems else 0


def _text(session: Session, moment: Any, written: dict[str, str], folder: str | None, out: Out) -> None:
    rows = [
        [
            _WORDS[one.known],
            labels.size(len(one.data)) if one.data is not None else "",
            line(one.path, 300),
            f"{line(one.source, 120)}{', written' if one.path in written else ''}",
        ]
        for one in moment.files
    ]
    if rows:
        out.table(rows, [("bold",), ("dim",), (), ("dim",)])
    else:
        out.say("no file is known at this turn")
    if folder is not None:
        out.say(f"{labels.plural(len(written), 'file')} written into {line(folder, 300)}")
    say_problems(out, moment.problems)
    out.say(out.paint(NOTE, "dim"))
