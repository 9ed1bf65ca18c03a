"""What a model writes into a call stands in traces and records as it is, whatever JSON it is."""

import json
import math
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.exact_json import EXACT
from engine.experiment import Experiment, ExperimentError, parse_experiment
from engine.record import Record, record_from_bytes, record_to_bytes
from engine.tools.calls import CLOSE, MAX_DEPTH, OPEN, parse
from engine.tools.registry import TOOLS
from engine.tools.runner import run_calls
from engine.tools.tool import Setting
from engine.trace import ToolCalled, Trace
from engine.trace_json import trace_from_json, trace_to_json
from engine.typed_json import ANY_DEPTH
from tests.engine.records import assert_same, contents, read, recorded

SETTING = Setting("2026-01-01T12:00:00Z")
RUN = recorded("llama", ()).trace
TEXTS = st.sampled_from(["float", "nan", "inf", "-inf", "said", "abc", ""]) | st.text(st.characters(codec="utf-8"))
PLAIN = st.none() | st.booleans() | st.integers(1 - 2**63, 2**63 - 1) | TEXTS
LEAVES = PLAIN | st.floats(allow_nan=False, allow_infinity=False)
ANY = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXTS, inner, max_size=3)
        | inner.map(lambda item: {"float": item})
    ),
    max_leaves=8,
)


def with_call(arguments: Any) -> Trace:
    """A run whose model has called a tool with these arguments, as they come out of its text."""
    text = f"{OPEN}{json.dumps({'name': 'calculator', 'arguments': arguments})}{CLOSE}"
    return replace(RUN, events=(*RUN.events, *run_calls(text, tuple(TOOLS.values()), SETTING, 0)))


def called(trace: Trace) -> ToolCalled:
    (event,) = trace.of(ToolCalled)
    return event


def round_trips(trace: Trace) -> list[ToolCalled]:
    """The call after a trace's JSON, which the endpoint writes by orjson, and after a record."""
    record = Record(trace)
    data = record_to_bytes(record)
    again = record_from_bytes(data)
    assert record_to_bytes(again) == data
    return [called(trace_from_json(orjson.loads(orjson.dumps(trace_to_json(trace))))), called(again.trace)]


@settings(deadline=None)
@given(st.dictionaries(TEXTS, ANY, max_size=3))
def test_any_arguments_come_back_from_a_trace_and_from_a_record(arguments):
    trace = with_call(arguments)
    assert_same(called(trace).arguments, arguments)
    for again in round_trips(trace):
        assert_same(again, called(trace))


@pytest.mark.parametrize(
    "value",
    [{"float": "abc"}, {"float": "nan"}, {"float": ["nan"]}, {"float": {"float": "inf"}}, [[{"float": [[1]]}]]],
)
def test_an_object_that_looks_like_a_float_stays_one(value):
    for arguments in ({"expression": value}, value if isinstance(value, dict) else {}):
        for again in round_trips(with_call(arguments)):
            assert_same(again.arguments, arguments)


def test_an_object_of_a_record_that_was_written_without_its_list_is_read_as_it_stands():
    content = contents(Record(with_call({"expression": "1"})))
    content["trace"]["events"][-1]["arguments"] = {"expression": {"float": "abc"}}
    assert called(read(content).trace).arguments == {"expression": {"float": "abc"}}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_floats_that_json_cannot_write_stand_in_free_json_beside_such_objects(value):
    held = {"a": value, "float": [{"float": value}, {"float": "nan"}]}
    assert_same(EXACT.decode(dict[str, Any], json.loads(json.dumps(EXACT.encode(held)))), held)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_calls_nest_as_deep_as_a_trace_and_no_deeper(opening):
    closing = {"[": "]", '{"a":': "}"}[opening]
    for depth in range(MAX_DEPTH + 3):
        body = f'{{"name": "calculator", "arguments": {{"a": {opening * depth}1{closing * depth}}}}}'
        (event,) = run_calls(f"{OPEN}{body}{CLOSE}", tuple(TOOLS.values()), SETTING, 0)
        assert (f"nested more than {MAX_DEPTH} deep" in str(event.error)) == (depth + 2 > MAX_DEPTH)
        for again in round_trips(replace(RUN, events=(*RUN.events, event))):
            assert_same(again, event)
    assert MAX_DEPTH == ANY_DEPTH


@pytest.mark.parametrize("number", ["9223372036854775808", "-9223372036854775808", "1" + "0" * 4_000])
@pytest.mark.parametrize("shape", ['{"value": %s}', '{"value": [1, {"a": [%s]}]}'])
def test_a_whole_number_beyond_64_bits_is_an_error_that_the_model_is_told(number, shape):
    body = f'{{"name": "units", "arguments": {shape % number}}}'
    (call,) = parse(f"{OPEN}{body}{CLOSE}")
    assert (call.name, call.arguments) == ("units", {})
    assert str(call.error).startswith("arguments: a whole number has at most 63 bits, this has ")
    (event,) = run_calls(f"{OPEN}{body}{CLOSE}", tuple(TOOLS.values()), SETTING, 0)
    assert event.error == call.error
    for again in round_trips(replace(RUN, events=(*RUN.events, event))):
        assert_same(again, event)


@pytest.mark.parametrize(
    "fields",
    [
        {"context": {"strategy": "drop_oldest", "max_tokens": 10**30}},
        {"forced": [{"turn": 10**30, "step": 0, "token_id": 1}]},
        {"forced": [{"step": 10**30, "token_id": 1}]},
    ],
)
def test_no_number_of_an_experiment_is_beyond_64_bits(fields):
    asked = {"version": 1, "model": "m", "messages": [{"role": "user", "content": "hi"}]} | fields
    with pytest.raises(ExperimentError, match="less than"):
        parse_experiment(asked, models=["m"])


def test_every_whole_number_of_an_experiment_has_a_bound():
    def numbers(schema: Any) -> list[dict[str, Any]]:
        inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
        own = [schema] if isinstance(schema, dict) and schema.get("type") == "integer" else []
        return own + [one for item in inner for one in numbers(item)]

    found = numbers(Experiment.model_json_schema())
    assert found
    assert all({"maximum", "exclusiveMaximum", "const"} & set(one) for one in found)
