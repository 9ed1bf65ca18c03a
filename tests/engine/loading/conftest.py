"""A Hub of this machine with one small model, and an empty cache."""

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from engine.catalog import Entry
from engine.loading import added
from tests.engine.loading.fake_hub import Hub, Repo, serving
from tests.engine.models import tiny

REPO = "tests/tiny-llama"


@functools.cache
def _saved(where: Path, shard: str) -> Path:
    folder = where / f"tiny-llama-{shard}"
    tiny("llama").model.save_pretrained(folder, max_shard_size=shard)
    tiny("llama").tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model as files."""
    return _saved(tmp_path_factory.getbasetemp(), "1GB")


@pytest.fixture(scope="session")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same in several weight files."""
    return _saved(tmp_path_factory.getbasetemp(), "60KB")


def point_at(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As HF_ENDPOINT does, which is read once."""
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")


@pytest.fixture
def hub(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving() as hub:
        hub.repos[REPO] = Repo(saved)
        point_at(hub.url, monkeypatch)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setenv("DECODESCOPE_CACHE", str(tmp_path / "own"))
        yield hub


@pytest.fixture
def hub_entry(hub: Hub) -> Entry:
    """The Hub's small model, added by its id; what that asked for is forgotten."""
    entry = added.added(REPO)
    hub.asked.clear()
    return entry
