"""The row of the token in sight: how long it is among all rows, what is like it, what the model makes of the table."""

from collections.abc import Sequence
from typing import Any

from components.copy import sentences, words
from components.units import bytes_text, share_text
from components.visible import visible_bytes
from components.widgets import table, token_strip
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Group
from engine.answers.embedding import Embedding

#: A factor this near to 1 is none.
NO_SCALE = 1e-3


def row_note(found: Embedding) -> dict[str, Any]:
    """Length and place of the row, one table or two, what is done to a row on its way in."""
    say = words("embedding")
    place = say.text(
        "row_said",
        token=token_name(found.token_bytes),
        hidden=found.hidden,
        rows=found.rows,
        norm=found.norm,
        share=share_text(found.shorter / found.rows),
        smallest=found.smallest,
        smallest_token=row_name(found.smallest_bytes, found.smallest_id),
        median=found.median,
        largest=found.largest,
        largest_token=row_name(found.largest_bytes, found.largest_id),
    )
    empty = say.text("row_empty", count=found.empty_rows) if found.empty_rows else ""
    notes = [
        (say.text("row_title", row=found.token_id, norm=found.norm), sentences(place, empty)),
        _tied(found),
        _scaled(found),
    ]
    return token_strip.value([Group([], label=label, note=note, as_text=True) for label, note in notes])


def neighbours_value(found: Embedding) -> dict[str, Any]:
    """The rows that point most alike, most alike first."""
    say = words("embedding")
    if not len(found.neighbour_ids):
        return table.value([], [], caption=say.text("neighbours_none"))
    columns = [
        Column(say.text("col_token"), mono=True),
        Column(say.text("col_row"), align="right"),
        Column(say.text("col_cosine"), align="right", help=say.text("help_cosine")),
        Column(say.text("col_norm"), align="right", help=say.text("help_norm")),
    ]
    lines = zip(
        found.neighbour_ids.tolist(), found.neighbour_bytes, found.neighbour_cosines, found.neighbour_norms, strict=True
    )
    rows: list[Sequence[Cell | str]] = [
        [name_cell(data, row), str(row), cosine_cell(float(cosine)), f"{norm:.2f}"] for row, data, cosine, norm in lines
    ]
    return table.value(columns, rows, caption=say.text("neighbours_caption", typical=found.typical_cosine))


def row_name(data: bytes, row: int) -> str:
    """A row of the table by its token; one that no token owns by its number."""
    return token_name(data) if data else words("embedding").text("unowned", row=row)


def token_name(data: bytes) -> str:
    """Token text in quotation marks, so that its spaces are seen to belong to it."""
    return f"“{visible_bytes(data)}”"


def name_cell(data: bytes, row: int) -> Cell | str:
    """The token of a row as a cell."""
    return visible_bytes(data) if data else Cell(words("embedding").text("unowned", row=row), tone="dim")


def cosine_cell(cosine: float) -> Cell:
    """A cosine with a bar as long as it is; a negative one has none."""
    return Cell(f"{cosine:.3f}", bar=min(max(cosine, 0.0), 1.0))


def _tied(found: Embedding) -> tuple[str, str]:
    say = words("embedding")
    size = bytes_text(found.table_bytes)
    if found.tied:
        return say.text("tied_title"), say.text("tied", size=size, rows=found.rows, hidden=found.hidden)
    if found.head_cosine is None:
        return say.text("untied_title"), say.text("untied_other", size=size)
    return say.text("untied_title"), say.text("untied", size=size, cosine=found.head_cosine)


def _scaled(found: Embedding) -> tuple[str, str]:
    say = words("embedding")
    if found.scale is None:
        return say.text("enters_other_title"), say.text("enters_other")
    if abs(found.scale - 1) > NO_SCALE:
        root = say.text("root", hidden=found.hidden) if _is_root(found) else ""
        title = say.text("scaled_title", scale=found.scale)
        return title, say.text(
            "scaled", scale=found.scale, norm=found.norm, entered=found.norm * found.scale, root=root
        )
    added = "enters_with_position" if found.learned_positions else "enters_alone"
    return say.text("enters_title"), say.text(added)


def _is_root(found: Embedding) -> bool:
    """Gemma multiplies by the square root of the hidden size, rounded to the dtype."""
    return found.scale is not None and abs(found.scale / found.hidden**0.5 - 1) < 0.01
