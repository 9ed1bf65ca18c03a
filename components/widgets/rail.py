"""The rail: the pipeline as a row of stations, each with its live line; also the status line of the footer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gradio as gr

from components.widgets import host

Tone = Literal["", "dim", "ok", "warn", "accent"]


@dataclass(frozen=True)
class Station:
    """One station. In the status line the tone `ok` shows ✓, `warn` shows ✗, and an empty id makes it plain text.

    `part` is the element of its panel that it leads to, where that is not the panel's beginning.
    """

    id: str
    title: str
    result: str
    note: str = ""
    tone: Tone = ""
    part: str = ""


def build(elem_id: str, label: str, *, variant: Literal["rail", "status"] = "rail", live: bool = False) -> gr.HTML:
    """The component; its event `select` carries {"id": station id}. A screen reader reads out what is `live`."""
    return host.widget("rail", elem_id, label, variant=variant, live=live)


def value(
    stations: Sequence[Station],
    *,
    active: str | None = None,
    more: Sequence[tuple[str, Sequence[Station]]] = (),
) -> dict[str, Any]:
    """The stations in pipeline order; `active` is the id of the open one.

    `more` are named groups of further stations, in a slim second row that shows no notes.
    Items: [id, title, result, note, tone, part].
    """
    return {
        "stations": _items(stations),
        "more": [{"label": label, "stations": _items(group)} for label, group in more],
        "active": active,
    }


def _items(stations: Sequence[Station]) -> list[str]:
    return host.items([one.id, one.title, one.result, one.note, one.tone, one.part] for one in stations)
