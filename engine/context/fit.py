"""From a turn's whole history to the prompt that it is fed: what stays, what leaves, and an account of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from engine.context.choose import Unit, first_that_fits, ways
from engine.context.kept import History
from engine.context.summary import SUMMARY_TOKENS
from engine.context.window import Window, check_slides
from engine.experiment import ExperimentError
from engine.history import render_turn
from engine.limits import window_size
from engine.model import LoadedModel
from engine.reuse import Reuse
from engine.said import said
from engine.trace import Event, Rendered, Span, Trace
from engine.truncated import Portion, Summary, SystemFate, Truncated
from engine.values import Strategy


@dataclass(frozen=True, eq=False)
class Fed:
    """What a turn is fed. `truncated` is None where nothing had to leave; `window` only for a sliding window."""

    rendered: Rendered
    truncated: Truncated | None = None
    window: Window | None = None
    refusal: ExperimentError | None = None  # nothing that may leave makes it fit; `rendered` is the whole history then

    def events(self, found: Reuse) -> list[Event]:
        """What there is to tell, once it is known what the cache held and what of it the turn goes on with."""
        rendered, reused = found.noted(self.rendered), found.reused
        if self.truncated is None:
            return [rendered]
        summary = self.truncated.summary
        # The last token of a summary is never fed.
        apart = summary.prompt_tokens + max(0, summary.tokens - 1) if summary else 0
        computed = self.truncated.after - reused + apart
        return [replace(self.truncated, cached=found.cached, reused=reused, computed=computed), rendered]


def fit(loaded: LoadedModel, trace: Trace, turn: int, *, cache_budget: int | None = None) -> Fed:
    """The prompt of a turn by the experiment's strategy. Calls the model for a summary alone.

    `cache_budget` limits in bytes what the cache of a summary may take. Raises `ExperimentError` where the template
    refuses the whole history; what cannot be made to fit comes back as a refusal.
    """
    context, limit = trace.experiment.context, window_size(trace.experiment, loaded.facts)
    whole = render_turn(loaded, trace, turn)
    try:
        if context.strategy == "sliding_window":
            return _slide(loaded, whole, limit, restart=context.positions == "restart")
        if context.strategy == "none" or len(whole.token_ids) <= limit:
            return Fed(whole)
        return _drop(loaded, trace, whole, context.strategy, limit, _most_of_a_summary(loaded, cache_budget))
    except ExperimentError as error:
        return Fed(whole, refusal=error)


def _drop(loaded: LoadedModel, trace: Trace, whole: Rendered, strategy: Strategy, limit: int, most: int) -> Fed:
    """The most messages that fit. `most` is what the prompt of a summary may have."""
    history, summing = History(loaded, trace, whole.turn), strategy == "summary"
    counted: dict[Unit, int] = {}

    def tokens(kept: Unit) -> int:
        if kept not in counted:
            rendered = history.render(kept, "" if summing else None)
            counted[kept] = len(rendered.token_ids) + (SUMMARY_TOKENS if summing else 0)
        return counted[kept]

    kept = ways(strategy, history.messages)[1:]
    found = first_that_fits(kept, tokens, limit) if kept else None
    if found is None:
        raise _refusal(strategy, history, tokens(kept[-1]) if kept else len(whole.token_ids), limit)
    stays, summary = kept[found], None
    if summing:
        summary, rendered = history.sum_up(stays, limit, most)
    else:
        rendered = history.render(stays)
    portions = _portions(whole, _of_messages(whole, stays, rendered))
    return Fed(rendered, _account(strategy, limit, whole, rendered, portions, summary=summary))


def _slide(loaded: LoadedModel, whole: Rendered, size: int, *, restart: bool) -> Fed:
    """The newest `size` tokens of a history. Raises `ExperimentError` where the cache cannot let its oldest go."""
    if not restart:
        check_slides(loaded.model.config)
    cut = max(0, len(whole.token_ids) - size)
    window = Window(size, restart, tuple(whole.token_ids[:cut].tolist()))
    if not cut:
        return Fed(whole, window=window)
    rendered = newest(whole, cut)
    portions = _portions(whole, _tokens_of_spans(whole, cut))
    account = _account("sliding_window", size, whole, rendered, portions, offset=window.offset)
    return Fed(rendered, account, window)


def newest(whole: Rendered, cut: int) -> Rendered:
    """The text and the tokens from token `cut` on. A character that is cut in two stays in the text."""
    first_span = min((int(index) for index in whole.span_index[cut:] if index >= 0), default=len(whole.spans) - 1)
    start = min(_characters(whole, cut), whole.spans[first_span].end - 1)
    spans = [
        Span(max(span.start, start) - start, span.end - start, span.role, span.message, span.kind)
        for span in whole.spans[first_span:]
    ]
    index = whole.span_index[cut:]
    return replace(
        whole,
        text=whole.text[start:],
        spans=tuple(spans),
        token_ids=whole.token_ids[cut:],
        span_index=np.where(index < 0, index, index - first_span).astype(np.int32),
        pieces=whole.pieces[cut:],
        token_bytes=whole.token_bytes[cut:],
        special=whole.special[cut:],
    )


def _characters(whole: Rendered, cut: int) -> int:
    """Characters of the text up to token `cut`. What a tokenizer puts in, a BOS or a space before a word, is none."""
    text, reached = whole.text.encode(), 0
    for data, span in zip(whole.token_bytes[:cut], whole.span_index[:cut], strict=True):
        if span >= 0:
            put_in = data.startswith(b" ") and not text.startswith(data, reached)
            reached += len(data) - put_in
    return len(text[:reached].decode("utf-8", "ignore"))


def _tokens_of_spans(rendered: Rendered, cut: int = 0) -> list[int]:
    """How many tokens of each span stand at position `cut` or later."""
    counts: list[int] = np.bincount(rendered.span_index[cut:] + 1, minlength=len(rendered.spans) + 1)[1:].tolist()
    return counts


def _portions(whole: Rendered, held: Sequence[int]) -> tuple[Portion, ...]:
    """The messages of the whole history in order; `held` says how many tokens of each span stay."""
    counts = _tokens_of_spans(whole)
    found = []
    for (role, message), spans in groupby(enumerate(whole.spans), key=lambda item: (item[1].role, item[1].message)):
        indices = [index for index, _ in spans]
        tokens, kept = (sum(part[index] for index in indices) for part in (counts, held))
        found.append(Portion(role, message, tokens, kept))
    return tuple(found)


def _of_messages(whole: Rendered, stays: Unit, rendered: Rendered) -> list[int]:
    """How many tokens of each span stay: all or none; what the template wrote stays where it wrote it again."""
    again = {span.role for span in rendered.spans if span.message is None}
    return [
        count if (span.role in again if span.message is None else span.message in stays) else 0
        for span, count in zip(whole.spans, _tokens_of_spans(whole), strict=True)
    ]


def _account(
    strategy: Strategy,
    limit: int,
    whole: Rendered,
    rendered: Rendered,
    portions: tuple[Portion, ...],
    *,
    offset: int = 0,
    summary: Summary | None = None,
) -> Truncated:
    """What is known before the cache is looked at."""
    messages = [portion for portion in portions if portion.message is not None]
    return Truncated(
        turn=whole.turn,
        strategy=strategy,
        limit=limit,
        kept=tuple(portion.message for portion in messages if portion.message is not None and portion.kept),
        dropped=tuple(portion.message for portion in messages if portion.message is not None and not portion.kept),
        portions=portions,
        before=len(whole.token_ids),
        after=len(rendered.token_ids),
        offset=offset,
        system=_fate(portions, rendered),
        summary=summary,
        cached=0,
        reused=0,
        computed=0,
    )


def _fate(portions: tuple[Portion, ...], rendered: Rendered) -> SystemFate:
    systems = [portion for portion in portions if portion.role == "system"]
    if not systems:
        return "none"
    tokens, kept = sum(portion.tokens for portion in systems), sum(portion.kept for portion in systems)
    if kept:
        return "kept" if kept == tokens else "cut"
    own = any(span.message is None and span.role == "system" for span in rendered.spans)
    return "replaced" if own else "dropped"


def _most_of_a_summary(loaded: LoadedModel, cache_budget: int | None) -> int:
    """Tokens that the prompt of a summary may have."""
    each, context = loaded.facts.kv_bytes_per_token, loaded.facts.context
    allowed = context if cache_budget is None or not each else min(context, cache_budget // each)
    return allowed - SUMMARY_TOKENS


def _refusal(strategy: Strategy, history: History, least: int, limit: int) -> ExperimentError:
    pinned = history.head and strategy != "drop_oldest"
    what = said("both_take") if pinned else said("newest_takes")
    room = said("room_for_summary", tokens=SUMMARY_TOKENS) if strategy == "summary" else ""
    return ExperimentError("messages", said("history_too_long", what=what, least=least, room=room, limit=limit))
