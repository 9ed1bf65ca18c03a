"""A trace goes out as JSON and comes back as it was."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from engine.experiment import ExperimentError
from engine.plain_json import PLAIN
from engine.said import Said, said
from engine.trace import Parted, PrefixLookup, Rendered, Stage, Stepped, Stopped, ToolCalled, Trace
from engine.trace_json import EVENT_TYPES, event_from_json, event_to_json, trace_from_json, trace_to_json
from engine.truncated import Portion, Summary, Truncated

RECORDED = Path(__file__).parents[1] / "golden" / "paris.trace.json"


@pytest.fixture(scope="module")
def data() -> dict:
    return json.loads(RECORDED.read_text("utf-8"))


@pytest.fixture(scope="module")
def trace(data) -> Trace:
    return trace_from_json(data)


def same(one: object, other: object) -> bool:
    """Equal values of equal types, arrays by dtype, shape and every number."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, item.name), getattr(other, item.name)) for item in dataclasses.fields(one))
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def test_a_recorded_run_survives_the_round_trip(trace: Trace, data: dict) -> None:
    text = json.dumps(trace_to_json(trace), allow_nan=False)
    assert json.loads(text) == data
    again = trace_from_json(json.loads(text))
    assert all(map(same, again.events, trace.events))
    assert again.experiment == trace.experiment
    assert again.facts == trace.facts


def test_cut_logits_are_null_and_come_back_as_minus_infinity(trace: Trace) -> None:
    step = trace.steps(0)[0]
    assert np.isneginf(step.logits).any()
    out = event_to_json(step)
    assert None in [number for row in out["logits"] for number in row]
    assert same(event_from_json(json.loads(json.dumps(out))), step)


CUT = Truncated(
    turn=1, strategy="summary", limit=60, kept=(0, 3), dropped=(1, 2),
    portions=(Portion("system", 0, 7, 7), Portion("user", 1, 9, 0), Portion("assistant", None, 3, 3)),
    before=70, after=58, offset=0, system="kept", summary=Summary("sum up", "two cats", (1,), 40, 5),
    cached=65, reused=9, computed=93,
)  # fmt: skip


def test_what_a_turn_found_in_the_caches_goes_round_and_may_be_missing(trace: Trace) -> None:
    rendered = trace.rendered(0)
    assert rendered is not None
    found = PrefixLookup(entries=2, system=30, common=12, parted=Parted(12, 5, 7))
    full = dataclasses.replace(rendered, reused=12, cached=9, refused="no way back", prefix=found)
    out = json.loads(json.dumps(event_to_json(full)))
    assert same(event_from_json(out), full)
    for name in ("cached", "refused", "prefix"):  # as in a trace that was written before there were such
        del out[name]
    again = event_from_json(out)
    assert isinstance(again, Rendered)
    assert (again.reused, again.cached, again.refused, again.prefix) == (12, 0, None, None)


def test_kinds_that_a_run_did_not_have_go_round_too() -> None:
    for event in (
        CUT,
        ToolCalled(1, "calculator", {"expression": "23 * 19"}, result="437", error=None, seconds=0.01),
        Stopped(0, "stop_string", {"string": "END", "step": 3}, ""),
    ):
        assert same(event_from_json(json.loads(json.dumps(event_to_json(event)))), event)


REFUSED = Stopped(0, "error", {"message": said("wanted", wanted=said("a_list")), "field": "prompt", "step": 3}, "")


def test_a_refusal_keeps_its_key_and_values_beside_its_text() -> None:
    out = json.loads(json.dumps(event_to_json(REFUSED)))
    assert out["evidence"] == {"message": "a list is wanted", "field": "prompt", "step": 3}
    a_list = {"said": "a_list", "values": {}, "text": "a list"}
    assert out["said"] == {"message": {"said": "wanted", "values": {"wanted": a_list}, "text": "a list is wanted"}}
    again = event_from_json(out)
    assert isinstance(again, Stopped)
    message = again.evidence["message"]
    assert isinstance(message, Said)
    assert (message.key, message.values["wanted"].key) == ("wanted", "a_list")
    assert event_to_json(again) == out


def test_the_reason_against_a_cut_keeps_its_key_too(trace: Trace) -> None:
    rendered = trace.rendered(0)
    assert rendered is not None
    assert "said" not in event_to_json(dataclasses.replace(rendered, refused="no way back"))
    out = json.loads(json.dumps(event_to_json(dataclasses.replace(rendered, refused=said("a_list")))))
    assert out["refused"] == "a list"
    again = event_from_json(out)
    assert isinstance(again, Rendered)
    assert isinstance(again.refused, Said)
    assert event_to_json(again) == out


def test_a_text_without_a_key_and_a_key_of_another_time_are_texts() -> None:
    out = event_to_json(REFUSED)
    del out["said"]  # as in a trace that was written before there were such
    assert same(event_from_json(out).evidence, {"message": "a list is wanted", "field": "prompt", "step": 3})
    out["said"] = {"message": {"said": "of_tomorrow", "values": {}, "text": "what it said"}}
    assert same(event_from_json(out).evidence["message"], "what it said")


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ([], "said: an object is wanted, got a list"),
        ({"message": "text"}, "said.message: a sentence with its key and its values is wanted"),
        ({"message": {"said": "a_list"}}, "said.message: a sentence with its key and its values is wanted"),
        ({"other": {}}, "said.other: unknown field"),
        ({"step": {}}, "said.step: unknown field"),
    ],
)
def test_keys_that_belong_to_no_sentence_are_refused(kept: object, told: str) -> None:
    with pytest.raises(ExperimentError, match=re.escape(told)):
        event_from_json(event_to_json(REFUSED) | {"said": kept})
    with pytest.raises(ExperimentError, match="said.*: unknown field"):
        event_from_json(event_to_json(CUT) | {"said": {"strategy": {}}})


def test_every_kind_is_known_by_its_name() -> None:
    assert list(EVENT_TYPES) == ["rendered", "prefilled", "stepped", "truncated", "tool_called", "stopped"]


def test_what_is_not_a_trace_is_refused(data: dict) -> None:
    with pytest.raises(ExperimentError, match="version 99"):
        trace_from_json(data | {"version": 99})
    with pytest.raises(ExperimentError, match="an event is one of rendered, .*, got 'dreamt'"):
        event_from_json({"kind": "dreamt"})
    with pytest.raises(ExperimentError, match="extra: unknown field"):
        event_from_json(event_to_json(Stopped(0, "eos", {}, "")) | {"extra": 1})
    with pytest.raises(ExperimentError, match="reason: this field is missing"):
        event_from_json({"kind": "stopped", "turn": 0})


def test_float32_numbers_take_the_fewest_digits_that_read_back() -> None:
    numbers = np.array([0.1, 1 / 3, 1e-20], dtype=np.float32)
    out = PLAIN.encode(numbers)
    assert str(out[0]) == "0.1"
    assert np.array_equal(np.array(out, dtype=np.float32), numbers)


def test_plain_floats_that_are_not_finite_are_null() -> None:
    assert PLAIN.encode(Stage("logits", {}, kept=1, entropy=float("nan"), mass_removed=0.0))["entropy"] is None


def test_a_step_is_small(trace: Trace) -> None:
    sizes = [len(json.dumps(event_to_json(step), separators=(",", ":"))) for step in trace.of(Stepped)]
    assert max(sizes) <= 12_000
