"""Who may see whom in one forward: a remark and a heatmap."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from components.copy import sentences, words
from components.visible import visible_bytes
from components.widgets import heatmap, token_strip
from components.widgets.token_strip import Group

MAX_SIDE = 96


def causal_mask(top: int, bottom: int, left: int, right: int) -> npt.NDArray[np.float32]:
    """[bottom − top, right − left]: 1 where position `column` ≤ position `row`."""
    return (np.arange(left, right) <= np.arange(top, bottom)[:, None]).astype(np.float32)


def mask_values(
    first: int, data: Sequence[bytes], mask_length: int, position: int, *, gone: int = 0, window: int | None = None
) -> list[dict[str, Any]]:
    """A remark and the mask of the positions fed, from `first` on, against all, whose tokens are `data`.

    At most MAX_SIDE positions a side, around `position`. Those from `mask_length` on, beyond the attention mask's end,
    are hidden: transformers takes them for padding. The first `gone` have left a sliding window and have no column.
    `window` is how many positions a sliding layer of the model sees; None where it has none.
    """
    say, end = words("tensors"), len(data)
    top, bottom = _around(first, end, position)
    left, right = _around(0, end, position)
    matrix = causal_mask(top, bottom, left, right)
    matrix[:, max(0, gone + mask_length - left) :] = 0
    matrix[:, : max(0, gone - left)] = 0
    rows, columns = matrix.shape
    told = [say.text("mask_row" if end - first == 1 else "mask_all")]
    if gone + mask_length < end:
        told = [say.text("mask_hidden", first=mask_length, last=end - 1)]
    if window is not None:
        told.append(say.text("mask_window", window=window))
    if gone:
        told.append(say.text("mask_gone", last=gone - 1))
    if (rows, columns) != (end - first, end):
        told.append(say.text("mask_cut", rows=rows, columns=columns, all_rows=end - first, all_columns=end))
    remark = token_strip.value([Group([], note=sentences(*told), as_text=True)])
    picture = heatmap.value(
        matrix,
        x=[_label(p, data[p]) for p in range(left, right)],
        y=[_label(p, data[p]) for p in range(top, bottom)],
        label=say.text("mask_label", rows=rows, columns=columns),
        low=0.0,
        high=1.0,
        selected=(position - top, position - left) if top <= position < bottom else None,
    )
    return [remark, picture]


def _around(start: int, end: int, center: int) -> tuple[int, int]:
    """At most MAX_SIDE positions of [start, end) around `center`."""
    first = max(start, min(center - MAX_SIDE // 2, end - MAX_SIDE))
    return first, min(end, first + MAX_SIDE)


def _label(position: int, data: bytes) -> str:
    return f"{position} {visible_bytes(data)}"
