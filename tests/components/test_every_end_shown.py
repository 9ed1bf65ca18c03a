"""Every panel over a record of a run, however the run ended and whatever mistake it made: shown, or it says why not."""

import contextlib
import dataclasses
import json
from collections.abc import Callable

import pytest

from components.checks import checks
from components.panel import View
from components.panels import PANELS
from engine.record import Record, record_from_bytes, record_to_bytes
from engine.refusals import Refused
from engine.trace import Trace
from tests.components.replays import replaying
from tests.engine.endings import ENDS, MISTAKES, mistaken

RUNS: dict[str, Callable[[], Trace]] = {name: make for name, (make, _) in ENDS.items()} | {
    mistake: (lambda mistake=mistake: mistaken(mistake)) for mistake in MISTAKES
}


def drawn(view: View) -> set[str]:
    """The panels that show something; the others lack what the record has not, and say so."""
    shown = set()
    for panel in PANELS:
        assert len(panel.stations(view)) > 0
        with contextlib.suppress(Refused):
            assert panel.unavailable(view) or json.dumps(panel.render(view))
            shown.add(panel.STATION)
    assert checks(view) is not None
    return shown


@pytest.mark.parametrize("name", RUNS)
def test_a_record_is_shown_from_its_prompt_to_its_end(name):
    record = record_from_bytes(record_to_bytes(Record(RUNS[name]())))
    desk, page = replaying(record)
    steps = desk.view(page).recorded.steps
    for made in sorted({0, steps // 2, steps}):
        desk.play(page, record, made=made)
        for turn in range(desk.view(page).trace.turns):
            page.cursor = dataclasses.replace(page.cursor, turn=turn)
            assert drawn(desk.view(page)) >= {"prompt", "tokens", "stopping", "kv_cache", "turns"}
    assert page.notice == ""
