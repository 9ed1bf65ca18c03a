"""Every panel over a record of a run, however the run ended and whatever mistake it made: shown, or it says why not."""

import contextlib
import dataclasses
import json
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from components.checks import checks
from components.copy import DEFAULT, speak
from components.ends import end_text
from components.panel import View
from components.panels import PANELS
from engine.answers.grid import CellResult, GridResult
from engine.branches import Branch
from engine.record import Record, record_from_bytes, record_to_bytes
from engine.refusals import Refused
from engine.trace import StopReason, Trace
from tests.components.languages import texts
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


@pytest.fixture
def apart() -> Iterator[None]:
    """A test that speaks another language leaves the next one its own."""
    yield
    speak(DEFAULT)


def shown_texts(view: View) -> list[tuple[str, str]]:
    """Every text of every panel and of its stations, with the panel's name."""
    found = []
    for panel in PANELS:
        values: list[Any] = [(one.title, one.result, one.note) for one in panel.stations(view)]
        with contextlib.suppress(Refused):
            values += [panel.unavailable(view)] if panel.unavailable(view) else panel.render(view)
        found += [(panel.STATION, text) for text in texts(values)]
    return found


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.usefixtures("apart")
def test_no_panel_tells_how_a_turn_ended_by_the_name_that_the_program_has_for_it(name):
    trace = RUNS[name]()
    codes = re.compile(rf"(?<![\w</])({'|'.join(typing.get_args(StopReason))})(?![\w>])")
    desk, page = replaying(record_from_bytes(record_to_bytes(Record(trace))))
    speak("zh")
    for turn in range(trace.turns):
        page.cursor = dataclasses.replace(page.cursor, turn=turn)
        ends = [CellResult({}, (), (), "", np.zeros(0, np.float32), None, trace.stopped(turn), None)]
        grid = GridResult(trace.experiment, tuple(ends), prompt_tokens=1, forwards=1, deviation=None, done=True)
        view = dataclasses.replace(desk.view(page), branches=(Branch(1, trace),), grid=grid)
        told = shown_texts(view)
        if (ended := trace.stopped(turn)) is not None:
            assert any(panel == "compare" and end_text(ended.reason) in text for panel, text in told)
        assert [(panel, text) for panel, text in told if codes.search(text)] == []
