"""How one word became its tokens: the merges in order by the tokenizer's own ranks, held against its own encoding."""

import itertools
import json
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerFast

from engine.answers.merges import Kind, Merge, Merges, Pieces, Word
from engine.conversation import Conversation
from engine.experiment import ExperimentError, replace_lone_surrogates
from engine.said import said

#: Characters of a text that are looked at.
MAX_TEXT = 200


@dataclass(frozen=True)
class _Model:
    """What a tokenizer's file says about its model."""

    kind: Kind
    vocabulary: Mapping[str, int]
    ranks: Mapping[tuple[str, str], int]
    scores: Mapping[str, float]
    byte_fallback: bool
    ignore_merges: bool
    marks: bool  # pieces carry a mark for the inside or the end of a word


def merges(conversation: Conversation, *, text: str) -> Merges:
    """How the loaded model's tokenizer cuts `text`, of at most `MAX_TEXT` characters, merge by merge.

    Raises `ExperimentError` for a longer text.
    """
    return merges_of(conversation.loaded.tokenizer, text)


def merges_of(tokenizer: PreTrainedTokenizerFast, text: str) -> Merges:
    """The same for any tokenizer of the tokenizers library."""
    text = replace_lone_surrogates(text)
    if len(text) > MAX_TEXT:
        raise ExperimentError("text", said("word_too_long", most=MAX_TEXT, count=len(text)))
    backend = tokenizer.backend_tokenizer
    encoding = backend.encode(text, add_special_tokens=False)
    model = _model(tokenizer)
    own = tuple(encoding.tokens)
    if model.kind == "bpe" and not model.marks:
        words = tuple(_word(model, stretch) for stretch in _stretches(backend, text))
    else:  # no merges by rank: what the tokenizer gives
        scores = tuple(model.scores.get(piece, float("-inf")) for piece in own) if model.scores else ()
        words = (Word(text, (), (), own, scores),)
    pieces = tuple(piece for word in words for piece in word.pieces)
    return Merges(text, model.kind, words, tuple(encoding.ids), own, pieces == own)


def _stretches(backend: Any, text: str) -> list[str]:
    """The text after the normalizer, split where no token may reach over."""
    if backend.normalizer is not None:
        text = backend.normalizer.normalize_str(text)
    if backend.pre_tokenizer is None:
        return [text] if text else []
    return [piece for piece, _ in backend.pre_tokenizer.pre_tokenize_str(text)]


def _word(model: _Model, text: str) -> Word:
    if model.ignore_merges and text in model.vocabulary:
        return Word(text, (text,), (), (text,), taken_whole=True)
    start = tuple(_smallest(model, text))
    done = tuple(_merged(model.ranks, start))
    return Word(text, start, done, done[-1].pieces if done else start)


def _smallest(model: _Model, text: str) -> Iterator[str]:
    """A character each; one that the vocabulary lacks is its UTF-8 bytes, where the vocabulary has tokens for those."""
    for char in text:
        if char in model.vocabulary or not model.byte_fallback:
            yield char
        else:
            yield from (f"<0x{byte:02X}>" for byte in char.encode())


def _merged(ranks: Mapping[tuple[str, str], int], pieces: Pieces) -> Iterator[Merge]:
    """Again and again the pair of the lowest rank, until no neighbours are a pair."""
    while True:
        known = [(ranks[pair], pair) for pair in itertools.pairwise(pieces) if pair in ranks]
        if not known:
            return
        rank, (left, right) = min(known)
        pieces = tuple(_joined(pieces, left, right))
        yield Merge(rank, left, right, pieces)


def _joined(pieces: Pieces, left: str, right: str) -> Iterator[str]:
    place = 0
    while place < len(pieces):
        if pieces[place : place + 2] == (left, right):
            yield left + right
            place += 2
        else:
            yield pieces[place]
            place += 1


_MODELS: "weakref.WeakKeyDictionary[PreTrainedTokenizerFast, _Model]" = weakref.WeakKeyDictionary()


def _model(tokenizer: PreTrainedTokenizerFast) -> _Model:
    found = _MODELS.get(tokenizer)
    if found is None:
        found = _MODELS[tokenizer] = _read(json.loads(tokenizer.backend_tokenizer.to_str())["model"])
    return found


def _read(state: dict[str, Any]) -> _Model:
    kind: Kind = state["type"].lower()
    listed = state["vocab"]
    vocabulary = {piece: index for index, (piece, _) in enumerate(listed)} if isinstance(listed, list) else listed
    pairs = [tuple(pair) if isinstance(pair, list) else tuple(pair.split(" ")) for pair in state.get("merges", ())]
    return _Model(
        kind=kind,
        vocabulary=vocabulary,
        ranks={pair: rank for rank, pair in enumerate(pairs)},
        scores=dict(listed) if isinstance(listed, list) else {},
        byte_fallback=bool(state.get("byte_fallback")),
        ignore_merges=bool(state.get("ignore_merges")),
        marks=bool(state.get("continuing_subword_prefix") or state.get("end_of_word_suffix")),
    )
