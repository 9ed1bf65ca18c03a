"""What a strategy makes of a turn."""

from dataclasses import dataclass
from typing import Literal

from engine.said import Sentence
from engine.truncated import SystemFate
from engine.values import Strategy


@dataclass(frozen=True, eq=False)
class Policy:
    """What one strategy makes of the current turn. Every prompt is computed from nothing here; `refusal` says why not.

    `reused` counts the positions that the run's cache, as the turn before left it, would have spared.
    """

    turn: int
    strategy: Strategy
    positions: Literal["go_on", "restart"]
    limit: int
    refusal: Sentence | None
    kept: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    partly: tuple[int, ...] = ()  # messages of which only the end stays
    before: int = 0
    after: int = 0
    system: SystemFate = "none"
    reused: int = 0
    computed: int = 0
    summary: str | None = None
    token_ids: tuple[int, ...] = ()
    answer: str = ""
    ended: str | None = None  # the reason to stop; None where no more tokens were asked for
    seconds: float = 0.0
