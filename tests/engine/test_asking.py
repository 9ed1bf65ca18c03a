"""Probes asked by name: arguments from their signatures, places as on the page, refusals that say what is allowed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

import numpy as np
import pytest

from engine.anatomy import AnatomyError
from engine.asking import answer, check, parameters, read_argument, taken
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.probe_json import answer_to_json, count, encode
from engine.probes.table import PROBES
from engine.values import Strategy
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny
from tests.engine.probes.test_inside import ended

#: What a probe that cannot be asked without an argument is given, by the argument's type.
GIVEN = {int: 1, str: "the", Sequence[int]: [7, 8], Sequence[str]: ["the", "the cat sat"], Strategy: "none"}

#: What a model has no parts for.
LACKING = {("positions", "llama"), ("rotary", "gpt2"), ("relative_phase", "gpt2")}

#: What is asked of messages: a raw prompt has none.
OF_MESSAGES = {"time_in_prompt"}


def chat(model: str) -> Conversation:
    conversation = Conversation(tiny(model), experiment())
    finish(conversation)
    return conversation


def asked(name: str, conversation, **arguments):
    return answer(PROBES, conversation, name, arguments)


def needed(name: str) -> dict[str, Any]:
    hints = get_type_hints(PROBES[name])
    required = [key for key, item in parameters(PROBES[name]).items() if item.default is item.empty]
    return {key: GIVEN[hints[key]] for key in required}


@pytest.mark.parametrize("model", ["llama", "gpt2"])
@pytest.mark.parametrize("name", PROBES)
def test_every_probe_answers_in_strict_json_with_its_own_fields(name, model):
    conversation = chat(model) if name in OF_MESSAGES else ended(model)
    if (name, model) in LACKING:
        with pytest.raises(AnatomyError, match="learned positions|rotary|turn"):
            asked(name, conversation, **needed(name))
        return
    arguments, result = asked(name, conversation, **needed(name))
    data = answer_to_json(name, "tiny", arguments, result, max_values=10**6)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert list(data) == ["version", "probe", "model", "arguments", "result"]
    assert set(data["result"]) == set(type(result).__dataclass_fields__)
    assert count(result) >= len(data["result"])


def test_a_step_is_the_position_that_was_fed_before_it():
    conversation = ended("llama")
    prompt, steps = len(conversation.trace.rendered(0).token_ids), conversation.trace.steps(0)
    for step in steps:
        arguments, found = asked("lens", conversation, step=step.step)
        assert arguments == {"turn": 0, "position": step.position - 1}
        assert found.next_id == step.token_id
    assert asked("lens", conversation, step=len(steps))[0]["position"] == prompt + len(steps) - 1
    assert asked("uncached", conversation, step=2)[1].step == 2  # a probe of steps keeps its own


def test_a_step_of_an_earlier_turn():
    conversation = Conversation(tiny("llama"), experiment(follow_ups=["and the dog?"]))
    finish(conversation)
    first = conversation.trace.steps(0)[1]
    arguments, found = asked("lens", conversation, turn=0, step=1)
    assert (arguments["position"], found.next_id) == (first.position - 1, first.token_id)
    assert asked("lens", conversation, step=0)[0]["turn"] == 1


@pytest.mark.parametrize(
    ("name", "arguments", "path", "said"),
    [
        ("lenz", {}, "probe", "unknown probe 'lenz'; known: arithmetic, attention, "),
        ("lens", {"layer": 0}, "layer", "unknown argument; lens takes turn, position, token_ids, query, step"),
        ("parity", {"turn": 0}, "turn", "unknown argument; parity takes no arguments"),
        ("lens", {"step": 1, "position": 2}, "step", "give one of step and position, not both"),
        ("attention_matrix", {"layer": 0}, "head", "attention_matrix needs it; attention_matrix takes "),
        ("attention", {"layer": 2}, "layer", "this model has layers 0 to 1, there is no layer 2"),
        ("attention", {"layer": -1}, "layer", "this model has layers 0 to 1, there is no layer -1"),
        ("attention", {"head": 4}, "head", "this model has heads 0 to 3, there is no head 4"),
        ("attention", {"head": "1"}, "head", "valid integer, got '1'"),
        ("attention", {"head": True}, "head", "valid integer"),
        ("attention", {"position": 1.5}, "position", "valid integer"),
        ("lens", {"query": "x" * 30_000}, "arguments", "at most 20,000 characters"),
        ("lens", [1], "arguments", "an object"),
        ("lens", {"turn": 1}, "turn", "this run has turns 0 to 0, there is no turn 1"),
        ("lens", {"turn": -1}, "turn", "this run has turns 0 to 0, there is no turn -1"),
        ("lens", {"step": 7}, "step", "turn 0 has steps 0 to 6 (the next one), there is no step 7"),
        ("uncached", {"step": -1}, "step", "turn 0 has steps 0 to 6 (the next one), there is no step -1"),
        ("lens", {"position": 999}, "position", "there is no position 999"),
        ("lens", {"token_ids": "12"}, "token_ids", "Input should be a list, got '12'"),
        ("lens", {"token_ids": 12}, "token_ids", "Input should be a list, got '12'"),
        ("policy", {"strategy": "sumary"}, "strategy", "'sliding_window' or 'summary', got 'sumary'"),
        ("lens", {"token_ids": [320]}, "token_ids", "token ids of this model go up to 319"),
    ],
)
def test_what_is_not_allowed_is_said_with_what_is(name, arguments, path, said):
    with pytest.raises(ExperimentError) as caught:
        answer(PROBES, ended("llama"), name, arguments)
    assert caught.value.path == path
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_can_be_refused_before_the_run_is():
    class Sizes:
        layers, heads = 30, 9

    assert check(PROBES, "lens", {"token_ids": [1], "query": "a\ud800"}, Sizes) == {
        "token_ids": [1],
        "query": "a\ufffd",
    }
    with pytest.raises(ExperimentError, match="layers 0 to 29"):
        check(PROBES, "attention", {"layer": 30}, Sizes)


def test_a_prompt_that_was_never_computed_is_not_looked_into():
    conversation = Conversation(tiny("llama"), experiment(prompt="cat " * 2_000))
    conversation.advance()
    with pytest.raises(ExperimentError, match="the model's context holds 512"):
        asked("lens", conversation)


def test_a_chain_that_leaves_nothing_is_said_and_not_raised():
    conversation = ended("llama", sampling={"suppress_tokens": list(range(320)), "seed": 1})
    with pytest.raises(ExperimentError, match="suppress_tokens left no token to choose"):
        asked("distribution", conversation, step=0)


def test_no_step_is_the_last_position_for_every_probe_that_may_be_asked_by_it():
    conversation = ended("llama")
    for name in sorted({name for name in PROBES if (name, "llama") not in LACKING}):
        if "step" in taken(PROBES[name]) and "step" not in parameters(PROBES[name]):
            given = {"layer": 1, "head": 1} if name == "attention_matrix" else {}
            told, _ = answer(PROBES, conversation, name, given | {"step": None})
            assert told == answer(PROBES, conversation, name, given)[0]


def test_text_is_read_as_the_probe_wants_it():
    assert read_argument(PROBES["lens"], "query", "12") == "12"
    assert read_argument(PROBES["lens"], "token_ids", "[1, 2]") == [1, 2]
    assert [read_argument(PROBES["policy"], "strategy", text) for text in ("summary", '"summary"')] == ["summary"] * 2
    asked = {text: read_argument(PROBES["tokenizers"], "text", text) for text in ("hello", '"hi"', "null", "12", "[")}
    assert list(asked.values()) == ["hello", "hi", None, "12", "["]
    with pytest.raises(ExperimentError, match="token_ids: not valid JSON: '1, 2'"):
        read_argument(PROBES["lens"], "token_ids", "1, 2")


@dataclass(frozen=True, eq=False)
class Made:
    numbers: np.ndarray
    flags: np.ndarray
    token: bytes
    cut: tuple[bytes | None, ...]
    loss: float
    one: np.float32
    names: dict[str, int]


MADE = Made(
    np.array([[0.1, -np.inf], [np.nan, 2]], np.float32), np.array([True]), "é".encode(), (b"\xe2\x82", None),
    float("inf"), np.float32(0.5), {"a": 1},
)  # fmt: skip


def test_the_encoder_on_a_made_up_answer():
    assert encode(MADE) == {
        "numbers": [[0.1, None], [None, 2.0]],
        "flags": [True],
        "token": {"text": "é", "bytes": [0xC3, 0xA9]},
        "cut": [{"text": "\ufffd", "bytes": [0xE2, 0x82]}, None],
        "loss": None,
        "one": 0.5,
        "names": {"a": 1},
    }
    assert count(MADE) == 4 + 1 + 3 + (3 + 1) + 1 + 1 + 1
    with pytest.raises(TypeError, match="a object has no JSON"):
        encode(object())


def test_an_answer_that_is_too_large_is_refused_before_it_is_made():
    _, matrix = asked("attention_matrix", ended("llama"), layer=0, head=0)
    with pytest.raises(ExperimentError, match="at most 100 are given; ask for fewer positions"):
        answer_to_json("attention_matrix", "tiny", {}, matrix, max_values=100)
    assert matrix.weights.size < count(matrix) < matrix.weights.size + 100
