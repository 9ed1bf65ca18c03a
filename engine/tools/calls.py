"""Calls in a model's answer: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, found in linear time.

Nothing that a model writes raises: what is wrong with a call is said in it, for the model to read.
"""

import json
from dataclasses import dataclass, field
from typing import Any, NoReturn

from engine.typed_json import ANY_DEPTH, MAX_INT
from engine.values import replace_lone_surrogates

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MAX_CALLS = 16  # of one answer; what comes after them is one call with an error
MAX_CHARACTERS = 20_000
MAX_DEPTH = ANY_DEPTH  # a trace with the call has to be read again
MAX_BITS = (MAX_INT - 1).bit_length()  # of a whole number
_SPACE = " \t\n\r"


@dataclass(frozen=True, eq=False)
class Call:
    """One call at characters [start, end) of the answer, marks included. `error` says why it cannot be run."""

    start: int
    end: int
    name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    error: str | None = None


def parse(text: str) -> tuple[Call, ...]:
    """The closed calls of an answer, in order.

    A closing mark inside a JSON string closes nothing. Where the JSON is broken the call ends at the next closing
    mark, and of several opening marks before it the last one counts. An opening mark that is never closed is text.
    """
    calls: list[Call] = []
    last = text.rfind(CLOSE)
    at = text.find(OPEN)
    while 0 <= at < last:
        if len(calls) == MAX_CALLS:
            return (*calls, Call(at, len(text), error=f"only the first {MAX_CALLS} calls of an answer are run"))
        calls.append(_read(text, at) or _read_broken(text, at))
        at = text.find(OPEN, calls[-1].end)
    return tuple(calls)


def goes_on(text: str, end: int) -> bool:
    """May another call follow the one that ended at `end`? Yes as long as only white space or its mark has come."""
    rest = text[end:].lstrip()
    return rest.startswith(OPEN) or OPEN.startswith(rest)


def _read(text: str, start: int) -> Call | None:
    """The call that opens at `start`; None where its JSON, or the closing mark right after it, is broken."""
    try:
        value, end = _DECODER.raw_decode(text, _skip(text, start + len(OPEN)))
    except (ValueError, RecursionError):
        return None
    end = _skip(text, end)
    return _checked(value, start, end + len(CLOSE)) if text.startswith(CLOSE, end) else None


def _read_broken(text: str, start: int) -> Call:
    """A call whose JSON is broken; a closing mark is known to follow."""
    close = text.find(CLOSE, start)
    inner = text.rfind(OPEN, start + len(OPEN), close)
    if inner >= 0:
        found = _read(text, inner)
        if found is not None:
            return found
        start = inner
    end = close + len(CLOSE)
    body = text[start + len(OPEN) : close]
    if len(body) > MAX_CHARACTERS:
        return Call(start, end, error=f"a call has at most {MAX_CHARACTERS:,} characters, this has {len(body):,}")
    try:
        _DECODER.decode(body)
    except RecursionError:
        return Call(start, end, error="the JSON is nested too deeply")
    except ValueError as error:
        return Call(start, end, error=f"not valid JSON: {error}")
    return Call(start, end, error="not valid JSON: something follows it")


def _checked(value: Any, start: int, end: int) -> Call:
    """The call that a JSON value describes."""
    if end - start > MAX_CHARACTERS:
        return Call(start, end, error=f"a call has at most {MAX_CHARACTERS:,} characters, this has {end - start:,}")
    if not isinstance(value, dict):
        return Call(start, end, error=f"a call is an object with 'name' and 'arguments', not {_kind(value)}")
    name, arguments = value.get("name"), value.get("arguments")
    if not isinstance(name, str):
        return Call(start, end, error=f"name: {_missing('name', value)}; it must be a string")
    name = replace_lone_surrogates(name)[:100]
    if not isinstance(arguments, dict):
        return Call(start, end, name, error=f"arguments: {_missing('arguments', value)}; they must be an object")
    if _deep(arguments):
        return Call(start, end, name, error=f"arguments: nested more than {MAX_DEPTH} deep")
    bits = _most_bits(arguments)
    if bits > MAX_BITS:
        error = f"arguments: a whole number has at most {MAX_BITS} bits, this has {bits:,}"
        return Call(start, end, name, error=error)
    return Call(start, end, name, _cleaned(arguments))


def _missing(key: str, value: dict[str, Any]) -> str:
    return f"got {_kind(value[key])}" if key in value else "missing"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return bool(level)


def _most_bits(value: Any) -> int:
    """Bits of the largest whole number anywhere in the value."""
    if isinstance(value, dict | list):
        return max(map(_most_bits, value.values() if isinstance(value, dict) else value), default=0)
    return value.bit_length() if isinstance(value, int) else 0


def _cleaned(value: Any) -> Any:
    """Without lone surrogates, which JSON can write and no output can take."""
    if isinstance(value, dict):
        return {replace_lone_surrogates(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return replace_lone_surrogates(value)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if abs(number) != float("inf") else _no_number(text)


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)
