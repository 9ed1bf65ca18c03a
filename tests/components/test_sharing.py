"""Links made and opened on the page's side of things, on a small random model without a browser."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from components.compose import form_values
from components.copy import DEFAULT, speak, words
from components.desk import Desk
from components.lesson_player.library import read_library
from components.page import Page
from components.sharing import button
from components.sharing.contents import contents
from components.transcript_strip import conversation
from components.visit import Visit
from components.widgets.host import read
from engine.experiment import Experiment
from engine.link import Link, _inflated, _opened, link_from_text, link_to_text
from tests.components.pages import page_over
from tests.components.test_desk import desk, form, ids, run, trace, visit

__all__ = ["desk", "visit"]  # fixtures


@pytest.fixture
def page(desk: Desk) -> Page:
    return page_over(desk)


def experiment(desk: Desk, **fields: Any) -> Experiment:
    return Experiment.model_validate(desk.default.model_dump() | fields)


def text(desk: Desk, *, place: dict[str, Any] | None = None, **fields: Any) -> str:
    return link_to_text(Link(experiment=experiment(desk, **fields), **(place or {})))


def linked(desk: Desk, visit: Visit, message: str, values: dict[str, Any]) -> str:
    desk.link(visit, message, values)
    assert visit.notice == ""
    return visit.shared


def held(desk: Desk, link: str) -> Link:
    return link_from_text(link, models=[desk.default.model], tools=[])


def shown(desk: Desk, visit: Visit) -> dict[str, Any]:
    """The form as it stands after the page was filled anew."""
    return form_values(trace(desk, visit).experiment)


def go(desk: Desk, visit: Visit, message: str = "", **changes: Any) -> None:
    for _ in desk.run(visit, message, shown(desk, visit) | changes):
        pass


@pytest.fixture(autouse=True)
def _in_english() -> Iterator[None]:
    speak(DEFAULT)
    yield
    speak(DEFAULT)


def test_opening_shows_the_experiment_and_runs_nothing(desk: Desk, llama) -> None:
    forwards: list[object] = []
    hook = llama.model.register_forward_pre_hook(lambda *_: forwards.append(_))
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "the dog"}]
    link = text(desk, messages=messages, follow_ups=["and then"], place={"station": "lens", "layer": 1, "head": 2})
    opened = desk.open("visitor", link=link)
    hook.remove()
    assert forwards == []
    assert opened.notice == ""
    assert trace(desk, opened).events == ()
    assert (opened.station, opened.cursor.layer, opened.cursor.head) == ("lens", 1, 2)
    assert [(group.label, group.chips[0].text) for group in conversation(desk.view(opened))] == [
        ("system", "be brief"),
        ("user", "the dog"),
        ("user · asked after the answer", "and then"),
    ]
    assert opened.refill


def test_the_notice_says_what_is_about_to_run_until_it_runs(desk: Desk, page: Page) -> None:
    opened = desk.open("visitor", link=text(desk, stop={"max_new_tokens": 9}))
    (notice,) = read(page.frame(opened)["first"]["notice"])["stations"]
    assert notice[2] == (
        "This link holds an experiment: 1 message, temperature 1, up to 9 tokens. Nothing has been run yet. Press Run."
    )
    desk.step(opened, "", shown(desk, opened))
    assert read(page.frame(opened)["first"]["notice"])["stations"] == []


def test_everything_that_changes_a_run_is_told_before_it_runs(desk: Desk) -> None:
    said = contents(
        experiment(
            desk,
            messages=[{"role": "user", "content": "x"}] * 3,
            follow_ups=["y", "z"],
            tools=["clock"],
            grammar={"kind": "regex", "source": "a"},
            sampling={"do_sample": False},
            context={"strategy": "keep_system", "max_tokens": 9},
            forced=[{"step": 0, "token_id": 1}],
            obey_marks_in_content=True,
            mistake="eos_not_watched",
            stop={"max_new_tokens": 1_000},
        )
    )
    assert said == (
        "This link holds an experiment: 3 messages, 2 further questions, always the best token, up to 1,000 tokens, "
        "tools: clock, a grammar, a limit for the history, 1 token chosen by hand, "
        "control marks in messages are obeyed, a mistake switched on. Nothing has been run yet. Press Run."
    )


def test_the_same_link_gives_the_same_tokens_and_the_cursor_goes_where_it_says(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    first = ids(desk, visit)
    desk.select(visit, {"position": trace(desk, visit).steps(0)[2].position})
    desk.select(visit, {"layer": 1})
    visit.station = "sampling"
    link = linked(desk, visit, "", form(desk))
    assert held(desk, link).step == 2
    opened = desk.open("another", link=link)
    assert opened.cursor.position is None
    seen = []
    for _ in desk.run(opened, "", shown(desk, opened)):
        step = desk.view(opened).step
        seen.append(step.step if step else -1)
    assert ids(desk, opened) == first
    assert seen == sorted(seen)
    assert len(first) > 3
    assert seen[-1] == max(seen) == 2
    assert desk.view(opened).cursor.layer == 1


def test_a_prompt_position_is_restored_with_the_first_token(desk: Desk, visit: Visit) -> None:
    desk.step(visit, "", form(desk))
    desk.select(visit, {"position": 1})
    opened = desk.open("another", link=linked(desk, visit, "", form(desk)))
    desk.step(opened, "", shown(desk, opened))
    assert desk.view(opened).cursor.position == 1


def test_all_turns_run_when_asked(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    run(desk, visit, "and the dog")
    link = linked(desk, visit, "", form(desk))
    opened = desk.open("another", link=link)
    go(desk, opened)
    assert trace(desk, opened).turns == 2
    assert [ids(desk, opened, turn) for turn in (0, 1)] == [ids(desk, visit, turn) for turn in (0, 1)]
    step = desk.view(opened).step
    assert step is not None
    assert (step.turn, step.step) == (1, held(desk, link).step)


def test_a_link_holds_the_settings_and_the_message_as_they_stand(desk: Desk, visit: Visit) -> None:
    changed = held(desk, linked(desk, visit, "the bird", form(desk, temperature=0.5)))
    assert changed.experiment.sampling.temperature == 0.5
    assert [message.content for message in changed.experiment.messages or ()] == ["the bird"]
    assert trace(desk, visit).experiment == desk.default
    run(desk, visit)
    further = held(desk, linked(desk, visit, "and then", form(desk)))
    assert further.experiment.follow_ups == ("and then",)
    assert further.step is None
    assert trace(desk, visit).experiment.follow_ups == ()


def test_a_link_made_in_a_lesson_with_another_setting_is_of_that_run_and_of_no_lesson(desk: Desk, visit: Visit) -> None:
    desk.library = read_library([desk.default.model, "smollm2-135m-instruct"])
    desk.open_lesson(visit, "paris", 3)
    assert visit.notice == ""
    link = held(desk, linked(desk, visit, "", shown(desk, visit) | {"temperature": 1.5, "do_sample": True}))
    assert (link.lesson, link.note, link.step, link.experiment.sampling.temperature) == (None, None, None, 1.5)


def test_a_link_of_a_session_that_was_put_away_shows_the_one_that_was_opened_anew(
    desk: Desk, visit: Visit, page: Page
) -> None:
    ours = [one.fn for one in page.blocks.fns.values() if getattr(one.fn, "__module__", "") == button.__name__]
    make, redraw = ours
    values = [form(desk)[name] for name in page.form]
    run(desk, visit)
    assert make(visit, "", values)["text"] == visit.shared != ""
    assert "first" not in redraw(visit)  # nothing has changed
    desk.runtime.close(visit.session_id)
    sent = make(visit, "", values)
    assert (sent["text"], sent["problem"]) == ("", words("page").text("session_gone"))
    assert trace(desk, visit).steps(0) == ()
    assert "timeline" in redraw(visit)["first"]


def test_a_link_holds_nothing_that_came_of_the_run(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    desk.look_up(visit, "a secret query")
    desk.ask(visit, "uncached")
    data = json.loads(_inflated(_opened(linked(desk, visit, "", form(desk)))))
    place = data.pop("at")
    assert data == desk.default.model_dump(mode="json", exclude_defaults=True)
    assert set(place) <= {"turn", "step", "layer", "head", "station", "language"}


#: What a form cannot hold: two system messages, a seed beyond what a browser counts, a cut of 0, no user at all.
BEYOND_THE_FORM = (
    {"messages": [{"role": role, "content": "the cat"} for role in ("system", "user", "system", "user")]},
    {"sampling": {"seed": 2**62 + 1, "top_k": 0, "min_p": 0.0, "top_p": 1.0}},
    {"messages": [{"role": "system", "content": "the cat"}]},
    {"stop": {"max_new_tokens": 5, "stop_strings": ["\\n", "a\r\nb"]}},
    {"forced": [{"step": 1, "token_id": 7}], "follow_ups": ["the dog"]},
    {"prompt": "the cat", "messages": None, "grammar": {"kind": "regex", "source": "(the|cat)*"}},
)


@pytest.mark.parametrize("fields", BEYOND_THE_FORM, ids=range(len(BEYOND_THE_FORM)))
def test_what_a_form_cannot_hold_is_run_as_it_is(desk: Desk, fields: dict[str, Any]) -> None:
    opened = desk.open("visitor", link=text(desk, **fields))
    assert opened.notice == ""
    in_browser = json.loads(json.dumps(shown(desk, opened)), parse_int=float)
    in_browser = {name: now.replace("\r\n", "\n") if isinstance(now, str) else now for name, now in in_browser.items()}
    for _ in desk.run(opened, "", in_browser):
        pass
    assert opened.notice == ""
    assert trace(desk, opened).experiment == experiment(desk, **fields)
    assert desk.view(opened).branches == ()
    alone = desk.runtime.complete(experiment(desk, **fields))
    assert ids(desk, opened) == [step.token_id for step in alone.steps(0)]


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("hello", "no link that Decodescope has made"),
        ("2.AAAA", "newer"),
        ("1.AAAA", "damaged"),
        ("1." + "A" * 70_000, "at most 6,000 characters, this one has 70,002"),
    ],
)
def test_a_link_that_cannot_be_opened_leaves_the_page_as_it_always_opens(desk: Desk, link: str, said: str) -> None:
    opened, usual = desk.open("visitor", link=link), desk.open("another")
    assert said in opened.notice
    assert trace(desk, opened).experiment == desk.default
    assert trace(desk, opened).rendered(0) is not None
    opened.notice = ""
    opened.session_id = usual.session_id
    assert opened == usual


def test_another_model_and_too_long_an_answer_are_refused_in_words(desk: Desk) -> None:
    other = desk.open("visitor", link=text(desk, model="qwen2.5-0.5b-instruct"))
    assert other.notice == (f"This link is for the model qwen2.5-0.5b-instruct; here {desk.default.model} is loaded.")
    unknown = desk.open("visitor", link=text(desk, model="gpt-9"))
    assert "unknown model 'gpt-9'" in unknown.notice
    long = desk.open("visitor", link=text(desk, stop={"max_new_tokens": 101}))
    assert "at most 100 here, this asks for 101" in long.notice
    for opened in (other, unknown, long):
        assert trace(desk, opened).experiment == desk.default
        assert opened.link is None


def test_a_new_start_forgets_where_the_link_wanted_to_go(desk: Desk) -> None:
    opened = desk.open("visitor", link=text(desk, place={"step": 4}))
    desk.new(opened, "the bird", shown(desk, opened))
    assert opened.link is None
    run(desk, opened)
    assert desk.view(opened).cursor.position is None


def test_a_link_carries_the_language(desk: Desk, visit: Visit) -> None:
    visit.language = "zh"
    assert desk.open("another", link=linked(desk, visit, "", form(desk))).language == "zh"
