"""Fixtures of the tests that need no model: a runtime on fake conversations."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.catalog import load_catalog
from engine.runtime import Runtime
from engine.settings import Settings
from tests.engine.fakes import LOADED, Clock, Lab


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def lab(monkeypatch):
    lab = Lab()
    monkeypatch.setattr("engine.runtime.Conversation", lab.conversation)
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
