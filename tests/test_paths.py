"""The same logits on every path, over 1,024 positions, within the tolerance that is published."""

import random
import re
from pathlib import Path

import torch

from benchmarks.paths import BAR, LENGTH, ROWS, WAYS, Agreement, _compared, agreements, measure
from engine import attention
from engine.model import LoadedModel

PUBLISHED = Path(__file__).parents[1] / "docs" / "architecture.md"
ROW = re.compile(
    r"^\| (?P<way>[^|]+) \| (?P<largest>[\d.]+) × 10⁻⁶ \| (?P<same>[\d,]+) of (?P<all>[\d,]+) \|$", re.MULTILINE
)


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


def test_the_published_table_holds_for_the_embedded_model(embedded: LoadedModel) -> None:
    """A part of the published positions, which keeps to the largest difference published by a factor of 4."""
    published = {row["way"].strip(): row for row in ROW.finditer(PUBLISHED.read_text("utf-8"))}
    assert set(published) == {*WAYS, "8 rows in one batch"}
    assert all(int(row["all"].replace(",", "")) >= 1_000 for row in published.values())
    for figure in measure(embedded, rows=2, length=24):
        way = figure.name.removeprefix("max |Δlogit|, ").replace("2 rows", "8 rows")
        assert figure.value < 4 * float(published[way]["largest"])
        assert not figure.missed
        assert "at 48 of 48 positions" in figure.note
