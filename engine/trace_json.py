"""A trace as JSON, out and in: plain for those who read it (`engine.plain_json`), exact as part of a record.

In plain JSON a sentence is its English text. What it is made of stands beside it, as `said` of its event: a program can
go by the key of a refusal, and the sentence can be said in another language.
"""

import dataclasses
import typing
from typing import Any

from engine.exact_json import EXACT
from engine.experiment import Experiment
from engine.facts import ModelFacts
from engine.plain_json import PLAIN
from engine.said import Said, said
from engine.trace import Event, Rendered, Stopped, Trace
from engine.typed_json import TypedJson, at, short, unlike
from engine.values import ExperimentError

TRACE_VERSION = 1

#: Events of a trace that is read. A step takes some eighty values of a record at least, so none of a run has as many.
MAX_EVENTS = 50_000

EVENT_TYPES: dict[str, type] = {cls.kind: cls for cls in typing.get_args(Event)}


def trace_to_json(trace: Trace) -> dict[str, Any]:
    """The trace as plain JSON values."""
    return {"version": TRACE_VERSION, **parts_to_json(trace, PLAIN)}


def trace_from_json(data: dict[str, Any]) -> Trace:
    """The inverse of `trace_to_json`. Raises `ExperimentError` with the path of what is no part of a trace.

    The experiment in it must be a valid one; turns and steps need not follow one another.
    """
    if data.get("version") != TRACE_VERSION:
        found = short(data.get("version"))
        raise ExperimentError("version", said("trace_version", found=found, known=TRACE_VERSION))
    for name in ("experiment", "facts", "versions", "events"):
        if name not in data:
            raise ExperimentError(name, said("missing_field"))
    experiment = Experiment.model_validate(data["experiment"])
    facts = PLAIN.decode(ModelFacts, data["facts"], "facts")
    return Trace(experiment, facts, **happened(data, PLAIN))


def parts_to_json(trace: Trace, form: TypedJson) -> dict[str, Any]:
    """What a trace holds, in that format."""
    return {
        "experiment": trace.experiment.model_dump(mode="json"),
        "facts": form.encode(trace.facts),
        "versions": trace.versions,
        "events": [event_to_json(event, form) for event in trace.events],
    }


def happened(data: dict[str, Any], form: TypedJson) -> dict[str, Any]:
    """Versions and events of a trace that is given as JSON values. Raises `ExperimentError`."""
    events = data["events"]
    if not isinstance(events, list):
        raise ExperimentError("events", said("wanted", wanted=said("a_list")))
    if len(events) > MAX_EVENTS:
        raise ExperimentError("events", said("events_at_most", most=MAX_EVENTS, count=len(events)))
    return {
        "versions": form.decode(dict[str, str], data["versions"], "versions"),
        "events": tuple(event_from_json(event, form, f"events[{index}]") for index, event in enumerate(events)),
    }


def event_to_json(event: Event, form: TypedJson = PLAIN) -> dict[str, Any]:
    kept = {}
    if form is PLAIN:  # a record has them where they stand
        kept = {name: EXACT.encode(text) for name, text in _sentences(event).items() if isinstance(text, Said)}
    return {"kind": event.kind, **form.encode(event)} | ({"said": kept} if kept else {})


def event_from_json(data: Any, form: TypedJson = PLAIN, path: str = "") -> Event:
    """The event of the kind that the JSON names. Raises `ExperimentError`."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in EVENT_TYPES:
        known = ", ".join(EVENT_TYPES)
        raise ExperimentError(at(path, "kind"), said("event_kinds_got", known=known, got=short(kind)))
    beside = {"kind", "said"} if form is PLAIN else {"kind"}
    event: Event = form.decode(EVENT_TYPES[kind], {name: data[name] for name in data if name not in beside}, path)
    return _with_said(event, data["said"], at(path, "said")) if "said" in data and form is PLAIN else event


def _sentences(event: Event) -> dict[str, Any]:
    """What may be sentences in an event, by name: the reason against cutting the cache, the evidence of an end."""
    match event:
        case Rendered():
            return {"refused": event.refused}
        case Stopped():
            return event.evidence
        case _:
            return {}


def _with_said(event: Event, kept: Any, path: str) -> Event:
    """The event with sentences that know what they are made of in the place of their texts."""
    if not isinstance(kept, dict):
        raise unlike(path, said("an_object"), kept)
    for name in kept:
        if not isinstance(_sentences(event).get(name), str):
            raise ExperimentError(at(path, short(name)[1:-1]), said("unknown_field"))
    read = {name: EXACT.read_sentence(value, at(path, name)) for name, value in kept.items()}
    if isinstance(event, Rendered):
        return dataclasses.replace(event, refused=read.get("refused", event.refused))
    return dataclasses.replace(event, evidence=event.evidence | read) if isinstance(event, Stopped) else event
