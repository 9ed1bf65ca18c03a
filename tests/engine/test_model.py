"""Loading: what is asked of transformers, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, Qwen2Config

from engine import model as loading
from engine.catalog import Entry, FolderSource, ModelError, load_catalog
from engine.model import LoadedModel, load
from tests.engine.models import CONFIGS, tiny, tiny_tokenizer


def test_a_shape_without_weights_cannot_be_loaded() -> None:
    with pytest.raises(ModelError, match="Llama 3 8B is known by its shape only"):
        load(load_catalog().find("llama-3-8b"))


def build() -> LoadedModel:
    config = Qwen2Config(
        vocab_size=320, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, eos_token_id=2
    )
    return LoadedModel.of(AutoModelForCausalLM.from_config(config), tiny_tokenizer(), model_id="tiny", title="Tiny")


class Refusal:
    """Stands in for transformers' Auto classes: notes how it was asked, then fails as an unreachable Hub does."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def from_pretrained(self, name: str, **options: Any) -> Any:
        self.asked.append((name, options))
        if "use_safetensors" in options:
            raise OSError("no connection")
        return tiny_tokenizer()


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    """A model whose files are in `tmp_path`."""
    source = FolderSource(kind="folder", folder=tmp_path)
    return load_catalog().find("qwen2.5-0.5b-instruct").model_copy(update={"source": source})


def test_no_code_of_the_folder_is_run_and_nothing_is_fetched(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Refusal()
    monkeypatch.setattr(loading, "AutoTokenizer", refusal)
    monkeypatch.setattr(loading, "AutoModelForCausalLM", refusal)
    with pytest.raises(ModelError, match=r"Qwen2\.5 0\.5B Instruct cannot be loaded from .*: no connection"):
        load(entry)
    assert len(refusal.asked) == 2
    assert all(options["trust_remote_code"] is False for _, options in refusal.asked)
    assert all(options["local_files_only"] is True for _, options in refusal.asked)
    assert refusal.asked[1][1]["use_safetensors"] is True


def test_pickled_weights_are_refused(tmp_path: Path, entry: Entry) -> None:
    built = build()
    built.model.config.save_pretrained(tmp_path)
    built.tokenizer.save_pretrained(tmp_path)
    torch.save(built.model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match="safetensors") as told:
        load(entry, device="cpu")
    assert str(tmp_path) not in str(told.value)


def test_a_folder_that_went_is_told(tmp_path: Path, entry: Entry) -> None:
    tmp_path.rmdir()
    with pytest.raises(ModelError, match="its folder is not there any more"):
        load(entry, device="cpu")


def test_weights_of_another_shape_are_told(tmp_path: Path, entry: Entry) -> None:
    built = build()
    built.model.save_pretrained(tmp_path)
    built.tokenizer.save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"vocab_size": 320', '"vocab_size": 640'))
    with pytest.raises(
        ModelError, match=r"lm_head\.weight is stored as 320×32, its config\.json asks for 640×32"
    ) as told:
        load(entry, device="cpu")
    assert str(tmp_path) not in str(told.value)


@pytest.fixture
def saved_copy(tmp_path: Path) -> Path:
    """An untied model whose files may be changed."""
    tiny("llama").model.save_pretrained(tmp_path)
    tiny("llama").tokenizer.save_pretrained(tmp_path)
    return tmp_path


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_an_output_head_that_is_not_in_the_files_is_never_drawn_at_random(saved_copy: Path, entry: Entry) -> None:
    weights = saved_copy / "model.safetensors"
    tensors = load_file(weights)
    del tensors["lm_head.weight"]
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"is incomplete: 1 weight of its config\.json is not in its files, lm_"):
        load(entry, device="cpu")


def test_layers_that_are_not_in_the_files_are_never_drawn_at_random(saved_copy: Path, entry: Entry) -> None:
    change_config(saved_copy, num_hidden_layers=4)
    with pytest.raises(ModelError, match=r"is incomplete: 18 weights .+ are not in its files, model\.layers\.2\."):
        load(entry, device="cpu")


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_that_was_saved_whole_is_loaded_whole(name: str, tmp_path: Path, entry: Entry) -> None:
    tiny(name).model.save_pretrained(tmp_path)
    tiny(name).tokenizer.save_pretrained(tmp_path)
    loaded = load(entry, device="cpu")
    ids = torch.tensor([[1, 5, 9]])
    assert torch.equal(loaded.model(ids).logits, tiny(name).model(ids).logits)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"num_attention_heads": 5}, r"config\.json: The hidden size \(32\) is not a multiple"),
        ({"rms_norm_eps": "1e-5"}, r"config\.json: Field 'rms_norm_eps' expected float"),
        ({"eos_token_id": "x"}, r"config\.json: Field 'eos_token_id'"),
        ({"rope_parameters": "x"}, r"config\.json: Field 'rope_parameters'"),
        ({"layer_types": ["a", "b"]}, r"config\.json: The `layer_types` entries"),
        ({"model_type": ["llama"]}, "TypeError: unhashable type"),
        ({"dtype": "x"}, "AttributeError: module 'torch'"),
        ({"num_key_value_heads": 0}, "ZeroDivisionError"),
        ({"pad_token_id": 99_999}, "AssertionError"),
        ({"sliding_window": "x"}, "TypeError"),
        ({"vocab_size": -1}, "RuntimeError"),
    ],
)
def test_a_config_that_cannot_be_is_told_in_one_line_without_the_path(
    changes: dict[str, Any], reason: str, saved_copy: Path, entry: Entry
) -> None:
    change_config(saved_copy, **changes)
    with pytest.raises(ModelError, match=f"cannot be loaded from {saved_copy.name}: {reason}") as told:
        load(entry, device="cpu")
    assert "\n" not in str(told.value)
    assert str(saved_copy) not in str(told.value)


@pytest.mark.parametrize("kept", [0, 4, 100, -1000])
def test_weights_that_break_off_are_told(tmp_path: Path, entry: Entry, kept: int) -> None:
    """As a download that was interrupted leaves them."""
    built = build()
    built.model.save_pretrained(tmp_path)
    built.tokenizer.save_pretrained(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    with pytest.raises(
        ModelError,
        match=r"Qwen2\.5 0\.5B Instruct in .+ is damaged or incomplete \(.+\); fetch or copy its files again",
    ):
        load(entry, device="cpu")


def test_a_saved_model_comes_back_in_the_dtype_asked_for(tmp_path: Path, entry: Entry) -> None:
    built = build()
    built.model.save_pretrained(tmp_path)
    built.tokenizer.save_pretrained(tmp_path)
    loaded = load(entry, device="cpu", dtype="bfloat16")
    assert loaded.model.config._attn_implementation == "decodescope"
    assert loaded.device == torch.device("cpu")
    assert (loaded.facts.model_id, loaded.facts.dtype, loaded.entry) == (entry.id, "bfloat16", entry)
    want = built.model.get_input_embeddings().weight.to(torch.bfloat16)
    assert torch.equal(loaded.model.get_input_embeddings().weight, want)
