"""Calls are checked against their schema and run within limits; what is wrong comes back in words with its path."""

import dataclasses
import threading

import pytest

from engine.tools import runner
from engine.tools.calls import CLOSE, OPEN
from engine.tools.registry import TOOLS, tools_named
from engine.tools.runner import run_calls
from engine.tools.tool import Setting, Tool, ToolError, schema
from engine.trace import ToolCalled

SETTING = Setting("2026-01-01T12:00:00Z")


def run(body: str, *tools: Tool) -> ToolCalled:
    (called,) = run_calls(f"{OPEN}{body}{CLOSE}", tools or list(TOOLS.values()), SETTING, turn=3)
    return called


def own(work: object) -> Tool:
    return Tool("own", "", schema({}), work)  # type: ignore[arg-type]


CALL_OWN = '{"name": "own", "arguments": {}}'


def test_a_result_and_where_it_belongs() -> None:
    called = run('{"name": "calculator", "arguments": {"expression": "23 * 19"}}')
    assert (called.turn, called.name, called.arguments) == (3, "calculator", {"expression": "23 * 19"})
    assert (called.result, called.error) == ("23 * 19 = 437", None)
    assert 0 <= called.seconds < runner.MAX_SECONDS


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"name": "rm", "arguments": {}}', "unknown tool 'rm'; there are: calculator, clock, units, elements"),
        ('{"name": "calculator", "arguments": {}}', "arguments: 'expression' is a required property"),
        ('{"name": "calculator", "arguments": {"expression": 5}}', "arguments.expression: 5 is not of type 'string'"),
        ('{"name": "clock", "arguments": {"utc_offset": true}}', "arguments.utc_offset: True is not of type 'integer'"),
        ('{"name": "clock", "arguments": {"utc_offset": 15}}', "arguments.utc_offset: 15 is greater than the maximum"),
        (
            '{"name": "units", "arguments": {"value": 1, "from": "m", "to": "lightyear"}}',
            "arguments.to: 'lightyear' is not",
        ),
        ('{"name": "clock", "arguments": {"utc_offset": 0, "x": 1}}', "Additional properties are not allowed"),
    ],
)
def test_arguments_are_held_against_the_schema(body: str, said: str) -> None:
    called = run(body)
    assert called.result is None
    assert str(called.error).startswith(said) or said in str(called.error)


def test_a_tool_that_was_not_given_is_unknown() -> None:
    called = run('{"name": "clock", "arguments": {"utc_offset": 0}}', *tools_named(["calculator"]))
    assert called.error == "unknown tool 'clock'; there are: calculator"


def test_a_tool_that_refuses_says_why() -> None:
    def refuse(_arguments: object, _setting: object) -> str:
        raise ToolError("not today")

    assert run(CALL_OWN, own(refuse)).error == "not today"


def test_a_fault_of_a_tool_does_not_end_the_run() -> None:
    assert run(CALL_OWN, own(lambda _arguments, _setting: 1 / 0)).error == "the tool failed (ZeroDivisionError)"


def test_a_tool_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MAX_SECONDS", 0.05)
    go_on = threading.Event()
    try:
        called = run(CALL_OWN, own(lambda _arguments, _setting: str(go_on.wait(20))))
    finally:
        go_on.set()
    assert called.error == "no result within 0.05 seconds"
    assert called.seconds < 5


def test_a_result_has_a_largest_size() -> None:
    called = run(CALL_OWN, own(lambda _arguments, _setting: "x" * 2_001))
    assert (called.result, called.error) == (None, "the result has 2,001 characters, at most 2,000 go back")


def test_the_same_call_gives_the_same_but_for_its_time() -> None:
    bodies = [
        '{"name": "clock", "arguments": {"utc_offset": 2}}',
        '{"name": "elements", "arguments": {"element": "Fe"}}',
    ]
    for body in bodies:
        one, other = run(body), run(body)
        assert dataclasses.astuple(one)[:-1] == dataclasses.astuple(other)[:-1]
