"""A big matrix as a picture of 8-bit values: axes, a read-out under the pointer, a cell that can be chosen."""

import base64
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import gradio as gr
import numpy as np
from PIL import Image

from components.widgets import host

LIMIT = 400_000  # characters of the data URI
STEPS = (254, 126, 62, 30, 14, 2)  # 14 and 2 pack into 4 and 2 bits a pixel


def build(elem_id: str, label: str) -> gr.HTML:
    """The component. A chosen cell fires `select` with {"row": r, "column": c}, and its column's "key"."""
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
    texts: Sequence[Sequence[str]] | None = None,
    keys: Sequence[Any] | None = None,
) -> dict[str, Any]:
    """The matrix [rows, columns], float, as a grey PNG: 0 for NaN (left blank), 1 to 255 from `low` to `high`.

    Values outside the range are clipped to it. A picture that would pass 400 KB keeps fewer levels of grey, and
    `step` says how far the read-out may be off.

    Args:
        x, y: one label a column, one a row, as plain text.
        selected: row and column.
        texts: one a cell, by row. The first line stands in the cell, the others in the read-out alone.
        keys: one a column, sent along with a chosen cell as "key".

    Raises:
        ValueError: the labels, texts or keys do not fit the matrix, or the range is empty.
    """
    rows, columns = matrix.shape
    if len(x) != columns or len(y) != rows:
        raise ValueError(f"{len(y)} × {len(x)} labels for a matrix of {rows} × {columns}")
    if texts is not None and [len(row) for row in texts] != [columns] * rows:
        raise ValueError(f"the texts do not fill a matrix of {rows} × {columns}")
    if keys is not None and len(keys) != columns:
        raise ValueError(f"{len(keys)} keys for {columns} columns")
    if not high > low:
        raise ValueError(f"the range {low} to {high} is empty")
    share = np.clip((np.asarray(matrix, dtype=np.float32) - low) / (high - low), 0, 1)
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
        "step": (high - low) / levels,
        "unit": unit,
        "selected": None if selected is None else list(selected),
        "texts": None if texts is None else host.items(list(row) for row in texts),
        "keys": None if keys is None else host.items(keys),
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
