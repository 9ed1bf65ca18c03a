"""The claims of a lesson looked up in its record, with no model."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.claims import Claim, Finding, find
from engine.lesson_paths import PathError
from engine.playback import NotRecorded, Playback
from engine.record import Record
from engine.trace import Trace


def find_on_record(claims: Mapping[str, Claim], record: Record) -> dict[str, Finding]:
    """What each claim finds in the record."""
    playback = Playback(record)

    def ask(name: str, arguments: Mapping[str, Any]) -> Any:
        for form in _forms(record.trace, arguments):
            try:
                return playback.probe(playback.steps, name, **form)
            except NotRecorded:
                continue
        raise PathError(f"the record holds no answer of {name} for {dict(arguments)}; make the record anew")

    return find(claims, record.trace, ask)


def _forms(trace: Trace, arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The ways to say the same: as it stands, with the newest turn named, with a position in place of a step.

    What a probe takes is known to the model's side alone, so all are tried.
    """
    plain = dict(arguments)
    yield plain
    placed = {"turn": max(0, trace.turns - 1)} | plain
    yield placed
    rendered = trace.rendered(placed["turn"]) if type(placed["turn"]) is int else None
    if type(plain.get("step")) is int and rendered is not None:
        position = len(rendered.token_ids) + plain["step"] - 1
        yield {name: value for name, value in placed.items() if name != "step"} | {"position": position}
