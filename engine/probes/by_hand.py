"""The operations of a decoder layer in plain tensor arithmetic, in float32, from the numbers that its modules hold.

Nothing here calls a module to get a result. What a family does differently (a weight of w or 1 + w, a mean taken away,
which activation) is measured on vectors made for it, not read off a name.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from engine.anatomy import AnatomyError
from engine.probes.contributions import measure
from engine.said import said

#: How dimensions are paired for the rotary turn: i with i + half (Llama, Qwen, Gemma), 2i with 2i + 1, or not turned.
Pairs = Literal["halves", "neighbours", "none"]

_EPSILONS = ("variance_epsilon", "eps", "epsilon")
#: A measured weight may be this far from the one the module holds, relative to the largest: 16-bit modules round.
_CLOSE = 2e-2


@dataclass(frozen=True, eq=False)
class Norm:
    """x ÷ √(mean(x²) + ε) · weight + bias, where a LayerNorm takes the mean of x away first."""

    weight: torch.Tensor  # [size] float32, as it multiplies
    bias: torch.Tensor | None  # [size] float32
    epsilon: float
    centres: bool
    one_plus: bool  # the module holds weight − 1

    def __call__(self, vector: torch.Tensor) -> torch.Tensor:
        """`vector` [..., size], or a multiple of it: then each stretch of `size` numbers has its own norm."""
        wide = vector.reshape(*vector.shape[:-1], -1, len(self.weight))
        if self.centres:
            wide = wide - wide.mean(-1, keepdim=True)
        wide = wide / torch.sqrt((wide * wide).mean(-1, keepdim=True) + self.epsilon) * self.weight
        return (wide if self.bias is None else wide + self.bias).reshape(vector.shape)


@dataclass(frozen=True, eq=False)
class Linear:
    """weight · x + bias, or the rows `first` … of a projection that several share."""

    module: nn.Module
    name: str
    weight: torch.Tensor  # [out, in], a view of the module's own
    bias: torch.Tensor | None  # [out]
    first: int = 0
    shared: bool = False

    def __call__(self, vector: torch.Tensor) -> torch.Tensor:
        product = self.weight.float() @ vector
        return product if self.bias is None else product + self.bias.float()

    @property
    def rows(self) -> slice:
        """Where its result lies in that of the module."""
        return slice(self.first, self.first + len(self.weight))

    def split(self, *sizes: int) -> tuple["Linear", ...]:
        """The parts of a projection that several share. Raises `AnatomyError` where they do not fill it."""
        if sum(sizes) != len(self.weight):
            raise AnatomyError(
                said("rows_unexpected", name=self.name, rows=len(self.weight), expected=" + ".join(map(str, sizes)))
            )
        ends = [sum(sizes[: index + 1]) for index in range(len(sizes))]
        return tuple(
            Linear(
                self.module,
                self.name,
                self.weight[end - size : end],
                None if self.bias is None else self.bias[end - size : end],
                first=end - size,
                shared=True,
            )
            for size, end in zip(sizes, ends, strict=True)
        )


def read_norm(norm: nn.Module, like: torch.Tensor) -> Norm:
    """A norm module as numbers; it takes vectors `like` this one where it holds no weight.

    Raises `AnatomyError` where it is neither an RMS norm nor a LayerNorm with a weight of w or 1 + w.
    """
    kind = type(norm).__name__
    weight: torch.Tensor | None = getattr(norm, "weight", None)
    measured, zero, centres = measure(norm, like if weight is None else weight)
    epsilon = next((getattr(norm, name) for name in _EPSILONS if hasattr(norm, name)), None)
    if epsilon is None:
        raise AnatomyError(said("epsilon_unknown", norm=kind, known=", ".join(_EPSILONS)))
    own = torch.ones_like(measured) if weight is None else weight.float()
    for one_plus, known in ((False, own), (True, 1 + own)):
        if (known - measured).abs().max() <= _CLOSE * known.abs().max():
            bias: torch.Tensor | None = getattr(norm, "bias", None)
            if bias is None and zero.abs().max() > 0:
                break
            return Norm(known, None if bias is None else bias.float(), float(epsilon), centres, one_plus)
    raise AnatomyError(said("norm_unlike", norm=kind))


def read_linear(module: nn.Module, name: str) -> Linear:
    """A linear map as numbers. Raises `AnatomyError` where its weights are kept in another form (quantised ones)."""
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    if isinstance(module, Conv1D):
        return Linear(module, name, module.weight.T, bias)
    if isinstance(module, nn.Linear) and weight is not None and weight.is_floating_point() and weight.dim() == 2:
        return Linear(module, name, weight, bias)
    raise AnatomyError(said("weights_not_plain", name=name, module=type(module).__name__))


def rotate(vectors: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor, pairs: Pairs) -> torch.Tensor:
    """Turn each pair (a, b) of the first dimensions of `vectors` [heads, head_dim] by its angle.

    a' = a cos θ − b sin θ, b' = b cos θ + a sin θ (RoPE, Su et al., arXiv 2104.09864). `cosines` and `sines` [d / 2];
    dimensions from d on stay as they are.
    """
    if pairs == "none":
        return vectors
    count = len(cosines)
    turned, rest = vectors[..., : 2 * count], vectors[..., 2 * count :]
    if pairs == "halves":
        a, b = turned[..., :count], turned[..., count:]
        parts = torch.cat([a * cosines - b * sines, b * cosines + a * sines], dim=-1)
    else:
        a, b = turned[..., 0::2], turned[..., 1::2]
        parts = torch.stack([a * cosines - b * sines, b * cosines + a * sines], dim=-1).flatten(-2)
    return torch.cat([parts, rest], dim=-1)


def softmax(scores: torch.Tensor) -> torch.Tensor:
    """exp(s − max) ÷ their sum, over the last axis; −inf weighs nothing."""
    weights = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return weights / weights.sum(dim=-1, keepdim=True)


def _gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu": lambda x: x / (1 + torch.exp(-x)),
    "gelu_tanh": _gelu_tanh,
    "gelu": lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
    "relu": lambda x: x * (x > 0),
    "relu_squared": lambda x: (x * (x > 0)) ** 2,
    "quick_gelu": lambda x: x / (1 + torch.exp(-1.702 * x)),
}


def find_activation(activation: Callable[[torch.Tensor], torch.Tensor], device: torch.device) -> str:
    """Which of `ACTIVATIONS` it is, by its values from −6 to 6. Raises `AnatomyError` where it is none of them."""
    grid = torch.linspace(-6, 6, 241, device=device)
    values = activation(grid)
    for name, known in ACTIVATIONS.items():
        # Exact and tanh GELU lie up to 5e-4 apart.
        if (known(grid) - values).abs().max() < 1e-5:
            return name
    raise AnatomyError(said("activation_unknown", activation=type(activation).__name__, known=", ".join(ACTIVATIONS)))
