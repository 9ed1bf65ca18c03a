"""Turns that call tools: the loop, what it reads and runs, and where it ends."""

import json
from typing import Any

import numpy as np
import pytest

from engine.conversation import Conversation
from engine.dialogue import messages_of, rounds_before
from engine.experiment import ExperimentError, parse_experiment
from engine.kv_cache import common_prefix
from engine.model import LoadedModel
from engine.probes.chances import chances
from engine.probes.distribution import distribution
from engine.probes.parity import parity
from engine.tools.calls import CLOSE, OPEN
from engine.tools.rounds import MAX_ROUNDS
from engine.trace import ToolCalled
from engine.trace_json import trace_from_json, trace_to_json
from tests.engine.callers import EOS, SUM, call, caller, experiment, reasons, results, run
from tests.engine.conversations import finish, told
from tests.engine.models import tiny_tokenizer


@pytest.fixture(scope="module")
def llama() -> LoadedModel:
    return caller()


def test_a_call_is_run_and_its_result_read(llama: LoadedModel) -> None:
    trace = run(llama, [f"I ask. {SUM}", "It is 5."])
    assert reasons(trace) == ["tool_call", "eos"]
    stopped = trace.stopped(0)
    assert stopped is not None
    place = {"name": "calculator", "start": 7, "end": 7 + len(SUM)}
    assert stopped.evidence == {"calls": [place], "round": 0, "also": ["eos"]}
    assert trace.answer(0)[7:] == SUM
    assert results(trace) == ["2+3 = 5"]
    assert [(one.role, one.content) for one in messages_of(trace, 2)] == [
        ("user", "the cat"),
        ("assistant", f"I ask. {SUM}"),
        ("tool", "2+3 = 5"),
        ("assistant", "It is 5."),
    ]
    assert [event.kind for event in trace.events if event.kind != "stepped"] == [
        "rendered", "prefilled", "stopped", "tool_called", "rendered", "prefilled", "stopped",
    ]  # fmt: skip


def test_the_second_turn_reuses_the_prompt_and_the_call(llama: LoadedModel) -> None:
    trace = run(llama, [SUM, "5"])
    first, second = trace.rendered(0), trace.rendered(1)
    assert first is not None
    assert second is not None
    said = [step.token_id for step in trace.steps(0)]
    cached = [*first.token_ids.tolist(), *said[:-1]]  # the last token was chosen, not fed
    assert second.reused == common_prefix(cached, second.token_ids.tolist()) == len(cached)
    assert second.parted is None
    prefilled = trace.prefilled(1)
    assert prefilled is not None
    assert (prefilled.first, prefilled.last) == (len(cached), len(second.token_ids) - 1)


def test_a_call_that_is_read_back_in_other_tokens_parts_there(llama: LoadedModel) -> None:
    said = f"the {SUM}"
    spelled = [id_ for char in said for id_ in tiny_tokenizer().encode(char, add_special_tokens=False)]
    usual = tiny_tokenizer().encode(said, add_special_tokens=False)
    forced = [{"turn": 0, "step": step, "token_id": id_} for step, id_ in enumerate([*spelled, EOS])]
    trace = finish(Conversation(llama, experiment([], forced=forced)))
    first, second = trace.rendered(0), trace.rendered(1)
    assert first is not None
    assert second is not None
    assert second.parted is not None
    differ = common_prefix(spelled, usual)
    assert differ < len(usual)
    assert (second.parted.cached_id, second.parted.new_id) == (spelled[differ], usual[differ])
    assert second.parted.position == second.reused == len(first.token_ids) + differ


def test_several_calls_of_one_answer_give_a_message_each(llama: LoadedModel) -> None:
    trace = run(llama, [f"{SUM}\n{call('clock', utc_offset=0)}\n{call('rm')}", "Done."])
    assert reasons(trace) == ["tool_call", "eos"]
    assert results(trace) == [
        "2+3 = 5", "Thursday, 2026-01-01 12:00 UTC", "unknown tool 'rm'; there are: calculator, clock",
    ]  # fmt: skip
    assert [one.role for one in messages_of(trace, 1)] == ["user", "assistant", "tool", "tool", "tool"]
    assert messages_of(trace, 1)[-1].content == "Error: unknown tool 'rm'; there are: calculator, clock"


def test_other_text_after_a_call_ends_the_answer_there(llama: LoadedModel) -> None:
    trace = run(llama, [f"{SUM} so it is five, and on and on", "5"])
    stopped = trace.stopped(0)
    assert stopped is not None
    assert stopped.evidence["also"] == []
    assert SUM in trace.answer(0)
    assert "five" not in trace.answer(0)


def test_a_call_at_the_last_token_allowed_is_run(llama: LoadedModel) -> None:
    tokens = len(tiny_tokenizer().encode(SUM, add_special_tokens=False))
    trace = run(llama, [SUM, "5"], stop={"max_new_tokens": tokens})
    stopped = trace.stopped(0)
    assert stopped is not None
    assert (stopped.reason, stopped.evidence["also"]) == ("tool_call", ["length"])


@pytest.mark.parametrize(
    "said", ["{", "{}", '{"name": 5}', '{"name": "calculator", "arguments": {"expression": "9**9**9"}}']
)
def test_what_is_wrong_with_a_call_goes_back_and_the_run_goes_on(llama: LoadedModel, said: str) -> None:
    trace = run(llama, [f"{OPEN}{said}{CLOSE}", "Sorry."])
    assert reasons(trace) == ["tool_call", "eos"]
    (called,) = trace.of(ToolCalled)
    assert called.error
    assert messages_of(trace, 1)[-1].content == f"Error: {called.error}"


def test_a_model_that_always_calls_is_stopped_after_eight_rounds(llama: LoadedModel) -> None:
    trace = run(llama, [SUM] * (MAX_ROUNDS + 4))
    assert reasons(trace) == ["tool_call"] * MAX_ROUNDS + ["tool_limit"]
    assert len(results(trace)) == MAX_ROUNDS
    stopped = trace.stopped(MAX_ROUNDS)
    assert stopped is not None
    assert (stopped.evidence["limit"], stopped.evidence["rounds"]) == ("rounds", MAX_ROUNDS)


def test_rounds_count_from_each_message_anew(llama: LoadedModel) -> None:
    trace = run(llama, [SUM, "5", SUM, SUM, "5 again"], follow_ups=["And again?"])
    assert reasons(trace) == ["tool_call", "eos", "tool_call", "tool_call", "eos"]
    assert [rounds_before(trace, turn) for turn in range(5)] == [0, 1, 0, 1, 2]
    assert [one.role for one in messages_of(trace, 5)] == [
        "user", "assistant", "tool", "assistant", "user", "assistant", "tool", "assistant", "tool", "assistant",
    ]  # fmt: skip


def test_with_none_no_call_is_run(llama: LoadedModel) -> None:
    trace = run(llama, [SUM], tool_choice="none")
    assert reasons(trace) == ["eos"]
    rendered = trace.rendered(0)
    assert rendered is not None
    assert "calculator" in rendered.text


def test_without_tools_a_call_is_text(llama: LoadedModel) -> None:
    trace = run(llama, [SUM], tools=[])
    assert reasons(trace) == ["eos"]
    assert trace.answer(0) == SUM


def test_required_forces_one_valid_call_and_then_lets_go(llama: LoadedModel) -> None:
    trace = run(llama, [], tools=["clock"], tool_choice="required", stop={"max_new_tokens": 80})
    assert trace.answer(0).startswith(OPEN + '\n{"name": "clock", "arguments": {"utc_offset": ')
    assert trace.answer(0).endswith("}}\n" + CLOSE)
    stopped = trace.stopped(0)
    assert stopped is not None
    assert (stopped.reason, stopped.evidence["also"]) == ("tool_call", ["grammar_end"])
    (called, *_) = trace.of(ToolCalled)
    assert called.error is None
    legal = [stage.parameters["legal"] for step in trace.steps(0) for stage in step.stages if stage.name == "grammar"]
    assert len(legal) == len(trace.steps(0))
    assert legal.count(1) > len(legal) / 2
    assert max(legal) > 1
    assert not [stage for step in trace.steps(1) for stage in step.stages if stage.name == "grammar"]


def test_probes_see_the_grammar_of_a_forced_call(llama: LoadedModel) -> None:
    conversation = Conversation(llama, experiment([], tools=["clock"], tool_choice="required"))
    while conversation.advance()[-1].kind != "stopped":
        pass
    assert parity(conversation).equal
    step = conversation.trace.steps(0)[3]
    (found,) = [stage for stage in distribution(conversation, turn=0, step=3).stages if stage.name == "grammar"]
    assert found.parameters["legal"] == next(one for one in step.stages if one.name == "grammar").parameters["legal"]
    steps = conversation.trace.steps(0)
    given = chances(conversation, turn=0, token_ids=[step.token_id for step in steps])
    last = [step.probabilities[-1, step.candidate_ids.tolist().index(step.token_id)] for step in steps]
    np.testing.assert_allclose(given.probabilities, last, atol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_every_required_call_fits_its_schema(llama: LoadedModel, seed: int) -> None:
    tools = ["calculator", "clock", "units", "elements"]
    trace = run(llama, [], tools=tools, tool_choice="required", sampling={"seed": seed}, stop={"max_new_tokens": 400})
    (called, *_) = trace.of(ToolCalled)
    assert called.name in tools
    assert not str(called.error).startswith("arguments")


@pytest.mark.parametrize(
    ("fields", "path", "said"),
    [
        ({"tools": ["rm"]}, "tools[0]", "unknown tool 'rm'"),
        ({"tool_choice": "required", "grammar": {"kind": "regex", "source": "a"}}, "", "take one away"),
        ({"tool_choice": "required", "sampling": {"order": ["top_k"]}}, "", "leaves out 'grammar'"),
        ({"prompt": "x", "messages": None}, "", "'tools' need 'messages'"),
    ],
)
def test_what_cannot_go_together_is_refused(fields: dict[str, Any], path: str, said: str) -> None:
    data = {"version": 1, "model": "tiny", "messages": [{"role": "user", "content": "?"}], "tools": ["calculator"]}
    with pytest.raises(ExperimentError, match=said) as refused:
        parse_experiment(data | fields, models=["tiny"], tools=["calculator"])
    assert refused.value.path == path


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_the_same_experiment_gives_the_same_trace(llama: LoadedModel, choice: str) -> None:
    asked = experiment([] if choice == "required" else [f"{SUM}{SUM}", "5"], tool_choice=choice)
    one, other = (finish(Conversation(llama, asked)) for _ in range(2))
    assert told(one.events) == told(other.events)
    assert [(one_.name, one_.arguments, one_.result, one_.error) for one_ in one.of(ToolCalled)] == [
        (two.name, two.arguments, two.result, two.error) for two in other.of(ToolCalled)
    ]


def test_a_trace_with_calls_is_json_and_back(llama: LoadedModel) -> None:
    trace = run(llama, [f"{SUM}{call('rm', a=[1, {'b': None}])}", "5"])
    text = json.dumps(trace_to_json(trace), allow_nan=False)
    again = trace_from_json(json.loads(text))
    assert list(again.of(ToolCalled)) != []
    assert json.dumps(trace_to_json(again), allow_nan=False) == text
