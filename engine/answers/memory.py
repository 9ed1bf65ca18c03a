"""What the probe `memory` gives: where a model comes from, and what it needs in each kind of numbers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Need:
    """In one kind of numbers ("float32", "bfloat16", "4bit"): bytes of the weights, and of all that is needed."""

    kind: str
    weights: int
    needed: int


@dataclass(frozen=True, eq=False)
class Memory:
    """`free` counts what would be free on the device without this model."""

    licence: str | None  # None where the model is not of the catalogue
    source: str | None
    revision: str | None  # the commit on the Hub, or the SHA-256 of the embedded file
    stored: int | None  # bytes of the weight files
    device: str
    kind: str  # of the numbers that are loaded
    loaded: int  # bytes that the weights take now
    free: int
    needs: tuple[Need, ...]
