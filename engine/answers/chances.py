"""What given tokens had at their steps."""

from dataclasses import dataclass

from engine.trace import Floats


@dataclass(frozen=True, eq=False)
class Chances:
    """n tokens, each at a step of its own."""

    turn: int
    steps: tuple[int, ...]  # [n]
    token_ids: tuple[int, ...]  # [n]
    own: Floats  # [n], by the model's own logits
    probabilities: Floats  # [n], after the last stage; 0 where cut
