"""The arithmetic of a layer: worked out in the text of the test, and against torch's own functions."""

import math

import pytest
import torch
from torch import nn
from transformers.activations import ACT2FN
from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm, apply_rotary_pos_emb
from transformers.pytorch_utils import Conv1D

from engine.anatomy import AnatomyError
from engine.probes.by_hand import ACTIVATIONS, Norm, find_activation, read_linear, read_norm, rotate, softmax

CPU = torch.device("cpu")


def filled(module: nn.Module) -> nn.Module:
    torch.manual_seed(1)
    for parameter in module.parameters():
        nn.init.normal_(parameter, mean=1.0, std=0.3)
    return module


def test_an_rms_norm_of_two_numbers() -> None:
    """(3, 4): mean of squares 12.5, and with ε = 3.5 the root of 16 is 4. (3, 4) ÷ 4 · (2, 10) = (1.5, 10)."""
    norm = Norm(torch.tensor([2.0, 10.0]), None, epsilon=3.5, centres=False, one_plus=False)
    assert norm(torch.tensor([3.0, 4.0])).tolist() == [1.5, 10]


def test_a_layer_norm_of_two_numbers() -> None:
    """(1, 5): mean 3, so (−2, 2), variance 4; with ε = 12 the root of 16 is 4. (−.5, .5) · (2, 4) + (1, 0) = (0, 2)."""
    norm = Norm(torch.tensor([2.0, 4.0]), torch.tensor([1.0, 0.0]), epsilon=12.0, centres=True, one_plus=False)
    assert norm(torch.tensor([1.0, 5.0])).tolist() == [0, 2]


def test_a_norm_of_each_head_takes_them_one_by_one() -> None:
    """Two heads of two, (3, 4) and (0, 2): without ε their roots are √12.5 and √2."""
    norm = Norm(torch.ones(2), None, epsilon=0.0, centres=False, one_plus=False)
    expected = torch.tensor([3 / math.sqrt(12.5), 4 / math.sqrt(12.5), 0, math.sqrt(2)])
    torch.testing.assert_close(norm(torch.tensor([3.0, 4.0, 0.0, 2.0])), expected)


def test_a_turn_of_one_pair_by_a_quarter_and_another_by_a_half() -> None:
    """By 90° (a, b) goes to (−b, a), by 180° to (−a, −b). In halves 1, 2, 3, 4 holds the pairs (1, 3) and (2, 4),
    which go to (−3, 1) and (−2, −4); with neighbours the pairs (1, 2) and (3, 4) go to (−2, 1) and (−3, −4).
    A fifth and sixth number are beyond the pairs.
    """
    cosines, sines = torch.tensor([0.0, -1.0]), torch.tensor([1.0, 0.0])
    vector = torch.tensor([[1.0, 2.0, 3.0, 4.0, 9.0, 8.0]])
    assert rotate(vector, cosines, sines, "halves").tolist() == [[-3, -2, 1, -4, 9, 8]]
    assert rotate(vector, cosines, sines, "neighbours").tolist() == [[-2, 1, -3, -4, 9, 8]]
    assert rotate(vector, cosines, sines, "none") is vector


def test_a_turn_is_the_library_s() -> None:
    torch.manual_seed(0)
    vectors, angles = torch.randn(1, 3, 1, 8), torch.rand(4) * 6
    both = torch.cat([angles, angles])[None, None]
    expected, _ = apply_rotary_pos_emb(vectors, vectors, both.cos(), both.sin())
    torch.testing.assert_close(rotate(vectors[0, :, 0], angles.cos(), angles.sin(), "halves"), expected[0, :, 0])


def test_a_softmax_of_three_scores() -> None:
    """Scores ln 1, ln 3 and a hidden one: weights 1 ÷ 4, 3 ÷ 4 and 0; large scores do not overflow."""
    scores = torch.tensor([[0.0, math.log(3), -math.inf], [1000.0, 1000.0, 0.0]])
    torch.testing.assert_close(softmax(scores), torch.tensor([[0.25, 0.75, 0.0], [0.5, 0.5, 0.0]]))


@pytest.mark.parametrize(
    ("module", "centres", "one_plus", "biased"),
    [
        (LlamaRMSNorm(8, eps=1e-2), False, False, False),
        (Gemma2RMSNorm(8, eps=1e-2), False, True, False),
        (nn.RMSNorm(8, eps=1e-2), False, False, False),
        (nn.LayerNorm(8, eps=1e-2), True, False, True),
        (nn.LayerNorm(8, eps=1e-2, bias=False), True, False, False),
        (nn.LayerNorm(8, eps=1e-2, elementwise_affine=False), True, False, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_a_norm_module_read_as_numbers(module: nn.Module, centres: bool, one_plus: bool, biased: bool) -> None:
    with torch.inference_mode():
        vector = torch.randn(8, generator=torch.Generator().manual_seed(2)) * 0.2 + 0.1
        norm = read_norm(filled(module), vector)
        assert (norm.centres, norm.one_plus, norm.bias is not None) == (centres, one_plus, biased)
        torch.testing.assert_close(norm(vector), module(vector))


def test_what_is_no_norm_is_refused() -> None:
    class Twice(LlamaRMSNorm):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(x)

    class Shifted(LlamaRMSNorm):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + 1

    class Nameless(LlamaRMSNorm):
        def __init__(self) -> None:
            super().__init__(8)
            self.small = self.__dict__.pop("variance_epsilon")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.weight * x * torch.rsqrt((x * x).mean() + self.small)

    with torch.inference_mode():
        for module in (Twice(8), Shifted(8)):
            with pytest.raises(AnatomyError, match="neither an RMS norm nor a LayerNorm"):
                read_norm(filled(module), torch.ones(8))
        with pytest.raises(AnatomyError, match="Nameless keeps its epsilon"):
            read_norm(filled(Nameless()), torch.ones(8))


@pytest.mark.parametrize("module", [nn.Linear(3, 4), nn.Linear(3, 4, bias=False), Conv1D(4, 3)])
def test_a_linear_map_read_as_numbers_and_in_parts(module: nn.Module) -> None:
    with torch.inference_mode():
        vector = torch.tensor([1.0, -2.0, 0.5])
        linear = read_linear(filled(module), "both")
        expected = module(vector)
        torch.testing.assert_close(linear(vector), expected)
        for part, place in zip(linear.split(1, 3), (slice(0, 1), slice(1, 4)), strict=True):
            assert part.rows == place
            torch.testing.assert_close(part(vector), expected[place])
        with pytest.raises(AnatomyError, match=r"both has 4 rows, 1 \+ 1 were expected"):
            linear.split(1, 1)


def test_weights_that_are_no_matrix_are_refused() -> None:
    packed = nn.Linear(3, 4)
    packed.weight = nn.Parameter(torch.zeros(6, dtype=torch.uint8), requires_grad=False)
    for module in (packed, nn.Identity()):
        with pytest.raises(AnatomyError, match="no plain matrix"):
            read_linear(module, "q_proj")


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("silu", "silu"), ("gelu_new", "gelu_tanh"), ("gelu_pytorch_tanh", "gelu_tanh"), ("gelu", "gelu"),
        ("relu", "relu"), ("relu2", "relu_squared"), ("quick_gelu", "quick_gelu"),
    ],
)  # fmt: skip
def test_an_activation_is_found_by_what_it_does(library: str, name: str) -> None:
    assert find_activation(ACT2FN[library], CPU) == name
    wide = torch.linspace(-100, 100, 999)
    torch.testing.assert_close(ACTIVATIONS[name](wide), ACT2FN[library](wide), atol=1e-6, rtol=1e-6)


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(AnatomyError, match="Tanh is none of silu"):
        find_activation(nn.Tanh(), CPU)
