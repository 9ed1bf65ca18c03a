"""The vocabulary's sizes, its special marks and what each is for, and the ordinary words that look like marks."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from components.copy import listed, words
from components.visible import visible
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.facts import ModelFacts, SpecialMark
from engine.trace import Rendered, Stepped

MAX_MARKS = 24
MAX_PLACES = 6


def vocabulary_value(facts: ModelFacts) -> dict[str, Any]:
    """The three numbers that are all called the vocabulary's size."""
    say = words("tokens")
    columns = [Column(say.text("col_number"), align="right"), Column(say.text("col_counts"))]
    spare = facts.vocab_rows - facts.vocab_with_special
    key = "rows_spare" if spare > 0 else "rows_exact" if spare == 0 else "rows_short"
    rows = [
        [f"{facts.vocab_base:,}", say.text("base")],
        [f"{facts.vocab_with_special:,}", say.text("with_special")],
        [f"{facts.vocab_rows:,}", say.text(key, spare=f"{spare:,}")],
    ]
    return table.value(columns, rows)


def marks_value(facts: ModelFacts, rendered: Rendered, steps: Sequence[Stepped]) -> dict[str, Any]:
    """Special marks (those in use first), then the role names: written by the template, and inside messages."""
    say = words("tokens")
    counts = Counter([*rendered.token_ids.tolist(), *(step.token_id for step in steps)])
    # Marks with a role of their own matter also where they do not occur.
    marks = sorted(facts.special_marks, key=lambda mark: (-counts[mark.token_id], mark.roles in ((), ("control",))))
    shown = [mark for mark in marks if counts[mark.token_id] or mark.roles not in ((), ("control",))][:MAX_MARKS]
    uses = mark_uses(rendered)
    rows: list[list[Cell | str]] = []
    for mark in shown:
        ends = ["ends_answer"] if mark.token_id in facts.eos_ids else []
        roles = [f"role_{role}" for role in mark.roles or ("control",)]
        rows.append(_mark_row(mark, [*uses.get(mark.token_id, ()), *ends, *roles], counts[mark.token_id]))
    for ids, text, places in role_names(rendered):
        rows.append(_word_row(text, ids, places, "role_name"))
    for ids, text, places in same_words(rendered, steps):
        rows.append(_word_row(text, ids, places, "same_word"))
    columns = [
        Column(say.text("col_mark"), mono=True),
        Column(say.text("col_ids"), align="right"),
        Column(say.text("col_kind")),
        Column(say.text("col_use")),
        Column(say.text("col_times"), align="right"),
    ]
    hidden = len(facts.special_marks) - len(shown)
    return table.value(columns, rows, caption=say.text("marks_note", hidden=hidden))


Word = tuple[tuple[int, ...], str, tuple[int, ...]]  # ids, text, positions where it begins


def mark_uses(rendered: Rendered) -> dict[int, tuple[str, ...]]:
    """What each mark is seen doing in this context: a role name follows it, or it comes right after content."""
    uses: dict[int, dict[str, None]] = {}
    names = {first for _, text, role, first in _scaffold_words(rendered) if text.strip().casefold() == role.casefold()}
    scaffold = _scaffold(rendered)
    for p in rendered.special.nonzero()[0]:
        seen = uses.setdefault(int(rendered.token_ids[p]), {})
        if p + 1 in names:
            seen["opens"] = None
        if p > 0 and scaffold[p] and not scaffold[p - 1]:
            seen["closes"] = None
    return {token_id: tuple(seen) for token_id, seen in uses.items()}


def role_names(rendered: Rendered) -> list[Word]:
    """The ordinary words of the scaffold that name the role of their span, one entry a spelling in ids."""
    return _gathered(
        (ids, text, first)
        for ids, text, role, first in _scaffold_words(rendered)
        if text.strip().casefold() == role.casefold()
    )


def same_words(rendered: Rendered, steps: Sequence[Stepped]) -> list[Word]:
    """Single tokens inside messages and answers that spell a role name of this context."""
    names = {span.role.casefold() for span in rendered.spans}
    places = (~_scaffold(rendered)).nonzero()[0].tolist()
    content = [(int(rendered.token_ids[p]), rendered.token_bytes[p], p) for p in places]
    content += [(step.token_id, step.token_bytes, step.position) for step in steps]
    return _gathered(
        ((token_id,), data.decode("ascii"), p)
        for token_id, data, p in content
        if data.isascii() and data.decode("ascii").strip().casefold() in names
    )


def _scaffold(rendered: Rendered) -> npt.NDArray[np.bool_]:
    """[n]: True for a token of the scaffold, and for one that the tokenizer put in."""
    kinds = np.array([span.kind == "scaffold" for span in rendered.spans] + [True])
    return kinds[rendered.span_index]


def _scaffold_words(rendered: Rendered) -> Iterator[tuple[tuple[int, ...], str, str, int]]:
    """Runs of neighbouring scaffold tokens that are no marks and no white space: ids, text, role, first position."""
    inside = _scaffold(rendered) & (rendered.span_index >= 0) & ~rendered.special
    places = [int(p) for p in inside.nonzero()[0] if rendered.token_bytes[p].strip()]
    for _, members in groupby(enumerate(places), key=lambda item: item[1] - item[0]):
        run = [p for _, p in members]
        text = b"".join(rendered.token_bytes[p] for p in run).decode("utf-8", "replace")
        role = rendered.spans[rendered.span_index[run[0]]].role
        yield tuple(int(rendered.token_ids[p]) for p in run), text, role, run[0]


def _gathered(found: Iterator[tuple[tuple[int, ...], str, int]]) -> list[Word]:
    places: dict[tuple[tuple[int, ...], str], list[int]] = {}
    for ids, text, position in found:
        places.setdefault((ids, text), []).append(position)
    return [(ids, text, tuple(positions)) for (ids, text), positions in places.items()]


def _mark_row(mark: SpecialMark, uses: Sequence[str], count: int) -> list[Cell | str]:
    say = words("tokens")
    use = listed(say.text(key) for key in uses)
    return [visible(mark.text), str(mark.token_id), Cell(say.text("mark"), tone="accent"), use, f"{count}×"]


def _word_row(text: str, ids: tuple[int, ...], places: tuple[int, ...], use: str) -> list[Cell | str]:
    say = words("tokens")
    at = ", ".join(map(str, places[:MAX_PLACES])) + (" …" if len(places) > MAX_PLACES else "")
    return [
        visible(text),
        " + ".join(map(str, ids)),
        say.text("word"),
        say.text(use),
        Cell(f"{len(places)}×", title=say.text("at_positions", positions=at)),
    ]
