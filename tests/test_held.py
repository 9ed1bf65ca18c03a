"""The ledger of memory: who holds what, worked out by hand, and leaks that are planted."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.footprint import LEAK, growth
from benchmarks.held import Held, Ledger
from benchmarks.prompts import experiment_of, prompt_of
from engine.conversation import Conversation
from engine.decode import Turn
from engine.model import LoadedModel

STEPS = 40


def begun(llama: LoadedModel) -> Conversation:
    """A conversation in which the libraries' own caches are full."""
    prompt = prompt_of(llama.tokenizer, 16)
    conversation = Conversation(llama, experiment_of(llama.facts.model_id, prompt, 2 * STEPS + 8))
    for _ in range(STEPS + 1):
        conversation.advance()
    return conversation


def leaking(monkeypatch: pytest.MonkeyPatch, keep: Callable[[], Any]) -> list[Any]:
    """Each step keeps one more of these, in a place that no holder knows."""
    kept: list[Any] = []
    step = Turn.step

    def leaky(self: Turn, *arguments: Any) -> Any:
        kept.append(keep())
        return step(self, *arguments)

    monkeypatch.setattr(Turn, "step", leaky)
    return kept


def test_what_is_reached_counts_once() -> None:
    shared = b"x" * 1_000
    both = Held.by([shared, shared, {"again": shared}])
    assert 1_000 < both.objects < 1_000 + sys.getsizeof(shared) + 500
    assert both.tensors == 0


def test_a_view_holds_the_whole() -> None:
    array = np.zeros(10_000, dtype=np.float32)
    assert Held.by([array[:2]]).objects > 40_000
    tensor = torch.zeros(10_000)
    assert Held.by([tensor[:2], tensor[5:]]).tensors == 40_000
    assert Held.by([tensor[:2].numpy()]).tensors == 40_000


def test_the_way_back_is_the_state_of_the_generator(llama: LoadedModel) -> None:
    grown = growth(begun(llama), STEPS)
    state = torch.Generator().get_state().nbytes
    assert state <= grown.back / STEPS < state + 1_000
    assert 1_000 < grown.events / STEPS < 12_000
    assert abs(grown.others) / STEPS < LEAK * 1_000


@pytest.mark.parametrize(
    "keep",
    [lambda: torch.zeros(1_000), lambda: np.zeros(4_000, dtype=np.uint8), lambda: [bytes(4_000)]],
    ids=["tensor", "array", "bytes"],
)
def test_a_planted_leak_is_seen_at_its_size(
    llama: LoadedModel, monkeypatch: pytest.MonkeyPatch, keep: Callable[[], Any]
) -> None:
    conversation = begun(llama)
    clean = growth(begun(llama), STEPS)
    kept = leaking(monkeypatch, keep)
    grown = growth(conversation, STEPS)
    assert len(kept) == STEPS
    assert grown.others / STEPS > LEAK * 1_000
    assert 3_500 < (grown.others - clean.others) / STEPS < 4_700
    assert abs(grown.events - clean.events) / STEPS < 500


def test_a_ledger_less_another_is_what_grew() -> None:
    assert Ledger(5, 6, 7, 8) - Ledger(1, 1, 1, 10) == Ledger(4, 5, 6, -2)
