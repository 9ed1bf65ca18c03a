"""The whole distribution after one stage of the chain, and what the stage did to it."""

from dataclasses import dataclass
from typing import Any

import torch

from engine.experiment import ExperimentError
from engine.trace import Stage

#: −inf is clamped to this, so that 0 · −inf never arises: exp(−87) is about the least normal float32 and adds nothing
#: to a sum that holds a 1, while exp of anything lower, −inf included, is many times slower.
_LOWEST = -87.0


class NoCandidate(Exception):
    """A link of the chain left no token to choose. `stage` is its name."""

    def __init__(self, stage: str) -> None:
        super().__init__(f"{stage} left no token to choose")
        self.stage = stage


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The whole distribution after one stage."""

    stage: Stage
    logits: torch.Tensor  # [vocab] float32
    highest: float
    normaliser: float  # sum over the vocabulary of exp(logit − highest)

    def probabilities(self, ids: torch.Tensor) -> torch.Tensor:
        """Probabilities float32 of the given ids."""
        return torch.exp(self.logits[ids] - self.highest) / self.normaliser


def take_snapshot(name: str, parameters: dict[str, Any], logits: torch.Tensor, before: Snapshot | None) -> Snapshot:
    """Measure a stage: tokens kept, entropy in nats, and the mass, as it stood before, of the tokens it cut."""
    highest = float(logits.max())
    if highest == -torch.inf:
        raise NoCandidate(name)
    if highest != highest or highest == torch.inf:
        if before is None:
            raise ExperimentError("model", "the model's logits are not finite numbers")
        raise ExperimentError(f"sampling.{name}", "this value drives the logits out of the range of float32")
    shifted = (logits - highest).clamp_(min=_LOWEST)
    weights = shifted.exp()
    normaliser = float(weights.sum())
    entropy = float(torch.log(weights.sum()) - torch.dot(weights, shifted) / normaliser)
    finite = logits > -torch.inf
    kept = int(torch.count_nonzero(finite))
    stage = Stage(
        name=name,
        parameters=parameters,
        kept=kept,
        entropy=max(0.0, entropy) if kept > 1 else 0.0,
        mass_removed=0.0 if before is None or kept == before.stage.kept else _mass(before, ~finite),
    )
    return Snapshot(stage, logits, highest, normaliser)


def _mass(snapshot: Snapshot, chosen: torch.Tensor) -> float:
    """Probability of the tokens that the flags [vocab] choose."""
    weights = (snapshot.logits - snapshot.highest).clamp_(min=_LOWEST).exp_()
    return min(1.0, float(torch.dot(weights, chosen.float())) / snapshot.normaliser)
