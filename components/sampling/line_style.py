"""How the line of a candidate looks: where a probability stands, which lines weigh more, and in which colour."""

import math

from components.sampling.candidates import chosen_index, cut_stage
from engine.trace import Stepped

HEIGHT = 424
TOP, BOTTOM = 62, 10
#: Pixels under the probability 0, for the labels of cut lines that would lie on lines that go on.
BELOW = 40
#: Pixels from the probability 0 to the highest.
ROOM = HEIGHT - TOP - BOTTOM - BELOW

#: Room at both ends of the stage axis, in stages.
ENDS = 0.02


def stage_range(last: int) -> tuple[float, float]:
    """The stage axis, from the model's own logits to the stage `last`."""
    return -ENDS, last + ENDS


def across(stage: int, last: int) -> float:
    """Where a stage stands on that axis, from 0 at the left to 1 at the right."""
    left, right = stage_range(last)
    return (stage - left) / (right - left)


def height_of(probability: float) -> float:
    """Where a probability stands on the vertical axis: its square root, so that small ones keep some room."""
    return math.sqrt(probability)


def weight(step: Stepped, index: int, moved: int | None) -> int:
    if index == chosen_index(step):
        return 3
    if index == moved:
        return 2
    return 1 if cut_stage(step, index) is None else 0


def color(step: Stepped, index: int, moved: int | None) -> str:
    return ("var(--cut)", "var(--ink)", "var(--system)", "var(--accent)")[weight(step, index, moved)]
