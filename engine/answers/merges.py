"""How a tokenizer cuts a text."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["bpe", "unigram", "wordpiece", "wordlevel"]

Pieces = tuple[str, ...]


@dataclass(frozen=True)
class Merge:
    """Two neighbouring pieces became one, everywhere they stood: the pair of the lowest rank there was."""

    rank: int
    left: str
    right: str
    pieces: Pieces  # after it


@dataclass(frozen=True)
class Word:
    """A stretch that the tokenizer splits on its own, as the vocabulary writes it.

    `start` are its smallest pieces, `pieces` its tokens, `scores` their log-probabilities where a vocabulary has them.
    """

    text: str
    start: Pieces
    merges: tuple[Merge, ...]
    pieces: Pieces
    scores: tuple[float, ...] = ()
    taken_whole: bool = False  # the vocabulary has the word: no merge is looked at


@dataclass(frozen=True)
class Merges:
    """A text's words. `agrees` says whether the pieces are those of the tokenizer's own encoding, `ids` that one."""

    text: str
    kind: Kind
    words: tuple[Word, ...]
    ids: tuple[int, ...]
    own: Pieces
    agrees: bool
