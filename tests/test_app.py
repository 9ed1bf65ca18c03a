"""Which models the program offers, and what it does where one cannot be had."""

import sys
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import app
from engine.catalog import ModelError, UnknownModelError, load_catalog
from engine.settings import Settings
from tests.engine.models import tiny

LAUNCH = app.launch


def test_whoever_waits_for_a_model_that_cannot_be_had_is_told(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    made: list[Future[Any]] = []

    def fail(*_: object) -> None:
        raise ModelError("no weights here")

    monkeypatch.setattr(app, "compose", lambda runtime, hand, **more: made.append(runtime))
    monkeypatch.setattr(app, "launch", lambda blocks, **options: None)
    monkeypatch.setattr(app, "load_runtime", fail)
    assert app.main([]) == 2
    assert "no weights here" in capsys.readouterr().err
    assert isinstance(made[0].exception(timeout=0), ModelError)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    tiny("llama").model.save_pretrained(tmp_path / "tiny")
    tiny("llama").tokenizer.save_pretrained(tmp_path / "tiny")
    return str(tmp_path / "tiny")


def offered(**settings: Any) -> tuple[str, ...]:
    return app.hold(load_catalog(), Settings(**settings)).offered


def test_by_itself_only_the_model_that_is_loaded_is_offered() -> None:
    assert offered() == ("smollm2-135m-instruct",)
    assert offered(model="gpt2") == ("gpt2",)


def test_models_are_offered_by_name_and_added_ones_with_them(folder: str) -> None:
    assert offered(models=("gpt2", "smollm2-135m-instruct")) == ("smollm2-135m-instruct", "gpt2")
    assert offered(add_model=(folder,)) == ("smollm2-135m-instruct", "tiny")
    assert offered(add_model=(folder,), model="tiny") == ("tiny",)
    assert offered(add_model=(folder,), models=("gpt2",)) == ("smollm2-135m-instruct", "gpt2")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": "nobody"}, "unknown model 'nobody'"),
        ({"models": ("gpt2", "nobody")}, "unknown model 'nobody'"),
        ({"models": ("llama-3-8b",)}, "known by its shape only"),
        ({"add_model": ("nowhere",)}, "neither a folder"),
    ],
)
def test_a_model_that_cannot_be_offered_is_told_before_the_page(settings: dict[str, Any], said: str) -> None:
    with pytest.raises((ModelError, UnknownModelError), match=said):
        offered(**settings)


def test_a_bad_variable_ends_the_program_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("DECODESCOPE_MAX_RUNS", "many")
    assert app.main([]) == 2
    assert capsys.readouterr().err == "error: DECODESCOPE_MAX_RUNS: a value like 32 is wanted, got 'many'\n"


def test_an_added_model_is_loaded_as_the_settings_say(folder: str, capsys) -> None:
    hand = app.hold(load_catalog(), Settings(add_model=(f"mine={folder}",), dtype="bfloat16", device="cpu"))
    runtime = hand.begin("mine").runtime
    assert (runtime.facts.model_id, runtime.facts.dtype) == ("mine", "bfloat16")
    assert capsys.readouterr().out == ""
    runtime.shut_down()


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """In which order the program loads the model and serves the page."""
    done: list[str] = []

    class Blocks:
        def block_thread(self) -> None:
            done.append("wait")

    def loaded(gpu: object) -> SimpleNamespace:
        done.append(f"load {gpu}")
        facts = SimpleNamespace(model_id="smollm2-135m-instruct")
        return SimpleNamespace(facts=facts, shut_down=lambda: done.append("shut down"))

    monkeypatch.setattr(app, "compose", lambda runtime, hand, **more: Blocks())
    monkeypatch.setattr(app, "launch", lambda blocks, **options: done.append("launch"))
    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    monkeypatch.setattr(app, "load_runtime", lambda entry, catalog, settings, report, gpu=None: loaded(gpu))
    return done


def test_the_page_is_served_before_the_model_is_loaded(steps: list[str]) -> None:
    assert app.main([]) == 0
    assert steps == ["launch", "load None", "wait", "shut down"]


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_variable_names_no_folder_of_lessons(
    steps: list[str], empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECODESCOPE_LESSONS", empty)
    assert app.main([]) == 0
    assert steps[-1] == "shut down"


def test_the_state_of_every_page_that_may_have_a_session_is_kept(
    steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}
    blocks = SimpleNamespace(
        queue=lambda **options: None,
        launch=given.update,
        block_thread=lambda: None,
        fns={},
    )
    monkeypatch.setattr(app, "compose", lambda runtime, hand, **more: blocks)
    monkeypatch.setattr(app, "launch", LAUNCH)
    assert app.main(["--max-sessions", "500", "--models", "gpt2"]) == 0
    assert given["state_session_capacity"] > 2 * 500
    assert steps == ["load None", "shut down"]


def test_where_a_gpu_is_lent_the_model_is_there_when_the_page_is_launched(
    steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lender takes the weights over, and looks for decorated functions, at the launch."""
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    monkeypatch.setitem(sys.modules, "spaces", SimpleNamespace(GPU="the decorator"))
    monkeypatch.setattr(app, "lent", lambda decorator: f"lent by {decorator}")
    assert app.main([]) == 0
    assert steps == ["load lent by the decorator", "launch", "wait", "shut down"]
