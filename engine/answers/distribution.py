"""A step's tokens through its stages."""

from dataclasses import dataclass

from engine.trace import Floats, Ints, Stage


@dataclass(frozen=True, eq=False)
class Distribution:
    """c tokens through the s stages of one step, likeliest after the last stage first."""

    turn: int
    step: int
    stages: tuple[Stage, ...]  # [s]
    token_ids: Ints  # [c]
    token_bytes: tuple[bytes, ...]  # [c]
    logits: Floats  # [s, c], −inf where cut
    probabilities: Floats  # [s, c], 0 where cut
    ranks: Ints  # [s, c], 1 = best; 0 where cut
    cut_by: tuple[str | None, ...]  # [c], the stage that cut the token
