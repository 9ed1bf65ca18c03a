"""A trace as JSON, out and in: plain for those who read it (`engine.plain_json`), exact as part of a record."""

import typing
from typing import Any

from engine.experiment import Experiment
from engine.facts import ModelFacts
from engine.plain_json import PLAIN
from engine.said import said
from engine.trace import Event, Trace
from engine.typed_json import TypedJson, at, short
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
    return {"kind": event.kind, **form.encode(event)}


def event_from_json(data: Any, form: TypedJson = PLAIN, path: str = "") -> Event:
    """The event of the kind that the JSON names. Raises `ExperimentError`."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in EVENT_TYPES:
        known = ", ".join(EVENT_TYPES)
        raise ExperimentError(at(path, "kind"), said("event_kinds_got", known=known, got=short(kind)))
    event: Event = form.decode(EVENT_TYPES[kind], {name: data[name] for name in data if name != "kind"}, path)
    return event
