"""A head at a glance says what the whole explanation says, for every checkpoint of every kind of thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.explain import Explainer
from studio.explain.glance import finished
from studio.stores import open_store
from tests.explain.scenarios import SCENARIOS
from tests.factories import saver_at
from tests.stores.test_sqlite import change


def glances_differ(path: Path) -> tuple[list[str], int]:
    """(checkpoints of which a glance says something else, how many a glance alone could tell)."""
    store = open_store(str(path))
    explainer = Explainer(store)
    addresses = [header.address for keys in store.threads() for _, header in store.checkpoints(keys.thread_id)]
    found = explainer.glances(addresses)
    assert set(found) == set(addresses)
    different = []
    for address, glance in found.items():
        state = explainer.state(address)
        if (glance.header, glance.status, glance.metadata) != (state.checkpoint, state.status, state.metadata):
            different.append(address.checkpoint_id)
        elif dict(glance.values) != dict(state.values):
            different.append(f"{address.checkpoint_id}: values")
    alone = [finished(store.raw([one])[one], store.writes([one]).get(one, ())) for one in addresses]
    return different, sum(glance is not None for glance in alone)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_glance_at_every_checkpoint_says_what_its_state_says(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.sqlite"
    with saver_at(path) as saver:
        SCENARIOS[name](path, saver)
    assert glances_differ(path)[0] == []


def test_heads_that_are_done_need_no_explanation(shop: Path) -> None:
    different, alone = glances_differ(shop)
    assert different == [] and alone >= 2


def test_rows_that_say_nothing_plain_are_explained_in_full(shop: Path) -> None:
    change(shop, "UPDATE checkpoints SET checkpoint = x'81a17604' WHERE rowid % 3 = 0")
    change(shop, "UPDATE checkpoints SET type = 'pickle' WHERE rowid % 5 = 0")
    change(shop, "UPDATE checkpoints SET metadata = '[' WHERE rowid % 7 = 0")
    assert glances_differ(shop)[0] == []
