"""Where a candidate stood before: what the repetition penalty hit, whence, by how much; which n-gram a ban found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from components.sampling.candidates import by_raw_probability
from components.sampling.ranks import Rank, ranks_at
from engine.trace import Rendered, Stepped

Origin = Literal["default_system", "system", "user", "assistant", "tool", "scaffold", "answer"]


@dataclass(frozen=True)
class Hit:
    """A candidate whose logit the repetition penalty changed. Ranks are of the whole vocabulary, see `ranks_at`."""

    index: int
    places: dict[Origin, list[int]]  # positions of the context that hold it, by the part they belong to
    logit_before: float
    logit_after: float
    probability_before: float
    probability_after: float
    rank_before: Rank
    rank_after: Rank

    @property
    def places_lost(self) -> int:
        """Ranks lost, at least; 0 where it is not known whence it fell."""
        lost = self.rank_after.least - self.rank_before.least
        return lost if self.rank_before.exact else min(lost, 0)

    @property
    def divided(self) -> bool:
        """True where a positive logit was divided by the penalty; a negative one is multiplied."""
        return self.logit_before > 0


@dataclass(frozen=True)
class RepeatedNgram:
    """A candidate that would have repeated an n-gram whose first occurrence begins at `position`."""

    index: int
    token_ids: tuple[int, ...]
    position: int


def context_ids(rendered: Rendered, steps: Sequence[Stepped], step: Stepped) -> list[int]:
    """The ids that the processors saw at `step`: the rendered context and the answer before it."""
    return [*map(int, rendered.token_ids), *(one.token_id for one in steps if one.step < step.step)]


def stage_index(step: Stepped, name: str) -> int | None:
    """Where a stage stands in the step's chain, None where it is not in it."""
    return next((i for i, stage in enumerate(step.stages) if stage.name == name), None)


def penalty_hits(rendered: Rendered, steps: Sequence[Stepped], step: Stepped) -> list[Hit]:
    """The followed candidates that the repetition penalty changed, by falling probability before any processor."""
    stage = stage_index(step, "repetition_penalty")
    if stage is None:
        return []
    before, after = step.logits[stage - 1], step.logits[stage]
    ranks_before, ranks_after = ranks_at(step, stage - 1), ranks_at(step, stage)
    ids = context_ids(rendered, steps, step)
    hits = []
    for i in by_raw_probability(step):
        if not np.isfinite(before[i]) or before[i] == after[i]:
            continue
        hits.append(
            Hit(
                index=i,
                places=_places(rendered, ids, int(step.candidate_ids[i])),
                logit_before=float(before[i]),
                logit_after=float(after[i]),
                probability_before=float(step.probabilities[stage - 1, i]),
                probability_after=float(step.probabilities[stage, i]),
                rank_before=ranks_before[i],
                rank_after=ranks_after[i],
            )
        )
    return hits


def repeated_ngrams(rendered: Rendered, steps: Sequence[Stepped], step: Stepped) -> list[RepeatedNgram]:
    """The followed candidates that the n-gram ban cut, each with the n-gram it would have repeated."""
    stage = stage_index(step, "no_repeat_ngram_size")
    if stage is None:
        return []
    size = int(step.stages[stage].parameters["no_repeat_ngram_size"])
    ids = context_ids(rendered, steps, step)
    found = []
    for i in by_raw_probability(step):
        if not (np.isfinite(step.logits[stage - 1, i]) and np.isneginf(step.logits[stage, i])):
            continue
        gram = (*ids[len(ids) - size + 1 :], int(step.candidate_ids[i]))
        position = next(p for p in range(len(ids) - size + 1) if tuple(ids[p : p + size]) == gram)
        found.append(RepeatedNgram(i, gram, position))
    return found


def _places(rendered: Rendered, ids: Sequence[int], token_id: int) -> dict[Origin, list[int]]:
    places: dict[Origin, list[int]] = {}
    for position, one in enumerate(ids):
        if one == token_id:
            places.setdefault(origin(rendered, position), []).append(position)
    return places


def origin(rendered: Rendered, position: int) -> Origin:
    """The part of the context that a position belongs to; behind the rendered context lies the answer."""
    if position >= len(rendered.token_ids):
        return "answer"
    index = int(rendered.span_index[position])
    if index < 0 or rendered.spans[index].kind == "scaffold":
        return "scaffold"
    span = rendered.spans[index]
    if span.role == "system" and span.message is None:
        return "default_system"
    return span.role if span.role in {"system", "user", "assistant", "tool"} else "scaffold"  # type: ignore[return-value]
