"""Memory by dtype: bytes of real tensors, hand-worked sums, and the sizes of the published weight files."""

import importlib.metadata
from types import SimpleNamespace

import pytest
import torch

from engine.catalog import EmbeddedSource, load_catalog
from engine.loading.memory import KINDS, OVERHEAD, needed_bytes, weight_bytes
from engine.model import LoadedModel
from tests.engine.models import tiny


def test_weights_are_the_bytes_of_the_loaded_tensors(architecture: LoadedModel) -> None:
    distinct = {parameter.data_ptr(): parameter.nbytes for parameter in architecture.model.parameters()}
    assert weight_bytes(architecture.facts, "float32") == sum(distinct.values())
    assert weight_bytes(architecture.facts, "bfloat16") == sum(distinct.values()) / 2
    assert weight_bytes(architecture.facts, "float16") == weight_bytes(architecture.facts, "bfloat16")


def test_a_tied_matrix_counts_once() -> None:
    gpt2 = tiny("gpt2")
    assert gpt2.facts.tied_embeddings
    twice = sum(tensor.nbytes for tensor in gpt2.model.state_dict().values())
    assert weight_bytes(gpt2.facts, "float32") == twice - 320 * 32 * 4


def test_four_bits_by_hand() -> None:
    """1,000 rows of 64: 64,000 numbers at 2 bytes; 1,638,400 packed: half, a byte for 64, 4 bytes for 64 × 256."""
    model = SimpleNamespace(parameters=64_000 + 1_638_400, vocab_rows=1_000, hidden_size=64, tied_embeddings=True)
    assert weight_bytes(model, "4bit") == 128_000 + 819_200 + 25_600 + 400
    untied = SimpleNamespace(parameters=128_000 + 1_638_400, vocab_rows=1_000, hidden_size=64, tied_embeddings=False)
    assert weight_bytes(untied, "4bit") == 256_000 + 819_200 + 25_600 + 400


def test_the_7b_model_by_hand() -> None:
    """7,615,616,512 numbers: 28.37 GiB at 4 bytes, 14.19 at 2; half a GiB on top."""
    entry = load_catalog().find("qwen2.5-7b-instruct")
    assert [round(weight_bytes(entry, kind) / 2**30, 2) for kind in KINDS] == [28.37, 14.19, 5.17]
    assert needed_bytes(entry, "bfloat16") == 15_231_233_024 + OVERHEAD


def test_stored_bytes_are_the_parameters_and_a_header() -> None:
    """The Qwen files hold bfloat16; GPT-2's holds float32 and twelve masks of 1024 × 1024."""
    catalog = load_catalog()
    for name, numbers in (("qwen2.5-0.5b-instruct", 2), ("qwen2.5-7b-instruct", 2), ("gpt2", 4)):
        entry = catalog.find(name)
        masks = 12 * 1024 * 1024 * 4 if name == "gpt2" else 0
        assert entry.weight_bytes is not None
        assert 10_000 < entry.weight_bytes - numbers * entry.parameters - masks < 40_000
    embedded = catalog.find(catalog.default)
    assert isinstance(embedded.source, EmbeddedSource)
    file = importlib.metadata.distribution(embedded.source.package).locate_file(embedded.source.file)
    assert embedded.weight_bytes == len(file.read_bytes())  # type: ignore[attr-defined]


def test_every_entry_is_priced() -> None:
    for entry in load_catalog().models:
        widest, half, packed = (weight_bytes(entry, kind) for kind in KINDS)
        assert widest == 2 * half > 2 * packed > 0


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_bytes_a_number_are_torch_s(kind: str) -> None:
    model = SimpleNamespace(parameters=1, vocab_rows=1, hidden_size=1, tied_embeddings=True)
    assert weight_bytes(model, kind) == getattr(torch, kind).itemsize
