"""The options of a run in the browser: named in the plan, kept while one types, and said where the run stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from starlette.testclient import TestClient

from studio.model import Address
from studio.requests import GraphSpec, RunRequest
from tests.web.conftest import client_of
from tests.web.test_acts import FILE, allow, finished, form_of, send

AT = FILE + "?thread=refund-4711&at=4"


def shown(text: str) -> str:
    return " ".join(BeautifulSoup(text, "html.parser").get_text(" ").split())


def test_the_page_runs_as_far_as_it_was_told_and_says_why_it_stopped(page: TestClient, support: Path) -> None:
    form = form_of(BeautifulSoup(page.get(AT).text, "html.parser"))
    for name in ("path", "kind", "value"):  # no value is edited
        form.pop(name, None)
    chosen = {"run_steps": "1", "run_config": "reviewer=jo", "graph": "support_agent"}
    plan = send(page, form, "plan", **chosen)
    assert "How far stops after 1 superstep" in shown(plan.text) and 'reviewer="jo"' in shown(plan.text)
    kept = BeautifulSoup(plan.text, "html.parser").select_one("[name=run_steps]")
    assert kept is not None and kept["value"] == "1", "what was typed stands there still"
    started = send(page, form, "run", **chosen, **allow(page, plan.text))
    done = finished(page, started.text)
    title = done.select_one(".run > header .status")
    assert title is not None and title.text == "stopped after the supersteps that were asked for, before review"


def test_a_field_that_cannot_be_read_is_named_on_the_page_and_nothing_runs(page: TestClient, support: Path) -> None:
    form = form_of(BeautifulSoup(page.get(AT).text, "html.parser"))
    answer = send(page, form, "run", run_timeout="soon", planned="1")
    assert "Time limit: 'soon' is no number of seconds above 0" in shown(answer.text)
    assert BeautifulSoup(answer.text, "html.parser").select_one("#run .log") is None


def test_naming_a_node_to_stop_at_loads_no_code_until_a_person_asks(page: TestClient, support: Path) -> None:
    form = form_of(BeautifulSoup(page.get(AT).text, "html.parser"))
    form[""] = str(form[""]).replace("/fork?", "/preview?")
    waits = send(page, form, "", run_before="nowhere").text
    assert "Show the plan" in waits and not list(support.parent.rglob("__pycache__"))
    form[""] = str(form[""]).replace("/preview?", "/fork?")
    asked = send(page, form, "plan", run_before="nowhere", graph="support_agent").text
    assert "the graph has no node 'nowhere' to stop at" in shown(asked)


def test_a_breakpoint_is_named_and_the_run_goes_on_from_it(support: Path) -> None:
    with client_of(support) as page:
        session: Any = next(iter(page.app.book))[1]  # type: ignore[attr-defined]
        at = session.resolve("#4", "refund-4711")
        run = session.run(RunRequest(at, graph=GraphSpec("support_agent"), before=("review",)))
        end = run.wait(60)
        assert end is not None and end["status"] == "paused"
        head = Address(**end["head"])
        plan = session.plan(RunRequest(head, graph=GraphSpec("support_agent"), steps=1))
        assert plan.runs == ("review",) and plan.steps == 1
