"""Vector arithmetic: where a − b + c leads, and how much of that its words alone would have given."""

from typing import Any

from components.copy import listed, sentences, words
from components.embedding.row import cosine_cell, name_cell, row_name, token_name
from components.in_words import in_words, translated
from components.panel import View
from components.visible import visible_bytes
from components.widgets import table, token_strip
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Group
from engine.answers.arithmetic import Arithmetic, Term
from engine.experiment import ExperimentError
from engine.refusals import Refused

SIGNS = {1: "+", -1: "−"}


def asked(view: View) -> Arithmetic | str:
    """The sum that was typed, or the example; in words why there is none.

    What was found before is taken as it is: the table of a model does not change while a run goes on.
    """
    formula = view.cursor.formula.strip() or words("embedding").text("example")
    found: Arithmetic | None = view.results.get("arithmetic")
    if found is not None and found.formula == formula:
        return found
    assert view.probe is not None
    try:
        result: Arithmetic = view.probe("arithmetic", formula=formula)
    except ExperimentError as error:
        return translated(error.message)
    except Refused as refused:
        return in_words(refused)
    return result


def sums_note(found: Arithmetic | str) -> dict[str, Any]:
    """The formula, its nearest row, where its own words would stand, and what they alone would give."""
    say = words("embedding")
    if isinstance(found, str):
        return token_strip.value([Group([], label=say.text("sums_none"), note=found, as_text=True)])
    if not len(found.token_ids):
        return token_strip.value([Group([], label=formula_text(found), note=say.text("sums_empty"), as_text=True)])
    best = row_name(found.token_bytes[0], int(found.token_ids[0]))
    left_out = listed(
        say.text("sums_term", token=token_name(term.token_bytes), cosine=term.cosine, rank=term.rank)
        for term in found.terms
    )
    told = [
        say.text("sums_said", token=best, cosine=float(found.cosines[0]), norm=found.norm),
        say.text("sums_left_out", terms=left_out),
        _alone(found, best),
    ]
    return token_strip.value([Group([], label=formula_text(found), note=sentences(*told), as_text=True)])


def sums_value(found: Arithmetic) -> dict[str, Any]:
    """The nearest rows, each with its place among the neighbours of the words that are added."""
    say = words("embedding")
    added = _added(found)
    columns = [
        Column(say.text("col_token"), mono=True),
        Column(say.text("col_cosine"), align="right", help=say.text("help_cosine_sum")),
        *(
            Column(
                say.text("col_near", token=visible_bytes(term.token_bytes)), align="right", help=say.text("help_near")
            )
            for _, term in added
        ),
    ]
    rows: list[list[Cell | str]] = [
        [
            name_cell(found.token_bytes[line], row),
            cosine_cell(float(found.cosines[line])),
            *(f"{found.near_terms[line, column]:,}" for column, _ in added),
        ]
        for line, row in enumerate(found.token_ids.tolist())
    ]
    return table.value(columns, rows, caption=say.text("sums_caption"))


def formula_text(found: Arithmetic) -> str:
    """The formula with the tokens that stand for its words."""
    parts = [f"{SIGNS[term.sign]} {token_name(term.token_bytes)}" for term in found.terms]
    return " ".join(parts).removeprefix("+ ")


def _alone(found: Arithmetic, best: str) -> str:
    """Of the nearest row: its place among the neighbours of each added word, without any arithmetic."""
    if len(found.terms) == 1:
        return ""
    say = words("embedding")
    places = listed(
        say.text("sums_place", place=int(found.near_terms[0, column]), token=token_name(term.token_bytes))
        for column, term in _added(found)
    )
    return say.text("sums_alone", token=best, places=places) if places else ""


def _added(found: Arithmetic) -> list[tuple[int, Term]]:
    """The terms with a plus, by their column; each once."""
    columns = {term.token_id: column for column, term in enumerate(found.terms) if term.sign > 0}
    return [(column, found.terms[column]) for column in sorted(columns.values())]
