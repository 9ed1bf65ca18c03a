"""The memory a model needs, by the kind of its numbers: counted from its sizes, so that it is known before loading.

Weights: parameters × bytes a number; a matrix that is tied counts once. In "4bit", bitsandbytes' nf4, a number takes
half a byte, each 64 of them a scale of one byte, and each 256 scales one of 4 bytes; the embedding and the output head
stay at 2 bytes a number.

Overhead: torch and transformers themselves (about 350 MiB), activations, the first caches.
"""

from typing import Protocol

OVERHEAD = 512 << 20
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
#: What the tables show, widest first.
KINDS = ("float32", "bfloat16", "4bit")
GROUP, GROUPS = 64, 256  # numbers that share a scale; scales that share a scale of their own


class Sizes(Protocol):
    """What must be known of a model: its entry in the catalogue, or its facts."""

    @property
    def parameters(self) -> int: ...
    @property
    def vocab_rows(self) -> int: ...
    @property
    def hidden_size(self) -> int: ...
    @property
    def tied_embeddings(self) -> bool: ...


def weight_bytes(model: Sizes, kind: str) -> int:
    """Bytes of the weights alone in "float32", "bfloat16", "float16" or "4bit"."""
    if kind in BYTES:
        return model.parameters * BYTES[kind]
    whole = model.vocab_rows * model.hidden_size * (1 if model.tied_embeddings else 2)
    packed = model.parameters - whole
    return packed // 2 + packed // GROUP + 4 * packed // (GROUP * GROUPS) + 2 * whole


def shown(loaded: str) -> tuple[str, ...]:
    """The kinds of a table, widest first, that of the loaded model among them where it can be counted."""
    if loaded in KINDS or loaded not in BYTES:
        return KINDS
    return (*KINDS[:-1], loaded, KINDS[-1])


def needed_bytes(model: Sizes, kind: str) -> int:
    """Bytes that must be free for the model to be loaded and to run."""
    return weight_bytes(model, kind) + OVERHEAD
