import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.desk import Desk
from components.panel import View
from engine.catalog import load_catalog
from engine.runtime import Runtime
from engine.settings import Settings
from engine.trace import Trace
from engine.trace_json import trace_from_json
from tests.components.handmade import make_trace, make_view
from tests.components.replays import experiment, ready

PARIS = Path(__file__).parent.parent / "golden" / "paris.trace.json"


@pytest.fixture
def trace() -> Trace:
    """A short run, made by hand, with hostile tokens."""
    return make_trace()


@pytest.fixture
def view(trace) -> View:
    """The newest token of `trace` is selected."""
    return make_view(trace)


@pytest.fixture(scope="session")
def paris() -> Trace:
    """A run recorded from the embedded model by tests/golden/make_paris_trace.py."""
    return trace_from_json(json.loads(PARIS.read_text(encoding="utf-8")))


@pytest.fixture
def live(llama) -> Iterator[Desk]:
    """A desk on a small random model."""
    runtime = Runtime(llama, load_catalog(), Settings())
    yield Desk(ready(runtime), experiment(llama.facts.model_id))
    runtime.shut_down()
