"""The whole distribution after one stage of the chain, and what the stage did to it.

Cheap enough to take of every stage of every step: a row that nothing is cut from costs five passes over the
vocabulary, and once a stage has cut more than half, only the tokens that are left are looked at.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from engine.experiment import ExperimentError
from engine.said import said
from engine.trace import Floats, Stage

#: Differences to the highest logit are clamped to this, so that 0 · −inf never arises: exp(−87) is about the least
#: normal float32 and adds nothing to a sum that holds a 1, while exp of anything lower is many times slower.
_LOWEST = -87.0


class NoCandidate(Exception):
    """A link of the chain left no token to choose. `stage` is its name."""

    def __init__(self, stage: str) -> None:
        super().__init__(said("no_candidate", stage=stage))
        self.stage = stage


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The whole distribution after one stage."""

    stage: Stage
    logits: torch.Tensor  # [vocab] float32
    left: torch.Tensor | None  # [n] int64, rising ids: all that are left, and at most as many others; None: every id
    highest: float
    weights: torch.Tensor  # [n] or [vocab]: exp(logit − highest), 0 where cut
    normaliser: float  # their sum

    @cached_property
    def row(self) -> Floats:
        """The logits [vocab] in the host's memory."""
        row: Floats = self.logits.numpy(force=True)
        return row

    def probabilities(self, ids: npt.NDArray[np.int64]) -> Floats:
        """Probabilities of the given ids, in their shape; 0 where cut."""
        weights: Floats = np.exp(self.row[ids] - np.float32(self.highest))
        return weights / np.float32(self.normaliser)


def take_snapshot(name: str, parameters: dict[str, Any], logits: torch.Tensor, before: Snapshot | None) -> Snapshot:
    """Measure a stage: tokens kept, entropy in nats, and the mass, as it stood before, of the tokens it cut.

    Raises `NoCandidate` where no logit is finite, `ExperimentError` where one is NaN or +inf.
    """
    former = None if before is None else before.left
    row = logits if former is None else logits[former]
    lowest, highest = (float(bound) for bound in torch.aminmax(row))
    if highest == -torch.inf:
        raise NoCandidate(name)
    if highest != highest or highest == torch.inf:
        if before is None:
            raise ExperimentError("model", said("logits_not_finite"))
        raise ExperimentError(f"sampling.{name}", said("logits_out_of_range"))
    left, mass_removed, kept, cut = former, 0.0, len(row), None
    if lowest == -torch.inf:
        cut = row == -torch.inf
        kept -= int(cut.count_nonzero())
        # Adding up what was cut is exact where it is little; subtracting what is left from 1 would not be.
        mass_removed = 0.0 if before is None else float(torch.dot(before.weights, cut.float())) / before.normaliser
        if kept < len(row) // 2:
            stay = torch.nonzero(~cut).flatten()
            row, left, cut = row[stay], stay if former is None else former[stay], None
    shifted = row - highest
    if lowest - highest < _LOWEST:
        shifted.clamp_(min=_LOWEST)
    weights = shifted.exp()
    if cut is not None:
        weights.masked_fill_(cut, 0.0)
    normaliser = float(weights.sum())
    entropy = math.log(normaliser) - float(torch.dot(weights, shifted)) / normaliser
    stage = Stage(
        name=name,
        parameters=parameters,
        kept=kept,
        entropy=max(0.0, entropy) if kept > 1 else 0.0,
        mass_removed=min(1.0, mass_removed),
    )
    return Snapshot(stage, logits, left, highest, weights, normaliser)
