"""One prompt under several settings and seeds, side by side: the prompt is computed once, and the steps run together.

The ids are those of runs made one by one. Rows that are computed together differ from rows computed alone in their last
digits, so a choice is taken from them only where it is the same for every row of logits within `TOLERANCE`
(engine/stages/certainty.py). Where it is not, the cell leaves the others, computes its tokens once more by itself, as a
run of its own would, and stays alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import Cache

from engine import kv_cache
from engine.answers.grid import GridResult
from engine.decode import Computed
from engine.experiment import Experiment, ExperimentError, parse_experiment
from engine.history import render_turn
from engine.limits import check_prompt
from engine.model import LoadedModel
from engine.probes.grid_cell import TOLERANCE, Cell
from engine.said import said
from engine.stages.forward import forward, forward_rows
from engine.stages.inputs import make_inputs, make_row_inputs
from engine.trace import Trace

MAX_CELLS = 12

#: Where the one row that is checked is further off than this part of the tolerance, every cell runs alone.
SAFETY = 20


class Grid:
    """The work, in pieces of at most one forward each. All methods belong on the one thread that calls the model."""

    def __init__(
        self,
        loaded: LoadedModel,
        experiment: Experiment,
        overrides: Sequence[Mapping[str, Any]],
        *,
        cache_budget: int | None = None,
    ) -> None:
        """No model work. `overrides` are for each cell the fields of `experiment.sampling` that it sets.

        Raises `ExperimentError` for too few or too many cells, a setting that is not allowed, an experiment with more
        than one turn or with chosen tokens, and for a prompt that does not fit.
        """
        if not 1 <= len(overrides) <= MAX_CELLS:
            raise ExperimentError("grid", said("grid_cells", most=MAX_CELLS, count=len(overrides)))
        if experiment.follow_ups or experiment.forced:
            raise ExperimentError("grid", said("grid_one_turn"))
        if experiment.tools and experiment.tool_choice != "none":
            raise ExperimentError("grid", said("grid_no_tools"))
        if experiment.context.strategy != "none":
            raise ExperimentError("context.strategy", said("grid_whole_history"))
        self.experiment = experiment
        self._loaded = loaded
        rendered = render_turn(loaded, Trace(experiment, loaded.facts, {}), 0)
        self._ids: list[int] = rendered.token_ids.tolist()
        share = None if cache_budget is None else cache_budget // (len(overrides) + 1)
        check_prompt(experiment, loaded.facts, len(self._ids), share)
        self._cells = [
            Cell(loaded, with_sampling(experiment, own, f"grid[{index}]"), dict(own), self._ids)
            for index, own in enumerate(overrides)
        ]
        self._rows: list[Cell] = []  # that go together
        self._prompt: Cache | None = None  # of the prompt alone
        self._together: Cache | None = None  # of the rows that go together
        self._alone: torch.Tensor | None = None  # logits of the first row, computed alone, to check the rows against
        self._forwards = 0
        self._deviation: float | None = None

    @property
    def done(self) -> bool:
        return all(cell.stopped for cell in self._cells)

    @property
    def cache_bytes(self) -> int:
        caches = [self._together, self._prompt]
        return sum(cell.turn.kv_bytes for cell in self._cells) + sum(
            kv_cache.measured_bytes(cache) for cache in caches if cache is not None
        )

    def release(self) -> None:
        """Give all caches back. The cells cannot go on afterwards."""
        self._prompt = self._together = None
        for cell in self._cells:
            cell.turn.cache = None

    def advance(self) -> bool:
        """The next piece of work, at most one forward; False when all has ended."""
        waiting = [cell for cell in self._cells if not cell.stopped and cell not in self._rows]
        if self._prompt is None:
            self._prefill()
        elif self._rows and self._alone is None:
            self._alone = self._first_row_alone(self._prompt)
        elif self._rows and self._together is not None:
            self._step_rows(self._together)
        elif waiting:
            self._step_alone(waiting[0], self._prompt)
        if self.done:
            self.release()
        return not self.done

    def result(self) -> GridResult:
        cells = tuple(cell.result(self._cells[0]) for cell in self._cells)
        return GridResult(self.experiment, cells, len(self._ids), self._forwards, self._deviation, self.done)

    # How it is done.

    def _prefill(self) -> None:
        """The prompt once for all: its logits are those of a run alone, and so the first choice of every cell is."""
        self._prompt = kv_cache.new_cache(self._loaded.model.config)
        inputs = make_inputs(self._ids, past=0, device=self._loaded.device)
        result = forward(self._loaded.model, inputs, self._prompt)
        self._forwards += 1
        shapes = inputs.shapes | {"logits": result.shape}
        computed = Computed(result.logits, shapes, 0, len(self._ids) - 1, result.seconds)
        for cell in self._cells:
            cell.step(computed)
        # Coarser numbers differ by more than any useful tolerance.
        together = self._can_lend(self._prompt) and self._loaded.model.dtype == torch.float32
        for cell in self._cells:
            if together and cell.can_share and not cell.stopped:
                self._rows.append(cell)
            else:
                cell.alone_from = 1
        if self._rows:
            self._together = kv_cache.take_rows(self._prompt, [0] * len(self._rows))

    @staticmethod
    def _can_lend(cache: Cache) -> bool:
        return kv_cache.reason_against_rows(cache) is None

    def _first_row_alone(self, prompt: Cache) -> torch.Tensor:
        past = len(self._ids)
        return self._feed(kv_cache.slice_cache(prompt, past), self._rows[0].turn.answer[-1:])

    def _step_rows(self, cache: Cache) -> None:
        """One forward of the newest token of every row, and the choice of each that is certain."""
        past = kv_cache.tokens(cache)
        newest = [cell.turn.answer[-1] for cell in self._rows]
        inputs = make_row_inputs(newest, past=past, device=self._loaded.device)
        logits = forward_rows(self._loaded.model, inputs, cache)
        self._forwards += 1
        if self._deviation is None and self._alone is not None:
            self._deviation = float((self._alone - logits[0]).abs().max())
        far = self._deviation is None or self._deviation * SAFETY > TOLERANCE
        shapes = inputs.shapes | {"logits": (len(self._rows), 1, logits.shape[-1])}
        stay = []
        for row, cell in enumerate(self._rows):
            if far or not cell.is_certain(logits[row]):
                cell.alone_from = len(cell.turn.answer)
                continue
            cell.step(Computed(logits[row].clone(), shapes, past, past, 0.0))
            if not cell.stopped:
                stay.append(row)
        if len(stay) < len(self._rows):
            self._rows = [self._rows[row] for row in stay]
            self._together = kv_cache.take_rows(cache, stay) if stay else None

    def _step_alone(self, cell: Cell, prompt: Cache) -> None:
        """A step of one cell as a run of its own makes it; first, one at a time, what it has said already."""
        turn = cell.turn
        if cell.refed is None:
            cell.refed = 0
            if not self._can_lend(prompt):  # a running state: the cell computes the prompt anew
                turn.cache = kv_cache.new_cache(self._loaded.model.config)
                self._feed(turn.cache, self._ids)
                return
            turn.cache = kv_cache.slice_cache(prompt, len(self._ids))
        if turn.cache is not None and cell.refed < (cell.alone_from or 1) - 1:
            self._feed(turn.cache, turn.answer[cell.refed : cell.refed + 1])
            cell.refed += 1
            return
        self._forwards += 1
        cell.step()

    def _feed(self, cache: Cache, ids: Sequence[int]) -> torch.Tensor:
        self._forwards += 1
        inputs = make_inputs(ids, past=kv_cache.tokens(cache), device=self._loaded.device)
        return forward(self._loaded.model, inputs, cache).logits


def with_sampling(experiment: Experiment, overrides: Mapping[str, Any], path: str) -> Experiment:
    """The experiment with fields of its sampling set, validated. Raises `ExperimentError` under `path`."""
    data = experiment.model_dump()
    data["sampling"] |= dict(overrides)
    try:
        return parse_experiment(data, models=[experiment.model], tools=experiment.tools)
    except ExperimentError as error:
        raise ExperimentError(f"{path}.{error.path}", error.message) from None
