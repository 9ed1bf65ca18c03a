"""Rendered text to token ids, each with its span; control marks typed inside content become plain text."""

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

import numpy as np
from tokenizers import AddedToken, Encoding, Tokenizer
from transformers import PreTrainedTokenizerFast

from engine.experiment import ExperimentError
from engine.said import said
from engine.stages.contents import free_characters
from engine.stages.vocabulary import Vocabulary, vocabulary
from engine.trace import Bools, Ints, Span


@dataclass(frozen=True, eq=False)
class Tokens:
    """A text as n tokens."""

    ids: Ints  # [n]
    span_index: Ints  # [n], index into the spans; -1 for a token that the tokenizer put in
    pieces: tuple[str, ...]  # [n], as the vocabulary writes them
    token_bytes: tuple[bytes, ...]  # [n], the UTF-8 bytes each stands for
    special: Bools  # [n], True for a control token
    marks_in_content: int  # control marks typed inside content


@dataclass(frozen=True)
class Mark:
    """A control mark that the tokenizer sees at characters [start, end) of a text."""

    token_id: int
    start: int
    end: int


def tokenise(
    tokenizer: PreTrainedTokenizerFast, text: str, spans: Sequence[Span], *, templated: bool, obey_marks: bool
) -> Tokens:
    """Tokenise `text`, which `spans` partition in order.

    A template has already written the BOS that the model wants, so only a raw prompt gets the tokens that the
    tokenizer puts in by default. Where content holds no mark, or `obey_marks` is set, the ids are those of tokenising
    the text whole; otherwise marks typed inside content are tokenised as ordinary characters, and only the template's
    own are control tokens. A token that reaches over two spans belongs to the one its first byte is in.
    Raises ExperimentError where a tokenizer has no plain way to write a mark.
    """
    words = vocabulary(tokenizer)
    encoding = tokenizer(text, add_special_tokens=not templated, verbose=False).encodings[0]
    ids, starts = encoding.ids, _starts(encoding)
    typed = _marks_in_content(words, encoding, text, spans)
    if typed and not obey_marks:
        own = [mark for start, end in _scaffolds(spans) for mark in _marks_of_stretch(tokenizer, text, start, end)]
        before = sum(1 for _ in takewhile(lambda start: start < 0, starts))
        after = sum(1 for _ in takewhile(lambda start: start < 0, reversed(starts[before:])))
        middle, middle_starts = _muted(tokenizer, text).encode(text, own)
        ids = [*ids[:before], *middle, *ids[len(ids) - after :]]
        starts = [*[-1] * before, *middle_starts, *[-1] * after]
    return Tokens(
        ids=np.array(ids, dtype=np.int32),
        span_index=_span_index(starts, spans),
        pieces=tuple(words.piece(token_id) for token_id in ids),
        token_bytes=tuple(words.bytes(token_id) for token_id in ids),
        special=np.array([words.is_special(token_id) for token_id in ids], dtype=np.bool_),
        marks_in_content=len(typed),
    )


class MutedTokenizer:
    """A copy of a tokenizer whose marks have names that nobody can type, so that no mark in a text is seen.

    Each name is one private-use character that the text does not hold. Swapping the names in for the template's own
    marks keeps everything else as in one plain pass: what a tokenizer does only at the start of a text (a first space)
    is done only there.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, text: str) -> None:
        """Raises ExperimentError where `text` leaves fewer characters free than there are marks."""
        self._words = vocabulary(tokenizer)
        backend = tokenizer.backend_tokenizer
        self._backend = Tokenizer(backend.model)  # shares the vocabulary: nothing big is copied
        self._backend.normalizer = backend.normalizer
        self._backend.pre_tokenizer = backend.pre_tokenizer
        added = self._words.added
        free = free_characters([text, *(token.content for token in added.values())])
        # A character that is a token of the model would get that token's id.
        unknown = (char for char in free if self._backend.token_to_id(char) is None)
        marks = [token_id for token_id in added if self._words.is_mark(token_id)]
        self._names = dict(zip(marks, unknown, strict=False))
        if len(self._names) < len(marks):
            raise ExperimentError("", said("marks_not_told_apart"))
        self._taken = frozenset(self._names.values())
        real_ids = {}
        for token_id, token in added.items():
            name = self._names.get(token_id, token.content)
            self._backend.add_tokens([AddedToken(name, lstrip=token.lstrip, rstrip=token.rstrip, normalized=False)])
            real_ids[name] = token_id
        self._real_ids = {
            muted_id: real_ids[token.content] for muted_id, token in self._backend.get_added_tokens_decoder().items()
        }

    def fits(self, text: str) -> bool:
        """Whether `text` holds none of the names."""
        return self._taken.isdisjoint(text)

    def encode(self, text: str, own: Sequence[Mark]) -> tuple[list[int], list[int]]:
        """Ids, and the character each starts at, with `own` (in order) as the only control marks."""
        parts: list[str] = []
        origin: list[int] = []  # of each character of the joined parts, in `text`
        done = 0
        for mark in own:
            parts += [text[done : mark.start], self._names[mark.token_id]]
            origin += [*range(done, mark.start), mark.start]
            done = mark.end
        named = "".join([*parts, text[done:]])
        origin += range(done, len(text) + 1)
        encoding = self._backend.encode(named, add_special_tokens=False)
        unmatched = [-1 if token_id in self._real_ids else token_id for token_id in encoding.ids]
        if any(_marks(self._words, unmatched, encoding, named)):
            raise ExperimentError("", said("marks_not_told_apart"))
        ids = [self._real_ids.get(token_id, token_id) for token_id in encoding.ids]
        return ids, [origin[start] for start in _starts(encoding)]


_MUTED: "weakref.WeakKeyDictionary[PreTrainedTokenizerFast, MutedTokenizer]" = weakref.WeakKeyDictionary()


def _muted(tokenizer: PreTrainedTokenizerFast, text: str) -> MutedTokenizer:
    """The tokenizer's muted copy, remade only for a text that holds one of its names."""
    found = _MUTED.get(tokenizer)
    if found is None or not found.fits(text):
        found = _MUTED[tokenizer] = MutedTokenizer(tokenizer, text)
    return found


def _starts(encoding: Encoding) -> list[int]:
    """The character that each token starts at; -1 for one that the tokenizer put in.

    Some tokenizers report a word without the space its token begins with; the space lies between two tokens then.
    """
    starts: list[int] = []
    reached = 0
    for (start, end), added in zip(encoding.offsets, encoding.special_tokens_mask, strict=True):
        starts.append(-1 if added else min(start, reached))
        reached = max(reached, end)
    return starts


def _marks(words: Vocabulary, ids: Sequence[int], encoding: Encoding, text: str) -> Iterator[Mark]:
    """The marks the tokenizer saw, without the white space that some of them swallow."""
    for token_id, (start, end), added in zip(ids, encoding.offsets, encoding.special_tokens_mask, strict=True):
        if added or not words.is_mark(token_id):
            continue
        token = words.added[token_id]
        seen = text[start:end]
        lead = len(seen) - len(seen.lstrip()) if token.lstrip else 0
        trail = len(seen) - len(seen.rstrip()) if token.rstrip else 0
        # A token for unknown text (<unk>) stands for characters that are not its own name: nobody wrote a mark there.
        if token.normalized or text[start + lead : end - trail] == token.content:
            yield Mark(token_id, start + lead, end - trail)


def _marks_in_content(words: Vocabulary, encoding: Encoding, text: str, spans: Sequence[Span]) -> list[Mark]:
    """Marks that touch a character of content."""
    content = np.zeros(len(text), dtype=np.bool_)
    for span in spans:
        content[span.start : span.end] = span.kind == "content"
    return [mark for mark in _marks(words, encoding.ids, encoding, text) if content[mark.start : mark.end].any()]


def _marks_of_stretch(tokenizer: PreTrainedTokenizerFast, text: str, start: int, end: int) -> Iterator[Mark]:
    """The marks of text[start:end] as it stands alone, where nothing typed around it can swallow one."""
    stretch = text[start:end]
    encoding = tokenizer(stretch, add_special_tokens=False, verbose=False).encodings[0]
    for mark in _marks(vocabulary(tokenizer), encoding.ids, encoding, stretch):
        yield Mark(mark.token_id, start + mark.start, start + mark.end)


def _scaffolds(spans: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """The stretches of text between contents."""
    for kind, run in groupby(spans, key=lambda span: span.kind):
        if kind == "scaffold":
            stretch = list(run)
            yield stretch[0].start, stretch[-1].end


def _span_index(starts: Sequence[int], spans: Sequence[Span]) -> Ints:
    """[n] the span each token's first character is in; -1 stays -1."""
    borders = np.array([span.start for span in spans], dtype=np.int64)
    return (np.searchsorted(borders, np.array(starts, dtype=np.int64), side="right") - 1).astype(np.int32)
