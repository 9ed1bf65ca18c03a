"""Fixtures for every test that runs a model."""

import pytest

from engine.catalog import load_catalog
from engine.model import LoadedModel, load
from tests.engine.models import tiny


@pytest.fixture(scope="session", params=["llama", "qwen3", "gpt2"])
def architecture(request: pytest.FixtureRequest) -> LoadedModel:
    """A small random model of each of the three main architectures in turn."""
    return tiny(request.param)


@pytest.fixture(scope="session")
def llama() -> LoadedModel:
    """A small random Llama with grouped-query attention."""
    return tiny("llama")


@pytest.fixture(scope="session")
def embedded() -> LoadedModel:
    """The real default model, in float32 on the CPU."""
    catalog = load_catalog()
    return load(catalog.find(catalog.default), device="cpu", dtype="float32")
