"""The catalogue: what it holds, what it refuses, and that reading it needs no torch."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from engine.catalog import Catalog, EmbeddedSource, HubSource, UnknownModelError, load_catalog

ROOT = Path(__file__).parents[2]


@pytest.fixture
def record() -> dict[str, Any]:
    return load_catalog().model_dump(mode="json")


def test_default_is_the_embedded_model() -> None:
    catalog = load_catalog()
    assert catalog.default == "smollm2-135m-instruct"
    assert isinstance(catalog.find(catalog.default).source, EmbeddedSource)


def test_loadable_and_shape_only_are_told_apart() -> None:
    catalog = load_catalog()
    shape_only = [entry.id for entry in catalog.models if not entry.loadable]
    assert shape_only == ["qwen2.5-72b", "llama-3-8b"]
    assert catalog.loadable_ids == ("smollm2-135m-instruct", "qwen2.5-0.5b-instruct", "qwen2.5-7b-instruct", "gpt2")
    assert all(isinstance(catalog.find(name).source, EmbeddedSource | HubSource) for name in catalog.loadable_ids)


@pytest.mark.parametrize("hostile", ["", "gpt3", "../../etc/passwd", "Qwen/Qwen2.5-0.5B-Instruct", "gpt2\x00", "GPT2"])
def test_unknown_model_names_what_is_allowed(hostile: str) -> None:
    with pytest.raises(UnknownModelError, match="smollm2-135m-instruct, qwen2.5-0.5b-instruct"):
        load_catalog().find(hostile)


def test_the_json_of_the_catalogue_reads_back(record: dict[str, Any]) -> None:
    assert Catalog.model_validate(record) == load_catalog()


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("layers", 0, "greater than 0"),
        ("flavour", "sweet", "Extra inputs"),
        ("id", "no spaces please", "match pattern"),
        ("source", {"kind": "hub", "repo": "https://example.org/x", "revision": "0" * 40}, "match pattern"),
        ("source", {"kind": "hub", "repo": "a/b", "revision": "main"}, "match pattern"),
        ("source", {"kind": "pickle", "path": "x"}, "does not match any of the expected tags"),
    ],
)
def test_a_bad_entry_is_refused(record: dict[str, Any], field: str, value: object, complaint: str) -> None:
    record["models"][1][field] = value
    with pytest.raises(ValidationError, match=complaint):
        Catalog.model_validate(record)


def test_an_id_may_not_be_there_twice(record: dict[str, Any]) -> None:
    record["models"].append(record["models"][2])
    with pytest.raises(ValidationError, match="'qwen2.5-7b-instruct' is there twice"):
        Catalog.model_validate(record)


@pytest.mark.parametrize("name", ["llama-3-8b", "nobody"])
def test_the_default_must_be_loadable(record: dict[str, Any], name: str) -> None:
    record["default"] = name
    with pytest.raises(ValidationError, match="not a model that can be loaded"):
        Catalog.model_validate(record)


def test_reading_it_needs_no_torch() -> None:
    code = "import sys; from engine.catalog import load_catalog; load_catalog(); print('torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout.strip() == "False"
