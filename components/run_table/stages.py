"""The whole way of one token, stage by stage: who does it, what goes in, what comes out, how long it took."""

from collections.abc import Iterator
from dataclasses import dataclass

from components.copy import words
from components.ends import end_text
from components.sampling.candidates import stage_name
from components.units import bytes_text, seconds_text
from components.visible import visible, visible_bytes
from engine.trace import Prefilled, Rendered, Shape, Stepped, Stopped, Trace

#: Which class of the library each processor is.
PROCESSORS = {
    "repetition_penalty": "RepetitionPenaltyLogitsProcessor",
    "no_repeat_ngram_size": "NoRepeatNGramLogitsProcessor",
    "bad_words": "NoBadWordsLogitsProcessor",
    "min_new_tokens": "MinNewTokensLengthLogitsProcessor",
    "suppress_tokens": "SuppressTokensLogitsProcessor",
    "grammar": "llguidance",
    "temperature": "TemperatureLogitsWarper",
    "top_k": "TopKLogitsWarper",
    "top_p": "TopPLogitsWarper",
    "min_p": "MinPLogitsWarper",
    "typical_p": "TypicalLogitsWarper",
}

TEMPLATE = "tokenizer.apply_chat_template"
INPUTS = ("input_ids", "attention_mask", "position_ids")


@dataclass(frozen=True)
class StageRow:
    """One line of the table. `time` is "" where the stage is not measured on its own."""

    stage: str
    by: str
    given: str
    gave: str
    time: str = ""
    once: bool = False  # once a turn, not once a token


def turn_rows(trace: Trace, rendered: Rendered, prefilled: Prefilled | None) -> Iterator[StageRow]:
    """What happens once a turn."""
    say = words("run_table")
    ids = say.text("ids", count=len(rendered.token_ids))
    text = say.text("characters", count=len(rendered.text))
    messages = len({span.message for span in rendered.spans} - {None})
    given, by = say.text("one_message" if messages == 1 else "messages", count=messages), TEMPLATE
    if trace.experiment.prompt is not None:
        given, by = say.text("raw_prompt"), "–"
    yield StageRow(say.text("render"), by, given, text, once=True)
    yield StageRow(say.text("tokenise"), "tokenizer", text, ids, once=True)
    if prefilled is None:
        return
    shape = _shape(prefilled.shapes["input_ids"])
    yield StageRow(say.text("tensors"), "torch.tensor", ids, _tensors_text(prefilled), once=True)
    fed = say.text("reused", shape=shape, count=prefilled.first) if prefilled.first else shape
    scores = say.text("scores", shape=_shape(prefilled.shapes["logits"]))
    yield StageRow(say.text("prefill"), "model.forward", fed, scores, seconds_text(prefilled.seconds), once=True)


def step_rows(step: Stepped, before: Stepped | None, stopped: Stopped | None) -> Iterator[StageRow]:
    """What happens once a token. `before` is the step before it, `stopped` the end of the turn if this step is it."""
    say = words("run_table")
    yield _forward_row(step, before)
    yield from _processor_rows(step)
    yield _draw_row(step)
    token = visible_bytes(step.token_bytes)
    verdict = say.text("stop_yes", reason=end_text(stopped.reason)) if stopped else say.text("stop_no")
    watched = say.text("stop_watched", text=token, count=step.step + 1)
    yield StageRow(say.text("stop"), "engine/stages/stopping.py", watched, verdict)
    held = {"text": visible(step.text) or say.text("nothing"), "count": step.held_bytes}
    shown = say.text("shown_held", **held) if step.held_bytes else say.text("shown", text=held["text"])
    if stopped and stopped.text:
        shown = say.text("shown_released", released=visible(stopped.text), text=held["text"])
    yield StageRow(say.text("detokenise"), "engine/stages/detokenizer.py", bytes_text(len(step.token_bytes)), shown)
    positions = say.text("positions", count=step.kv_tokens)
    yield StageRow(say.text("cache"), "DynamicCache", positions, bytes_text(step.kv_bytes))


def _tensors_text(prefilled: Prefilled) -> str:
    """The shapes of the three tensors: the mask covers what is cached, too."""
    say = words("run_table")
    ids, mask, positions = (_shape(prefilled.shapes[name]) for name in INPUTS)
    if ids == mask == positions:
        return say.text("three_tensors", shape=ids)
    return say.text("tensor_shapes", ids=ids, mask=mask, positions=positions)


def _forward_row(step: Stepped, before: Stepped | None) -> StageRow:
    say = words("run_table")
    scores = say.text("scores", shape=_shape(step.shapes["logits"]))
    if before is None:
        return StageRow(say.text("forward"), "–", say.text("no_forward"), scores)
    if step.shapes["input_ids"][-1] == 1:
        fed = say.text("token_at", text=visible_bytes(before.token_bytes), position=before.position)
    else:
        fed = say.text("ids", count=step.shapes["input_ids"][-1])
    return StageRow(say.text("forward"), "model.forward", fed, scores, seconds_text(step.seconds))


def _processor_rows(step: Stepped) -> Iterator[StageRow]:
    say = words("run_table")
    for earlier, stage in zip(step.stages, step.stages[1:], strict=False):
        given = say.text("kept_entropy", count=f"{earlier.kept:,}", entropy=earlier.entropy)
        gave = say.text("kept_entropy", count=f"{stage.kept:,}", entropy=stage.entropy)
        yield StageRow(stage_name(stage.name), PROCESSORS.get(stage.name, "–"), given, gave)


def _draw_row(step: Stepped) -> StageRow:
    say = words("run_table")
    kept = f"{step.stages[-1].kept:,}"
    chosen = say.text("drawn", text=visible_bytes(step.token_bytes), id=step.token_id)
    if step.forced and step.draw is not None:
        names = dict(zip(step.candidate_ids.tolist(), step.candidate_bytes, strict=True))
        drawn = visible_bytes(names.get(step.draw.drawn_id, b"")) or str(step.draw.drawn_id)
        return StageRow(say.text("draw"), "–", say.text("drawn_forced", text=drawn), chosen)
    if step.forced:
        return StageRow(say.text("draw"), "–", say.text("chosen_forced"), chosen)
    if step.draw is None:
        return StageRow(say.text("draw"), "torch.argmax", say.text("drawn_greedy", count=kept), chosen)
    given = say.text("drawn_random", count=kept, u=step.draw.u)
    return StageRow(say.text("draw"), "torch.Generator", given, chosen)


def _shape(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))})"
