"""System prompts that were computed before, kept for the next conversation that opens with the same.

Only what a person wrote as system prompt is kept, never a message, an answer, or a token that reaches into one. A
visitor's own prompts serve that visitor up to the first differing token. What other visitors wrote serves only where
it is the whole system prompt, so that nobody can feel their way into it token by token.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from transformers import Cache

from engine import kv_cache
from engine.trace import Parted, PrefixLookup, Rendered

#: Entries kept at most: each new conversation is compared with all that it may see.
MOST = 64

Ids = tuple[int, ...]


@dataclass(eq=False)
class Entry:
    """One system prompt, marks included: a cache that holds exactly its positions, and the visitors who wrote it."""

    cache: Cache
    nbytes: int
    visitors: set[str] = field(default_factory=set)


class PrefixRegistry:
    """At most `limit` bytes of caches, the least recently used goes first. Belongs on the thread that calls the model.

    `everyone` lets a whole system prompt serve visitors who did not write it.
    """

    def __init__(self, limit: int, *, everyone: bool = False) -> None:
        self._limit = limit
        self._everyone = everyone
        self._entries: OrderedDict[Ids, Entry] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values held."""
        return sum(entry.nbytes for entry in self._entries.values())

    def of(self, visitor: str) -> "VisitorPrefixes":
        """What one visitor's conversations see of it."""
        return VisitorPrefixes(self, visitor)

    def take(self, visitor: str, ids: Ids, system: int) -> tuple[Cache | None, PrefixLookup]:
        """A cache of the longest beginning that the `system` first of `ids` share with an entry, None for none.

        It is a view: growing it leaves the entry as it is.
        """
        own = {key: entry for key, entry in self._entries.items() if visitor in entry.visitors}
        seen = own | {key: entry for key, entry in self._entries.items() if self._everyone and key == ids[: len(key)]}
        if not seen:
            return None, PrefixLookup(0, system, 0, None)
        nearest = max(seen, key=lambda key: kv_cache.common_prefix(key, ids[:system]))
        common = kv_cache.common_prefix(nearest, ids[:system])
        parted = None
        if common < min(len(nearest), len(ids)):
            parted = Parted(common, cached_id=nearest[common], new_id=ids[common])
        found = PrefixLookup(len(seen), system, common, parted)
        if common == 0 or kv_cache.reason_against_cut(seen[nearest].cache, common) is not None:
            return None, found
        return kv_cache.slice_cache(seen[nearest].cache, common), found

    def keep(self, visitor: str, ids: Ids, cache: Cache) -> None:
        """Keep the positions of `ids`, with which `cache` begins; nothing where it cannot be cut back to them."""
        entry = self._entries.get(ids)
        if entry is None:
            if not ids or kv_cache.reason_against_cut(cache, len(ids)) is not None:
                return
            copied = kv_cache.copy_cache(cache, len(ids))
            entry = self._entries[ids] = Entry(copied, kv_cache.measured_bytes(copied))
        entry.visitors.add(visitor)
        self._entries.move_to_end(ids)
        self.shrink(self._limit)

    def shrink(self, limit: int) -> None:
        """Give back the least recently used entries until at most `limit` bytes are held."""
        while self._entries and (self.nbytes > limit or len(self._entries) > MOST):
            self._entries.popitem(last=False)

    def forget(self, visitor: str) -> None:
        """The visitor has gone: what no other has written goes too, unless it may serve everyone."""
        for ids, entry in list(self._entries.items()):
            entry.visitors.discard(visitor)
            if not entry.visitors and not self._everyone:
                del self._entries[ids]


@dataclass(frozen=True, eq=False)
class VisitorPrefixes:
    """The registry as one visitor's conversations may use it."""

    registry: PrefixRegistry
    visitor: str

    def take(self, rendered: Rendered) -> tuple[Cache | None, PrefixLookup | None]:
        """A cache that begins this context, and what was found; (None, None) where it has no system prompt."""
        system = system_positions(rendered)
        if system == 0:
            return None, None
        # The last position of a context is always computed.
        system = min(system, len(rendered.token_ids) - 1)
        return self.registry.take(self.visitor, tuple(rendered.token_ids.tolist()), system)

    def keep(self, rendered: Rendered, cache: Cache | None) -> None:
        """Keep this context's system prompt, which `cache` holds."""
        system = system_positions(rendered)
        if system and cache is not None:
            self.registry.keep(self.visitor, tuple(rendered.token_ids[:system].tolist()), cache)

    def give_back(self) -> None:
        """Memory ran out: everything goes."""
        self.registry.shrink(0)


def system_positions(rendered: Rendered) -> int:
    """Leading positions that hold a system prompt which a person wrote, and what the template put before it.

    A token that reaches into what follows is not counted.
    """
    first = next((span for span in rendered.spans if span.message is not None), None)
    if first is None or first.role != "system":
        return 0
    spans = [span for span in rendered.spans if span.message == first.message]
    if not any(span.kind == "content" for span in spans):
        return 0
    last = max(index for index, span in enumerate(rendered.spans) if span.message == first.message)
    count = int((rendered.span_index <= last).sum())
    written = sum(map(len, rendered.token_bytes[:count]))
    room = len(rendered.text[: spans[-1].end].encode())
    while count and written > room:
        count -= 1
        written -= len(rendered.token_bytes[count])
    return count
