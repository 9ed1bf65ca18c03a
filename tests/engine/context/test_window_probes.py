"""Probes of a run in a sliding window see what the run saw, or say why they cannot."""

from dataclasses import replace

import pytest
import torch

from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.given_trace import replayed
from engine.probes.attention import attention
from engine.probes.distribution import distribution
from engine.probes.inside import inside
from engine.probes.layer import layer
from engine.probes.lens_map import lens_map
from engine.probes.parity import parity
from engine.probes.uncached import uncached
from tests.engine.context.chats import CHAT
from tests.engine.context.test_window import CLOSE, SIZE, talk
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny


def test_a_probe_sees_what_the_run_saw() -> None:
    running = talk(stop={"max_new_tokens": 8})
    finish(running)
    trace = running.trace
    for position in (10, SIZE - 1, SIZE + 2, SIZE + 6):
        found = attention(running, position=position)
        # What it saw, counted in the turn's own context: nothing before it, or the 39 positions before.
        assert (found.first, found.weights.shape[1]) == (max(0, position - SIZE + 1), min(position + 1, SIZE))
    for step in trace.steps(0):
        made = inside(running, position=SIZE - 1 + step.step).logits
        torch.testing.assert_close(made[step.candidate_ids.tolist()], torch.from_numpy(step.logits[0]), **CLOSE)
    both = uncached(running, step=5)
    assert (both.reused, both.same_best) == (0, True)
    assert uncached(running, step=7).reused == SIZE - 1
    assert both.max_difference < CLOSE["atol"]


def test_a_probe_of_an_earlier_turn_sees_what_that_turn_saw() -> None:
    running = talk(follow_ups=["the mat"], stop={"max_new_tokens": 8})
    trace = finish(running)
    for turn in range(2):
        for step in trace.steps(turn)[::3]:
            made = inside(running, turn=turn, position=SIZE - 1 + step.step).logits
            torch.testing.assert_close(made[step.candidate_ids.tolist()], torch.from_numpy(step.logits[0]), **CLOSE)
    with pytest.raises(ExperimentError, match="computed in an earlier turn"):
        inside(running, turn=1, position=3)


@pytest.mark.parametrize("positions", ["go_on", "restart"])
def test_a_layer_by_hand_is_that_of_the_window(positions: str) -> None:
    running = talk(positions=positions, stop={"max_new_tokens": 8})
    finish(running)
    found = layer(running, position=SIZE + 4, layer=1)
    assert found.largest <= found.expected
    assert inside(running, position=SIZE + 4).attended[1].key.shape[2] == SIZE


def test_a_recorded_window_is_seen_as_it_was_and_a_forged_one_is_refused() -> None:
    running = talk(follow_ups=["the mat"], stop={"max_new_tokens": 8})
    trace = finish(running)
    again = replayed(running.loaded, trace)
    for step in trace.steps(1)[::3]:
        made = inside(again, turn=1, position=SIZE - 1 + step.step).logits
        torch.testing.assert_close(made[step.candidate_ids.tolist()], torch.from_numpy(step.logits[0]), **CLOSE)
    for offset in (10**12, -1, "7", 500):
        events = [replace(event, offset=offset) if event.kind == "truncated" else event for event in trace.events]
        with pytest.raises(ExperimentError):
            inside(replayed(running.loaded, replace(trace, events=tuple(events))), turn=1, position=SIZE)


def test_views_of_many_positions_say_that_they_cannot_be() -> None:
    running = talk()
    running.advance()
    with pytest.raises(ExperimentError, match="sliding window has moved"):
        lens_map(running, count=4)
    finish(running)
    assert "sliding window" in str(parity(running).reason)


@pytest.mark.parametrize("model", ["sliding", "mixed"])
def test_a_turn_that_was_refused_for_it_is_refused_to_a_probe_in_the_same_words(model: str) -> None:
    context = {"strategy": "sliding_window", "max_tokens": 30}
    conversation = Conversation(tiny(model), experiment(messages=CHAT, context=context))
    stopped = finish(conversation).stopped(0)
    assert stopped is not None
    asked = (
        lambda: uncached(conversation, step=0),
        lambda: distribution(conversation, turn=0, step=0),
        lambda: attention(conversation, turn=0, position=35),
    )
    for ask in asked:
        with pytest.raises(ExperimentError) as refused:
            ask()
        assert refused.value.message == stopped.evidence["message"]
