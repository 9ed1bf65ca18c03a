"""What a step's chain did, in words: who was penalised and why, what was forbidden, how the draw was made."""

from collections.abc import Sequence

from components.copy import listed, sentences, words
from components.panel import View
from components.sampling.candidates import stage_label, stage_name, token_label
from components.sampling.repetition import Hit, penalty_hits, repeated_ngrams
from components.units import probability_text
from components.visible import visible_bytes
from components.widgets.token_strip import Group
from engine.trace import Rendered, Stepped

#: Stages that say which tokens are legal, rather than which of the legal ones are likely enough.
CONSTRAINTS = ("no_repeat_ngram_size", "bad_words", "min_new_tokens", "suppress_tokens", "grammar")
MAX_POSITIONS = 4


def notes(view: View, step: Stepped) -> list[Group]:
    """The notes on a step, the most telling first; each a heading with a sentence or two."""
    rendered, trace = view.rendered, view.trace
    assert rendered is not None and trace is not None
    parts = [
        *_forced(step),
        *_penalty(rendered, view.steps, step),
        *_ngrams(rendered, view.steps, step),
        *_constraints(step),
        *_eos(rendered, view.steps, step),
        _draw(step, seed=trace.experiment.sampling.seed),
        *_order(view, step),
    ]
    return [Group((), label=heading, note=text, as_text=True) for heading, text in parts]


def token_text(step: Stepped, token_id: int) -> str:
    """A followed candidate's text; an id that is not followed as its number."""
    found = (step.candidate_ids == token_id).nonzero()[0]
    return token_label(step.candidate_bytes[int(found[0])]) if len(found) else f"#{token_id}"


def places_text(hit: Hit) -> str:
    """In words: "the system prompt that the template added, at 13; your message, at 33 and 40"."""
    say = words("sampling")
    parts = []
    for origin, positions in hit.places.items():
        shown = ", ".join(map(str, positions[:MAX_POSITIONS]))
        if len(positions) > MAX_POSITIONS:
            shown = say.text("and_more", shown=shown, count=len(positions) - MAX_POSITIONS)
        parts.append(say.text("place", part=say.text(f"part_{origin}"), positions=shown))
    return listed(parts)


def telling_hit(hits: Sequence[Hit]) -> Hit:
    """The hit that changed the picture most: the likely token that fell furthest."""
    return max(hits, key=lambda hit: (hit.places_lost * hit.probability_before, hit.probability_before))


def _forced(step: Stepped) -> list[tuple[str, str]]:
    if not step.forced:
        return []
    say = words("sampling")
    own = step.draw is None and step.natural_id == step.token_id
    key = "forced" if step.draw else "forced_own" if own else "forced_greedy"
    text = say.text(key, token=visible_bytes(step.token_bytes))
    if step.draw and step.draw.drawn_id != step.token_id:
        text = sentences(text, say.text("forced_over", token=token_text(step, step.draw.drawn_id)))
    return [(say.text("forced_title"), text)]


def _draw(step: Stepped, *, seed: int) -> tuple[str, str]:
    say = words("sampling")
    if step.draw is None:
        key = "greedy" if step.natural_id == step.token_id else "greedy_over"
        return say.text("greedy_title"), say.text(key, token=token_text(step, step.natural_id))
    return say.text("race_title"), _race(step, seed=seed)


def _race(step: Stepped, *, seed: int) -> str:
    say = words("sampling")
    assert step.draw is not None
    race = say.text(
        "race", token=token_text(step, step.draw.drawn_id), time=step.draw.race_time, u=step.draw.u, seed=seed
    )
    if step.draw.runner_up_id is None or step.draw.runner_up_time is None:
        return sentences(race, say.text("race_alone"))
    second = token_text(step, step.draw.runner_up_id)
    return sentences(race, say.text("race_second", token=second, time=step.draw.runner_up_time))


def _penalty(rendered: Rendered, steps: Sequence[Stepped], step: Stepped) -> list[tuple[str, str]]:
    say = words("sampling")
    stage = next((one for one in step.stages if one.name == "repetition_penalty"), None)
    if stage is None:
        return []
    hits = penalty_hits(rendered, steps, step)
    if not hits:
        return [(say.text("penalty_none_title"), say.text("penalty_none"))]
    hit = telling_hit(hits)
    token = token_label(step.candidate_bytes[hit.index])
    text = say.text(
        "penalty_divided" if hit.divided else "penalty_multiplied",
        token=token,
        places=places_text(hit),
        penalty=f"{stage.parameters['repetition_penalty']:g}",
        before=hit.logit_before,
        after=hit.logit_after,
    )
    early = say.text("penalty_early") if "default_system" in hit.places else ""
    return [(_penalty_heading(hit, token), sentences(text, early))]


def _penalty_heading(hit: Hit, token: str) -> str:
    say = words("sampling")
    before, after = hit.rank_before.least, hit.rank_after
    if hit.places_lost <= 0:
        return say.text("penalty_title", token=token)
    if after.exact:
        return say.text("penalty_fell_title", token=token, before=before, after=after.least)
    return say.text("penalty_fell_below_title", token=token, before=before, after=after.least - 1)


def _ngrams(rendered: Rendered, steps: Sequence[Stepped], step: Stepped) -> list[tuple[str, str]]:
    say = words("sampling")
    bytes_of = dict(zip(map(int, rendered.token_ids), rendered.token_bytes, strict=True))
    bytes_of |= {one.token_id: one.token_bytes for one in steps}
    found = []
    for gram in repeated_ngrams(rendered, steps, step)[:3]:
        text = visible_bytes(b"".join(bytes_of[token_id] for token_id in gram.token_ids))
        token = token_label(step.candidate_bytes[gram.index])
        last = gram.position + len(gram.token_ids) - 1
        found.append(
            (
                say.text("ngram_title", token=token),
                say.text("ngram", token=token, text=text, size=len(gram.token_ids), first=gram.position, last=last),
            )
        )
    return found


def _constraints(step: Stepped) -> list[tuple[str, str]]:
    say = words("sampling")
    found = []
    for before, stage in zip(step.stages, step.stages[1:], strict=False):
        if stage.name in CONSTRAINTS and (stage.kept < before.kept or stage.name == "grammar"):
            counts = {"forbidden": before.kept - stage.kept, "legal": stage.kept, "all": step.stages[0].kept}
            text = say.text("constraint", stage=stage_name(stage.name), **counts)
            found.append((say.text("constraint_title", stage=stage_label(stage)), text))
    return found


def _eos(rendered: Rendered, steps: Sequence[Stepped], step: Stepped) -> list[tuple[str, str]]:
    say = words("sampling")
    eos = step.eos
    if eos is None or eos.cut_by is None:
        return []
    stage = stage_name(eos.cut_by)
    text = say.text("eos_cut", stage=stage, rank=eos.rank, p=probability_text(eos.probability))
    hits = penalty_hits(rendered, steps, step)
    hit = next((hit for hit in hits if step.candidate_ids[hit.index] == eos.token_id), None)
    if hit is not None:
        key = "eos_penalised" if hit.logit_after < hit.logit_before else "eos_raised"
        text = sentences(text, say.text(key, places=places_text(hit)))
    return [(say.text("eos_cut_title"), text)]


def _order(view: View, step: Stepped) -> list[tuple[str, str]]:
    """The order as it ran, and what the other common order would do; true for any logits, not only for this step's."""
    assert view.trace is not None
    say = words("sampling")
    sampling = view.trace.experiment.sampling
    chain = say.text("order", chain=" → ".join(stage_label(stage) for stage in step.stages))
    if not isinstance(sampling.order, str):
        return [(say.text("order_title"), sentences(chain, say.text("order_own")))]
    other = "transformers" if sampling.order == "llama.cpp" else "llama"
    effect = say.text(_effect({stage.name for stage in step.stages}, sampling.temperature, other))
    return [(say.text("order_title"), sentences(chain, say.text(f"order_{other}", effect=effect)))]


def _effect(on: set[str], temperature: float, other: str) -> str:
    """How the tokens kept would differ in the `other` order ("llama": temperature after the cuts)."""
    if "typical_p" in on and on & {"temperature", "top_p", "min_p"}:
        return "keeps_other"
    if "temperature" in on and on & {"top_p", "min_p"}:
        # A sharper distribution reaches top-p's mass with fewer tokens, and leaves fewer above min-p's share.
        return "keeps_more" if (temperature < 1) == (other == "llama") else "keeps_fewer"
    return "keeps_same"
