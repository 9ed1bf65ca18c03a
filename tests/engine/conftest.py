"""Fixtures of the engine's tests: a runtime on fake conversations, and the command line on a small model."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import engine.model
from engine.catalog import load_catalog
from engine.runtime import Runtime
from engine.settings import Settings
from tests.engine.fakes import LOADED, Clock, Lab
from tests.engine.models import tiny


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def lab(monkeypatch):
    lab = Lab()
    monkeypatch.setattr("engine.place.Conversation", lab.conversation)
    return lab


@pytest.fixture
def make(lab, clock):
    made = []

    def runtime(**settings) -> Runtime:
        made.append(Runtime(LOADED, load_catalog(), Settings(**settings), clock=clock))
        return made[-1]

    yield runtime
    for item in made:
        item.shut_down()


@pytest.fixture
def pool():
    with ThreadPoolExecutor(32) as pool:
        yield pool


@pytest.fixture
def on_tiny(monkeypatch):
    """The command loads a small random model instead of the one that is named."""
    asked = []

    def load(entry, *, device, dtype, **others):
        asked.append((entry.id, device, dtype))
        return tiny("llama")

    monkeypatch.setattr(engine.model, "load", load)
    return asked


@pytest.fixture
def write(tmp_path):
    def write(content, name="experiment.json") -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return str(path)

    return write
