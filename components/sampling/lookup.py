"""Any token looked up by its text: what every stage made of it, however unlikely it is."""

from typing import Any

import numpy as np

from components.copy import words
from components.in_words import in_words
from components.panel import View
from components.sampling.candidates import stage_label
from components.units import probability_text
from components.visible import visible, visible_bytes
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.experiment import ExperimentError
from engine.trace import Stepped


def lookup_table(view: View, step: Stepped) -> dict[str, Any]:
    """Logit, probability and rank of the looked-up tokens after every stage; choosing a row takes that token."""
    say = words("sampling")
    query = view.cursor.query
    if view.probe is None:
        return table.value([], [], caption=say.text("lookup_unavailable"))
    if not query:
        return table.value([], [], caption=say.text("lookup_empty"))
    try:
        found = view.probe("distribution", turn=step.turn, step=step.step, query=query)
    except ExperimentError as error:
        return table.value([], [], caption=in_words(error))
    columns = [
        Column(say.text("col_token"), mono=True),
        Column(say.text("col_stage")),
        Column(say.text("col_logit"), align="right"),
        Column(say.text("col_probability"), align="right"),
        Column(say.text("col_rank"), align="right", help=say.text("help_rank_stage")),
    ]
    rows: list[list[Cell | str]] = []
    keys = []
    for column, token_id in enumerate(found.token_ids.tolist()):
        for place, stage in enumerate(found.stages):
            label = f"{visible_bytes(found.token_bytes[column])} · {token_id}" if place == 0 else ""
            numbers = found.logits[place, column], found.probabilities[place, column], found.ranks[place, column]
            rows.append([label, stage_label(stage), *_numbers(*numbers)])
            keys.append({"token_id": token_id})
    return table.value(columns, rows, caption=_caption(query, found.token_bytes), key=keys)


def _numbers(logit: float, probability: float, rank: int) -> list[Cell | str]:
    if not np.isfinite(logit):
        return [Cell("−∞", tone="dim"), Cell("✕", tone="dim"), Cell("–", tone="dim")]
    bar = min(max(float(probability), 0.0), 1.0)
    exact = f"{probability:.2e}" if probability < 0.0005 else probability_text(float(probability))
    return [f"{logit:.2f}", Cell(exact, bar=bar), f"{rank:,}"]


def _caption(query: str, tokens: tuple[bytes, ...]) -> str:
    say = words("sampling")
    if not tokens:
        return say.text("lookup_nothing", query=visible(query))
    whole = any(data.decode("utf-8", "replace").strip() == query.strip() for data in tokens)
    return say.text("lookup_whole" if whole else "lookup_first", query=visible(query))
