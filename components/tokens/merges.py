"""How one word became its tokens, merge by merge, and the same text under other tokenizers."""

from collections.abc import Sequence
from typing import Any

from components.copy import sentences, words
from components.in_words import in_words
from components.panel import View
from components.visible import visible
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.answers.merges import Merges, Word
from engine.answers.tokenizers import Counted, Tokenizers
from engine.experiment import ExperimentError
from engine.refusals import Refused
from engine.trace import Rendered, Stepped

#: Rows of the table of merges, and tokens on either side that may belong to the selected token's word.
MAX_ROWS = 120
REACH = 12


def word_at(rendered: Rendered, steps: Sequence[Stepped], position: int) -> str:
    """The word that the token at a position belongs to, with the space it begins with; "" on a control mark."""
    pieces = [*rendered.token_bytes, *(step.token_bytes for step in steps)]
    special = [*rendered.special.tolist(), *(step.special for step in steps)]
    if position not in range(len(pieces)) or special[position]:  # an empty prompt has no tokens
        return ""
    left = right = position
    while left > max(0, position - REACH) and not (
        _begins(pieces[left]) or special[left - 1] or pieces[left - 1].isspace()
    ):
        left -= 1
    while right + 1 < min(len(pieces), position + REACH) and not _begins(pieces[right + 1]) and not special[right + 1]:
        right += 1
    return b"".join(pieces[left : right + 1]).decode("utf-8", "replace")


def _begins(piece: bytes) -> bool:
    return piece[:1].isspace()


def merges_value(view: View, position: int) -> dict[str, Any]:
    """The merges of the text that was looked up, else of the selected token's word."""
    say, rendered = words("tokens"), view.rendered
    if view.probe is None or rendered is None:
        return table.value([], [], caption=say.text("merges_unavailable"))
    text = view.cursor.query or word_at(rendered, view.steps, position)
    if not text:
        return table.value([], [], caption=say.text("merges_mark"))
    try:
        found: Merges = view.probe("merges", text=text)
    except (ExperimentError, Refused) as error:
        return table.value([], [], caption=in_words(error))
    columns = [
        Column(say.text("col_step"), align="right"),
        Column(say.text("col_rank"), align="right", help=say.text("help_rank")),
        Column(say.text("col_join"), mono=True),
        Column(say.text("col_pieces"), mono=True),
    ]
    rows = [row for word in found.words for row in _word_rows(word)]
    return table.value(columns, rows[:MAX_ROWS], caption=_caption(found, len(rows) - MAX_ROWS))


def _word_rows(word: Word) -> list[list[Cell | str]]:
    say = words("tokens")
    if word.scores:
        pieces = zip(word.pieces, word.scores, strict=True)
        return [["", f"{score:.2f}", Cell(say.text("by_score"), tone="dim"), visible(piece)] for piece, score in pieces]
    if not word.start:
        return [["", "", Cell(say.text("not_merged"), tone="dim"), _row_of(word.pieces)]]
    if word.taken_whole:
        return [["", "", Cell(say.text("taken_whole"), tone="dim"), _row_of(word.pieces)]]
    rows: list[list[Cell | str]] = [["0", "", Cell(say.text("start"), tone="dim"), _row_of(word.start)]]
    for step, merge in enumerate(word.merges, start=1):
        joined = f"{visible(merge.left)} + {visible(merge.right)}"
        rows.append([str(step), f"{merge.rank:,}", joined, _row_of(merge.pieces)])
    return rows


def _row_of(pieces: Sequence[str]) -> str:
    return " · ".join(visible(piece) for piece in pieces)


def _caption(found: Merges, left_out: int) -> str:
    say = words("tokens")
    ids = ", ".join(map(str, found.ids[:40])) + (" …" if len(found.ids) > 40 else "")
    numbers = {"text": visible(found.text), "ids": ids, "count": len(found.ids), "left": left_out}
    parts = [say.text(f"kind_{found.kind}", **numbers), say.text("agrees" if found.agrees else "disagrees", **numbers)]
    return sentences(*parts, say.text("merges_cut", **numbers) if left_out > 0 else None)


def tokenizers_value(found: Tokenizers | None) -> dict[str, Any]:
    """One row a tokenizer of the catalogue: how many tokens the same text is, and what that costs."""
    say = words("tokens")
    if found is None:
        return table.value([], [], caption=say.text("tokenizers_empty"))
    columns = [
        Column(say.text("col_tokenizer")),
        Column(say.text("col_rows"), align="right"),
        Column(say.text("col_tokens"), align="right"),
        Column(say.text("col_per_character"), align="right"),
        Column(say.text("col_per_token"), align="right"),
        Column(say.text("col_cost"), align="right", help=say.text("help_cost")),
    ]
    most = max((row.tokens or 0 for row in found.rows), default=0)
    rows = [_tokenizer_row(found, row, most) for row in found.rows]
    text = found.text if len(found.text) <= 60 else f"{found.text[:60]}…"
    numbers = {"text": visible(text), "characters": found.characters, "bytes": found.utf8_bytes}
    return table.value(columns, rows, caption=say.text("tokenizers_said", **numbers))


def _tokenizer_row(found: Tokenizers, row: Counted, most: int) -> list[Cell | str]:
    say = words("tokens")
    if row.missing is not None:
        reason = say.text(f"missing_{row.missing}")
        dash = Cell("–", tone="dim")
        return [Cell(row.title, title=reason), f"{row.vocabulary:,}", Cell(reason, tone="dim"), dash, dash, dash]
    tokens, own = row.tokens or 0, found.rows[0].tokens or 0
    return [
        row.title,
        f"{row.vocabulary:,}",
        Cell(f"{tokens:,}", bar=tokens / most if most else None),
        f"{tokens / found.characters:.3f}" if found.characters else "–",
        f"{found.utf8_bytes / tokens:.2f}" if tokens else "–",
        f"{tokens / own:.2f}×" if own else "–",
    ]
