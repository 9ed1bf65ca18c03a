"""Any token at every stage: the numbers are those of the run, and of a forward that knows nothing of it."""

from typing import Any

import numpy as np
import pytest
import torch

from engine import numerics
from engine.conversation import Conversation
from engine.experiment import Experiment, ExperimentError
from engine.model import LoadedModel
from engine.probes.distribution import distribution, find_tokens
from tests.engine.models import ROWS, tiny

SAMPLED = {"temperature": 0.8, "top_k": 30, "top_p": 0.9, "repetition_penalty": 1.2, "seed": 3}


def talk(loaded: LoadedModel, **fields: Any) -> Conversation:
    value = {
        "version": 1,
        "model": "tiny",
        "messages": [{"role": "user", "content": "the cat"}],
        "follow_ups": ["and the dog"],
        "sampling": SAMPLED,
        "stop": {"max_new_tokens": 6},
    }
    conversation = Conversation(loaded, Experiment.model_validate(value | fields))
    while conversation.advance():
        pass
    return conversation


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", "sliding", "mixed"])
def test_the_run_recorded_the_same_numbers(name: str) -> None:
    conversation = talk(tiny(name))
    before = conversation.trace, conversation.cache_bytes
    for turn in (0, 1):
        for step in conversation.trace.steps(turn):
            ids = step.candidate_ids.tolist()
            found = distribution(conversation, turn=turn, step=step.step, token_ids=ids)
            assert [stage.name for stage in found.stages] == [stage.name for stage in step.stages]
            place = {token: at for at, token in enumerate(found.token_ids.tolist())}
            order = [place[token] for token in ids]
            np.testing.assert_allclose(found.logits[0, order], step.logits[0], atol=1e-4)
            both = np.isfinite(step.logits[-1])
            np.testing.assert_allclose(found.probabilities[-1, order][both], step.probabilities[-1][both], atol=1e-4)
            if step.eos is not None:
                at = place[step.eos.token_id]
                assert (found.ranks[0, at], found.cut_by[at]) == (step.eos.rank, step.eos.cut_by)
    assert (conversation.trace, conversation.cache_bytes) == before


def test_ranks_are_over_the_whole_vocabulary(llama: LoadedModel) -> None:
    conversation = talk(llama)
    found = distribution(conversation, turn=0, step=3, token_ids=range(ROWS))
    rendered = conversation.trace.rendered(0)
    assert rendered is not None
    ids = [*rendered.token_ids.tolist(), *(step.token_id for step in conversation.trace.steps(0)[:3])]
    with torch.inference_mode():
        logits = llama.model(torch.tensor([ids])).logits[0, -1].numpy()
    for at, token in enumerate(found.token_ids.tolist()):
        assert found.ranks[0, at] == numerics.rank(logits, token)
    cut = ~np.isfinite(found.logits)
    assert (found.ranks[cut] == 0).all()
    assert (found.probabilities[cut] == 0).all()
    assert [name is None for name in found.cut_by] == (~cut[-1]).tolist()
    assert sorted(found.ranks[-1][~cut[-1]]) == list(range(1, found.stages[-1].kept + 1))
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, atol=1e-5)


def test_the_best_come_first(llama: LoadedModel) -> None:
    found = distribution(talk(llama), step=2, count=20)
    assert len(found.token_ids) >= 20
    assert (np.diff(found.probabilities[-1]) <= 0).all()


def test_a_token_is_found_by_its_text(llama: LoadedModel) -> None:
    conversation = talk(llama)
    bare, spaced = (llama.tokenizer.encode(text, add_special_tokens=False)[0] for text in ("s", " s"))
    assert find_tokens(conversation, "s") == (bare, spaced)
    found = distribution(conversation, step=0, query="s")
    assert set(found.token_ids.tolist()) == {bare, spaced}
    assert set(found.token_bytes) == {b"s", b" s"}
    long = "the zebra"
    assert find_tokens(conversation, long) == (llama.tokenizer.encode(long, add_special_tokens=False)[0],)
    assert find_tokens(conversation, "") == ()
    assert distribution(conversation, step=0).token_ids.shape == (0,)


def test_a_released_cache_is_no_hindrance(llama: LoadedModel) -> None:
    conversation = talk(llama)
    kept = distribution(conversation, step=4, count=5)
    conversation.release()
    anew = distribution(conversation, step=4, count=5)
    assert conversation.cache_bytes == 0
    np.testing.assert_array_equal(kept.token_ids, anew.token_ids)
    np.testing.assert_allclose(kept.logits, anew.logits, atol=1e-4)


def test_the_next_step_can_be_looked_at_before_it_is_taken(llama: LoadedModel) -> None:
    conversation = Conversation(llama, Experiment(version=1, model="tiny", prompt="the", sampling={"do_sample": False}))
    conversation.advance()
    conversation.advance()
    best = distribution(conversation, step=1, count=1).token_ids[0]
    stepped = conversation.advance()[0]
    assert stepped.token_id == best  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"step": 7}, "step"),
        ({"step": -1}, "step"),
        ({"step": 0, "turn": 2}, "turn"),
        ({"step": 0, "token_ids": [ROWS]}, "token_ids"),
        ({"step": 0, "count": -1}, "count"),
        ({"step": 0, "count": -(10**9)}, "count"),
        ({"step": 0, "count": 501}, "count"),
    ],
)
def test_what_is_not_there_is_refused(llama: LoadedModel, arguments: dict[str, Any], path: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        distribution(talk(llama), **arguments)
    assert caught.value.path == path
