"""Tools through the one door: a step stops at what a tool gave, a run goes through it, and its end can be asked for."""

from collections.abc import Iterator

import pytest

from engine.catalog import load_catalog
from engine.experiment import ExperimentError
from engine.runtime import Runtime
from engine.settings import Settings
from engine.trace import ToolCalled
from tests.engine.callers import SUM, caller, experiment


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    made = Runtime(caller(), load_catalog(), Settings())
    yield made
    made.shut_down()


def test_the_tools_that_may_be_named(runtime: Runtime) -> None:
    data = {"version": 1, "model": "tiny", "messages": [{"role": "user", "content": "?"}], "tools": ["clock", "units"]}
    assert runtime.parse(data).tools == ("clock", "units")
    with pytest.raises(ExperimentError, match="allowed: calculator, clock, elements, units"):
        runtime.parse(data | {"tools": ["rm"]})


def test_a_step_stops_after_the_tool_and_the_next_makes_a_token(runtime: Runtime) -> None:
    session = runtime.open()
    trace = runtime.start(session, experiment([SUM, "5"]))
    while not trace.calling:
        trace = runtime.step(session)
    assert not list(trace.of(ToolCalled))
    trace = runtime.step(session)
    assert [one.result for one in trace.of(ToolCalled)] == ["2+3 = 5"]
    assert trace.turns == 1
    trace = runtime.step(session)
    assert (trace.turns, len(trace.steps(1))) == (2, 1)
    trace = runtime.back(session)
    trace = runtime.back(session)
    assert (trace.turns, list(trace.of(ToolCalled))) == (1, [])


def test_a_whole_run_and_a_message_after_it(runtime: Runtime) -> None:
    session = runtime.open()
    runtime.start(session, experiment([SUM, "5", "Bye"]))
    for trace in runtime.run(session):
        last = trace
    assert [last.stopped(turn).reason for turn in range(2)] == ["tool_call", "eos"]  # type: ignore[union-attr]
    runtime.say(session, "Thanks")
    for trace in runtime.run(session):
        last = trace
    assert (last.turns, last.answer(2)) == (3, "Bye")
    assert runtime.complete(last.experiment).answer(2) == "Bye"
