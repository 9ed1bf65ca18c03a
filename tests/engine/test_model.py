"""Choosing a device and a dtype, and loading: what is asked of transformers, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, Qwen2Config

from engine import model as loading
from engine.catalog import Entry, ModelError, load_catalog
from engine.model import LoadedModel, load, pick_device, pick_dtype
from tests.engine.models import tiny_tokenizer


def test_auto_takes_the_best_device_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    usable = {"cpu"}
    monkeypatch.setattr(loading, "_usable", lambda kind: kind in usable)
    assert pick_device("auto") == torch.device("cpu")
    usable.add("mps")
    assert pick_device("auto") == torch.device("mps")
    usable.add("cuda")
    assert pick_device("auto") == torch.device("cuda")
    assert pick_device("cuda:1") == torch.device("cuda:1")
    assert pick_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "mps", "tpu", "", "meta", "cpu; rm"])
def test_a_device_that_cannot_be_used_names_those_that_can(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "_usable", lambda kind: kind == "cpu")
    with pytest.raises(ModelError, match="cannot be used here; there is: auto, cpu"):
        pick_device(name)


def test_auto_dtype_is_float32_on_the_cpu_only() -> None:
    assert pick_dtype("auto", torch.device("cpu")) == torch.float32
    assert pick_dtype("auto", torch.device("cuda")) == torch.bfloat16
    assert pick_dtype("float16", torch.device("cpu")) == torch.float16


@pytest.mark.parametrize("name", ["int8", "float64", "", "__class__"])
def test_an_unknown_dtype_names_those_allowed(name: str) -> None:
    with pytest.raises(ModelError, match="allowed: auto, float32, bfloat16, float16"):
        pick_dtype(name, torch.device("cpu"))


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
def hub_entry() -> Entry:
    return load_catalog().find("qwen2.5-0.5b-instruct")


def test_hub_models_are_pinned_and_run_no_code_of_the_repository(
    hub_entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = Refusal()
    monkeypatch.setattr(loading, "AutoTokenizer", refusal)
    monkeypatch.setattr(loading, "AutoModelForCausalLM", refusal)
    with pytest.raises(ModelError, match=r"Qwen2\.5 0\.5B Instruct cannot be loaded from .*: no connection"):
        load(hub_entry)
    assert [name for name, _ in refusal.asked] == ["Qwen/Qwen2.5-0.5B-Instruct"] * 2
    assert all(options["trust_remote_code"] is False for _, options in refusal.asked)
    assert all(options["revision"] == hub_entry.source.revision for _, options in refusal.asked)  # type: ignore[union-attr]
    assert refusal.asked[1][1]["use_safetensors"] is True


def test_pickled_weights_are_refused(tmp_path: Path, hub_entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    built = build()
    built.model.config.save_pretrained(tmp_path)
    built.tokenizer.save_pretrained(tmp_path)
    torch.save(built.model.state_dict(), tmp_path / "pytorch_model.bin")
    monkeypatch.setattr(loading, "_where", lambda entry: (str(tmp_path), {"local_files_only": True}))
    with pytest.raises(ModelError, match="safetensors"):
        load(hub_entry)


def test_a_saved_model_comes_back_in_the_dtype_asked_for(
    tmp_path: Path, hub_entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = build()
    built.model.save_pretrained(tmp_path)
    built.tokenizer.save_pretrained(tmp_path)
    monkeypatch.setattr(loading, "_where", lambda entry: (str(tmp_path), {"local_files_only": True}))
    loaded = load(hub_entry, device="cpu", dtype="bfloat16")
    assert loaded.model.config._attn_implementation == "decodescope"
    assert loaded.device == torch.device("cpu")
    assert (loaded.facts.model_id, loaded.facts.dtype) == (hub_entry.id, "bfloat16")
    want = built.model.get_input_embeddings().weight.to(torch.bfloat16)
    assert torch.equal(loaded.model.get_input_embeddings().weight, want)
