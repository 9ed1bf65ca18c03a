"""Products by oneDNN: the numbers are those of torch's own layer, and they are chosen only where they are quicker."""

import copy
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import nn

from engine import linear
from engine.conversation import Conversation
from engine.linear import Linear, choose_products, is_quicker, onednn
from engine.model import LoadedModel
from engine.probes.parity import parity
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny

INPUTS: dict[str, Callable[[int], torch.Tensor]] = {
    "a vector": torch.randn,
    "one row": lambda width: torch.randn(1, 1, width),
    "rows": lambda width: torch.randn(2, 3, width),
    "no row": lambda width: torch.randn(1, 0, width),
    "the last of some rows": lambda width: torch.randn(1, 5, width)[:, -1:],
    "every other row": lambda width: torch.randn(2, 5, width)[:, ::2],
    "columns": lambda width: torch.randn(width, 4).T,
    "part of each row": lambda width: torch.randn(4, 2 * width)[:, :width],
    "one row repeated": lambda width: torch.randn(1, 1, width).expand(3, 1, width),
}


@pytest.mark.parametrize("shape", [(64, 48), (5, 3), (1, 7), (300, 1)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", INPUTS.values(), ids=INPUTS)
def test_the_product_is_that_of_float64(
    shape: tuple[int, int], bias: bool, rows: Callable[[int], torch.Tensor]
) -> None:
    out, width = shape
    layer = nn.Linear(width, out, bias=bias).requires_grad_(False)
    given = rows(width)
    exact = copy.deepcopy(layer).double()(given.double())
    found = onednn(given, layer.weight, layer.bias)
    assert found.shape == exact.shape
    assert torch.allclose(found.double(), exact, atol=1e-5)


def wide(*, rows: int = 2_200, width: int = 2_048, **options: torch.dtype | torch.device) -> nn.Linear:
    return nn.Linear(width, rows, **options).requires_grad_(False)  # type: ignore[arg-type]


def test_the_quicker_product_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for quicker, kind in ((True, Linear), (False, nn.Linear)):
        monkeypatch.setattr(linear, "is_quicker", lambda _, quicker=quicker: quicker)
        model = nn.Sequential(wide(), nn.ReLU(), nn.Linear(4, 4), nn.Linear(5, 4))
        choose_products(model)
        assert [type(module) for module in model] == [kind, nn.ReLU, kind, nn.Linear]


def test_a_model_that_a_cache_holds_keeps_its_products(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(_: torch.Tensor) -> bool:
        raise AssertionError("measured for nothing")

    monkeypatch.setattr(linear, "is_quicker", measured)
    model = tiny("llama").model
    choose_products(model)
    assert not any(isinstance(module, Linear) for module in model.modules())


class Other(nn.Linear):
    """A layer with a product of its own."""


def test_layers_of_another_kind_keep_their_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other numbers, weights that are elsewhere, and a bias with gaps, of which oneDNN would read the wrong numbers."""
    monkeypatch.setattr(linear, "is_quicker", lambda _: True)
    gaps = nn.Linear(4, 8)
    gaps.bias = nn.Parameter(torch.randn(16)[::2])
    model = nn.Sequential(
        wide(), wide(dtype=torch.bfloat16), nn.Linear(4, 4, device="meta"), Other(4, 4), gaps
    ).requires_grad_(False)
    choose_products(model)
    assert [type(module) for module in model] == [Linear, nn.Linear, nn.Linear, Other, nn.Linear]


@pytest.mark.parametrize(("own", "quicker"), [(1.0, False), (1.05, False), (1.2, True), (2.0, True)])
def test_it_must_be_clearly_quicker_in_the_best_of_rounds(
    own: float, quicker: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: Sequence[float] = (own / 10, 9.0, own, 1.5, own * 2, 1.0, own * 3, 1.0)  # the first one is not counted
    taken = iter(rounds)
    monkeypatch.setattr(linear, "_seconds", lambda _: next(taken))
    assert is_quicker(torch.ones(8, 8)) is quicker
    assert next(taken, None) is None


def test_no_more_of_a_weight_is_measured_than_no_cache_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "MEASURED", 4_096)
    sizes = []

    def read(rows: torch.Tensor, weight: torch.Tensor) -> None:
        assert rows.shape == (1, weight.shape[1])
        sizes.append(weight.nbytes)

    monkeypatch.setattr(linear, "onednn", read)
    is_quicker(torch.ones(1_000, 100))
    assert set(sizes) == {4_000}


@pytest.mark.parametrize("family", ["llama", "qwen2", "gpt2"])
def test_the_loop_draws_what_generate_draws(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "LARGE", 0)
    monkeypatch.setattr(linear, "is_quicker", lambda _: True)
    model = tiny.__wrapped__(family)  # not the one that all tests share
    choose_products(model.model)
    assert type(model.model.get_output_embeddings()) is Linear
    asked = {"min_new_tokens": 12, "seed": 3}
    conversation = Conversation(model, experiment(prompt="the cat sat", sampling=asked, stop={"max_new_tokens": 12}))
    finish(conversation)
    found = parity(conversation)
    assert len(found.ours) == 12
    assert found.equal


def test_the_models_numbers_are_those_of_torchs_own_products(
    embedded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = torch.tensor([embedded.tokenizer.encode("The capital of France is", add_special_tokens=False)])
    logits = []
    for quicker in (True, False):
        model = copy.deepcopy(embedded.model, {id(weight): weight for weight in embedded.model.parameters()})
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.__class__ = nn.Linear
        monkeypatch.setattr(linear, "is_quicker", lambda _, quicker=quicker: quicker)
        choose_products(model)
        with torch.inference_mode():
            logits.append(model(ids, use_cache=False).logits)
    assert not torch.equal(*logits)
    assert (logits[0] - logits[1]).abs().max() < 1e-3
