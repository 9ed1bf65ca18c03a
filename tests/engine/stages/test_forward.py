import pytest
import torch
from torch import nn

from engine import kv_cache
from engine.model import LoadedModel
from engine.stages.forward import forward, forward_newest, forward_rows
from engine.stages.inputs import make_inputs, make_row_inputs
from tests.engine.models import tiny


def test_logits_are_those_of_the_model_itself(architecture: LoadedModel) -> None:
    ids = [5, 9, 250, 7]
    result = forward(architecture.model, make_inputs(ids, past=0, device=architecture.device), None)
    with torch.inference_mode():
        theirs = architecture.model(torch.tensor([ids])).logits[0, -1]
    assert result.logits.dtype == torch.float32
    assert result.shape == (1, 1, architecture.facts.vocab_rows)
    torch.testing.assert_close(result.logits, theirs)


def test_the_cache_grows_in_place(architecture: LoadedModel) -> None:
    cache = kv_cache.new_cache(architecture.model.config)
    forward(architecture.model, make_inputs([5, 9, 250], past=0, device=architecture.device), cache)
    step = forward(architecture.model, make_inputs([7], past=3, device=architecture.device), cache)
    assert kv_cache.tokens(cache) == 4
    whole = forward(architecture.model, make_inputs([5, 9, 250, 7], past=0, device=architecture.device), None)
    torch.testing.assert_close(step.logits, whole.logits, atol=1e-5, rtol=1e-5)


class OldStyle(nn.Module):
    """A family that knows the cache by its former name and always computes every row."""

    def forward(
        self, input_ids, attention_mask=None, position_ids=None, past_key_values=None, use_cache=None, **kwargs
    ):  # type: ignore[no-untyped-def]
        self.seen = past_key_values
        assert "cache" not in kwargs
        assert "logits_to_keep" not in kwargs
        output = torch.zeros(1, input_ids.shape[1], 4, dtype=torch.bfloat16)
        return type("Output", (), {"logits": output})


def test_a_model_that_knows_the_cache_by_its_former_name() -> None:
    model = OldStyle()
    cache = object()
    result = forward(model, make_inputs([1, 2], past=0, device=torch.device("cpu")), cache)  # type: ignore[arg-type]
    assert model.seen is cache
    assert result.logits.dtype == torch.float32
    assert result.shape == (1, 2, 4)


def test_the_newest_rows_are_those_of_the_model_itself(architecture: LoadedModel) -> None:
    ids, cache = [5, 9, 250, 7], kv_cache.new_cache(architecture.model.config)
    rows = forward_newest(architecture.model, make_inputs(ids, past=0, device=architecture.device), cache, 3)
    with torch.inference_mode():
        theirs = architecture.model(torch.tensor([ids])).logits[0, 1:]
    assert kv_cache.tokens(cache) == 4
    torch.testing.assert_close(rows, theirs)


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", "sliding", "mixed"])
def test_rows_together_are_rows_alone_up_to_the_last_digits(name: str) -> None:
    loaded, prompt = tiny(name), list(range(30, 50))
    cache = kv_cache.new_cache(loaded.model.config)
    forward(loaded.model, make_inputs(prompt, past=0, device=loaded.device), cache)
    before = [layer.keys.clone() for layer in cache.layers]
    rows = kv_cache.take_rows(cache, [0, 0, 0])
    inputs = make_row_inputs([5, 9, 7], past=len(prompt), device=loaded.device)
    together = forward_rows(loaded.model, inputs, rows)
    again = kv_cache.take_rows(rows, [2, 0])
    second = forward_rows(loaded.model, make_row_inputs([11, 12], past=21, device=loaded.device), again)
    assert all(torch.equal(layer.keys, keys) for layer, keys in zip(cache.layers, before, strict=True))
    assert kv_cache.tokens(rows) == 21
    for found, new in ((together[0], [5]), (together[1], [9]), (second[0], [7, 11]), (second[1], [5, 12])):
        ids = prompt + new
        alone = forward(loaded.model, make_inputs(ids, past=0, device=loaded.device), None)
        torch.testing.assert_close(found, alone.logits, atol=1e-4, rtol=1e-4)
