"""Which part moved a token: the final norm taken apart, so that every addition to the stream has its share of a logit.

With the scale of this position held fixed the final norm is linear: norm(x) = scale · gain ⊙ (x − mean(x)) + bias,
where an RMS norm has no mean and no bias. A logit is then the sum of what each part adds (direct logit attribution,
Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits").
"""

from dataclasses import dataclass

import torch
from torch import nn

from engine.anatomy import Anatomy

#: The norm of a vector this long is not moved by its epsilon.
LONG = 1e4


@dataclass(frozen=True, eq=False)
class LinearNorm:
    """A norm at one position with its scale held fixed."""

    gain: torch.Tensor  # [hidden] float32, scale and weight together
    bias: torch.Tensor  # [hidden] float32
    centres: bool  # takes the mean away first (LayerNorm); False for an RMS norm

    def direction(self, output: torch.Tensor) -> torch.Tensor:
        """The direction [hidden] whose product with an addition to the stream is its share of output · norm.

        Float64 on the CPU: MPS has no float64.
        """
        read = output.cpu().double() * self.gain.cpu().double()
        return read - read.mean() if self.centres else read


def linear_norm(norm: nn.Module, stream: torch.Tensor) -> LinearNorm:
    """Take `norm` apart at the position whose stream [hidden] it reads, by what it does rather than by its name."""
    weight, zero, centres = measure(norm, stream)
    wide = stream.float()
    weighed = (wide - wide.mean() if centres else wide) * weight
    scale = ((norm(stream).float() - zero) @ weighed) / (weighed @ weighed)
    return LinearNorm(scale * weight, zero, centres)


def measure(norm: nn.Module, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """Weight and bias [hidden] float32 of a norm of vectors `like` this one, and whether it takes the mean away.

    Families write the weight differently (w, or 1 + w), so it is measured: on a vector of ±1, whose mean is 0 and
    whose root mean square is 1, a norm gives just its weight and bias.
    """
    sign = torch.ones_like(like)
    sign[1::2] = -1
    zero, signed, flat = (norm(one).float() for one in (torch.zeros_like(sign), LONG * sign, LONG * sign.abs()))
    weight = (signed - zero) * sign.float()
    centres = bool((flat - zero).abs().max() < 1e-2 * weight.abs().max())
    return weight, zero, centres


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of one token's logit before its softcap, scale included: they add up to it."""

    parts: torch.Tensor  # [k] float64 on the CPU, of each addition to the stream
    constant: float  # of the final norm's bias and the head's


def shares(anatomy: Anatomy, stream: torch.Tensor, additions: torch.Tensor, token_id: int) -> Shares:
    """What each of k `additions` [k, hidden], which sum to `stream` [hidden], adds to the logit of a token."""
    output, bias = _head_row(anatomy, token_id)
    norm = linear_norm(anatomy.final_norm, stream)
    constant = float(norm.bias @ output) + bias
    parts = additions.cpu().double() @ norm.direction(output) * anatomy.logit_scale
    return Shares(parts, constant * anatomy.logit_scale)


def score(anatomy: Anatomy, normed: torch.Tensor, token_id: int) -> float:
    """The logit of a token before any softcap, logit scale included, from the stream after the final norm [hidden]."""
    output, bias = _head_row(anatomy, token_id)
    return (float(normed.float() @ output) + bias) * anatomy.logit_scale


def _head_row(anatomy: Anatomy, token_id: int) -> tuple[torch.Tensor, float]:
    """The row [hidden] float32 of the output head that a token's logit is read with, and its bias."""
    bias = getattr(anatomy.head, "bias", None)
    weight: torch.Tensor = anatomy.head.weight  # type: ignore[assignment]  # an output head is a linear map
    return weight[token_id].float(), 0.0 if bias is None else float(bias[token_id])
