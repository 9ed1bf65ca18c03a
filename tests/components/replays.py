"""Desks with a model and with a record alone, and what their pages show."""

from concurrent.futures import Future
from typing import Any

from components.compose import form_values
from components.desk import Desk
from components.visit import Visit
from engine.catalog import load_catalog
from engine.experiment import Experiment
from engine.playback import WithoutModel
from engine.record import Record, record_from_bytes, record_to_bytes


def ready(runtime: Any) -> "Future[Any]":
    made: Future[Any] = Future()
    made.set_result(runtime)
    return made


def experiment(model: str, **fields: Any) -> Experiment:
    data = {
        "version": 1,
        "model": model,
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "sampling": {"temperature": 0.7, "top_k": 20, "seed": 1},
        "stop": {"max_new_tokens": 8},
    }
    return Experiment.model_validate(data | fields)


def form(desk: Desk, visit: Visit) -> dict[str, Any]:
    trace = desk.view(visit).trace
    assert trace is not None
    return form_values(trace.experiment)


def finished(desk: Desk, *messages: str) -> Visit:
    visit = desk.open("visitor")
    for message in ("", *messages):
        for _ in desk.run(visit, message, form(desk, visit)):
            pass
        assert visit.notice == ""
    return visit


def saved(desk: Desk, visit: Visit, steps: str = "") -> Record:
    *_, record = desk.record(visit, steps)
    assert record is not None, visit.notice
    return record_from_bytes(record_to_bytes(record))


def replaying(record: Record) -> tuple[Desk, Visit]:
    """A desk without a model, and a new page of it."""
    desk = Desk(ready(WithoutModel(record.facts, load_catalog())), record.trace.experiment, record)
    return desk, desk.open("other")
