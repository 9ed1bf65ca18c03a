"""Every panel over a record of a run, however the run ended and whatever mistake it made: shown, or it says why not."""

import dataclasses
from collections.abc import Callable

import pytest

from engine.record import Record, record_from_bytes, record_to_bytes
from engine.trace import Trace
from tests.components.replays import replaying
from tests.components.test_records_shown import drawn
from tests.engine.endings import ENDS, MISTAKES, mistaken

RUNS: dict[str, Callable[[], Trace]] = {name: make for name, (make, _) in ENDS.items()} | {
    mistake: (lambda mistake=mistake: mistaken(mistake)) for mistake in MISTAKES
}


@pytest.mark.parametrize("name", RUNS)
def test_a_record_is_shown_from_its_prompt_to_its_end(name):
    record = record_from_bytes(record_to_bytes(Record(RUNS[name]())))
    desk, page = replaying(record)
    steps = desk.view(page).recorded.steps
    for made in {0, steps // 2, steps}:
        desk.play(page, record, made=made)
        for turn in range(desk.view(page).trace.turns):
            page.cursor = dataclasses.replace(page.cursor, turn=turn)
            assert drawn(desk, page)
    assert page.notice == ""
