"""Fixtures for every test that runs a model."""

import gc
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from engine.model import LoadedModel

# What runs no test but hands them out imports no torch: that is for the fixtures.
# The collection of garbage goes through all of torch and gradio each time: it waits for the tests, and leaves out then
# what was imported.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", params=["llama", "qwen3", "gpt2"])
def architecture(request: pytest.FixtureRequest) -> "LoadedModel":
    """A small random model of each of the three main architectures in turn."""
    from tests.engine.models import tiny

    return tiny(request.param)


@pytest.fixture(scope="session")
def llama() -> "LoadedModel":
    """A small random Llama with grouped-query attention."""
    from tests.engine.models import tiny

    return tiny("llama")


@pytest.fixture(scope="session")
def embedded() -> "LoadedModel":
    """The real default model, in float32 on the CPU."""
    from engine.catalog import load_catalog
    from engine.model import load

    catalog = load_catalog()
    return load(catalog.find(catalog.default), device="cpu", dtype="float32")
