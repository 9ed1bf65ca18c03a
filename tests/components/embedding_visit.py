"""Visits of small models whose embedding panel is looked at."""

import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

from components.desk import Desk
from components.embedding import panel
from components.panel import View
from components.visit import Visit
from engine.catalog import load_catalog
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.runtime import Runtime
from engine.settings import Settings
from tests.components.reading import read
from tests.engine.models import tiny

PARTS = (
    "where", "row", "neighbours", "norms", "sums_note", "sums", "rotary_note", "wavelengths", "angles", "phase_note",
    "phase", "learned_note", "learned", "learned_map",
)  # fmt: skip


class Looked:
    """A visit of a small model's run of four tokens, with a view of any position."""

    def __init__(self, loaded: LoadedModel, **fields: Any) -> None:
        self.runtime = Runtime(loaded, load_catalog(), Settings())
        experiment = {"version": 1, "model": loaded.facts.model_id, "prompt": "the cat sat on the mat"}
        experiment |= {"sampling": {"seed": 1, "min_new_tokens": 4}, "stop": {"max_new_tokens": 4}} | fields
        ready: Future[Runtime] = Future()
        ready.set_result(self.runtime)
        self.desk = Desk(ready, Experiment.model_validate(experiment))
        self.visit: Visit = self.desk.open("visitor")
        for _ in range(4):
            self.runtime.step("visitor")

    def at(self, position: int | None = None, **cursor: Any) -> View:
        self.visit.cursor = dataclasses.replace(self.visit.cursor, position=position, **cursor)
        return self.desk.view(self.visit)


def looks() -> Iterator[Callable[[str], Looked]]:
    """A function from the name of a tiny model to a visit of it; the visits end with the fixture."""
    made: dict[str, Looked] = {}

    def at(name: str) -> Looked:
        made.setdefault(name, Looked(tiny(name)))
        made[name].visit.cursor = dataclasses.replace(
            made[name].visit.cursor, formula="the - sat + on", layer=0, head=0
        )
        return made[name]

    yield at
    for one in made.values():
        one.runtime.shut_down()


def drawn(view: View) -> dict[str, Any]:
    return dict(zip(PARTS, panel.render(view), strict=True))


def cells(value: dict[str, Any]) -> list[list[str]]:
    return [[cell if isinstance(cell, str) else cell[0] for cell in line] for line in read(value)["rows"]]


def said(value: dict[str, Any]) -> str:
    return " ".join(f"{group[0]} {group[2]}" for group in read(value)["groups"])
