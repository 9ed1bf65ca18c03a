"""The products of a model's float32 weights on a CPU, by the quicker of the two libraries that torch has for them.

torch gives them to MKL. For the one row of a decode step MKL may keep to a single core, as on AMD's processors, where
oneDNN uses all; there it is slower with several rows too. Which is quicker here is measured when a model is taken in.
Their results differ in the last digits, as those of two shapes or two machines do.

A layer that sums over more numbers than it gives, the last of a feed-forward, stays with MKL: there oneDNN gains little
and, with many rows, sums in an order that was up to twice as far from float64.
"""

import time
from collections.abc import Callable
from functools import partial

import torch
from torch import nn

#: Bytes of a weight from which reading it from memory is what takes the time; a smaller model keeps torch's products.
LARGE = 16 << 20
#: Bytes of the weight that is measured: enough that no cache holds it until it is read again.
MEASURED = 128 << 20
#: How much longer MKL must take: where both are alike, the digits shall be the same at each start.
GAIN = 1.1
ROUNDS = 3


class Linear(nn.Linear):
    """torch's layer without gradients, its product computed by oneDNN."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Float32 [..., in_features] to float32 [..., out_features]."""
        return onednn(input, self.weight, self.bias)


def onednn(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """`torch.nn.functional.linear` by oneDNN. A bias must be contiguous: of others it reads the wrong numbers."""
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise.default(rows, weight, bias, "none", [], "")
    return product


def choose_products(model: nn.Module) -> None:
    """Have the layers of a model compute their products by oneDNN, where that is quicker on this machine."""
    layers = [module for module in model.modules() if type(module) is nn.Linear and _fits(module)]
    if not layers or not (torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()):
        return
    largest = max((layer.weight for layer in layers), key=lambda weight: weight.nbytes)
    if largest.nbytes >= LARGE and is_quicker(largest):
        for layer in layers:
            layer.__class__ = Linear


def is_quicker(weight: torch.Tensor) -> bool:
    """Whether oneDNN is clearly quicker than torch's own product with one row, for `weight` [out, in] float32."""
    weight = weight[: MEASURED // weight[0].nbytes]
    row = weight.new_ones(1, weight.shape[1])
    own, other = partial(nn.functional.linear, row, weight), partial(onednn, row, weight)
    with torch.inference_mode():
        rounds = [(_seconds(own), _seconds(other)) for _ in range(1 + ROUNDS)]
    own_best, other_best = (min(taken) for taken in zip(*rounds[1:], strict=True))
    return bool(own_best > GAIN * other_best)


def _fits(layer: nn.Linear) -> bool:
    if layer.out_features < layer.in_features:
        return False
    tensors = [layer.weight] if layer.bias is None else [layer.weight, layer.bias]
    return all(one.device.type == "cpu" and one.dtype == torch.float32 and one.is_contiguous() for one in tensors)


def _seconds(compute: Callable[[], object]) -> float:
    started = time.perf_counter()
    compute()
    return time.perf_counter() - started
