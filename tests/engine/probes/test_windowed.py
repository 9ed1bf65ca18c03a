"""Positions in a sliding window against those that the model's own modules were given while the run computed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from engine.anatomy import anatomy
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.given_trace import replayed
from engine.probes.attention_matrix import attention_matrix
from engine.probes.inside import inside
from engine.probes.lens_map import lens_map
from engine.probes.positions import positions
from engine.probes.relative_phase import relative_phase
from engine.probes.rotary import rotary
from tests.engine.context.test_window import talk
from tests.engine.conversations import experiment, finish
from tests.engine.models import CONTEXT, tiny

SIZE = 32


@contextmanager
def given(module: torch.nn.Module) -> Iterator[list[list[int]]]:
    """The positions that a rotary module or a table of positions is given, a list a forward."""
    calls: list[list[int]] = []

    def note(_: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        calls.append((kwargs["position_ids"] if "position_ids" in kwargs else args[-1]).flatten().tolist())

    handle = module.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield calls
    finally:
        handle.remove()


def told(running: Conversation, module: torch.nn.Module) -> dict[tuple[int, int], int]:
    """By turn and place: the position that the model was told when the run first computed that place in that turn."""
    found: dict[tuple[int, int], int] = {}
    forwards: dict[int, int] = {}
    with given(module) as calls:
        while running.advance():
            turn = running.trace.turns - 1
            for call in calls:
                rendered = running.trace.rendered(turn)
                assert rendered is not None
                newest = len(rendered.token_ids) - 1 + forwards.get(turn, 0)
                forwards[turn] = forwards.get(turn, 0) + 1
                for back, position in enumerate(reversed(call)):
                    found.setdefault((turn, newest - back), position)
            calls.clear()
    return found


def two_turns(model: str, way: str) -> tuple[Conversation, dict[tuple[int, int], int]]:
    running = talk(model, SIZE, positions=way, follow_ups=["the mat"], stop={"max_new_tokens": 12})
    parts = anatomy(running.loaded.model)
    module = parts.rotary if parts.positions is None else parts.positions
    assert isinstance(module, torch.nn.Module)
    found = told(running, module)
    assert {turn for turn, _ in found} == {0, 1}
    assert max(place for _, place in found) >= SIZE
    assert any(place != position for (_, place), position in found.items())
    return running, found


@pytest.mark.parametrize("way", ["restart", "go_on"])
@pytest.mark.parametrize("of_file", [False, True])
def test_the_angles_are_those_of_the_position_that_was_fed(way: str, of_file: bool) -> None:
    running, fed = two_turns("llama", way)
    module = anatomy(running.loaded.model).rotary
    assert module is not None
    if of_file:
        running = replayed(running.loaded, running.trace)
    for (turn, place), position in fed.items():
        found = rotary(running, turn=turn, position=place)
        (turning,) = found.turnings
        assert (found.position, found.told) == (place, position)
        cos, sin = module(torch.zeros(1), position_ids=torch.tensor([[position]]))
        expected = torch.atan2(sin, cos)[0, 0, : len(turning.here)].numpy()
        np.testing.assert_allclose(turning.here, expected, atol=1e-5)
        assert turning.angles[found.positions.tolist().index(position)].tolist() == turning.here.tolist()


@pytest.mark.parametrize("way", ["restart", "go_on"])
def test_the_row_of_the_position_that_was_fed_makes_the_sum_that_enters_the_first_layer(way: str) -> None:
    running, fed = two_turns("gpt2", way)
    table = running.loaded.model.transformer.wpe.weight  # type: ignore[union-attr]
    for (turn, place), position in fed.items():
        found = positions(running, turn=turn, position=place)
        assert (found.position, found.told) == (place, position)
        assert found.norm == pytest.approx(float(table[position].detach().norm()), rel=1e-5)  # type: ignore[index]
        assert position in found.places
        entered = inside(running, turn=turn, position=place).stream[0]
        assert found.sum_norm == pytest.approx(float(entered.norm()), rel=1e-5)


def test_an_answer_longer_than_the_table_is_told_positions_of_its_window() -> None:
    long = [{"role": "user", "content": "the" + " the" * 480}]
    fields: dict[str, Any] = {"messages": long, "sampling": {"min_new_tokens": 24}, "stop": {"max_new_tokens": 24}}
    running = talk("gpt2", CONTEXT, positions="restart", **fields)
    trace = finish(running)
    last = len(trace.rendered(0).token_ids) + len(trace.steps(0)) - 2  # type: ignore[union-attr]
    assert last >= CONTEXT
    found = positions(running)
    assert (found.position, found.told) == (last, CONTEXT - 1)


def test_a_prompt_longer_than_the_table_was_never_fed_and_has_no_row() -> None:
    long = [{"role": "user", "content": "the cat sat on the mat " * 100}]
    refused = Conversation(tiny("gpt2"), experiment(messages=long))
    finish(refused)
    with pytest.raises(ExperimentError, match=f"positions 0 to {CONTEXT - 1} and has none for position"):
        positions(refused)
    assert positions(refused, position=CONTEXT - 1).told == CONTEXT - 1


def test_a_window_that_does_not_move_tells_the_place() -> None:
    running = talk("llama", CONTEXT, stop={"max_new_tokens": 4})
    finish(running)
    found = rotary(running)
    assert found.told == found.position


@pytest.mark.parametrize("way", ["restart", "go_on"])
def test_a_run_from_a_file_whose_answer_alone_moved_the_window_is_refused_as_the_run_was(way: str) -> None:
    fields: dict[str, Any] = {"messages": None, "prompt": "the cat sat", "sampling": {"min_new_tokens": 20}}
    running = talk("llama", 12, positions=way, stop={"max_new_tokens": 20}, **fields)
    trace = finish(running)
    assert trace.truncated(0) is None
    for conversation in (running, replayed(running.loaded, trace)):
        for ask in (relative_phase, lens_map, lambda asked: attention_matrix(asked, layer=0, head=0)):
            with pytest.raises(ExperimentError, match="the sliding window has moved"):
                ask(conversation)


def test_a_run_from_a_file_whose_window_never_moved_is_seen_whole() -> None:
    fields: dict[str, Any] = {"messages": None, "prompt": "the cat sat", "sampling": {"min_new_tokens": 8}}
    running = talk("llama", 12, stop={"max_new_tokens": 8}, **fields)
    trace = finish(running)
    # The window is as full as it gets before its first token leaves.
    assert len(trace.rendered(0).token_ids) + len(trace.steps(0)) - 1 == 12  # type: ignore[union-attr]
    again = replayed(running.loaded, trace)
    assert relative_phase(again).raw == pytest.approx(relative_phase(running).raw, abs=1e-4)
