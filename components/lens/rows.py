"""The lens as numbers: what leads at every row, and every followed token's way."""

from typing import Any

from components.copy import words
from components.inside import row_label
from components.units import probability_text
from components.visible import visible, visible_bytes
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.answers.lens import Lens


def climb(lens: Lens, column: int) -> int:
    """The first row from which on a token leads without a break; beyond the last row where it does not lead there."""
    behind = [row for row, rank in enumerate(lens.ranks[:, column]) if rank != 1]
    return behind[-1] + 1 if behind else 0


def rows_value(lens: Lens, query: str, *, live: bool) -> dict[str, Any]:
    """One row of the stream a line: its best guess, how sure, and where the next token stands.

    Where the run is `live`, a row can be chosen: its guess is looked up, or let go where it is looked up already.
    """
    say, last = words("lens"), len(lens.ranks) - 1
    columns = [
        Column(say.text("col_row"), align="right", help=say.text("help_row")),
        Column(say.text("col_top"), mono=True),
        Column(say.text("col_p"), align="right"),
        Column(say.text("col_entropy"), align="right", help=say.text("help_entropy")),
    ]
    followed = [] if lens.next_id is None else [lens.token_ids.tolist().index(lens.next_id)]
    followed += [column for column, token in enumerate(lens.token_ids.tolist()) if token in lens.asked]
    shown = list(dict.fromkeys(followed))
    columns += [
        Column(say.text("col_rank_of", token=visible_bytes(lens.token_bytes[column])), align="right")
        for column in shown
    ]
    rows: list[list[Cell | str]] = []
    for row in range(last + 1):
        leads = lens.next_id is not None and int(lens.top_ids[row]) == lens.next_id
        probability = float(lens.top_probabilities[row])
        rows.append(
            [
                Cell(row_label(row, last), tone="dim"),
                Cell(visible_bytes(lens.top_bytes[row]), tone="accent" if leads else ""),
                Cell(probability_text(probability), bar=min(max(probability, 0.0), 1.0)),
                f"{lens.entropies[row]:.2f}",
                *(Cell(f"{lens.ranks[row, c]:,}", tone="accent" if lens.ranks[row, c] == 1 else "") for c in shown),
            ]
        )
    caption = _caption(lens, query)
    if not live:
        return table.value(columns, rows, caption=caption)
    keys = [_key(guess, query) for guess in lens.top_bytes]
    return table.value(columns, rows, caption=f"{caption} {say.text('rows_follow')}", key=keys)


def _key(guess: bytes, query: str) -> dict[str, str]:
    """What choosing a row looks up; nothing for a piece of a character, which no text stands for."""
    try:
        text = guess.decode()
    except UnicodeDecodeError:
        return {}
    return {"query": "" if text == query else text}


def followed_value(lens: Lens) -> dict[str, Any]:
    """The charts as a table: each followed token's rank and probability at the first and the last rows."""
    say, last = words("lens"), len(lens.ranks) - 1
    columns = [
        Column(say.text("col_token"), mono=True),
        Column(say.text("col_id"), align="right"),
        Column(say.text("col_best_row"), align="right", help=say.text("help_best_row")),
        Column(say.text("col_rank_first"), align="right"),
        Column(say.text("col_rank_last"), align="right"),
        Column(say.text("col_logit"), align="right"),
        Column(say.text("col_probability"), align="right"),
    ]
    rows = [
        [
            visible_bytes(lens.token_bytes[column]),
            str(token),
            str(int(lens.ranks[:, column].argmin())),
            f"{lens.ranks[0, column]:,}",
            f"{lens.ranks[last, column]:,}",
            f"{lens.logits[last, column]:.2f}",
            probability_text(float(lens.probabilities[last, column])),
        ]
        for column, token in enumerate(lens.token_ids.tolist())
    ]
    return table.value(columns, rows)


def _caption(lens: Lens, query: str) -> str:
    say = words("lens")
    if query and not lens.asked:
        return say.text("found_nothing", query=visible(query))
    if lens.next_id is None:
        return say.text("rows_open")
    column, last = lens.token_ids.tolist().index(lens.next_id), len(lens.ranks) - 1
    token = visible_bytes(lens.token_bytes[column])
    start = climb(lens, column)
    first = int(lens.ranks[0, column])
    if start > last:
        return say.text("rows_behind", token=token, first=first, rank=int(lens.ranks[last, column]))
    return say.text("rows_climb", token=token, first=first, row=start)
