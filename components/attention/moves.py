"""One head in five moves: scores, scale, masks, softmax, weighted values, position by position."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from components.copy import words
from components.units import probability_text
from components.visible import visible_bytes
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.answers.attention import AttentionAt

#: Positions with a row of their own: those that get most, and the newest of the hidden ones.
TOP = 10
HIDDEN = 3

#: A row and what a click on it chooses.
Row = tuple[list[Cell | str], dict[str, int]]


def moves_value(seen: AttentionAt, tokens: Sequence[bytes]) -> dict[str, Any]:
    """The heaviest positions, the others summed, what the masks hide, and the sum."""
    say, moves = words("attention"), seen.moves
    scaled = "col_scaled" if moves.softcap is None else "col_capped"
    columns = [
        Column(say.text("col_position"), align="right"),
        Column(say.text("col_token"), mono=True),
        Column(say.text("col_raw"), align="right", help=say.text("help_raw")),
        Column(say.text(scaled, scaling=moves.scaling, softcap=moves.softcap), align="right"),
        Column(say.text("col_masked"), align="right", help=say.text("help_masked")),
        Column(say.text("col_weight"), align="right", help=say.text("help_weight")),
        Column(say.text("col_value"), align="right", help=say.text("help_value")),
        Column(say.text("col_weighted"), align="right", help=say.text("help_weighted")),
    ]
    open_ones = [index for index, reason in enumerate(moves.hidden_by) if reason is None]
    ranked = sorted(open_ones, key=lambda index: -moves.weights[index])
    rows = [_row(seen, index, tokens) for index in ranked[:TOP]]
    if ranked[TOP:]:
        rest = float(moves.weights[ranked[TOP:]].sum())
        rows.append(_summed("rest", len(ranked) - TOP, "", _weight(rest)))
    hidden = [index for index, reason in enumerate(moves.hidden_by) if reason is not None]
    rows += [_row(seen, index, tokens) for index in reversed(hidden[-HIDDEN:])]
    for reason in ("padding", "window"):
        count = sum(moves.hidden_by[index] == reason for index in hidden[:-HIDDEN])
        count += seen.first if reason == "window" else 0
        if count:
            rows.append(_summed("more_hidden", count, reason, Cell("0", tone="dim")))
    if seen.later:
        rows.append(_summed("later", seen.later, "causal", Cell("0", tone="dim")))
    total = f"{moves.weights.sum():.4f}"
    ok = abs(float(moves.weights.sum()) - 1) < 1e-4
    sums: list[Cell | str] = ["", say.text("sum"), "", "", "", Cell(total, tone="ok" if ok else "warn"), ""]
    rows.append(([*sums, say.text("mixed", norm=moves.mixed_norm)], {}))
    return table.value(
        columns, [row for row, _ in rows], key=[key for _, key in rows], caption=_said(seen), selected=None
    )


def _row(seen: AttentionAt, index: int, tokens: Sequence[bytes]) -> Row:
    say, moves, position = words("attention"), seen.moves, seen.first + index
    reason = moves.hidden_by[index]
    masked: Cell | str = f"{moves.masked[index]:.2f}"
    if reason is not None:
        masked = Cell(say.text("hidden", reason=say.text(f"by_{reason}")), tone="warn")
    weight = float(moves.weights[index])
    row: list[Cell | str] = [
        str(position),
        visible_bytes(tokens[position]),
        f"{moves.raw[index]:.2f}",
        f"{moves.scaled[index]:.2f}",
        masked,
        _weight(weight),
        f"{moves.value_norms[index]:.2f}",
        f"{weight * moves.value_norms[index]:.3f}",
    ]
    return row, {"fed": position}


def _summed(key: str, count: int, reason: str, weight: Cell) -> Row:
    say = words("attention")
    masked: Cell | str = Cell(say.text("hidden", reason=say.text(f"by_{reason}")), tone="warn") if reason else ""
    return ["", Cell(say.text(key, count=count), tone="dim"), "", "", masked, weight, "", ""], {}


def _weight(share: float) -> Cell:
    return Cell(probability_text(share), bar=float(np.clip(share, 0, 1)))


def _said(seen: AttentionAt) -> str:
    say = words("attention")
    return say.text("moves_said", layer=seen.layer, head=seen.head, kv_head=seen.kv_head, position=seen.position)
