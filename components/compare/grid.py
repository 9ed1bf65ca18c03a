"""One prompt under several settings: the texts with their first difference, and the entropy of every step."""

from typing import Any

import numpy as np

from components.copy import words
from components.ends import end_text
from components.visible import running_text, visible_bytes
from components.widgets import heatmap, table
from components.widgets.table import Cell, Column
from engine.answers.grid import CellResult, GridResult

MARK = "▸"  # stands before the first token that differs from the first cell's


def grid_table(grid: GridResult | None) -> dict[str, Any]:
    """A row a cell; a chosen row makes that cell the run."""
    say = words("compare")
    if grid is None:
        return table.value([Column(say.text("col_settings"))], [[Cell(say.text("no_grid"), "dim")]])
    columns = [
        Column(say.text("col_settings")),
        Column(say.text("col_parted"), align="right", help=say.text("col_parted_help")),
        Column(say.text("col_entropy"), align="right", help=say.text("col_entropy_help")),
        Column(say.text("col_tokens"), align="right"),
        Column(say.text("col_end")),
        Column(say.text("col_text")),
    ]
    rows: list[list[Cell | str]] = [
        [
            settings_text(cell.overrides),
            "–" if cell.first_difference is None else str(cell.first_difference),
            f"{cell.entropy.mean():.2f}" if len(cell.entropy) else "",
            str(len(cell.token_ids)),
            end_text(cell.stopped.reason) if cell.stopped else say.text("going_on"),
            marked_text(cell),
        ]
        for cell in grid.cells
    ]
    return table.value(
        columns, rows, caption=grid_caption(grid), key=[{"cell": index} for index in range(len(grid.cells))]
    )


def grid_caption(grid: GridResult) -> str:
    """How it was computed, and what it would have cost one by one."""
    say = words("compare")
    if not grid.done:
        return say.text("grid_running", count=sum(len(cell.token_ids) for cell in grid.cells))
    alone = sum(cell.alone_from is not None for cell in grid.cells)
    single = sum(len(cell.token_ids) for cell in grid.cells)
    said = say.text("grid_done", tokens=grid.prompt_tokens, forwards=grid.forwards, single=single)
    if alone:
        said += " " + say.text("grid_alone", alone=alone, cells=len(grid.cells))
    return said


def marked_text(cell: CellResult) -> str:
    """The text with a mark before the first token that differs, as far as whole characters allow."""
    if cell.first_difference is None:
        return running_text(cell.text)
    same = b"".join(cell.token_bytes[: cell.first_difference]).decode("utf-8", "ignore")
    if not cell.text.startswith(same):
        return running_text(cell.text)
    return f"{running_text(same)}{MARK}{running_text(cell.text[len(same) :])}"


def settings_text(overrides: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_number(value)}" for name, value in overrides.items())


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def entropy_map(grid: GridResult | None) -> dict[str, Any] | None:
    """Cells × steps: the token in its cell, as light as its draw was open."""
    if grid is None:
        return None
    steps = max(len(cell.token_ids) for cell in grid.cells)
    if steps == 0:
        return None
    matrix = np.full((len(grid.cells), steps), np.nan, np.float32)
    texts = [[""] * steps for _ in grid.cells]
    for row, cell in enumerate(grid.cells):
        matrix[row, : len(cell.entropy)] = cell.entropy
        for step, token in enumerate(cell.token_bytes):
            texts[row][step] = (MARK if step == cell.first_difference else "") + visible_bytes(token)
    return heatmap.value(
        matrix,
        x=[str(step) for step in range(steps)],
        y=[" · ".join(_number(value) for value in cell.overrides.values()) for cell in grid.cells],
        label=words("compare").text("map_label"),
        low=0.0,
        high=max(1.0, float(np.nanmax(matrix))),
        unit="nats",
        keys={"cell": ("row", 0)},
        texts=texts,
    )
