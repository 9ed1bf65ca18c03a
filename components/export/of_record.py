"""A record as one HTML file, in the language that is asked for."""

from collections import Counter
from collections.abc import Sequence
from contextvars import Context
from functools import partial
from typing import Any

from components.copy import speak
from components.export.page import page
from components.export.shots import ASKED
from components.panel import Cursor, View
from engine.answers.refusal import Refusal
from engine.playback import Playback
from engine.record import Answered, Record

#: Attention heads that a page shows at every token.
HEADS = 3


def html_page(record: Record, language: str) -> str:
    """The file; the same record gives the same text. Raises `Refused` where nothing was run, or too much."""
    # A context of its own: inside an event gradio takes new components for changes of those on the page.
    return Context().run(_spoken, record, language)


def _spoken(record: Record, language: str) -> str:
    speak(language)
    return page(partial(_look, Playback(record)), language=language, heads=heads(record))


def heads(record: Record) -> Sequence[tuple[int, int]]:
    """Layer and head of those whose attention was kept at most places, the first kept first."""
    kept = Counter((one.result.layer, one.result.head) for one in _given(record) if one.probe == "attention")
    return [head for head, _ in kept.most_common(HEADS)] or [(0, 0)]


def _given(record: Record) -> list[Answered]:
    """The answers without the refusals, of which there is nothing to show."""
    return [one for one in record.answers if not isinstance(one.result, Refusal)]


def _look(playback: Playback, cursor: Cursor) -> View:
    """What the record holds at the cursor; a check that was asked for is shown in the turn that it is about."""
    results: dict[str, Any] = {}
    for one in _given(playback.record):
        if one.probe in ASKED and getattr(one.result, "turn", cursor.turn) == cursor.turn:
            results[one.probe] = one.result

    def probe(name: str, **arguments: Any) -> Any:
        results[name] = playback.probe(playback.steps, name, **arguments)
        return results[name]

    return View(playback.facts, playback.trace_at(playback.steps), cursor, probe, results=results)
