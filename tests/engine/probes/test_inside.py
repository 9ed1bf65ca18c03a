"""One position from one decode step: its parts add up, and are the model's own."""

import numpy as np
import pytest
import torch

from engine.anatomy import AnatomyError
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.probes.inside import inside
from engine.probes.recompute import recompute
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny

NAMES = ("llama", "qwen3", "gpt2", "mixed", "sliding", "capped", "multiplied")
LONG = "the cat sat on the mat and then the dog sat there too"


def ended(name: str, **fields) -> Conversation:
    conversation = Conversation(tiny(name), experiment(prompt=LONG, **fields))
    finish(conversation)
    return conversation


def hidden_states(conversation: Conversation, ids: tuple[int, ...]) -> tuple[list[torch.Tensor], torch.Tensor]:
    with torch.inference_mode():
        output = conversation.loaded.model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
    return [state[0, -1] for state in output.hidden_states], output.logits[0, -1]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("position", [None, 0, 7])
def test_the_stream_is_the_model_s_and_adds_up(name, position):
    conversation = ended(name)
    found = inside(conversation, position=position)
    states, logits = hidden_states(conversation, found.token_ids)
    close = {"atol": 2e-4, "rtol": 1e-4}
    torch.testing.assert_close(found.stream[:-1], torch.stack(states[:-1]), **close)
    torch.testing.assert_close(found.parts.final_norm(found.stream[-1]), states[-1], **close)
    torch.testing.assert_close(found.normed, states[-1], **close)
    torch.testing.assert_close(found.parts.unembed(found.normed), logits.float(), **close)
    torch.testing.assert_close(found.logits, logits.float(), **close)
    torch.testing.assert_close(found.stream[:-1] + found.attention + found.feed_forward, found.stream[1:], **close)
    for block in found.parts.blocks:
        after = found.stream[block.index] + found.attention[block.index]
        added = block.feed_forward_contribution(after)
        torch.testing.assert_close(added, found.feed_forward[block.index], atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_the_run_s_cache_stays_as_it_is(name):
    conversation = ended(name)
    before = [(layer.keys.clone(), layer.values.clone()) for layer in conversation.turn.cache.layers]
    inside(conversation, position=5)
    inside(conversation)
    for layer, (keys, values) in zip(conversation.turn.cache.layers, before, strict=True):
        assert torch.equal(layer.keys, keys)
        assert torch.equal(layer.values, values)


def test_a_mask_that_was_not_extended_hides_the_answer_as_it_did_in_the_run():
    conversation = ended("llama", mistake="mask_not_extended")
    prompt, last = len(conversation.trace.rendered(0).token_ids), conversation.trace.steps(0)[-1]
    found = inside(conversation, position=last.position - 1)
    torch.testing.assert_close(found.logits, recompute(conversation, 0, last.step).logits)
    assert np.allclose(found.attended[0].all_weights()[:, 0, prompt:], 0)


def test_a_hybrid_model_says_why_not():
    with pytest.raises(AnatomyError, match="no attention of layer 0"):
        inside(ended("hybrid"))


@pytest.mark.parametrize(
    ("asked", "said"), [({"position": 999}, "there is no position 999"), ({"turn": 3}, "no turn 3")]
)
def test_what_is_not_there_is_said(asked, said):
    with pytest.raises(ExperimentError, match=said):
        inside(ended("llama"), **asked)
