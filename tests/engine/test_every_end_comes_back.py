"""What this program writes of a run it reads again, however the run ended and whatever mistake it was to make."""

import json
import typing

import pytest

from engine.asking import answer
from engine.catalog import load_catalog
from engine.experiment import ExperimentError
from engine.given_trace import fed, parse_trace, replayed
from engine.playback import Playback
from engine.probes.table import PROBES
from engine.record import Record, record_from_bytes, record_to_bytes
from engine.runtime import Runtime
from engine.settings import Settings
from engine.trace import Stopped, StopReason, Trace
from engine.trace_json import trace_to_json
from tests.engine.callers import caller
from tests.engine.endings import ENDS, MISTAKES, mistaken
from tests.engine.models import CONTEXT, tiny


def goes_round(trace: Trace) -> None:
    """As a record, as plain JSON, and shown after each of its tokens."""
    written = record_to_bytes(Record(trace))
    again = record_from_bytes(written)
    assert record_to_bytes(again) == written
    playback = Playback(again)
    for made in range(playback.steps + 1):
        shown = playback.trace_at(made)
        assert sum(len(shown.steps(turn)) for turn in range(shown.turns)) == made
    assert playback.trace_at(playback.steps).events == again.trace.events
    plain = json.loads(json.dumps(trace_to_json(trace), allow_nan=False))
    parsed = parse_trace(plain, models=["tiny"])
    model = caller() if trace.experiment.tools else tiny("llama")
    assert trace_to_json(replayed(model, parsed).trace) == plain


@pytest.mark.parametrize("name", ENDS)
def test_a_run_comes_back_however_it_ended(name):
    make, reasons = ENDS[name]
    trace = make()
    assert [stopped.reason for stopped in trace.of(Stopped)] == reasons
    goes_round(trace)


def test_no_reason_is_left_out():
    assert {reason for _, reasons in ENDS.values() for reason in reasons} == set(typing.get_args(StopReason))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_run_comes_back_whatever_mistake_it_makes(mistake):
    trace = mistaken(mistake)
    assert any("keys" not in step.shapes for step in trace.steps(0)) == (mistake == "history_reencoded")
    goes_round(trace)


def test_a_turn_that_was_never_fed_is_not_fed_for_a_probe():
    make, _ = ENDS["second_prompt_too_long"]
    plain = json.loads(json.dumps(trace_to_json(make())))
    given = replayed(tiny("llama"), parse_trace(plain, models=["tiny"]))
    answer(PROBES, given, "lens", {"turn": 0})
    for turn in (1, None):
        with pytest.raises(ExperimentError, match=f"context.*{CONTEXT}"):
            fed(given.trace, turn)
        with pytest.raises(ExperimentError, match=f"context.*{CONTEXT}"):
            answer(PROBES, given, "lens", {"turn": turn})


def test_nor_for_a_page_that_shows_the_record():
    make, _ = ENDS["second_prompt_too_long"]
    runtime = Runtime(tiny("llama"), load_catalog(), Settings())
    try:
        session, given = runtime.open(), record_from_bytes(record_to_bytes(Record(make()))).trace
        assert runtime.probe(session, "lens", given=given, turn=0).turn == 0
        for asked in ({"turn": 1}, {}):
            with pytest.raises(ExperimentError, match=f"context.*{CONTEXT}"):
                runtime.probe(session, "lens", given=given, **asked)
    finally:
        runtime.shut_down()


@pytest.mark.parametrize("kind", ["prefilled", "stepped"])
def test_what_was_fed_all_the_same_has_to_fit(kind):
    """An error at the end takes no limit away from a turn that the model was fed."""
    make, _ = ENDS["second_prompt_too_long"]
    trace = make()
    plain = json.loads(json.dumps(trace_to_json(trace)))
    event = next(one for one in plain["events"] if one["kind"] == kind)
    length = len(trace.rendered(1).token_ids)
    plain["events"].insert(-1, event | {"turn": 1} | ({"position": length} if kind == "stepped" else {}))
    with pytest.raises(ExperimentError, match=f"turn 1 has .* tokens, the context holds {CONTEXT}"):
        replayed(tiny("llama"), parse_trace(plain, models=["tiny"]))
