"""Equal distance, equal score: one query and one key, moved along the text together."""

from typing import Any

from components.copy import sentences, words
from components.inside import bytes_at
from components.panel import View
from components.visible import visible_bytes
from components.widgets import table, token_strip
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Group
from engine.answers.relative_phase import RelativePhase


def phase_note(found: RelativePhase, view: View) -> dict[str, Any]:
    """Which vectors these are, that the turn is the model's own, and what the table comes to."""
    say = words("embedding")
    here = {"layer": found.layer, "head": found.head, "kv_head": found.kv_head}
    query, key = (visible_bytes(bytes_at(view, at) or b"") for at in (found.position, found.key_position))
    which = say.text(
        "phase_vectors", position=found.position, token=query, key_position=found.key_position, key_token=key, **here
    )
    own = say.text("phase_own", raw=found.raw, again=found.again)
    result = say.text("phase_said", within=found.within, between=found.between)
    return token_strip.value(
        [
            Group([], label=say.text("phase_title", **here), note=sentences(which, own), as_text=True),
            Group([], label=say.text("phase_result"), note=result, as_text=True),
        ]
    )


def phase_value(found: RelativePhase) -> dict[str, Any]:
    """Scores q · k: a row for each distance, a column for each place of the key; the row is the same all along."""
    say = words("embedding")
    own = found.position - found.key_position
    columns = [
        Column(say.text("col_distance"), align="right", help=say.text("help_distance")),
        *(Column(say.text("col_place", place=place), align="right") for place in found.places.tolist()),
        Column(say.text("col_spread"), align="right", help=say.text("help_spread")),
    ]
    rows: list[list[Cell | str]] = [
        [
            Cell(str(distance), tone="accent" if distance == own else "", title=say.text("own_distance"))
            if distance == own
            else str(distance),
            *(f"{score:.4f}" for score in scores),
            f"{scores.max() - scores.min():.1e}",
        ]
        for distance, scores in zip(found.distances.tolist(), found.scores, strict=True)
    ]
    return table.value(columns, rows, caption=say.text("phase_caption"))
