"""`studio search`: where values hold a text, first occurrence first."""

from __future__ import annotations

from argparse import Namespace

from studio.cli.common import note_problems, opened
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.errors import UsageError
from studio.render.gate import line
from studio.unsearched import MASKED, Unsearched


def run(options: Namespace, out: Out) -> int:
    if not options.text:
        raise UsageError("search for what?", "studio search LOCATION TEXT")
    with opened(options, out) as session:
        thread = session.one_thread(options.thread) if options.thread is not None else None
        documents = Documents(out.show_secrets)
        passed = Unsearched()
        hits = session.search(options.text, thread, options.limit, others=False, passed=passed)
        if out.as_json:
            found = [documents.hit(hit) for hit in hits]
            problems = documents.problems([*passed.problems(), *session.problems()])
            out.document({"text": options.text, "hits": found, "problems": problems})
            return int(session.refused_key())
        count, last = 0, None
        for hit in hits:
            if hit.address.thread_id != last:
                last = hit.address.thread_id
                out.say(out.paint(line(last), "bold"))
            count += 1
            doc = documents.hit(hit)
            number = out.paint(f"  #{hit.number or '?':<6}", "dim")
            out.say(
                f"{number} {out.paint(line(hit.path, 60), 'cyan')}  {line(doc['excerpt'], max(40, out.width - 40))}",
                flush=count == 1,
            )
        if not count:
            out.say("nothing found")
            if not out.show_secrets:
                out.note(MASKED)
        elif count >= options.limit:
            out.say(out.paint(f"the first {count} hits; --limit N shows more", "dim"))
        note_problems(out, session, passed.problems())
        return int(session.refused_key())
