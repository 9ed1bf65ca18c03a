"""What happened to the history of a turn, in sentences: the rule, the system prompt, the cache, the cost."""

from components.copy import words
from components.in_words import translated
from components.panel import View
from components.turns import matched
from components.visible import running_text
from components.widgets.token_strip import Chip, Group
from engine.trace import Rendered, Trace
from engine.truncated import Truncated
from engine.values import Context

_UNUSED = {"window_left": "cache_left", "window_before": "cache_before"}


def notes(view: View) -> list[Group]:
    """One group a sentence; the summary stands in it as the model wrote it."""
    say, trace = words("context"), view.trace
    assert trace is not None and view.rendered is not None
    context, truncated = trace.experiment.context, trace.truncated(view.cursor.turn)
    groups = [_note(say.text(f"rule:{context.strategy}"), _limit(view, context))]
    if truncated is not None:
        groups += _told(trace, view.rendered, truncated)
    if context.strategy == "sliding_window":
        groups.append(_note(say.text(f"positions:{context.positions}"), _window(view, truncated)))
    return groups


def _told(trace: Trace, rendered: Rendered, truncated: Truncated) -> list[Group]:
    say = words("context")
    numbers = {"before": truncated.before, "after": truncated.after, "limit": truncated.limit}
    cost = say.text("cost", computed=truncated.after - truncated.reused, reused=truncated.reused, after=truncated.after)
    groups = [
        _note(say.text("cut_title", gone=truncated.before - truncated.after), say.text("cut", **numbers)),
        _note(say.text("system_title"), say.text(f"system:{truncated.system}")),
        _note(say.text("cache_title"), _cache(trace, rendered, truncated)),
        _note(say.text("cost_title", computed=truncated.computed), cost),
    ]
    summary = truncated.summary
    if summary is None:
        return groups
    forwards = summary.prompt_tokens + max(0, summary.tokens - 1)
    made = say.text("summary_cost", prompt=summary.prompt_tokens, tokens=summary.tokens, computed=forwards)
    unread = " " + say.text("summary_unread", count=len(summary.unread)) if summary.unread else ""
    text = running_text(summary.text) or say.text("summary_empty")
    chip = Chip(text=text, position=-1, role="assistant")
    return [*groups, Group([chip], label=say.text("summary_title"), note=made + unread, as_text=True)]


def _cache(trace: Trace, rendered: Rendered, truncated: Truncated) -> str:
    """What became of the positions that the turn before left."""
    say, cached = words("context"), truncated.cached
    # What came from the cache of system prompts is none of them.
    reused = truncated.reused if rendered.prefix is None else 0
    if cached and not reused:
        return _unused(trace, rendered, cached)
    key = "cache_window" if truncated.offset else "cache_part" if reused < cached else "cache_whole"
    return say.text(key if cached else "cache_none", cached=cached, reused=reused, lost=cached - reused)


def _unused(trace: Trace, rendered: Rendered, cached: int) -> str:
    """Why none of them could be used."""
    say, found = words("context"), matched.select(trace, rendered.turn)
    if rendered.refused is not None:
        return say.text("cache_refused", cached=cached, reason=running_text(translated(rendered.refused)))
    if rendered.parted is not None and rendered.parted.position == 0:
        return say.text("cache_lost", cached=cached)
    key = _UNUSED.get(found.kind, "cache_other") if found else "cache_other"
    return say.text(key, cached=cached, left=abs(found.left) if found else 0)


def _limit(view: View, context: Context) -> str:
    say, rendered = words("context"), view.rendered
    assert rendered is not None
    if context.max_tokens is None:
        return say.text("no_limit", tokens=len(rendered.token_ids), context=f"{view.facts.context:,}")
    tokens, limit = len(rendered.token_ids), min(context.max_tokens, view.facts.context)
    if view.trace is not None and view.trace.truncated(rendered.turn) is None:
        return say.text("fits" if tokens <= limit else "refused", tokens=tokens, limit=limit)
    return say.text("limit_window" if context.strategy == "sliding_window" else "limit", limit=limit)


def _window(view: View, truncated: Truncated | None) -> str:
    """What the newest position sees, at the selected step."""
    say, step, rendered = words("context"), view.nearest_step, view.rendered
    assert rendered is not None
    offset = truncated.offset if truncated else 0
    fed = step.position if step else len(rendered.token_ids)
    held = step.kv_tokens if step else len(rendered.token_ids)
    gone = fed - held
    context = view.trace.experiment.context if view.trace else Context()
    first = 0 if context.positions == "restart" else offset + gone
    key = "window" if gone else "window_still"
    return say.text(key, gone=gone, first=first, last=first + held - 1, held=held)


def _note(label: str, note: str) -> Group:
    return Group((), label=label, note=note, as_text=True)
