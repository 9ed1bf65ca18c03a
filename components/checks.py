"""The self-checks of the status line: facts about the selected step that would be false if the engine were wrong."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from components.copy import words
from components.in_words import translated
from components.inside import newest, of_turn
from components.panel import View
from components.sampling.candidates import stage_name
from components.widgets.rail import Station, Tone
from engine.facts import ModelFacts
from engine.limits import window_size
from engine.trace import Draw, Stepped

#: Float32 probabilities of up to 300,000 tokens add up with errors well below this.
TOLERANCE = 1e-4
#: Largest |Δlogit| between two orders of the same sums, by the type of the weights.
LOGIT_TOLERANCE = {"float32": 1e-3, "float16": 0.1, "bfloat16": 1.0}


@dataclass(frozen=True)
class Check:
    """One check: its name on the page, whether it holds (None: cannot be told), and the numbers behind it."""

    label: str
    ok: bool | None
    detail: str


def checks(view: View) -> list[Station]:
    """The checks as entries of the status line, the numbers as their tooltip."""
    tones: dict[bool | None, Tone] = {True: "ok", False: "warn", None: "dim"}
    return [
        Station(f"check-{index}", "", check.label, check.detail, tones[check.ok])
        for index, check in enumerate(select(view))
    ]


def select(view: View) -> list[Check]:
    """Every check that the selected step and the results at hand allow."""
    step = view.nearest_step
    found = list(_step_checks(step, view.facts, _window(view))) if step else []
    return [*found, *_inside_checks(view), *_asked_checks(view)]


def _window(view: View) -> int | None:
    """Tokens that a sliding window holds; None where nothing leaves the cache."""
    experiment = view.trace.experiment if view.trace else None
    if experiment is None or experiment.context.strategy != "sliding_window":
        return None
    return window_size(experiment, view.facts)


def _step_checks(step: Stepped, facts: ModelFacts, window: int | None) -> Iterator[Check]:
    yield bytes_check(step, facts)
    yield positions_check(step, window)
    yield mask_check(step, window)
    yield stages_check(step)
    if step.draw is not None:
        yield draw_check(step, step.draw)


def bytes_check(step: Stepped, facts: ModelFacts) -> Check:
    """The bytes of the cache's tensors against the formula."""
    say, formula = words("checks"), facts.kv_bytes(step.kv_tokens)
    detail = say.text("bytes_said", measured=step.kv_bytes, formula=formula)
    return Check(say.text("bytes"), step.kv_bytes == formula, detail)


def positions_check(step: Stepped, window: int | None = None) -> Check:
    """F = prompt + sampled − 1 against the positions in the cache. The step stands at position prompt + step.

    A sliding window holds no more than its size.
    """
    say, expected = words("checks"), min(step.position, window or step.position)
    key = "positions_said" if expected == step.position else "positions_window"
    detail = say.text(key, held=step.kv_tokens, expected=expected, fed=step.position)
    return Check(say.text("positions"), step.kv_tokens == expected, detail)


def mask_check(step: Stepped, window: int | None = None) -> Check:
    """The attention mask covers the whole context that the forward saw, or all that a sliding window holds of it.

    Where a window's cache is built anew, the mask has a row for each position and begins earlier.
    """
    say, shape = words("checks"), step.shapes["attention_mask"]
    mask, expected = shape[-1], min(step.position, window or step.position)
    key = "mask_rebuilt" if len(shape) > 2 else "mask_said" if expected == step.position else "mask_window"
    detail = say.text(key, mask=mask, context=step.position, window=expected)
    return Check(say.text("mask"), mask == expected or (len(shape) > 2 and mask > expected), detail)


def stages_check(step: Stepped) -> Check:
    """A processor may cut and reweigh, never bring a cut token back; followed candidates weigh at most 1."""
    say = words("checks")
    weights = step.probabilities.astype(np.float64).sum(axis=1)
    gone = np.isneginf(step.logits)
    for index, stage in enumerate(step.stages):
        returned = index > 0 and (
            stage.kept > step.stages[index - 1].kept or bool((gone[index - 1] & ~gone[index]).any())
        )
        if returned or weights[index] > 1 + TOLERANCE:
            return Check(
                say.text("stages"),
                False,
                say.text("stages_broken", stage=stage_name(stage.name), weight=weights[index]),
            )
    return Check(say.text("stages"), True, say.text("stages_said", count=len(step.stages)))


def draw_check(step: Stepped, draw: Draw) -> Check:
    """u lies in the drawn token's interval, which is as wide as the token's probability after the last stage."""
    say = words("checks")
    place = np.flatnonzero(step.candidate_ids == draw.drawn_id)
    probability = float(step.probabilities[-1, place[0]]) if place.size else float("nan")
    inside = draw.low <= draw.u <= draw.high and abs(draw.high - draw.low - probability) <= TOLERANCE
    detail = say.text("draw_said", u=draw.u, low=draw.low, high=draw.high, probability=probability)
    return Check(say.text("draw"), inside, detail)


def _inside_checks(view: View) -> Iterator[Check]:
    """Checks of what was looked into last: the lens ends in the logits, shares add up, by hand is as by the model."""
    say = words("checks")
    lens, residual, layer = (newest(view, name) for name in ("lens", "residual", "layer"))
    allowed = LOGIT_TOLERANCE.get(view.facts.dtype, LOGIT_TOLERANCE["bfloat16"])
    if lens is not None:
        numbers = {"difference": lens.max_difference, "allowed": allowed}
        detail = say.text("lens_said", position=lens.position, **numbers)
        yield Check(say.text("lens"), lens.max_difference <= allowed, detail)
    if residual is not None:
        numbers = {"difference": residual.max_difference, "allowed": allowed}
        detail = say.text("shares_said", position=residual.position, total=residual.uncapped, **numbers)
        yield Check(say.text("shares"), residual.max_difference <= allowed, detail)
    if layer is not None:
        numbers = {"difference": layer.largest, "allowed": layer.expected}
        detail = say.text("layer_said", layer=layer.layer, position=layer.position, **numbers)
        yield Check(say.text("layer"), layer.largest <= layer.expected, detail)


def _asked_checks(view: View) -> Iterator[Check]:
    """Checks that a person asked for: loop = generate, cached = uncached."""
    say, parity, uncached = words("checks"), of_turn(view, "parity"), of_turn(view, "uncached")
    if parity is not None and parity.reason is not None:
        yield Check(say.text("parity"), None, translated(parity.reason))
    elif parity is not None:
        parted = parity.first_difference
        detail = say.text("parity_same" if parted is None else "parity_differ", count=len(parity.ours), step=parted)
        yield Check(say.text("parity"), parted is None, detail)
    if uncached is not None and uncached.reused == 0:
        yield Check(say.text("cached"), None, say.text("cached_none", step=uncached.step))
    elif uncached is not None:
        allowed = LOGIT_TOLERANCE.get(view.facts.dtype, LOGIT_TOLERANCE["bfloat16"])
        numbers = {"difference": uncached.max_difference, "allowed": allowed}
        detail = say.text("cached_said", step=uncached.step, **numbers)
        yield Check(say.text("cached"), uncached.max_difference <= allowed, detail)
