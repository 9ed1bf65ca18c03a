"""The loop beside `generate`."""

from dataclasses import dataclass

from engine.said import Sentence


@dataclass(frozen=True)
class Parity:
    """The loop's tokens of one turn beside those of `generate`; `reason` says why they cannot be compared."""

    reason: Sentence | None
    ours: tuple[int, ...] = ()
    theirs: tuple[int, ...] = ()
    first_difference: int | None = None  # the step
    seconds: float = 0.0
    turn: int = 0

    @property
    def equal(self) -> bool:
        """True when every token so far is the same."""
        return self.reason is None and self.first_difference is None
