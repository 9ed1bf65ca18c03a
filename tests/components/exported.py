"""Exported pages as tests want to look at them, and a record whose every token is hostile."""

import dataclasses
import json
import re
import zlib
from functools import partial
from typing import Any

import numpy as np

from components.export.pieces import BITS, KEY, SIGNS, Packed
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


def unpack(value: Any, pieces: list[str]) -> Any:
    """The way back from `Pieces.pack`, as assets/js/record_data.js goes it."""
    if isinstance(value, dict):
        if KEY in value:
            return "".join(pieces[number] for number in value[KEY])
        return {name: unpack(part, pieces) for name, part in value.items()}
    return [unpack(part, pieces) for part in value] if isinstance(value, list) else value


def read(packed: Packed) -> Any:
    """The way back from `squeezed`."""
    signs = np.searchsorted(np.frombuffer(SIGNS, np.uint8), np.frombuffer(packed.text.encode("ascii"), np.uint8))
    numbers = signs.reshape(-1, 2) @ np.array([len(SIGNS), 1])
    bits = (numbers[:, None] >> np.arange(BITS)[::-1] & 1).astype(np.uint8)
    return json.loads(zlib.decompress(np.packbits(bits.ravel()).tobytes()[: packed.size]))


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
