"""A sliding window over tokens: what each position sees, what leaves the cache, and how to compute it all again.

Nothing is pinned: the system prompt and the first token leave like everything else. With positions going on, keys and
values stay as they were computed, at the positions they were computed for, and the oldest leave the cache; what is
left still carries what it saw. With positions starting again, everything that stays is computed anew from position 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transformers import Cache, PretrainedConfig

from engine import kv_cache
from engine.experiment import ExperimentError
from engine.limits import window_size
from engine.model import LoadedModel
from engine.said import said
from engine.stages.inputs import Inputs, make_inputs, make_windowed_inputs
from engine.trace import Trace


@dataclass(frozen=True)
class Window:
    """The window of one turn. Positions count over the whole history, whose first part has left where it is long."""

    size: int
    restart: bool
    before: tuple[int, ...] = ()  # ids of the history that had left before this turn began
    saw: tuple[int, ...] = ()  # of each position that an earlier turn computed: the first position that it saw

    @property
    def offset(self) -> int:
        """The position of the prompt's first token, as the model is told."""
        return 0 if self.restart else len(self.before)

    def first(self, count: int) -> int:
        """Of a context of `count` tokens, the first that the newest one sees."""
        return max(0, count - self.size)

    def told(self, index: int) -> int:
        """The position that the model is told of a token of the context, when it is the newest one."""
        return index - self.first(index + 1) if self.restart else self.offset + index

    def begun(self, trace: Trace, turn: int, reused: int) -> "Window":
        """The window of a turn that goes on with `reused` positions of the cache."""
        return replace(self, saw=saw(rows_of(trace, turn - 1), self.offset, reused))

    def rows(self, prompt: int, count: int) -> list[int]:
        """The first position that each position saw, up to the context's first `count` tokens; positions going on."""
        own = range(len(self.saw) - self.offset, count)
        return [*self.saw, *(self.offset + (self.first(index + 1) if index >= prompt else 0) for index in own)]


@dataclass(frozen=True, eq=False)
class Feed:
    """One forward: its inputs, and the cache that it grows."""

    inputs: Inputs
    cache: Cache
    past: int  # of the context's tokens, the first that is computed
    gone: int  # of the context's tokens, how many the cache no longer holds
    evict: int = 0  # positions that leave the cache after the forward


def check_slides(config: PretrainedConfig) -> None:
    """Raise `ExperimentError` where a model's cache cannot let its oldest positions go while the others stay."""
    reason = kv_cache.reason_against_evicting(kv_cache.new_cache(config))
    if reason is not None:
        raise ExperimentError("context.positions", said("cannot_slide", reason=reason))


def rows_of(trace: Trace, turn: int) -> list[int]:
    """The first position that each position of the history saw, up to the end of a turn; told from the trace alone."""
    rows: list[int] = []
    for index in range(turn + 1):
        rendered = trace.rendered(index)
        if rendered is None:
            break
        offset, prompt = trace.offset(index), len(rendered.token_ids)
        window = Window(
            window_size(trace.experiment, trace.facts), False, (0,) * offset, saw(rows, offset, rendered.reused)
        )
        rows = window.rows(prompt, prompt + len(trace.steps(index)))
    return rows


def saw(rows: Sequence[int], offset: int, reused: int) -> tuple[int, ...]:
    """What the positions saw that a turn begins with; those that no turn computed are seen by nobody."""
    known = rows[: offset + reused]
    return (*known, *range(len(known), offset + reused))


def feed(window: Window, ids: Sequence[int], prompt: int, cache: Cache | None, gone: int, loaded: LoadedModel) -> Feed:
    """The forward that gives the logits after `ids`, of which the first `prompt` are the turn's prompt.

    `cache` holds the context from its token `gone` on; where it was given back, all is computed as it was.
    """
    first = window.first(len(ids))
    if cache is None or (window.restart and first > gone):
        return _anew(window, ids, prompt, first, loaded)
    past = gone + kv_cache.tokens(cache)
    if first > gone:
        kv_cache.evict(cache, first - gone)
    held, gone = kv_cache.tokens(cache), max(first, gone)
    offset = 0 if window.restart else window.offset + gone
    return Feed(make_inputs(ids[past:], past=held, device=loaded.device, offset=offset), cache, past, gone)


def _anew(window: Window, ids: Sequence[int], prompt: int, first: int, loaded: LoadedModel) -> Feed:
    """Every position that the newest one sees, and whatever these saw when they were computed, in one forward."""
    cache = kv_cache.new_cache(loaded.model.config)
    if window.restart:
        return Feed(make_inputs(ids[first:], past=0, device=loaded.device), cache, first, first)
    whole, rows, begin = [*window.before, *ids], window.rows(prompt, len(ids)), window.offset + first
    origin = begin
    while (earliest := min(rows[origin:])) < origin:
        origin = earliest
    if max(rows[origin:]) == origin:
        inputs = make_inputs(whole[origin:], past=0, device=loaded.device, offset=origin)
    else:
        inputs = make_windowed_inputs(whole[origin:], rows[origin:], first=origin, device=loaded.device)
    return Feed(inputs, cache, first, first, evict=begin - origin)
