"""What comes back late is about the run it was asked of: events of one visitor run side by side."""

from typing import Any

import pytest

from components.desk import Desk
from components.lesson_player.library import read_library
from components.visit import Visit
from engine.catalog import load_catalog
from engine.link import Link, link_from_text
from tests.components.test_desk import desk, form, run, trace, visit
from tests.components.test_sharing import shown

__all__ = ["desk", "visit"]  # fixtures


def meanwhile(desk: Desk, monkeypatch: pytest.MonkeyPatch, method: str, do: Any) -> None:
    """While the model answers, the person does something else, once."""
    answer = getattr(desk.runtime, method)

    def late(*arguments: Any, **named: Any) -> Any:
        monkeypatch.undo()
        found = answer(*arguments, **named)
        do()
        return found

    monkeypatch.setattr(desk.runtime, method, late)


@pytest.mark.parametrize(("method", "asked"), [("probe", "parity"), ("complete", "without_template")])
def test_an_answer_about_the_run_before_is_not_told_of_the_new_one(
    desk: Desk, visit: Visit, monkeypatch: pytest.MonkeyPatch, method: str, asked: str
) -> None:
    run(desk, visit)
    meanwhile(desk, monkeypatch, method, lambda: desk.new(visit, "the dog ran", form(desk)))
    desk.ask(visit, asked)
    assert trace(desk, visit).experiment.messages[-1].content == "the dog ran"  # type: ignore[index]
    assert (visit.results, visit.probed, visit.looked) == ({}, {}, {})


def test_the_question_of_the_turn_in_sight_is_asked_without_its_template(desk: Desk, visit: Visit) -> None:
    for question in ("the cat sat", "the dog ran"):
        run(desk, visit, question)
        desk.ask(visit, "without_template")
        assert visit.results["without_template"].experiment.prompt == question


def test_a_link_leads_to_a_lesson_only_while_its_record_is_in_sight(desk: Desk, visit: Visit) -> None:
    desk.library = read_library(load_catalog().loadable_ids)

    def linked() -> Link:
        desk.link(visit, "", shown(desk, visit))
        assert visit.notice == ""
        return link_from_text(visit.shared, models=[*load_catalog().loadable_ids, desk.default.model], tools=[])

    desk.open_lesson(visit, "paris", 2)
    assert (linked().lesson, linked().note) == ("paris", 2)
    desk.new(visit, "my own question", form(desk))
    found = linked()
    assert (found.lesson, found.note) == (None, None)
    assert found.experiment.messages[-1].content == "my own question"  # type: ignore[index]


def test_a_link_that_was_opened_takes_the_place_of_a_lesson(desk: Desk, visit: Visit) -> None:
    desk.library = read_library(load_catalog().loadable_ids)
    desk.open_lesson(visit, "paris")
    experiment = desk.default.model_copy(update={"stop": desk.default.stop.model_copy(update={"max_new_tokens": 2})})
    desk.open_link(visit, Link(experiment=experiment))
    assert visit.playing is None
    assert trace(desk, visit).experiment == experiment
    assert (visit.looked, visit.results) == ({}, {})
