"""Ranks in the whole vocabulary, told from the followed candidates alone: exact where that is proven, else a bound."""

from dataclasses import dataclass

import numpy as np

from engine.trace import Floats, Stepped

#: The engine follows this many of the best tokens of the first and of the last stage.
RANKED = 12
#: Stages that keep the order of the tokens and cut from the bottom only.
FROM_THE_BOTTOM = frozenset({"temperature", "top_k", "top_p", "min_p"})


@dataclass(frozen=True)
class Rank:
    """1 = best. The true rank is `least` where `exact`, and no better than `least` elsewhere."""

    least: int
    exact: bool

    @property
    def text(self) -> str:
        """As the page writes it: "3", ">10" for one that is worse than 10, "–" where nothing is known."""
        if self.exact:
            return str(self.least)
        return f">{self.least - 1}" if self.least > 1 else "–"


def ranks_at(step: Stepped, stage: int) -> tuple[Rank, ...]:
    """The rank of each candidate after the first or the last stage, or after one up to the repetition penalty.

    Other stages have a bound at least. Nothing is told beyond `RANKED`, nor of a candidate that was cut.
    """
    row = step.logits[stage]
    places = (row > row[:, None]).sum(axis=1) + 1
    proven = np.isfinite(row) & (places <= RANKED) & (row >= _ceiling(step, stage))
    return tuple(
        Rank(min(place, RANKED + 1), exact) for place, exact in zip(places.tolist(), proven.tolist(), strict=True)
    )


def _ceiling(step: Stepped, stage: int) -> float:
    """No token that is not followed has a higher logit after the stage; −inf where all that are left are followed."""
    if int(np.isfinite(step.logits[stage]).sum()) == step.stages[stage].kept:
        return -np.inf
    return min(_under_the_first(step, stage), _under_the_last(step, stage))


def _under_the_first(step: Stepped, stage: int) -> float:
    """Unfollowed tokens lay under the model's own best, and a penalty above 1 has not lifted any of them."""
    before = stage
    names = [one.name for one in step.stages[: stage + 1]]
    if "repetition_penalty" in names:
        before = names.index("repetition_penalty") - 1
        if before + 1 != stage or step.stages[stage].parameters["repetition_penalty"] < 1:
            return np.inf
    best = np.argsort(-step.logits[0], kind="stable")[:RANKED]
    return _lowest(step.logits[before, best])


def _under_the_last(step: Stepped, stage: int) -> float:
    """Where all that follows cuts from the bottom, unfollowed tokens lie under the best of what is left."""
    if not FROM_THE_BOTTOM.issuperset(one.name for one in step.stages[stage + 1 :]):
        return np.inf
    last = step.logits[-1]
    best = [i for i in np.argsort(-last, kind="stable")[:RANKED] if np.isfinite(last[i])]
    return _lowest(step.logits[stage, best])


def _lowest(logits: Floats) -> float:
    return float(logits[np.isfinite(logits)].min(initial=np.inf))
