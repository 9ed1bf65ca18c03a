"""What one step's candidates went through: where each was cut, how far it moved, which ones are worth drawing."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from components.copy import words
from components.units import probability_text
from components.visible import visible_bytes
from engine.trace import Stage, Stepped

#: Survivors with a line, an interval and a bar of their own; the rest of the distribution is drawn as one.
SHOWN_SURVIVORS = 8
SHOWN_CUT = 5
SHOWN_RAW = 4  # the model's own favourites, wherever they ended
LABEL_LENGTH = 14

#: The panel asks these of its one step hundreds of times a picture, several visitors at once.
_of_a_step = lru_cache(32)


@_of_a_step
def cut_stages(step: Stepped) -> tuple[int | None, ...]:
    """For each candidate the stage that gave it −inf, or None where it can still be drawn."""
    gone = np.isneginf(step.logits)
    first, ever = gone.argmax(axis=0), np.any(gone, axis=0)
    return tuple(int(stage) if cut else None for stage, cut in zip(first, ever, strict=True))


def cut_stage(step: Stepped, index: int) -> int | None:
    """The same of one candidate."""
    return cut_stages(step)[index]


def shown(step: Stepped) -> list[int]:
    """Candidates worth a line, by falling probability before any processor.

    The best survivors, the model's own favourites, the chosen token, and of the cut ones the best of every stage
    before the next best of any.
    """
    order = by_raw_probability(step)
    cut = [i for i in order if cut_stage(step, i) is not None]
    first_of_stage = {cut_stage(step, i): i for i in reversed(cut)}.values()
    preferred = [*first_of_stage, *(i for i in cut if i not in first_of_stage)]
    keep = {*surviving(step)[:SHOWN_SURVIVORS], *order[:SHOWN_RAW], *preferred[:SHOWN_CUT], chosen_index(step)}
    return [i for i in order if i in keep]


def surviving(step: Stepped) -> list[int]:
    """Followed candidates that can still be drawn, by falling final probability."""
    left = [i for i in range(len(step.candidate_ids)) if cut_stage(step, i) is None]
    return sorted(left, key=lambda i: -step.probabilities[-1, i])


def by_raw_probability(step: Stepped) -> list[int]:
    return sorted(range(len(step.candidate_ids)), key=lambda i: -step.probabilities[0, i])


@_of_a_step
def chosen_index(step: Stepped) -> int | None:
    """Where the chosen token stands among the candidates; None for a token that a person forced from outside them."""
    found = np.flatnonzero(step.candidate_ids == step.token_id)
    return int(found[0]) if len(found) else None


def most_moved(step: Stepped, indices: Sequence[int]) -> int | None:
    """The survivor that changed places most among `indices`, weighed by its probability; None if none moved by two."""
    left = [i for i in indices if cut_stage(step, i) is None]
    before = sorted(left, key=lambda i: -step.probabilities[0, i])
    after = sorted(left, key=lambda i: -step.probabilities[-1, i])
    moves = {i: abs(before.index(i) - after.index(i)) for i in left if i != chosen_index(step)}
    far = [i for i, places in moves.items() if places >= 2]
    return max(far, key=lambda i: moves[i] * step.probabilities[[0, -1], i].max(), default=None)


def token_label(data: bytes) -> str:
    """A token's text made visible and cut to fit beside a line."""
    text = visible_bytes(data)
    return text if len(text) <= LABEL_LENGTH else f"{text[: LABEL_LENGTH - 1]}…"


def stage_name(name: str) -> str:
    """A stage in the words of the page: "repetition_penalty" → "repetition"."""
    return words("sampling").text(f"stage_{name}")


def stage_label(stage: Stage) -> str:
    """A stage's name and its setting: "top-k 20". Lists (bad words, suppressed ids) count their entries."""
    setting = next(iter(stage.parameters.values()), "")
    if isinstance(setting, list | tuple):
        setting = f"×{len(setting)}"
    elif isinstance(setting, int | float):
        setting = f"{setting:g}"
    return f"{stage_name(stage.name)} {setting}".strip()


def hover(step: Stepped, index: int, stage: int) -> str:
    """A candidate after a stage, under the pointer."""
    return words("sampling").text(
        "hover",
        token=token_label(step.candidate_bytes[index]),
        stage=stage_label(step.stages[stage]),
        logit=float(step.logits[stage, index]),
        p=probability_text(float(step.probabilities[stage, index])),
    )
