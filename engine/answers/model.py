"""The parts of a model and their sizes."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

Part = Literal[
    "embedding",
    "positions",
    "query",
    "key",
    "value",
    "output",
    "gate",
    "up",
    "down",
    "experts",
    "norms",
    "other",
    "head",
]


@dataclass(frozen=True)
class Weight:
    """One parameter tensor, or the part of a fused one."""

    name: str
    part: Part
    layer: int | None  # None outside the layers
    shape: tuple[int, ...]  # as stored; a fused tensor's whole shape
    numbers: int
    nbytes: int
    dtype: str


@dataclass(frozen=True, eq=False)
class Model:
    """Hard parameters that are not in `ModelFacts`, and every parameter once; shared storage counts where it is first.

    None stands for what the model does not have.
    """

    layer_count: int
    norm: str  # the class of the final norm
    norm_eps: float | None
    activation: str
    gated: bool  # the feed-forward multiplies two projections
    learned_positions: bool
    rope_theta: float | None
    rope_type: str | None
    query_key_norm: bool
    score_scaling: float | None  # what q · k is multiplied by, as the first attention module has it
    attention_softcap: float | None
    final_softcap: float | None
    weights: tuple[Weight, ...]
    parameters: int  # as the library counts them

    @property
    def counted(self) -> int:
        """The sum over all weights."""
        return sum(weight.numbers for weight in self.weights)

    def numbers(self, part: Part, layer: int | None = None) -> int:
        """Of a part in one layer; `layer` None sums over all layers, or stands for a part outside them."""
        return sum(one.numbers for one in self.weights if one.part == part and layer in (None, one.layer))

    def layers(self, part: Part) -> tuple[int, ...]:
        """Numbers of a part in each layer; () for one outside the layers."""
        own = [(one.layer, one.numbers) for one in self.weights if one.part == part and one.layer is not None]
        totals = [0] * self.layer_count if own else []
        for layer, numbers in own:
            totals[layer] += numbers
        return tuple(totals)

    def nbytes(self, part: Part) -> int:
        """Bytes of a part, over all layers."""
        return sum(one.nbytes for one in self.weights if one.part == part)

    @property
    def by_dtype(self) -> dict[str, tuple[int, int]]:
        """Numbers and bytes of each dtype."""
        numbers: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for weight in self.weights:
            numbers[weight.dtype] += weight.numbers
            sizes[weight.dtype] += weight.nbytes
        return {dtype: (numbers[dtype], sizes[dtype]) for dtype in numbers}
