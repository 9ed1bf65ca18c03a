"""A table of text and numbers: sticky header, numbers in mono, bars behind cells, rows that can be chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gradio as gr

from components.copy import words
from components.widgets import host

Tone = Literal[
    "",
    "dim",
    "cut",
    "accent",
    "ok",
    "warn",
    "system",
    "user",
    "assistant",
    "tool",
    "scaffold",
]


@dataclass(frozen=True)
class Column:
    """A column: its heading, alignment, an explanation, and whether its texts are set in mono. Explanations are
    shown on hover, and all of them in a fold under the table.

    Right-aligned columns are always mono.
    """

    label: str
    align: Literal["left", "right"] = "left"
    help: str = ""
    mono: bool = False


@dataclass(frozen=True)
class Cell:
    """A cell: its text, tone, the length of the bar behind it (0 to 1), and a longer text shown on hover."""

    text: str
    tone: Tone = ""
    bar: float | None = None
    title: str = ""


def build(elem_id: str, label: str, *, height: int = 360) -> gr.HTML:
    """The component; higher than `height` pixels it scrolls.

    A chosen row fires `select` with {"row": i, "key": key[i]}.
    """
    return host.widget("table", elem_id, label, height=height)


def value(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell | str]],
    *,
    selected: int | None = None,
    caption: str = "",
    key: Sequence[Any] | None = None,
) -> dict[str, Any]:
    """The table. Rows can be chosen only where `key` names each of them.

    Items: columns [label, align, help, mono]; rows a list of cells, each a string or [text, tone, bar, title].

    Raises:
        ValueError: a row has not one cell a column, `key` not one entry a row, or a bar is not in [0, 1].
    """
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f"every row needs {len(columns)} cells, one a column")
    if key is not None and len(key) != len(rows):
        raise ValueError(f"{len(key)} keys for {len(rows)} rows")
    return {
        "columns": host.items([one.label, one.align, one.help, one.mono] for one in columns),
        "rows": host.items([_cell(cell) for cell in row] for row in rows),
        "keys": None if key is None else host.items(key),
        "selected": selected,
        "caption": caption,
        "help": words("page").text("columns") if any(one.help for one in columns) else "",
    }


def _cell(cell: Cell | str) -> Any:
    if isinstance(cell, str):
        return cell
    if cell.bar is not None and not 0 <= cell.bar <= 1:
        raise ValueError(f"a bar of {cell.bar} is not in [0, 1]")
    if not (cell.tone or cell.title) and cell.bar is None:
        return cell.text
    return [
        cell.text,
        cell.tone,
        None if cell.bar is None else round(float(cell.bar), 4),
        cell.title,
    ]
