"""The whole matrix of one head, once it was asked for: who looks at whom."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from components.attention.seen import ask, place
from components.copy import sentences, words
from components.panel import View
from components.units import share_text
from components.widgets import heatmap, token_strip
from components.widgets.token_strip import Group
from engine.answers.attention_matrix import AttentionMatrix
from engine.refusals import Refused


def asked_matrix(view: View) -> AttentionMatrix | None:
    """What was asked for; of its layer the selected head, whose queries and keys are at hand."""
    matrix: AttentionMatrix | None = view.results.get("attention_matrix")
    if matrix is None or (matrix.turn, matrix.layer) != (view.cursor.turn, view.cursor.layer):
        return matrix
    if matrix.head == view.cursor.head or view.probe is None:
        return matrix
    try:
        moved: AttentionMatrix = ask(view, "attention_matrix", position=matrix.last)
    except Refused:  # a record holds the matrices that were asked for, and the picture says whose it is
        return matrix
    return moved


def matrix_values(view: View, matrix: AttentionMatrix | None, tokens: Sequence[bytes], position: int) -> list[Any]:
    """A remark, and the picture or None."""
    say = words("attention")
    if matrix is None or matrix.turn != view.cursor.turn:
        return [_remark(say.text("matrix_empty")), None]
    said = [say.text("matrix_said", layer=matrix.layer, head=matrix.head)]
    if matrix.layer != view.cursor.layer:
        said.append(say.text("matrix_other", layer=view.cursor.layer))
    if matrix.first:
        share = share_text(float(matrix.outside.mean()))
        said.append(say.text("matrix_capped", count=len(matrix.weights), positions=matrix.positions, share=share))
    rows = len(matrix.weights)
    seen = np.where(np.tri(rows, dtype=bool), matrix.weights, np.nan)
    labels = [place(at, tokens) for at in range(matrix.first, matrix.last + 1)]
    row = position - matrix.first
    picture = heatmap.value(
        seen,
        x=labels,
        y=labels,
        label=say.text("matrix_label", layer=matrix.layer, head=matrix.head, rows=rows),
        low=0.0,
        high=1.0,
        selected=(row, int(np.nanargmax(seen[row]))) if 0 <= row < rows else None,
        keys={"fed": ("row", matrix.first)},
        root=True,
    )
    return [_remark(sentences(*said)), picture]


def _remark(text: str) -> dict[str, Any]:
    return token_strip.value([Group([], note=text, as_text=True)])
