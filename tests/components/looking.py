"""A visit of a small model's run, for panels that look inside it."""

import dataclasses
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from components.desk import Desk
from components.panel import View
from components.widgets.host import read
from engine.catalog import load_catalog
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.runtime import Runtime
from engine.settings import Settings

HOSTILE = b"<img src=x onerror=alert(1)>${x}\xe2\x91"
SHOWN_HOSTILE = "<img␣src=x␣onerror=alert(1)>${x}⟨E2⟩⟨91⟩"


class Looked:
    """A run of six tokens; called, it gives a view with the cursor set."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.visit = desk.open("visitor")

    def __call__(self, **cursor: Any) -> View:
        self.visit.cursor = dataclasses.replace(self.visit.cursor, **cursor)
        return self.desk.view(self.visit)


@contextmanager
def look(loaded: LoadedModel, prompt: str = "the cat sat") -> Iterator[Looked]:
    runtime = Runtime(loaded, load_catalog(), Settings())
    experiment = Experiment.model_validate(
        {
            "version": 1,
            "model": loaded.facts.model_id,
            "prompt": prompt,
            "sampling": {"seed": 1, "min_new_tokens": 6},
            "stop": {"max_new_tokens": 6},
        }
    )
    ready: Future[Runtime] = Future()
    ready.set_result(runtime)
    looked = Looked(Desk(ready, experiment))
    for _ in range(6):
        runtime.step("visitor")
    yield looked
    runtime.shut_down()


def cells(value: dict[str, Any]) -> list[list[str]]:
    """The texts of a table's cells."""
    return [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in read(value)["rows"]]


def notes(value: dict[str, Any]) -> list[tuple[str, str]]:
    """Label and text of each remark."""
    return [(group[0], group[2]) for group in read(value)["groups"]]
