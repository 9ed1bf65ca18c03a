"""What a loaded model is: plain values, readable where torch is not installed."""

from dataclasses import dataclass
from typing import Literal

LayerKind = Literal["full", "sliding", "shared", "stateful"]


@dataclass(frozen=True)
class SpecialMark:
    """One special mark of the tokenizer and its roles there ("bos", "eos", "pad", "unk", "control")."""

    text: str
    token_id: int
    roles: tuple[str, ...]


@dataclass(frozen=True)
class ModelFacts:
    """Sizes and names of one loaded model. Lengths count tokens, `itemsize` is in bytes."""

    model_id: str
    title: str
    architecture: str
    layers: int
    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn_size: int
    vocab_rows: int  # rows of the embedding matrix
    vocab_base: int  # entries of the tokenizer without its special marks
    vocab_with_special: int  # entries of the tokenizer, special marks included
    context: int
    parameters: int
    tied_embeddings: bool
    dtype: str  # "float32", "bfloat16", …
    itemsize: int
    device: str
    layer_kinds: tuple[LayerKind, ...]  # one a layer, as its cache layer says
    sliding_window: int | None
    eos_ids: tuple[int, ...]
    special_marks: tuple[SpecialMark, ...]
    chat_template: str | None  # the template's own source, None where the tokenizer has none

    @property
    def kv_bytes_per_token(self) -> int:
        """2 (keys and values) × layers that hold them × kv_heads × head_dim × bytes a number."""
        return kv_bytes_per_token(
            sum(kind in {"full", "sliding"} for kind in self.layer_kinds), self.kv_heads, self.head_dim, self.itemsize
        )

    def layer_kv_bytes(self, kind: LayerKind, tokens: int) -> int:
        """Bytes by formula of one layer after `tokens` positions; a sliding layer keeps its last window − 1."""
        if kind not in {"full", "sliding"}:
            return 0
        held = tokens if kind == "full" or self.sliding_window is None else min(tokens, self.sliding_window - 1)
        return held * kv_bytes_per_token(1, self.kv_heads, self.head_dim, self.itemsize)

    def kv_bytes(self, tokens: int) -> int:
        """Bytes by formula of the whole KV cache after `tokens` positions."""
        return sum(self.layer_kv_bytes(kind, tokens) for kind in self.layer_kinds)


def kv_bytes_per_token(layers: int, kv_heads: int, head_dim: int, itemsize: int) -> int:
    """Bytes one position takes in the KV cache: 2 × layers × kv_heads × head_dim × itemsize."""
    return 2 * layers * kv_heads * head_dim * itemsize
