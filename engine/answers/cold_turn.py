"""A turn with and without what it reused."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ColdTurn:
    """One turn as it was and computed cold. Logits [vocab] are those of its first token."""

    turn: int
    reused: int
    positions: int  # of the whole prompt, all of which were computed cold
    warm_seconds: float  # the prefill with what it reused
    again: bool  # it was measured again, beside the cold one; False: as it was in its time
    cold_seconds: float
    max_difference: float  # largest |Δlogit|
    same_best: bool  # both put the same token first
    ours: tuple[int, ...]  # ids drawn in the turn, at most `MAX_TOKENS`
    cold: tuple[int, ...]  # the same number of draws from the same random state, computed cold
    first_difference: int | None  # the step
