"""The same logits on every path, over 1,024 positions."""

import random

import torch

from benchmarks.paths import BAR, LENGTH, ROWS, WAYS, Agreement, _compared, agreements
from engine import attention
from engine.model import LoadedModel


def test_every_path_gives_the_same_logits_on_every_architecture(architecture: LoadedModel) -> None:
    rng = random.Random(24)
    rows = [[rng.randrange(architecture.facts.vocab_rows) for _ in range(LENGTH)] for _ in range(ROWS)]
    found = agreements(architecture, rows)
    assert [one.way for one in found] == [*WAYS, "8 rows in one batch"]
    for one in found:
        assert one.positions == ROWS * LENGTH >= 1_000
        assert one.largest < BAR
        assert one.same_best >= 0.999 * one.positions
    assert architecture.model.config._attn_implementation == attention.NAME


def test_a_difference_is_seen() -> None:
    """By hand: one of three positions differs by 2, and its best token with it."""
    theirs = torch.tensor([[0.0, 1.0], [3.0, 1.0], [0.0, 5.0]])
    ours = torch.tensor([[2.0, 1.0], [3.0, 1.0], [0.0, 5.0]])
    assert _compared("x", [theirs], [ours]) == Agreement("x", 3, 2.0, 2)
