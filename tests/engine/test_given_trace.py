"""A trace from outside: its ids are fed, nothing is drawn, and what is no trace is refused in one line."""

import copy
import json

import numpy as np
import pytest

from engine.asking import answer
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.given_trace import is_trace, parse_trace, replayed
from engine.probe_json import encode
from engine.probes.table import PROBES
from engine.trace_json import trace_to_json
from tests.engine.context.chats import CHAT
from tests.engine.conversations import experiment, finish
from tests.engine.models import CONTEXT, ROWS, tiny
from tests.engine.probes.test_inside import ended


def recorded(conversation) -> dict:
    return json.loads(json.dumps(trace_to_json(conversation.trace)))


def again(name: str, data: dict):
    return replayed(tiny(name), parse_trace(data, models=["tiny"]))


@pytest.mark.parametrize("name", ["llama", "gpt2", "sliding"])
@pytest.mark.parametrize("probe", ["lens", "residual", "attention", "lens_map"])
def test_a_probe_of_a_trace_is_that_of_the_run(name, probe):
    conversation = ended(name)
    copied = again(name, recorded(conversation))
    state = copied._generator.get_state()
    _, ours = answer(PROBES, conversation, probe, {})
    _, theirs = answer(PROBES, copied, probe, {})
    for field, value in vars(ours).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(getattr(theirs, field), value, atol=2e-4)
    assert copied._generator.get_state().equal(state)
    assert copied.cache_bytes == 0


def test_the_ids_are_the_trace_s_even_where_the_model_would_not_draw_them():
    data = recorded(ended("llama"))
    steps = [event for event in data["events"] if event["kind"] == "stepped"]
    steps[2]["token_id"] = (steps[2]["token_id"] + 1) % 300
    _, found = answer(PROBES, again("llama", data), "lens", {"step": 2})
    assert found.next_id == steps[2]["token_id"]
    assert encode(answer(PROBES, again("llama", data), "parity", {})[1])["reason"].startswith("nothing was drawn here")


def test_an_experiment_is_told_from_a_trace():
    data = recorded(ended("llama"))
    assert is_trace(data)
    assert not is_trace(data["experiment"])
    assert not is_trace([])


def change(data, path, value):
    *way, last = path
    for part in way:
        data = data[part]
    data[last] = value


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("version",), 2, "this trace has version 2"),
        (("experiment", "sampling", "top_p"), 7, "sampling.top_p: "),
        (("experiment", "model"), "other", "unknown model 'other'"),
        (("experiment",), None, "a JSON object"),
        (("events",), 5, "events: a list is wanted"),
        (("events", 0, "kind"), "made", "events[0].kind: an event is one of rendered, "),
        (("events", 0, "token_ids"), [], "the prompt of turn 0"),
        (("events", 0, "token_ids"), [[1, 2]], "the prompt of turn 0"),
        (("events", 0, "token_ids"), ["x"], "events[0].token_ids: a list of whole numbers is wanted, got 'x'"),
        (("events", 0, "token_ids"), [10**30], "events[0].token_ids: a list of whole numbers"),
        (("events", 0, "token_ids"), [2**31], "events[0].token_ids: these lists are no array of int32"),
        (("events", 0, "token_ids"), [[1], [1, 2]], "events[0].token_ids: these lists are no array of int32"),
        (("events", 0, "special"), [1], "events[0].special: a list of true and false is wanted, got 1"),
        (("events", 2, "logits"), [[[[[[1.0]]]]]], "events[2].logits: a list of numbers is wanted, got a list"),
        (("events", 0, "token_ids", 0), -1, "token ids of this model go up to 319"),
        (("events", 0, "token_ids", 0), ROWS, "token ids of this model go up to 319"),
        (("events", 0, "turn"), 4, "the prompt of turn 0"),
        (("events", 2, "token_id"), "7", "events[2].token_id: a whole number is wanted, got '7'"),
        (("events", 2, "token_id"), None, "events[2].token_id: a whole number is wanted, got None"),
        (("events", 2, "token_id"), ROWS, "token ids of this model go up to 319"),
        (("events", 2, "token_bytes"), 10**12, "events[2].token_bytes: a list of bytes is wanted"),
        (("events", 2, "token_bytes"), [10**12], "events[2].token_bytes: a list of bytes is wanted"),
        (("events", 2, "step"), 3, "events[2]: step 0 of turn 0 is wanted here"),
        (("events", 2), {"kind": "stepped"}, "events[2].turn: this field is missing"),
        (("facts",), {}, "facts.model_id: this field is missing"),
        (("facts", "context"), 0, "facts: these sizes are those of no model"),
        (("facts", "context"), -5, "facts: these sizes are those of no model"),
        (("facts", "layers"), 10**9, "facts: these sizes are those of no model"),
    ],
)
def test_what_is_no_trace_is_refused_in_one_line(path, value, said):
    data = copy.deepcopy(RECORDED)
    change(data, path, value)
    with pytest.raises(ExperimentError) as caught:
        again("llama", data)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


RECORDED = recorded(ended("llama"))


def test_the_window_of_a_trace_is_that_of_the_loaded_model():
    """A trace's own word on the model's context is not what its window is computed with."""
    context = {"strategy": "sliding_window", "max_tokens": 40}
    conversation = Conversation(tiny("llama"), experiment(messages=CHAT, context=context))
    finish(conversation)
    data = recorded(conversation)
    _, ours = answer(PROBES, again("llama", data), "lens", {})
    data["facts"]["context"] = 3
    _, theirs = answer(PROBES, again("llama", data), "lens", {})
    np.testing.assert_array_equal(ours.token_ids, theirs.token_ids)
    np.testing.assert_array_equal(ours.logits, theirs.logits)


def test_more_tokens_than_the_model_holds_are_refused_before_they_are_fed():
    data = copy.deepcopy(RECORDED)
    data["events"] = data["events"][:1]
    data["events"][0]["token_ids"] = [5] * (CONTEXT + 1)
    with pytest.raises(ExperimentError, match=f"turn 0 has {CONTEXT + 1} tokens, the context holds {CONTEXT}"):
        again("llama", data)
    with pytest.raises(ExperimentError, match="a KV cache of turn 0 takes"):
        replayed(tiny("llama"), parse_trace(RECORDED, models=["tiny"]), cache_budget=100)
