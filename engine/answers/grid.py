"""One prompt under several settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.experiment import Experiment
from engine.trace import Floats, Stopped


@dataclass(frozen=True, eq=False)
class CellResult:
    """One cell so far; n tokens."""

    overrides: dict[str, Any]  # the sampling settings that are this cell's own
    token_ids: tuple[int, ...]
    token_bytes: tuple[bytes, ...]
    text: str
    entropy: Floats  # [n] nats, of what each token was drawn from
    first_difference: int | None  # the first step at which it parts from cell 0; None while it has not
    stopped: Stopped | None
    alone_from: int | None  # the step from which it was computed by itself; None: always with the others


@dataclass(frozen=True, eq=False)
class GridResult:
    """All cells so far, in the order they were asked for."""

    experiment: Experiment  # what they share; a cell's own settings go over its sampling
    cells: tuple[CellResult, ...]
    prompt_tokens: int
    forwards: int  # made in all: the prefill, steps of all rows together, steps of one cell
    deviation: float | None  # greatest distance of a logit from the same row alone, where it was checked
    done: bool


def grid_of(temperatures: Sequence[float], seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Every temperature with every seed, row by row."""
    return [{"temperature": temperature, "seed": seed} for temperature in temperatures for seed in seeds]
