"""A text under several tokenizers."""

from dataclasses import dataclass
from typing import Literal

Missing = Literal["not_converted", "not_here", "shape_only"]


@dataclass(frozen=True)
class Counted:
    """One tokenizer's count of the text; `missing` says why there is none."""

    model_id: str
    title: str
    vocabulary: int  # rows of the model's embedding
    tokens: int | None
    missing: Missing | None = None


@dataclass(frozen=True)
class Tokenizers:
    """A text's size, and its tokens under each tokenizer; the loaded model's comes first."""

    text: str
    characters: int
    utf8_bytes: int
    rows: tuple[Counted, ...]
