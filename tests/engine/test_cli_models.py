"""`python -m engine models`: a line a model, and what fits on this machine."""

from pathlib import Path

import pytest

import engine.loading.room as room
from engine.__main__ import main
from engine.catalog import load_catalog
from engine.loading.memory import needed_bytes
from tests.engine.models import tiny

GIB = 1 << 30


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    assert main(["models", "--device", "cpu"]) == 0
    return {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}


def test_every_model_has_its_line_with_computed_memory(capsys, monkeypatch) -> None:
    monkeypatch.setattr(room, "free_ram", lambda: 4 * GIB)
    lines = listed(capsys)
    assert {entry.id for entry in load_catalog().models} < set(lines)
    for entry in load_catalog().models:
        for kind in ("float32", "bfloat16"):
            needed = needed_bytes(entry, kind)
            said = f"{needed / GIB:.2f}{' *' if needed <= 4 * GIB else '  '}"
            assert said in lines[entry.id], (entry.id, kind)
    assert "494,032,768" in lines["qwen2.5-0.5b-instruct"]
    assert "Hub Qwen/Qwen2.5-0.5B-Instruct @ 7ae557604adf" in lines["qwen2.5-0.5b-instruct"]
    assert "none: only its shape is known" in lines["llama-3-8b"]
    assert "4.00 GiB are free on cpu" in lines["*"]


def test_added_models_are_listed_and_a_bad_one_is_told(capsys, monkeypatch, tmp_path: Path) -> None:
    tiny("llama").model.save_pretrained(tmp_path / "tiny")
    tiny("llama").tokenizer.save_pretrained(tmp_path / "tiny")
    monkeypatch.setenv("DECODESCOPE_ADD_MODEL", f"mine={tmp_path / 'tiny'}")
    assert str(tmp_path) in listed(capsys)["mine"]
    monkeypatch.setenv("DECODESCOPE_ADD_MODEL", "nowhere")
    assert main(["models"]) == 2
    assert capsys.readouterr().err.startswith("error: --add-model 'nowhere'")
