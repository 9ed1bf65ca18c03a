"""Token ids to shown text, one token at a time: half characters and half stop strings are held back.

Special tokens are left out of the text, but for those that stand in a stop string. Without these the parts and the
flush join to exactly what the tokenizer decodes at once.
"""

import codecs
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from transformers import PreTrainedTokenizerFast

from engine.stages.vocabulary import vocabulary


@dataclass(frozen=True)
class StopMatch:
    """A stop string that the text has reached: which one, and its characters [start, end) in the turn's text."""

    string: str
    index: int
    start: int
    end: int


@dataclass(frozen=True)
class Piece:
    """What one token adds to the shown text, and how many bytes are still held back."""

    text: str
    held_bytes: int
    stop: StopMatch | None = None


@dataclass(frozen=True)
class State:
    """Everything a detokenizer remembers between two tokens. Its size does not grow with the text."""

    pending: bytes = b""  # bytes that are no whole character yet
    held: str = ""  # characters that may become a stop string
    node: int = 0  # of the stop automaton, after `held`
    seen: int = 0  # characters decoded so far, held ones included
    leading_spaces: int = 0  # still to be dropped
    first: bool = True  # no token that shows has come yet


class Detokenizer:
    """Feed it the sampled ids of one turn; an empty stop string is no stop string.

    A match is the stop string that is complete first, character by character, whatever the borders of the tokens;
    of two that end together, the longer. Its own characters are never shown, and nothing after it is.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerFast,
        stop_strings: Sequence[str] = (),
        *,
        shown: Collection[int] = (),
    ) -> None:
        """`shown` are special tokens that are text all the same, as those are that stand in a stop string."""
        self._vocabulary = vocabulary(tokenizer)
        self._shown = self._vocabulary.special_in(stop_strings) | frozenset(shown)
        self._stops = StopAutomaton(stop_strings)
        self._state = State(leading_spaces=self._vocabulary.leading_spaces_dropped)

    def push(self, token_id: int) -> Piece:
        """Take one token. After a stop, push no more."""
        data = self._vocabulary.bytes(token_id)
        if not data or (token_id not in self._shown and self._vocabulary.is_special(token_id)):
            return Piece("", self.held_bytes)
        text, pending = self._decode(token_id, data)
        return self._show(text, pending)

    def flush(self) -> str:
        """The end of the text: what was held back; bytes that never became a character show as U+FFFD."""
        rest = self._show(self._close(self._state.pending), b"")
        held, self._state = self._state.held, replace(self._state, held="", node=0)
        return rest.text + held

    @property
    def held_bytes(self) -> int:
        """Bytes that are decided by a later token: half a character, or what may become a stop string."""
        return len(self._state.pending) + len(self._state.held.encode())

    def snapshot(self) -> State:
        """The state now; `restore` brings it back, at the same cost however long the text is."""
        return self._state

    def restore(self, state: State) -> None:
        self._state = state

    def _decode(self, token_id: int, data: bytes) -> tuple[str, bytes]:
        """Whole characters up to this token, and the bytes that are none yet."""
        pending = self._state.pending
        if self._vocabulary.is_byte(token_id):
            return "", pending + data
        if self._vocabulary.first_token_spaces_dropped and self._state.first:
            data = data.replace(b" ", b"")
        if self._vocabulary.byte_fallback:
            return self._close(pending) + data.decode(), b""
        text, used = codecs.utf_8_decode(pending + data, "replace", False)
        return text, (pending + data)[used:]

    def _close(self, pending: bytes) -> str:
        """Pending bytes as text, now that no more of them come."""
        if not self._vocabulary.byte_fallback:
            return pending.decode("utf-8", "replace")
        try:
            return pending.decode()
        except UnicodeDecodeError:
            return "\ufffd" * len(pending)

    def _show(self, text: str, pending: bytes) -> Piece:
        """Show what can no longer become a stop string."""
        state = self._state
        kept = text
        leading_spaces = state.leading_spaces
        while leading_spaces and kept:
            kept, leading_spaces = (kept[1:], leading_spaces - 1) if kept.startswith(" ") else (kept, 0)
        node, found = self._stops.run(state.node, kept)
        buffer = state.held + kept
        if found is None:
            shown = len(buffer) - self._stops.depth(node)
            stop = None
        else:
            index, offset = found
            string = self._stops.strings[index]
            shown = len(state.held) + offset - len(string)
            stop = StopMatch(string, index, start=state.seen + offset - len(string), end=state.seen + offset)
            buffer, pending, node = buffer[:shown], b"", 0
        self._state = State(pending, buffer[shown:], node, state.seen + len(kept), leading_spaces, first=False)
        return Piece(buffer[:shown], self.held_bytes, stop)


class StopAutomaton:
    """Aho-Corasick over characters: finds whichever string is complete first in one pass, whatever their number.

    A node is the longest end of the text so far that begins one of the strings; its depth is that length.
    Source: Aho and Corasick, "Efficient string matching", 1975.
    """

    def __init__(self, strings: Sequence[str]) -> None:
        self.strings = tuple(strings)
        self._next: list[dict[str, int]] = [{}]
        self._depth = [0]
        self._match: list[int | None] = [None]  # the longest string that ends at this node
        self._fail = [0]
        for index, string in enumerate(self.strings):
            if string:
                self._add(index, string)
        self._link()

    def depth(self, node: int) -> int:
        return self._depth[node]

    def run(self, node: int, text: str) -> tuple[int, tuple[int, int] | None]:
        """Read `text` from `node`: the node after it, and the first match as (index of the string, characters read)."""
        for offset, char in enumerate(text, start=1):
            while node and char not in self._next[node]:
                node = self._fail[node]
            node = self._next[node].get(char, 0)
            match = self._match[node]
            if match is not None:
                return node, (match, offset)
        return node, None

    def _add(self, index: int, string: str) -> None:
        node = 0
        for char in string:
            if char not in self._next[node]:
                self._next[node][char] = len(self._next)
                self._next.append({})
                self._depth.append(self._depth[node] + 1)
                self._match.append(None)
                self._fail.append(0)
            node = self._next[node][char]
        if self._match[node] is None:
            self._match[node] = index

    def _link(self) -> None:
        """Failure links, breadth first: where to go on when the next character does not fit."""
        queue = deque(self._next[0].values())
        while queue:
            node = queue.popleft()
            for char, child in self._next[node].items():
                fail = self._fail[node]
                while fail and char not in self._next[fail]:
                    fail = self._fail[fail]
                self._fail[child] = self._next[fail].get(char, 0)
                if self._match[child] is None:
                    self._match[child] = self._match[self._fail[child]]
                queue.append(child)
