"""One cell of a grid: a turn under settings of its own, fed by others or by itself."""

from typing import Any

import numpy as np
import torch

from engine import kv_cache
from engine.answers.grid import CellResult
from engine.decode import Computed, Turn
from engine.experiment import Experiment, ExperimentError
from engine.model import LoadedModel
from engine.stages.certainty import can_tell, certain
from engine.trace import Event, Stepped, Stopped

#: How far a logit may be from that of a row computed alone; choices closer than this are made alone. Measured on the
#: embedded model and on small ones of four architectures the distance stays under a twentieth of it.
TOLERANCE = 1e-3


class Cell:
    """One setting's run: the turn with its tokens, and whether it still goes with the others."""

    def __init__(self, loaded: LoadedModel, experiment: Experiment, overrides: dict[str, Any], ids: list[int]) -> None:
        self.overrides = overrides
        self.events: list[Event] = []
        self.alone_from: int | None = None
        self.refed: int | None = None  # tokens of the answer that were computed once more, alone; None before it begins
        self.generator = torch.Generator(loaded.device).manual_seed(experiment.sampling.seed)
        self.greedy = experiment.sampling.greedy
        self.turn = Turn(loaded, experiment, 0, ids, None, self.generator)
        self.can_share = can_tell(self.turn.chain) and experiment.mistake is None

    @property
    def stopped(self) -> Stopped | None:
        newest = self.events[-1] if self.events else None
        return newest if isinstance(newest, Stopped) else None

    def step(self, computed: Computed | None = None) -> None:
        try:
            self.events += self.turn.step(computed=computed)
        except ExperimentError as error:
            self.events.append(Stopped(0, "error", {"message": error.message, "field": error.path}, ""))
        if self.stopped:
            self.turn.cache = None

    def is_certain(self, logits: torch.Tensor) -> bool:
        """True where `logits`, of a row computed with others, choose the token that the row alone would choose."""
        noise = None
        if not self.greedy:
            ahead = torch.Generator(self.generator.device)
            ahead.set_state(self.generator.get_state())
            noise = torch.empty_like(logits).exponential_(1, generator=ahead)
        ids = torch.tensor([[*self.turn.prompt_ids, *self.turn.answer]], device=logits.device)
        return certain(self.turn.chain, ids, logits, noise, TOLERANCE)

    def result(self, first: "Cell") -> CellResult:
        """What is known so far, beside the first cell of the grid."""
        ours, theirs = self.turn.answer, first.turn.answer
        same = kv_cache.common_prefix(theirs, ours)
        ended = first.stopped and self.stopped
        parted = same < min(len(theirs), len(ours)) or bool(ended and len(theirs) != len(ours))
        steps = [event for event in self.events if isinstance(event, Stepped)]
        return CellResult(
            overrides=self.overrides,
            token_ids=tuple(ours),
            token_bytes=tuple(step.token_bytes for step in steps),
            text="".join(step.text for step in steps) + (self.stopped.text if self.stopped else ""),
            entropy=np.array([step.stages[-1].entropy for step in steps], np.float32),
            first_difference=same if parted else None,
            stopped=self.stopped,
            alone_from=self.alone_from,
        )
