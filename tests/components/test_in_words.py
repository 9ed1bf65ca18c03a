"""What the engine refuses is said in the page's language, with the same values; English stays the engine's own."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

import components
import engine
from components.copy import DEFAULT, LANGUAGES, speak, words_in
from components.desk import Desk
from components.in_words import in_words, translated
from components.status import failure
from engine.experiment import ExperimentError, parse_experiment
from engine.refusals import Busy, Refused, SessionGone
from engine.said import Said, said
from tests.components.test_desk import desk, form

__all__ = ["desk"]  # a fixture

OTHERS = [language for language in LANGUAGES if language != DEFAULT]


@pytest.fixture(autouse=True)
def apart() -> Iterator[None]:
    yield
    speak(DEFAULT)


def templates() -> dict[str, set[str]]:
    """Key and templates of every refusal that can be said in other languages."""
    found: dict[str, set[str]] = {}
    for path in (path for part in (engine, components) for path in Path(part.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "said":
                key, template = (ast.literal_eval(one) for one in node.args)
                found.setdefault(key, set()).add(template)
    return found


def places(text: str) -> set[tuple[str, str, str]]:
    return {(name, form or "", how or "") for _, name, form, how in Formatter().parse(text) if name is not None}


def test_a_key_has_one_sentence() -> None:
    found = templates()
    assert len(found) > 50
    assert {key: own for key, own in found.items() if len(own) > 1} == {}


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_has_words_with_the_same_places(language: str) -> None:
    known = words_in(language, "refusals").sections
    own = {key: next(iter(found)) for key, found in templates().items()}
    assert own.keys() - known.keys() == set(), "missing"
    assert {key for key in known.keys() - own.keys() if not key.startswith("field_")} == set(), "unused"
    assert {key for key, template in own.items() if places(template) != places(known[key])} == set()


def test_english_is_the_engine_s_own() -> None:
    error = ExperimentError("prompt", said("prompt_too_long", "{tokens} of {limit}", tokens=9, limit=4))
    assert (in_words(error), str(error), error.message) == ("prompt: 9 of 4", "prompt: 9 of 4", "9 of 4")
    assert json.dumps({"message": error.message}) == '{"message": "9 of 4"}'


def test_another_language_has_its_words_for_the_same_values() -> None:
    speak("zh")
    whose = said("the_context", "the model's context")
    values = {"tokens": 9_000, "whose": whose, "limit": 8_192}
    error = ExperimentError("messages", said("prompt_too_long", "{tokens} {whose} {limit}", **values))
    say = words_in("zh", "refusals")
    assert in_words(error) == "messages: " + say.text(
        "prompt_too_long", tokens=9_000, whose=say.text("the_context"), limit=8_192
    )
    assert "9000" in in_words(error)
    assert in_words(Busy(said("runs_full", "{count}", count=3))) == say.text("runs_full", count=3)
    assert in_words(SessionGone()) == say.text("session_ended")


def test_what_has_no_words_of_its_own_stays_english() -> None:
    speak("zh")
    assert in_words(Refused("no such thing")) == "no such thing"
    assert in_words(Refused()) == ""
    assert translated(said("no_such_key", "no such thing")) == "no such thing"


BASE: dict[str, Any] = {"version": 1, "model": "m", "messages": [{"role": "user", "content": "x"}]}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"sampling": {"temperature": -1}}, "greater_than_equal"),
    ({"sampling": {"temperature": 101}}, "less_than_equal"),
    ({"sampling": {"typical_p": 0}}, "greater_than"),
    ({"sampling": {"top_k": 2**31}}, "less_than"),
    ({"sampling": {"top_p": float("nan")}}, "finite_number"),
    ({"sampling": {"seed": []}}, "int_type"),
    ({"sampling": {"seed": "x"}}, "int_parsing"),
    ({"sampling": {"seed": 1.5}}, "int_from_float"),
    ({"sampling": {"temperature": []}}, "float_type"),
    ({"sampling": {"temperature": "x"}}, "float_parsing"),
    ({"sampling": {"do_sample": []}}, "bool_type"),
    ({"sampling": {"do_sample": "x"}}, "bool_parsing"),
    ({"messages": [{"role": "user", "content": 1}]}, "string_type"),
    ({"stop": {"stop_strings": [""]}}, "string_too_short"),
    ({"stop": {"stop_strings": ["x" * 201]}}, "string_too_long"),
    ({"stop": {"stop_strings": 1}}, "tuple_type"),
    ({"stop": {"stop_strings": ["x"] * 17}}, "too_long"),
    ({"messages": []}, "too_short"),
    ({"mistake": "x"}, "literal_error"),
    ({"stop": 1}, "model_type"),
    ({"grammar": {"kind": "regex"}}, "missing"),
]


@pytest.mark.parametrize(("changes", "kind"), BAD, ids=[kind for _, kind in BAD])
def test_every_fault_of_a_field_has_words(changes: dict[str, Any], kind: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        parse_experiment(BASE | changes, models=["m"])
    message = refused.value.message
    assert isinstance(message, Said)
    assert message.key == f"field_{kind}"
    speak("zh")
    told = in_words(refused.value)
    assert told.startswith(f"{refused.value.path}: ")
    assert re.search(r"[\u4e00-\u9fff]", told)
    assert str(message.values.get("got", "")) in told


def test_every_kind_of_fault_that_has_words_was_tried() -> None:
    for language in OTHERS:
        known = {key for key in words_in(language, "refusals").sections if key.startswith("field_")}
        assert known == {f"field_{kind}" for _, kind in BAD}


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_a_refusal_on_the_page_is_in_the_visit_s_language(desk: Desk, language: str) -> None:
    visit = desk.open("visitor", language)
    for _ in desk.run(visit, "", form(desk, temperature=-1)):
        pass
    english = "sampling.temperature: Input should be greater than or equal to 0, got -1"
    chinese = "sampling.temperature: " + words_in("zh", "refusals").text("field_greater_than_equal", ge=0.0, got="-1")
    assert visit.notice == {"en": english, "zh": chinese}[language]


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_what_ended_a_run_is_told_in_the_visit_s_language(desk: Desk, language: str) -> None:
    visit = desk.open("visitor", language)
    desk.new(visit, "the cat " * 400, form(desk))
    speak(visit.language)
    told = failure(desk.view(visit))
    assert told.startswith("messages: ")
    assert bool(re.search(r"[\u4e00-\u9fff]", told)) == (language == "zh")
    assert bool(re.search(r"the prompt has \d+ tokens", told)) == (language == "en")
