"""Station Attention: where the heads look from the position that was fed, and how one of them comes to its weights."""

from collections.abc import Sequence
from typing import Any

import gradio as gr

from components.attention.heads import figures_value, kinds_value, map_value, shown_columns, weights_value
from components.attention.matrix import asked_matrix, matrix_values
from components.attention.moves import moves_value
from components.attention.seen import ask, tokens_of
from components.copy import words
from components.heading import titled
from components.in_words import in_words
from components.panel import Controls, View
from components.units import bytes_text, share_text
from components.visible import visible_bytes
from components.widgets import heatmap, table, token_strip
from components.widgets.rail import Station
from components.widgets.token_strip import Group
from engine.answers.attention import AttentionAt
from engine.experiment import ExperimentError
from engine.facts import ModelFacts
from engine.refusals import Refused

STATION = "attention"
CONTROLS = Controls(asks=("attention_matrix",))


def stations(view: View) -> list[Station]:
    say, facts = words(STATION), view.facts
    if view.rendered is None:
        return [Station(STATION, say.title, "–")]
    key = "station" if facts.heads == facts.kv_heads else "station_shared"
    result = say.text(key, heads=facts.heads, kv_heads=facts.kv_heads)
    return [
        Station(STATION, say.title, result, say.text("station_note", layer=view.cursor.layer, head=view.cursor.head))
    ]


def build() -> list[gr.HTML]:
    say = words(STATION)
    return [
        token_strip.build("attention-notes", say.text("notes")),
        titled(table.build, "attention-figures", say.text("figures")),
        heatmap.build("attention-map", say.text("figures")),
        titled(token_strip.build, "attention-weights-note", say.text("weights")),
        heatmap.build("attention-weights", say.text("weights")),
        table.build("attention-kinds", say.text("kinds")),
        titled(table.build, "attention-moves", say.text("moves"), height=520),
        titled(token_strip.build, "attention-matrix-note", say.text("matrix")),
        heatmap.build("attention-matrix", say.text("matrix")),
    ]


def render(view: View) -> list[Any]:
    tokens = tokens_of(view)
    try:
        seen: AttentionAt = ask(view, STATION, position=view.fed_position)
        matrix = asked_matrix(view)
    except (Refused, ExperimentError) as refused:
        note = Group([], label=words(STATION).text("refused"), note=in_words(refused), as_text=True)
        return [token_strip.value([note]), *[None] * 8]
    return [
        token_strip.value(notes(seen, view.facts, tokens)),
        figures_value(seen, view.cursor.figure),
        map_value(seen, view.cursor),
        token_strip.value([Group([], note=words(STATION).text("weights_said"), as_text=True)]),
        weights_value(seen, tokens),
        kinds_value(seen),
        moves_value(seen, tokens),
        *matrix_values(view, matrix, tokens, seen.position),
    ]


def unavailable(view: View) -> str | None:
    say = words(STATION)
    if view.probe is None:
        return say.text("no_model")
    computed = view.trace is not None and view.trace.prefilled(view.cursor.turn) is not None
    return None if computed else say.text("unavailable")


def notes(seen: AttentionAt, facts: ModelFacts, tokens: Sequence[bytes]) -> list[Group]:
    """What the selected head does here, what its group shares, and what is out of sight."""
    say = words(STATION)
    figures, weights = seen.figures, seen.weights[seen.head]
    strongest = int(weights.argmax())
    here = {"layer": seen.layer, "head": seen.head, "position": seen.position}
    visible = sum(reason is None for reason in seen.moves.hidden_by)
    said = say.text(
        "note" if visible > 1 else "note_alone",
        weight=share_text(float(weights[strongest])),
        at=seen.first + strongest,
        at_token=visible_bytes(tokens[seen.first + strongest]),
        kind=say.text(f"kind_{seen.kinds[seen.layer][seen.head]}"),
        entropy=float(figures.entropy[seen.layer, seen.head]),
        evenness=share_text(float(figures.evenness[seen.layer, seen.head])),
    )
    groups = [_note(say.text("note_title", token=visible_bytes(tokens[seen.position]), **here), said)]
    if len(seen.group) > 1:
        title = say.text("group_title", heads=", ".join(map(str, seen.group)), kv_head=seen.kv_head)
        each, full = facts.kv_bytes_per_token, facts.kv_bytes_per_token * facts.heads // facts.kv_heads
        sizes = {"each": bytes_text(each), "full": bytes_text(full)}
        groups.append(_note(title, say.text("group", queries=facts.heads, keys=facts.kv_heads, **sizes)))
    if seen.window is not None:
        groups.append(_note(say.text("window_title", layer=seen.layer), say.text("window", window=seen.window)))
    if len(shown_columns(seen)) < len(weights):
        shown, newest = len(shown_columns(seen)), len(shown_columns(seen)) - 1
        capped = say.text("capped", shown=shown, newest=newest, all=len(weights), first=seen.first)
        groups.append(_note(say.text("capped_title"), capped))
    return groups


def _note(title: str, said: str) -> Group:
    return Group([], label=title, note=said, as_text=True)
