"""Words are asked for when they are used, in the language of the visit that uses them."""

import ast
import contextvars
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from components import copy
from components.copy import DEFAULT, LANGUAGES, speak, spoken, words, words_in
from components.desk import Desk
from components.page import Page
from components.panels import PANELS
from components.relabel import Labels
from components.telling import telling
from components.visit import Visit
from engine.refusals import SessionGone
from engine.settings import Settings
from tests.components.languages import OTHER, apart, english, marked, texts, unmarked
from tests.components.pages import page_over
from tests.components.test_desk import desk, form

__all__ = ["apart", "desk"]  # fixtures

COMPONENTS = Path(copy.__file__).parent


@pytest.fixture
def page(desk: Desk) -> Page:
    return page_over(desk)


def title(language: str) -> str:
    return words_in(language, "prompt").title


# --- the spoken language ---


def test_words_are_in_the_language_that_is_spoken() -> None:
    assert {spoken(), words("prompt").title} == {DEFAULT, title(DEFAULT)}
    speak("zh")
    assert {spoken(), words("prompt").title} == {"zh", title("zh")}
    assert title("zh") != title(DEFAULT)


@pytest.mark.parametrize("language", ["", "de", "ZH", "../zh", "en "])
def test_a_language_that_the_page_does_not_have_is_not_spoken(language: str) -> None:
    with pytest.raises(ValueError, match="not a language"):
        speak(language)
    assert spoken() == DEFAULT


def test_speaking_in_one_context_says_nothing_of_another() -> None:
    contextvars.copy_context().run(speak, "zh")
    assert spoken() == DEFAULT
    thread = threading.Thread(target=speak, args=("zh",))
    thread.start()
    thread.join()
    assert spoken() == DEFAULT


# --- no module keeps words ---


def kept_words(source: str) -> list[str]:
    """Where words outlive the call that asked for them: when a module or class is made, on an object, in a cache."""
    found = []

    def visit(node: ast.AST, inside: bool) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            defaults = [*node.args.defaults, *(one for one in node.args.kw_defaults if one)]
            found.extend(f"{node.lineno}: a default" for one in defaults if asks(one))
            if any("cache" in ast.unparse(one) for one in getattr(node, "decorator_list", [])) and asks(node):
                found.append(f"{node.lineno}: a cache")
            inside = True
        elif not inside and is_words(node):
            found.append(f"{node.lineno}: made with the module")
        elif isinstance(node, ast.Assign) and any(isinstance(one, ast.Attribute) for one in ast.walk(node.targets[0])):
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            found.extend(f"{node.lineno}: kept on an object" for one in values if is_words(one))
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(ast.parse(source), inside=False)
    return found


def asks(node: ast.AST) -> bool:
    return any(is_words(one) for one in ast.walk(node))


def is_words(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"words", "words_in"}


@pytest.mark.parametrize(
    "source",
    [
        "SAY = words('page')",
        "LABELS = {'a': words('page').text('a')}",
        "class A:\n    say = words('page')",
        "def f(say=words('page')): ...",
        "class A:\n    def __init__(self):\n        self.say = words('page')",
        "class A:\n    def __init__(self):\n        self.a, self.say = 1, words('page')",
        "@cache\ndef f():\n    return words('page').text('a')",
        "@functools.lru_cache(1)\ndef f():\n    return words('page').text('a')",
    ],
)
def test_kept_words_are_found(source: str) -> None:
    assert kept_words(source)


def test_no_module_keeps_words() -> None:
    kept = {
        path.name: found
        for path in COMPONENTS.rglob("*.py")
        if path.name != "copy.py" and (found := kept_words(path.read_text("utf-8")))
    }
    assert kept == {}


# --- visitors ---


def sights(frame: dict[str, Any]) -> str:
    return " ".join(texts(frame["first"]["rail"]))


def test_two_visitors_see_their_own_languages_at_once(page: Page, desk: Desk) -> None:
    """Handlers in threads and contexts of their own, one a step of a run, the visitors in turn."""
    visits = {language: desk.open(f"visitor {language}", language) for language in LANGUAGES}
    runs = {}
    for language, visit in visits.items():
        page._take(visit, "the dog")
        values = form(desk)
        runs[language] = page._run(visit, [values[name] for name in page.form])
    seen: dict[str, list[str]] = {language: [] for language in LANGUAGES}

    def step(language: str) -> None:
        if (frame := next(runs[language], None)) is not None:
            assert frame["language"] == language
            seen[language].append(sights(frame))

    for _ in range(4):
        for language in LANGUAGES:
            # As gradio does: each step in a thread, in a copy of a context that says nothing of languages.
            thread = threading.Thread(target=contextvars.Context().run, args=(step, language))
            thread.start()
            thread.join()
    for language, frames in seen.items():
        other = next(one for one in LANGUAGES if one != language)
        assert len(frames) >= 2  # those that a slow reader misses are skipped
        assert all(title(language) in frame and title(other) not in frame for frame in frames)
    for run in runs.values():
        run.close()


def test_what_is_refused_in_the_middle_of_a_run_is_told_in_the_visit_s_language(desk: Desk) -> None:
    visit = desk.open("visitor", "zh")

    def run() -> Iterator[None]:
        with telling(desk, visit):
            yield
            raise SessionGone

    steps = run()
    for _ in range(2):
        contextvars.Context().run(lambda: list(zip(range(1), steps, strict=False)))
    assert visit.notice == words_in("zh", "page").text("session_gone")


def test_a_switch_during_a_run_shows_with_its_next_token(page: Page, desk: Desk) -> None:
    visit = desk.open("visitor")
    page._take(visit, "the dog")
    values = form(desk, max_new_tokens=20, min_new_tokens=20)
    whole = (frame for frame in page._run(visit, [values[name] for name in page.form]) if not frame["only"])
    assert title("en") in sights(next(whole))
    visit.language = "zh"
    assert title("zh") in sights(next(whole))
    whole.close()


# --- the page in a language whose every text is marked ---


def test_what_is_marked_is_told_from_what_is_not() -> None:
    assert unmarked("⟦a ⟦b⟧ c⟧ d⟦e⟧") == " d"


def test_every_text_in_sight_is_in_the_visit_s_language(desk: Desk, tmp_path: Path) -> None:
    """All panels, with all that can be asked of them, over two turns: no text of the English copy stands unmarked."""
    with marked(tmp_path):
        page = Page(desk, desk.default, "Tiny", runs=Settings.max_runs)
        visit = desk.open("visitor", OTHER)
        for message in ("", "the dog"):
            for _ in desk.run(visit, message, form(desk)):
                pass
        assert visit.notice == ""
        plain, found, count = english(), set(), 0
        for station, panel in page.owner.items():
            visit.station = station
            for probe in panel.CONTROLS.asks:
                desk.ask(visit, probe)
            frame = page.frame(visit)
            for name, value in (frame["first"] | frame["soon"]).items():
                for text in texts(value):
                    count += 1
                    found |= {(station, name, own) for own in plain if own in unmarked(text)}
        assert count > 900
        assert found == set()


def test_every_label_has_its_words_in_each_language(page: Page) -> None:
    for language in LANGUAGES:
        speak(language)
        changes = page.labels.updates(language)
        said = set(texts(changes))
        assert len(changes) == len(page.labels.components) + 1
        for panel in PANELS:
            say = words(panel.STATION)
            assert {say.title, f"## {say.title}", say.intro} & said == {say.title, f"## {say.title}", say.intro}
        assert {words("page").text(name) for name in ("step", "run", "stop", "message")} <= said
        assert {words("settings").text(name) for name in ("order", "order:custom", "tool_choice_help")} <= said
        assert words("page").text("timeline") in changes[-1]["names"].values()


def test_a_switch_never_touches_what_a_person_set(page: Page) -> None:
    for component, change in zip(page.labels.components, page.labels.updates("zh"), strict=False):
        if not isinstance(component, gr.Markdown | gr.Button):
            assert "value" not in change
    assert set(page.form.values()) & set(page.labels.components)


def test_layouts_with_other_components_are_refused() -> None:
    with gr.Blocks() as one:
        gr.Button("a")
    with gr.Blocks() as other:
        gr.Textbox(label="a")
    with pytest.raises(ValueError, match="other components"):
        Labels(one, {"zh": other})


def test_a_visit_speaks_the_first_language_until_told_otherwise() -> None:
    assert Visit().language == DEFAULT == next(iter(LANGUAGES))
