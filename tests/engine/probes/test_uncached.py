from typing import Any

import pytest

from engine.conversation import Conversation
from engine.experiment import Experiment, ExperimentError
from engine.model import LoadedModel
from engine.probes.uncached import uncached
from tests.engine.models import tiny


def talk(loaded: LoadedModel, **fields: Any) -> Conversation:
    value = {"version": 1, "model": "tiny", "prompt": "the cat sat", "stop": {"max_new_tokens": 8}}
    conversation = Conversation(loaded, Experiment.model_validate(value | fields))
    while conversation.advance():
        pass
    return conversation


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2"])
def test_both_ways_agree_and_feed_what_they_say(name: str) -> None:
    conversation = talk(tiny(name))
    n = conversation.trace.rendered(0).token_ids.size  # type: ignore[union-attr]
    for step in range(len(conversation.trace.steps(0))):
        found = uncached(conversation, step=step)
        assert (found.reused, found.fed_cached, found.fed_uncached) == (n + step - 1, 1, n + step)
        assert found.max_difference < 2e-5
        assert found.same_best
        assert found.cached_seconds > 0
        assert found.uncached_seconds > 0


def test_a_cache_that_has_no_way_back_is_not_used() -> None:
    conversation = talk(tiny("sliding"), stop={"max_new_tokens": 30})
    early, newest = (uncached(conversation, step=step) for step in (4, 29))
    assert (early.reused, early.fed_cached) == (0, early.fed_uncached)
    assert early.max_difference == 0
    assert newest.same_best
    assert newest.max_difference < 2e-5


def test_a_short_mask_is_short_both_ways(llama: LoadedModel) -> None:
    found = uncached(talk(llama, mistake="mask_not_extended"), step=5)
    assert found.reused > 0
    assert found.max_difference < 2e-5


def test_a_step_that_is_not_there_is_refused(llama: LoadedModel) -> None:
    with pytest.raises(ExperimentError, match="no step 9"):
        uncached(talk(llama), step=9)


def test_the_embedded_model_agrees_within_its_tolerance(embedded: LoadedModel) -> None:
    conversation = talk(embedded, prompt="The capital of China is Beijing. The capital of France is")
    for step in (0, 1, 7):
        found = uncached(conversation, step=step)
        assert found.reused > 0
        assert found.max_difference < 3e-4  # logits of about ±30, float32
        assert found.same_best
