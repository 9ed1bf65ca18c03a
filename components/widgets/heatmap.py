"""A big matrix as a picture of 8-bit values: axes, a read-out under the pointer, a cell that can be chosen."""

import base64
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, Literal

import gradio as gr
import numpy as np
from PIL import Image

from components.copy import words
from components.widgets import host

LIMIT = 400_000  # characters of the data URI
Axis = Literal["row", "column"]
MOVES = ("cell_left", "cell_up", "cell_down", "cell_right", "cell_choose")  # the buttons that fingers have
STEPS = (254, 126, 62, 30, 14, 2)  # 14 and 2 pack into 4 and 2 bits a pixel


def build(elem_id: str, label: str) -> gr.HTML:
    """The component. A chosen cell fires `select` with {"row": r, "column": c} and the "key" that is asked for."""
    return host.widget("heatmap", elem_id, label)


def value(
    matrix: np.ndarray,
    *,
    x: Sequence[str],
    y: Sequence[str],
    label: str,
    low: float,
    high: float,
    unit: str = "",
    selected: tuple[int, int] | None = None,
    keys: Mapping[str, tuple[Axis, int]] | None = None,
    band: int = 0,
    root: bool = False,
    texts: Sequence[Sequence[str]] | None = None,
    column_keys: Sequence[Any] | None = None,
) -> dict[str, Any]:
    """The matrix [rows, columns], float, as a grey PNG: 0 for NaN (left blank), 1 to 255 from `low` to `high`.

    Values outside the range are clipped to it. A picture that would pass 400 KB keeps fewer levels of grey, and
    `step` says how far the read-out may be off.

    Args:
        x, y: one label a column, one a row, as plain text.
        selected: row and column.
        keys: what a chosen cell stands for: name → the axis that counts it and the number of its first cell.
        root: the greys follow the square root of the value, so that small ones can be told apart.
        band: rows that belong together; a line is drawn between one such band and the next.
        texts: one a cell, by row. The first line stands in the cell, the others in the read-out alone.
        column_keys: one a column, where no count gives them: a chosen cell's "key".

    Raises:
        ValueError: the labels, texts or keys do not fit the matrix, or the range is empty.
    """
    rows, columns = matrix.shape
    if len(x) != columns or len(y) != rows:
        raise ValueError(f"{len(y)} × {len(x)} labels for a matrix of {rows} × {columns}")
    if texts is not None and [len(row) for row in texts] != [columns] * rows:
        raise ValueError(f"the texts do not fill a matrix of {rows} × {columns}")
    if column_keys is not None and len(column_keys) != columns:
        raise ValueError(f"{len(column_keys)} keys for {columns} columns")
    if not high > low:
        raise ValueError(f"the range {low} to {high} is empty")
    share = np.clip((np.asarray(matrix, dtype=np.float32) - low) / (high - low), 0, 1)
    share = np.sqrt(share) if root else share
    levels = STEPS[0]
    while len(picture := _png(share, levels)) > LIMIT and levels > STEPS[-1]:
        # Every bit a pixel saved halves the levels: jump to where the picture should fit.
        surplus = (len(picture) - LIMIT) * 6 / share.size
        levels = next(
            (step for step in STEPS if step < levels and step <= levels / 2**surplus),
            STEPS[-1],
        )
    return {
        "png": picture,
        "rows": rows,
        "columns": columns,
        "x": host.items(x),
        "y": host.items(y),
        "label": label,
        "low": float(low),
        "high": float(high),
        "step": (high - low) * (2 if root else 1) / levels,
        "root": root,
        "unit": unit,
        "selected": None if selected is None else list(selected),
        "keys": {name: list(place) for name, place in (keys or {}).items()},
        "band": band,
        "texts": None if texts is None else host.items(list(row) for row in texts),
        "column_keys": None if column_keys is None else host.items(column_keys),
        "moves": host.items(words("page").text(name) for name in MOVES),
    }


def _png(share: np.ndarray, levels: int) -> str:
    """The shares [rows, columns] in [0, 1] or NaN as the data URI of a grey PNG with `levels` + 1 steps above 0."""
    index = np.where(np.isnan(share), 0, 1 + np.rint(share * levels)).astype(np.uint8)
    greys = [0, *(1 + round(level * 254 / levels) for level in range(levels + 1))]
    picture = Image.fromarray(index).convert("P") if levels < 16 else Image.fromarray(np.array(greys, np.uint8)[index])
    options: dict[str, Any] = {}
    if picture.mode == "P":
        picture.putpalette([grey for grey in greys for _ in "rgb"])
        options = {"bits": 2 if levels < 4 else 4}
    file = BytesIO()
    picture.save(file, format="PNG", compress_level=6, **options)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
