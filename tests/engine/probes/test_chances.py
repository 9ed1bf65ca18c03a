"""What steps gave to given tokens, in one forward, equals what each step's own recomputation gives."""

import numpy as np
import pytest

from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.probes.chances import MAX_STEPS, chances
from engine.probes.distribution import distribution
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny


def pairs(wanted: list[tuple[int, int]]) -> dict[str, list[int]]:
    return {"steps": [step for step, _ in wanted], "token_ids": [token for _, token in wanted]}


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", "sliding", "hybrid", "mixed"])
@pytest.mark.parametrize("mistake", [None, "mask_not_extended"])
def test_every_chance_is_that_of_its_step(name: str, mistake: str | None) -> None:
    value = experiment(sampling={"min_new_tokens": 6, "top_k": 200, "temperature": 1.3}, mistake=mistake)
    first = Conversation(tiny(name), value)
    finish(first)
    wanted = [(1, 7), (2, 40), (2, 9), (5, 100)]
    for conversation in (first, Conversation.resumed(tiny(name), first.trace)):
        found = chances(conversation, turn=0, **pairs(wanted))
        for index, (step, token) in enumerate(wanted):
            alone = distribution(conversation, turn=0, step=step, token_ids=[token])
            np.testing.assert_allclose(found.probabilities[index], alone.probabilities[-1, 0], atol=1e-4)
            np.testing.assert_allclose(found.own[index], alone.probabilities[0, 0], atol=1e-4)
        assert (found.steps, found.token_ids) == ((1, 2, 2, 5), (7, 40, 9, 100))


def test_the_run_goes_on_as_if_nothing_had_been_asked(llama: LoadedModel) -> None:
    asked, quiet = Conversation(llama, experiment()), Conversation(llama, experiment())
    for conversation in (asked, quiet):
        for _ in range(4):
            conversation.advance()
    chances(asked, turn=0, steps=[0, 2], token_ids=[5, 5])
    logits = [step.logits.tobytes() for step in finish(asked).steps(0)]
    assert logits == [step.logits.tobytes() for step in finish(quiet).steps(0)]


@pytest.mark.parametrize("wanted", [[], [(-1, 3)], [(99, 3)], [(0, 10**6)], [(0, -1)], [(0, 1), (MAX_STEPS, 1)]])
def test_what_is_not_there_is_refused(llama: LoadedModel, wanted: list[tuple[int, int]]) -> None:
    conversation = Conversation(llama, experiment())
    finish(conversation)
    with pytest.raises(ExperimentError):
        chances(conversation, turn=0, **pairs(wanted))
    with pytest.raises(ExperimentError):
        chances(conversation, turn=3, steps=[0], token_ids=[1])
    with pytest.raises(ExperimentError):
        chances(conversation, turn=0, steps=[0, 1], token_ids=[1])
