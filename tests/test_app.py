"""What the program does where the model cannot be had."""

from concurrent.futures import Future
from typing import Any

import pytest

import app
from engine.catalog import ModelError


def test_whoever_waits_for_a_model_that_cannot_be_had_is_told(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    made: list[Future[Any]] = []

    def fail(*_: object) -> None:
        raise ModelError("no weights here")

    monkeypatch.setattr(app, "compose", lambda runtime, entry, **more: made.append(runtime))
    monkeypatch.setattr(app, "launch", lambda blocks, **options: None)
    monkeypatch.setattr(app, "load_runtime", fail)
    assert app.main([]) == 2
    assert "no weights here" in capsys.readouterr().err
    assert isinstance(made[0].exception(timeout=0), ModelError)
