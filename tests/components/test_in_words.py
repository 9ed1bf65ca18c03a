"""What the engine refuses is said in the page's language, with the same values; nothing of it is English only."""

import ast
import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
import pytest

import components
import engine
from components.copy import LANGUAGES, speak, words_in
from components.desk import Desk
from components.in_words import in_words, translated
from components.status import failure
from engine.experiment import ExperimentError, fault, parse_experiment
from engine.refusals import Busy, Refused, SessionGone
from engine.said import Said, english, said
from tests.components.languages import apart
from tests.components.test_desk import desk, form

__all__ = ["apart", "desk"]  # fixtures


#: What only the person at the command line reads, or the author of a lesson: no page shows it.
LOADING = tuple(f"loading/{name}.py" for name in ("added", "config_files", "shape", "hub_entry"))
OPERATORS = ("commands/", "space/", *LOADING, "catalog.py")
REFUSALS = {
    *("ExperimentError", "Refused", "Busy", "NoGpu", "AnatomyError", "ModelError", "NoRoomError", "TemplateError"),
    *("NotRecorded", "Refusal", "Policy", "Parity"),
}
#: Where pydantic takes a ValueError to be a refusal.
VALIDATORS = ("experiment.py", "values.py", "link.py")


def sources() -> Iterator[tuple[str, ast.AST]]:
    """Name and syntax tree of each file that may refuse something."""
    for part in (engine, components):
        folder = Path(part.__file__).parent
        for path in sorted(folder.rglob("*.py")):
            yield path.relative_to(folder).as_posix(), ast.parse(path.read_text("utf-8"))


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    named = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    return ((node.func.id, node) for node in named)


def keys(node: ast.expr) -> list[str]:
    """The keys that may be said; none where they come from elsewhere."""
    if isinstance(node, ast.IfExp):
        return keys(node.body) + keys(node.orelse)
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_every_sentence_that_is_said_has_words_with_its_values() -> None:
    wrong = []
    for name, tree in sources():
        for called, node in calls(tree):
            if called == "said" and node.args:
                given = {keyword.arg for keyword in node.keywords}
                wanted = [places(english()[key]) if key in english() else {"no words"} for key in keys(node.args[0])]
                if any(not one <= given for one in wanted) or (len(wanted) == 1 and wanted[0] != given):
                    wrong.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert wrong == []


def test_every_sentence_with_words_is_said() -> None:
    asked = {
        node.value
        for _, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    built = re.compile("field_.+")
    assert len(english()) > 200
    assert {key for key in english() if key not in asked and not built.fullmatch(key)} == set()


def bare(node: ast.expr) -> bool:
    """True for a text that stands in the source and has no key."""
    if isinstance(node, ast.IfExp):
        return bare(node.body) or bare(node.orelse)
    if isinstance(node, ast.BinOp):
        return bare(node.left) or bare(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def test_no_refusal_is_english_only() -> None:
    found = []
    for name, tree in sources():
        if name.startswith(OPERATORS):
            continue
        for called, node in calls(tree):
            refuses = called in REFUSALS or (called == "ValueError" and name in VALIDATORS)
            # Of an experiment's error the first argument is the path of the field.
            told = node.args[1:] if called == "ExperimentError" else node.args
            if refuses and any(bare(one) for one in told):
                found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert found == []


def test_english_is_the_engine_s_own() -> None:
    error = ExperimentError("prompt", said("prompt_too_long", tokens=9, whose=said("the_context"), limit=4))
    told = "the prompt has 9 tokens, the model's context holds 4; shorten it"
    assert (in_words(error), str(error), error.message) == (f"prompt: {told}", f"prompt: {told}", told)
    assert json.dumps({"message": error.message}) == json.dumps({"message": told})
    assert pickle.loads(pickle.dumps(error.message)).values == error.message.values  # to another process and back


def test_a_sentence_is_of_plain_values() -> None:
    told = said("wanted_got", wanted=said("a_list"), got=np.int64(3))
    assert told == "a list is wanted, got 3"
    assert type(told.values["got"]) is int
    assert said("not_json", got=Path("x")).values == {"got": "x"}
    with pytest.raises(KeyError):
        said("no_such_key")


def test_another_language_has_its_words_for_the_same_values() -> None:
    speak("zh")
    error = ExperimentError("messages", said("prompt_too_long", tokens=9_000, whose=said("the_context"), limit=8_192))
    say = words_in("zh", "refusals")
    assert in_words(error) == "messages: " + say.text(
        "prompt_too_long", tokens=9_000, whose=say.text("the_context"), limit=8_192
    )
    assert "9000" in in_words(error)
    assert in_words(Busy(said("runs_full", count=3))) == say.text("runs_full", count=3)
    assert in_words(SessionGone()) == say.text("session_ended")


def test_a_text_that_is_no_sentence_of_ours_stays_as_it_is() -> None:
    speak("zh")
    assert in_words(Refused("no such thing")) == "no such thing"
    assert in_words(Refused()) == ""


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
    known = {key for key in english() if key.startswith("field_")}
    of_probes = {"field_is_instance_of", "field_sequence_str"}  # tried in tests/engine/test_asking.py
    assert known == {f"field_{kind}" for _, kind in BAD} | of_probes | {"field_other"}


def test_a_fault_without_words_is_told_in_pydantic_s() -> None:
    told = fault({"type": "url_parsing", "msg": "Input should be a valid URL", "ctx": {}}, "'x'")
    assert told == "Input should be a valid URL, got 'x'"
    speak("zh")
    assert re.search(r"[\u4e00-\u9fff].*Input should be a valid URL.*'x'", translated(told))


@pytest.mark.parametrize("language", list(LANGUAGES))
def test_a_refusal_on_the_page_is_in_the_visit_s_language(desk: Desk, language: str) -> None:
    visit = desk.open("visitor", language)
    for _ in desk.run(visit, "", form(desk, temperature=-1)):
        pass
    english = "sampling.temperature: Input should be greater than or equal to 0, got -1"
    chinese = "sampling.temperature: " + words_in("zh", "refusals").text("field_greater_than_equal", ge=0, got="-1")
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
