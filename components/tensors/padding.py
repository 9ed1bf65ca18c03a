"""Two texts in one batch: what is fed column by column, and what each way of filling up does to the next token."""

from typing import Any

import numpy as np

from components.checks import LOGIT_TOLERANCE
from components.copy import sentences, words
from components.units import probability_text
from components.visible import running_text, visible_bytes
from components.widgets import table, token_strip
from components.widgets.table import Cell, Column, Tone
from components.widgets.token_strip import Group
from engine.answers.padding import Padding
from engine.facts import ModelFacts


def padding_values(found: Padding | None, facts: ModelFacts) -> list[Any]:
    """A remark, the table of ways and the table of columns; the remark alone until the probe was asked."""
    if found is None:
        empty = Group([], note=words("tensors").text("padding_empty"), as_text=True)
        return [token_strip.value([empty]), None, None]
    allowed = LOGIT_TOLERANCE.get(facts.dtype, LOGIT_TOLERANCE["bfloat16"])
    return [remark_value(found, allowed), ways_value(found, allowed), columns_value(found)]


def remark_value(found: Padding, allowed: float) -> dict[str, Any]:
    """Which texts, which is filled up, and what positions and mask were found to matter."""
    say, row = words("tensors"), found.padded_row
    moved = {one.way: float(one.max_differences[row]) for one in found.tried}
    numbers = {"short": row + 1, "pads": found.pads}
    key = "padding_moved"
    if found.positions == "learned":
        key = "padding_learned"
    elif found.positions == "rotary" and moved["columns"] <= allowed:
        key = "padding_rotary"
    texts = say.text(
        "padding_rows",
        count=int(found.attention_mask[0].sum()),
        whole=found.whole,
        second=running_text(found.second),
        pad=visible_bytes(found.pad_bytes),
        **numbers,
    )
    said = say.text(key, difference=moved["columns"], **numbers)
    mask = say.text("padding_mask_matters", difference=moved["no_mask"], pads=found.pads)
    return token_strip.value([Group([], note=texts, as_text=True), Group([], note=sentences(said, mask), as_text=True)])


def ways_value(found: Padding, allowed: float) -> dict[str, Any]:
    """One way a line: how far the logits of the text that was filled up moved, and what now comes after it."""
    say, row = words("tensors"), found.padded_row
    alone = visible_bytes(found.alone_bytes[row])
    columns = [
        Column(say.text("col_way")),
        Column(say.text("col_difference", row=row + 1), align="right"),
        Column(say.text("col_best", row=row + 1), mono=True),
        Column(say.text("col_alone_p", token=alone), align="right", help=say.text("help_alone_p")),
    ]
    rows: list[list[Cell | str]] = [
        [say.text("way_alone"), "", alone, probability_text(float(found.alone_probabilities[row]))]
    ]
    for one in found.tried:
        changed = bool(one.best_ids[row] != found.alone_ids[row])
        rows.append(
            [
                say.text(f"way_{one.way}"),
                _difference(float(one.max_differences[row]), allowed),
                Cell(visible_bytes(one.best_bytes[row]), tone="warn" if changed else ""),
                probability_text(float(one.alone_probabilities[row])),
            ]
        )
    other = max(float(one.max_differences[1 - row]) for one in found.tried)
    caption = say.text("padding_ways_said", allowed=allowed, other=2 - row, difference=other)
    return table.value(columns, rows, caption=caption)


def _difference(value: float, allowed: float) -> Cell:
    if not np.isfinite(value):
        return Cell(words("tensors").text("not_a_number"), tone="warn")
    text = "0" if value == 0 else f"{value:.1e}" if value < 0.01 else f"{value:.2f}"
    return Cell(text, tone="ok" if value <= allowed else "warn")


def columns_value(found: Padding) -> dict[str, Any]:
    """One column of the batch a line: the token, mask and position of both texts."""
    say = words("tensors")
    columns = [Column(say.text("col_column"), align="right")]
    for text in (1, 2):
        columns += [
            Column(say.text("col_token_of", row=text), mono=True),
            Column(say.text("col_mask_of", row=text), align="right"),
            Column(say.text("col_position_of", row=text), align="right", help=say.text("help_position_of")),
        ]
    rows: list[list[Cell | str]] = []
    for column in range(found.token_ids.shape[1]):
        line: list[Cell | str] = [str(int(found.positions_by_column[0, column]))]
        for row in range(2):
            tone: Tone = "" if found.attention_mask[row, column] else "dim"
            line += [
                Cell(visible_bytes(found.token_bytes[row][column]), tone=tone),
                Cell(str(int(found.attention_mask[row, column])), tone=tone),
                Cell(str(int(found.positions_by_mask[row, column])), tone=tone),
            ]
        rows.append(line)
    return table.value(columns, rows, caption=say.text("padding_columns_said"))
