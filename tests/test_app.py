"""What the program does where the model cannot be had."""

import sys
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

import app
from engine.catalog import ModelError


def test_whoever_waits_for_a_model_that_cannot_be_had_is_told(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    made: list[Future[Any]] = []

    def fail(*_: object) -> None:
        raise ModelError("no weights here")

    monkeypatch.setattr(app, "compose", lambda runtime, entry: made.append(runtime))
    monkeypatch.setattr(app, "launch", lambda blocks, **options: None)
    monkeypatch.setattr(app, "load_runtime", fail)
    assert app.main([]) == 2
    assert "no weights here" in capsys.readouterr().err
    assert isinstance(made[0].exception(timeout=0), ModelError)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """In which order the program loads the model and serves the page."""
    done: list[str] = []

    class Blocks:
        def block_thread(self) -> None:
            done.append("wait")

    monkeypatch.setattr(app, "compose", lambda runtime, entry: Blocks())
    monkeypatch.setattr(app, "launch", lambda blocks, **options: done.append("launch"))
    monkeypatch.setattr(app, "load_runtime", lambda entry, catalog, settings, gpu=None: done.append(f"load {gpu}"))
    return done


def test_the_page_is_served_before_the_model_is_loaded(steps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    assert app.main([]) == 0
    assert steps == ["launch", "load None", "wait"]


def test_where_a_gpu_is_lent_the_model_is_there_when_the_page_is_launched(
    steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lender takes the weights over, and looks for decorated functions, at the launch."""
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    monkeypatch.setitem(sys.modules, "spaces", SimpleNamespace(GPU="the decorator"))
    monkeypatch.setattr(app, "lent", lambda decorator: f"lent by {decorator}")
    assert app.main([]) == 0
    assert steps == ["load lent by the decorator", "launch", "wait"]
