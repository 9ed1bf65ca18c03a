"""What a small file can make this program do: checking takes time in proportion to its events, whatever they are."""

import gzip
import json
import time
from dataclasses import replace
from typing import Any

import pytest

from engine.experiment import ExperimentError
from engine.given_trace import parse_trace, replayed
from engine.record import record_from_bytes
from engine.record_check import check_answer
from engine.tools.calls import MAX_CALLS
from engine.trace import Prefilled, Rendered, Stepped, Stopped, ToolCalled, Trace
from engine.trace_check import MOST_CALLS, check_ids, check_order, check_whole
from engine.trace_json import MAX_EVENTS, trace_to_json
from tests.engine.endings import ENDS
from tests.engine.models import tiny
from tests.engine.records import contents, recorded


class Visited(tuple[Any, ...]):
    """Events that count how often one of them is looked at."""

    visits = 0

    def __iter__(self):
        for event in super().__iter__():
            self.visits += 1
            yield event

    def __reversed__(self):
        for event in super().__reversed__():
            self.visits += 1
            yield event


def visits(trace: Trace, events: list[Any]) -> float:
    """Looks at an event while the trace is checked, as a record and for a probe, per event."""
    seen = Visited(events)
    trace = replace(trace, events=seen)
    check_whole(trace)
    check_order(trace)
    check_ids(trace, tiny("llama").facts, 10**9)
    lens = recorded("llama", ("lens",)).answers[0].result
    for turn in range(trace.turns):
        check_answer({"turn": turn}, replace(lens, turn=turn, position=0), trace, "")
    return seen.visits / len(events)


def turns(count: int) -> tuple[Trace, list[Any]]:
    """A run of that many turns of one token."""
    trace = recorded("llama", ("lens",)).trace
    once = [trace.rendered(0), trace.prefilled(0), trace.steps(0)[0], Stopped(0, "cancelled", {}, "")]
    return trace, [replace(event, turn=turn) for turn in range(count) for event in once if event is not None]


def forwards(count: int) -> tuple[Trace, list[Any]]:
    """One turn, and that many forwards more."""
    trace = recorded("llama", ("lens",)).trace
    fed = next(event for event in trace.events if isinstance(event, Prefilled))
    return trace, [*trace.events, *[fed] * count]


@pytest.mark.parametrize("made", [turns, forwards])
def test_each_event_is_looked_at_a_few_times_however_many_there_are(made):
    assert max(visits(*made(50)), visits(*made(1_000))) < 10


def test_thousands_of_turns_for_a_probe_take_no_time():
    trace, events = turns(4_000)
    trace = replace(trace, events=tuple(events))
    began = time.thread_time()
    check_order(trace)
    check_ids(trace, tiny("llama").facts, 10**9)
    assert time.thread_time() - began < 0.5


def packed(events: list[Any]) -> bytes:
    content = contents(recorded("llama", ()))
    content["trace"]["events"] += events
    return gzip.compress(json.dumps(content).encode(), 1)


CALL = {"kind": "tool_called", "turn": 0, "name": "a", "arguments": {}, "result": None, "error": None, "seconds": 0}
END = {"kind": "stopped", "turn": 0, "reason": "cancelled", "evidence": {}, "text": ""}


def test_the_most_events_that_are_read_take_a_few_seconds():
    events = json.loads(json.dumps(trace_to_json(recorded("llama", ()).trace)))["events"]
    room, fed = MAX_EVENTS - len(events), next(event for event in events if event["kind"] == "prefilled")
    data = packed([fed] * room)
    began = time.thread_time()
    assert len(record_from_bytes(data).trace.events) == MAX_EVENTS
    assert time.thread_time() - began < 8.0  # on a machine that is busy
    with pytest.raises(ExperimentError, match="at most 50,000 events, this has 50,001"):
        record_from_bytes(packed([fed] * (room + 1)))


def test_no_answer_has_more_calls_than_are_run():
    """Pages draw each at every place, so a file of 50,000 would take the memory of all."""
    assert MOST_CALLS == MAX_CALLS + 1  # what comes after those that are run is one call with an error
    assert len(record_from_bytes(packed([CALL] * MOST_CALLS)).trace.events) > MOST_CALLS
    with pytest.raises(ExperimentError, match="an answer has at most 17 tool calls"):
        record_from_bytes(packed([CALL] * (MOST_CALLS + 1)))


@pytest.mark.parametrize("more", [[END], [CALL, END], [END] * 4_000])
def test_a_turn_that_has_ended_does_not_end_again(more):
    with pytest.raises(ExperimentError, match=r"events\[\d+\]: turn 0 has ended already"):
        record_from_bytes(packed(more))
    plain = json.loads(json.dumps(trace_to_json(recorded("llama", ()).trace)))
    plain["events"] += more
    with pytest.raises(ExperimentError, match="turn 0 has ended already"):
        replayed(tiny("llama"), parse_trace(plain, models=["tiny"]))


@pytest.mark.parametrize("name", ["call_cancelled", "result_cancelled"])
def test_what_follows_a_call_is_cancelled_once(name):
    trace = ENDS[name][0]()
    check_order(trace)
    with pytest.raises(ExperimentError, match="turn 0 has ended already"):
        check_order(replace(trace, events=(*trace.events, trace.events[-1])))


def test_what_a_trace_has_sorted_is_that_of_its_own_events():
    trace = recorded("llama", ()).trace
    assert (trace.turns, len(trace.steps(0)), trace.stopped(0)) == (1, 6, trace.events[-1])
    shorter = replace(trace, events=trace.events[:4])
    assert (shorter.turns, len(shorter.steps(0)), shorter.stopped(0)) == (1, 2, None)
    for kind in (Rendered, Prefilled, Stepped, Stopped, ToolCalled):
        found = [event for event in trace.events if isinstance(event, kind)]
        assert list(trace.of(kind)) == list(trace.of(kind, 0)) == found
        assert list(trace.of(kind, 1)) == []
