"""The step's candidates as numbers: id, token, rank, and logit and probability at every stage."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from components.copy import words
from components.sampling.candidates import (
    by_raw_probability,
    chosen_index,
    cut_stage,
    stage_label,
)
from components.sampling.notes import places_text
from components.sampling.ranks import RANKED, Rank, ranks_at
from components.sampling.repetition import penalty_hits
from components.units import probability_text
from components.visible import visible_bytes
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.trace import Rendered, Stepped


def candidates_table(step: Stepped) -> dict[str, Any]:
    """Every followed candidate, best first by the model alone; choosing a row gives its token id."""
    say = words("sampling")
    columns = [
        Column(say.text("col_rank"), align="right", help=say.text("help_rank", most=RANKED)),
        Column(say.text("col_id"), align="right"),
        Column(say.text("col_token"), mono=True),
    ]
    for stage in step.stages:
        columns += [Column(stage_label(stage), align="right", help=say.text("help_logit")), Column("p", align="right")]
    columns.append(Column(say.text("col_cut_by")))
    order, ranks = by_raw_probability(step), ranks_at(step, 0)
    selected = chosen_index(step)
    return table.value(
        columns,
        [_candidate_row(step, i, ranks[i]) for i in order],
        selected=None if selected is None else order.index(selected),
        caption=say.text("candidates_caption", followed=len(order), all=step.stages[0].kept, most=RANKED),
        key=[{"token_id": int(step.candidate_ids[i])} for i in order],
    )


def _candidate_row(step: Stepped, index: int, rank: Rank) -> list[Cell | str]:
    cut = cut_stage(step, index)
    tone: table.Tone = "accent" if index == chosen_index(step) else "" if cut is None else "dim"
    row: list[Cell | str] = [
        Cell(rank.text, tone=tone),
        Cell(str(int(step.candidate_ids[index])), tone=tone),
        Cell(visible_bytes(step.candidate_bytes[index]), tone=tone if cut is None else "cut"),
    ]
    for stage in range(len(step.stages)):
        row += _numbers(float(step.logits[stage, index]), float(step.probabilities[stage, index]), tone)
    return [*row, Cell("" if cut is None else stage_label(step.stages[cut]), tone="dim")]


def _numbers(logit: float, probability: float, tone: table.Tone) -> list[Cell | str]:
    if not np.isfinite(logit):
        return [Cell("−∞", tone="dim"), Cell("✕", tone="dim")]
    bar = min(max(probability, 0.0), 1.0)
    return [Cell(f"{logit:.2f}", tone=tone), Cell(probability_text(probability), tone=tone, bar=bar)]


def penalty_table(rendered: Rendered, steps: Sequence[Stepped], step: Stepped) -> dict[str, Any]:
    """The candidates that the repetition penalty hit, where each stood before, and what became of its score."""
    say = words("sampling")
    columns = [
        Column(say.text("col_token"), mono=True),
        Column(say.text("col_stands_in")),
        Column(say.text("col_logit"), align="right"),
        Column(say.text("col_probability"), align="right"),
        Column(say.text("col_rank"), align="right", help=say.text("help_rank_penalty")),
    ]
    if not any(stage.name == "repetition_penalty" for stage in step.stages):
        return table.value([], [], caption=say.text("penalty_off"))
    hits = penalty_hits(rendered, steps, step)
    rows = [
        [
            visible_bytes(step.candidate_bytes[hit.index]),
            places_text(hit),
            f"{hit.logit_before:.2f} → {hit.logit_after:.2f}",
            f"{probability_text(hit.probability_before)} → {probability_text(hit.probability_after)}",
            f"{hit.rank_before.text} → {hit.rank_after.text}",
        ]
        for hit in hits
    ]
    caption = say.text("penalty_caption", count=len(hits), all=len(step.candidate_ids))
    keys = [{"token_id": int(step.candidate_ids[hit.index])} for hit in hits]
    return table.value(columns, rows, caption=caption, key=keys)
