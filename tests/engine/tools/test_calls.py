"""Calls in an answer: what is found, what is wrong with it, and that nothing takes more than linear time."""

import json
import random
import time

import pytest

from engine.tools.calls import CLOSE, MAX_CALLS, OPEN, goes_on, parse
from engine.tools.registry import TOOLS
from engine.tools.runner import run_calls
from engine.tools.tool import Setting

SETTING = Setting("2026-01-01T12:00:00Z")
GOOD = '{"name": "calculator", "arguments": {"expression": "23 * 19"}}'


def call(body: str) -> str:
    return f"{OPEN}{body}{CLOSE}"


def test_a_call_is_found_with_its_place() -> None:
    text = f"Let me see.\n{OPEN}\n{GOOD}\n{CLOSE} ok"
    (found,) = parse(text)
    assert (found.name, found.arguments, found.error) == ("calculator", {"expression": "23 * 19"}, None)
    assert text[found.start : found.end] == f"{OPEN}\n{GOOD}\n{CLOSE}"


def test_several_calls_come_in_order() -> None:
    other = '{"name": "clock", "arguments": {"utc_offset": 0}}'
    found = parse(f"{call(GOOD)}\n{call(other)}{call('no')}")
    assert [(one.name, one.error is None) for one in found] == [("calculator", True), ("clock", True), ("", False)]


def test_marks_inside_a_string_close_and_open_nothing() -> None:
    body = json.dumps({"name": "elements", "arguments": {"element": f"{CLOSE}{OPEN}"}})
    (found,) = parse(call(body))
    assert found.arguments == {"element": f"{CLOSE}{OPEN}"}


def test_of_nested_marks_the_inner_call_counts() -> None:
    (found,) = parse(f"{OPEN} {call(GOOD)} {CLOSE}")
    assert (found.start, found.name) == (len(OPEN) + 1, "calculator")
    (broken,) = parse(f"{OPEN}{{{OPEN}}} {CLOSE}")
    assert "not valid JSON" in str(broken.error)


def test_an_unclosed_mark_is_text() -> None:
    assert parse(f"{OPEN}{GOOD}") == ()
    assert [one.name for one in parse(f"{call(GOOD)}{OPEN}{GOOD}")] == ["calculator"]
    assert parse(f"{CLOSE}{GOOD}{OPEN}") == ()


def test_only_so_many_calls_are_run() -> None:
    found = parse(call(GOOD) * 500)
    assert len(found) == MAX_CALLS + 1
    assert found[-1].error == f"only the first {MAX_CALLS} calls of an answer are run"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ('{"name": "calculator", "arguments": {"expression": "1"}', "not valid JSON: Expecting ',' delimiter"),
        (f"{GOOD}{GOOD}", "not valid JSON: Extra data"),
        ("[1, 2]", "a call is an object with 'name' and 'arguments', not a list"),
        ("null", "not null"),
        ("12", "not a number"),
        ("{}", "name: missing"),
        ('{"name": 5, "arguments": {}}', "name: got a number"),
        ('{"name": "calculator"}', "arguments: missing"),
        ('{"name": "calculator", "arguments": "{}"}', "arguments: got a string"),
        ('{"name": "calculator", "arguments": null}', "arguments: got null"),
        ('{"name": "calculator", "arguments": {"expression": NaN}}', "NaN is no number of JSON"),
        ('{"name": "units", "arguments": {"value": 1e999, "from": "m", "to": "km"}}', "1e999 is no number of JSON"),
        ('{"name": "calculator", "arguments": {"expression": 1' + "0" * 6_000 + "}}", "not valid JSON"),
        ('{"name": "calculator", "arguments": {"a": ' + "[" * 40 + "]" * 40 + "}}", "nested more than 16 deep"),
        ("[" * 9_000 + "]" * 9_000, ""),
        ('"' + "x" * 30_000 + '"', "at most 20,000 characters"),
    ],
)
def test_what_is_wrong_is_said(body: str, said: str) -> None:
    (found,) = parse(call(body))
    assert said in str(found.error)


def test_lone_surrogates_do_not_come_through() -> None:
    (found,) = parse(call(r'{"name": "a\ud800", "arguments": {"k\udfff": ["\ud83d\ude00", "\udc00"]}}'))
    assert (found.name, found.arguments) == ("a\ufffd", {"k\ufffd": ["😀", "\ufffd"]})


@pytest.mark.parametrize(
    ("rest", "more"),
    [("", True), (" \n", True), ("\n<tool", True), (f"\n{OPEN}\n{{", True), (" Done", False), ("<tool>", False)],
)
def test_another_call_may_follow(rest: str, more: bool) -> None:
    text = call(GOOD)
    assert goes_on(text + rest, len(text)) is more


HOSTILE = {
    "opening marks": OPEN,
    "opening marks and brackets": OPEN + "[",
    "opening marks and strings": OPEN + '["',
    "opening marks and escapes": OPEN + '["\\"',
    "opening marks and pairs": OPEN + '{"a": "',
    "closed at once": OPEN + CLOSE,
    "closed strings": OPEN + '["' + CLOSE,
    "closed pairs": OPEN + '[",",",' + CLOSE,
    "closing marks": CLOSE,
    "brackets": "[",
    "quotes": '"',
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("end", ["", CLOSE])
def test_200_kilobytes_take_under_100_milliseconds(unit: str, end: str) -> None:
    text = OPEN + unit * (200_000 // len(unit)) + end
    seconds = []
    for _ in range(3):
        started = time.thread_time()
        parse(text)
        seconds.append(time.thread_time() - started)
    assert min(seconds) < 0.1


SCRAPS = ('"', "{", "}", "[", "\\", "\x00", "\ud800", "9" * 50, ",", OPEN)
NAMES = ("null", '"rm"', "7", '["calculator"]', '"units"')
VALUES = ("23", "null", "[]", '""', '"9**9**9"', '"' + "1" * 300 + '"')
KEYS = ('"code"', "expression", '"__class__"', '"expression", "x"')


def malformed(seed: int) -> str:
    """A good call with one to four random injuries."""
    chance = random.Random(seed)
    text = call(GOOD)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(text))
        match chance.randrange(5):
            case 0:
                text = text[:at] + text[at + chance.randint(1, 9) :]
            case 1:
                text = text[:at] + chance.choice(SCRAPS) + text[at:]
            case 2:
                text = text.replace('"calculator"', chance.choice(NAMES))
            case 3:
                text = text.replace('"23 * 19"', chance.choice(VALUES))
            case 4:
                text = text.replace('"expression"', chance.choice(KEYS))
    return text


def test_200_malformed_calls_never_raise_and_give_a_result_or_an_error() -> None:
    errors = 0
    for seed in range(200):
        text = malformed(seed)
        called = run_calls(text, list(TOOLS.values()), SETTING, turn=0)
        for event in called:
            assert (event.result is None) != (event.error is None), text
            assert event.error is None or len(event.error) <= 2_000
            json.dumps([event.name, event.arguments, event.result, event.error], allow_nan=False).encode()
        errors += not called or any(event.error for event in called)
    assert errors > 150
