"""What a new turn takes over: its ids compared with those of the cache, and the cache cut back to what is shared."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transformers import Cache

from engine import kv_cache
from engine.context.window import Window
from engine.decode import Turn
from engine.prefix_registry import VisitorPrefixes
from engine.said import Said
from engine.trace import Parted, PrefixLookup, Rendered


@dataclass(frozen=True, eq=False)
class Reuse:
    """A cache that holds the first `reused` positions of a prompt, None for none, and how it came to that."""

    cache: Cache | None
    reused: int
    cached: int  # positions that the turn before had left
    parted: Parted | None
    refused: Said | None = None
    prefix: PrefixLookup | None = None

    def noted(self, rendered: Rendered) -> Rendered:
        """The turn's event with what was found."""
        return replace(
            rendered,
            reused=self.reused,
            parted=self.parted,
            cached=self.cached,
            refused=self.refused,
            prefix=self.prefix,
        )


def reuse(former: Turn | None, rendered: Rendered, window: Window | None, prefixes: VisitorPrefixes | None) -> Reuse:
    """The former turn's cache cut back to what the new prompt shares with it, else what is kept of system prompts.

    The cache is the former turn's no more: it is given on, or back. What is too old for `window` leaves it.
    """
    prompt_ids = rendered.token_ids.tolist()
    found = _own(former, prompt_ids, window)
    if former is not None:
        former.cache = None
    if found.cache is not None or prefixes is None:
        return found
    cache, prefix = prefixes.take(rendered)
    return replace(found, cache=cache, reused=0 if cache is None else kv_cache.tokens(cache), prefix=prefix)


def _own(former: Turn | None, prompt_ids: Sequence[int], window: Window | None) -> Reuse:
    if former is None:
        return Reuse(None, 0, 0, None)
    skipped, cached = _overlap(former, window)
    held = former.kv_tokens
    common = kv_cache.common_prefix(cached, prompt_ids)
    parted = None
    if common < min(len(cached), len(prompt_ids)):
        parted = Parted(common, cached_id=cached[common], new_id=prompt_ids[common])
    # The last position is always computed: its logits are what the first step needs.
    cache, reused = former.cache, min(common, len(prompt_ids) - 1)
    if cache is None or reused <= 0:
        return Reuse(None, 0, held, parted)
    refused = kv_cache.reason_against_cut(cache, skipped + reused)
    if refused is not None:
        return Reuse(None, 0, held, parted, refused)
    kv_cache.cut_back(cache, skipped + reused)
    kv_cache.evict(cache, skipped)
    return Reuse(cache, reused, held, parted)


def _overlap(former: Turn, window: Window | None) -> tuple[int, tuple[int, ...]]:
    """What a turn finds in the cache: how many positions are too old for it, and the ids after them.

    Keys in a window that goes on carry what has left, so they are of use only where that is the same too.
    """
    if former.window is None or window is None or window.restart:
        return 0, former.cached_ids
    skipped = window.offset - former.window.offset - former.window.first(former.fed)
    history = (*former.window.before, *former.prompt_ids, *former.answer)
    if skipped < 0 or history[: window.offset] != window.before:
        return 0, ()
    if former.cache is None:
        former.refill()  # it was given back: whether it was must not show in what comes
    return skipped, former.cached_ids[skipped:]
