"""A grid of eight settings beside the same eight runs made one by one, prefill included on both sides."""

import time
from collections.abc import Callable

from benchmarks.decode import in_turn
from benchmarks.figures import Figure
from benchmarks.prompts import experiment_of, prompt_of
from engine.answers.grid import grid_of
from engine.conversation import Conversation
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.probes.grid import Grid, with_sampling
from engine.trace import Stepped

CELLS = grid_of([0.3, 0.7, 1.0, 1.3], [1, 2])
BAR = 0.6


def together(loaded: LoadedModel, experiment: Experiment) -> tuple[list[tuple[int, ...]], int]:
    """The ids of every cell, and how many cells were computed by themselves in part."""
    grid = Grid(loaded, experiment, CELLS)
    while grid.advance():
        pass
    cells = grid.result().cells
    return [cell.token_ids for cell in cells], sum(cell.alone_from is not None for cell in cells)


def one_by_one(loaded: LoadedModel, experiment: Experiment) -> list[tuple[int, ...]]:
    found = []
    for cell in CELLS:
        conversation = Conversation(loaded, with_sampling(experiment, cell, "cell"))
        while conversation.advance():
            pass
        found.append(tuple(step.token_id for step in conversation.trace.of(Stepped)))
    return found


def measure(loaded: LoadedModel, *, context: int = 64, new_tokens: int = 24, rounds: int = 3) -> list[Figure]:
    """Time of the grid over that of its runs.

    Raises:
        RuntimeError: the two drew different tokens, so that they did not do the same work.
    """
    experiment = experiment_of(loaded.facts.model_id, prompt_of(loaded.tokenizer, context), new_tokens)
    ids, alone = together(loaded, experiment)
    if ids != one_by_one(loaded, experiment):
        raise RuntimeError("the grid and its runs drew different tokens; there is nothing to compare")

    def timed(run: Callable[[LoadedModel, Experiment], object]) -> float:
        started = time.perf_counter()
        run(loaded, experiment)
        return time.perf_counter() - started

    seconds = in_turn(rounds, grid=lambda: timed(together), singles=lambda: timed(one_by_one))
    note = f"{seconds['grid']:.1f} / {seconds['singles']:.1f} s, {alone} of {len(CELLS)} cells in part alone"
    return [Figure(f"grid of {len(CELLS)} / single runs", seconds["grid"] / seconds["singles"], "×", BAR, note=note)]
