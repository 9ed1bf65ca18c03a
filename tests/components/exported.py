"""Exported pages as tests want to look at them, and a record whose every token is hostile."""

import dataclasses
import re
from functools import partial
from typing import Any

from components.export.pieces import Packed, read, unpack
from components.panel import Cursor, View
from engine.playback import Playback
from engine.record import Record
from tests.components.handmade import ANSWER, make_facts, make_trace

HOSTILE = (
    "</script><img src=x onerror=\"window.ran='img'\">",
    "<!--<script>window.ran='comment'</script>",
    "${window.ran='template'}",
    "{{window.ran}}",
    '"><svg onload=window.ran=1>',
    "'; window.ran = 'quote'; //",
)


class Exported:
    """The data in a file, unpacked."""

    def __init__(self, html: str) -> None:
        found = re.search(r'id="data" data-size="(\d+)">([^<]*)</script>', html)
        assert found is not None
        self.data: dict[str, Any] = read(Packed(found[2], int(found[1])))

    def value(self, widget: str, turn: int, position: int, head: int = 0) -> Any:
        """What a widget shows with the cursor there."""
        spots = [(at, where) for at, where, _ in self.data["places"]]
        column = self.data["widgets"][widget]
        index = spots.index((turn, position)) * len(self.data["heads"]) + head
        return unpack(column["values"][column["at"][index]], self.data["pieces"])


def view_of(record: Record, **cursor: Any) -> View:
    """What the page shows of a whole record with the cursor set."""
    playback = Playback(record)
    return View(record.facts, record.trace, Cursor(**cursor), partial(playback.probe, playback.steps))


def hostile_record(title: str = "Tiny") -> Record:
    """Every token of it, and what could have been drawn, is markup or code."""
    trace = make_trace(facts=make_facts(title=title))
    changed = []
    for event in trace.events:
        if hasattr(event, "candidate_bytes"):
            texts = [HOSTILE[(event.step + place) % len(HOSTILE)] for place in range(len(event.candidate_bytes))]
            own = HOSTILE[event.step % len(HOSTILE)]
            event = dataclasses.replace(
                event,
                token_bytes=own.encode(),
                piece=own,
                text=own,
                candidate_bytes=tuple(text.encode() for text in texts),
            )
        changed.append(event)
    assert len(HOSTILE) == len(ANSWER)
    return Record(dataclasses.replace(trace, events=tuple(changed)))
