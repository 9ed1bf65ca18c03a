"""What a person does and what comes of it, from the form to the trace, on a small random model without a browser."""

from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from components.compose import form_values
from components.desk import Desk
from components.status import failure
from components.visit import Visit
from engine.catalog import load_catalog
from engine.experiment import Experiment
from engine.runtime import Runtime
from engine.settings import Settings
from engine.trace import Trace


@pytest.fixture
def desk(llama) -> Iterator[Desk]:
    runtime = Runtime(llama, load_catalog(), Settings(max_new_tokens=100))
    default = Experiment.model_validate(
        {
            "version": 1,
            "model": llama.facts.model_id,
            "messages": [{"role": "user", "content": "the cat sat"}],
            "sampling": {"seed": 1, "min_new_tokens": 3},
            "stop": {"max_new_tokens": 6},
        }
    )
    ready: Future[Runtime] = Future()
    ready.set_result(runtime)
    yield Desk(ready, default)
    runtime.shut_down()


@pytest.fixture
def visit(desk: Desk) -> Visit:
    return desk.open("visitor")


def form(desk: Desk, **changes: object) -> dict[str, object]:
    return form_values(desk.default) | changes


def trace(desk: Desk, visit: Visit) -> Trace:
    found = desk.view(visit).trace
    assert found is not None
    return found


def run(desk: Desk, visit: Visit, message: str = "", **changes: object) -> None:
    for _ in desk.run(visit, message, form(desk, **changes)):
        pass


def ids(desk: Desk, visit: Visit, turn: int = 0) -> list[int]:
    return [step.token_id for step in trace(desk, visit).steps(turn)]


def test_a_new_page_shows_the_prompt_before_any_token(desk: Desk, visit: Visit) -> None:
    opened = trace(desk, visit)
    assert opened.rendered(0) is not None
    assert opened.prefilled(0) is not None
    assert opened.steps(0) == ()
    assert visit.notice == ""


def test_steps_then_run_make_the_tokens_of_one_run(desk: Desk, visit: Visit) -> None:
    for _ in range(3):
        desk.step(visit, "", form(desk))
    assert len(ids(desk, visit)) == 3
    run(desk, visit)
    other = desk.open("another visitor")
    run(desk, other)
    assert ids(desk, visit) == ids(desk, other)
    assert len(ids(desk, visit)) >= 3


def test_back_then_step_draws_the_same_token(desk: Desk, visit: Visit) -> None:
    for _ in range(3):
        desk.step(visit, "", form(desk))
    before = ids(desk, visit)
    desk.back(visit)
    assert ids(desk, visit) == before[:2]
    desk.step(visit, "", form(desk))
    assert ids(desk, visit) == before


def test_a_chosen_candidate_is_taken_and_goes_into_the_experiment(desk: Desk, visit: Visit) -> None:
    for _ in range(3):
        desk.step(visit, "", form(desk))
    first = trace(desk, visit).steps(0)[0]
    other = next(int(token) for token in first.candidate_ids if token != first.token_id)
    desk.select(visit, {"position": first.position})
    desk.select(visit, {"token_id": other})
    assert ids(desk, visit) == [other]
    assert trace(desk, visit).experiment.forced_token(0, 0) == other
    assert desk.view(visit).step is trace(desk, visit).steps(0)[0]


def test_a_prompt_token_cannot_be_replaced(desk: Desk, visit: Visit) -> None:
    desk.step(visit, "", form(desk))
    desk.select(visit, {"position": 0})
    desk.select(visit, {"token_id": 5})
    assert "sampled token" in visit.notice
    assert len(ids(desk, visit)) == 1


def test_new_settings_start_the_answer_again(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    desk.step(visit, "", form(desk, do_sample=False))
    assert len(ids(desk, visit)) == 1
    assert trace(desk, visit).experiment.sampling.greedy


def test_a_message_before_the_first_token_replaces_the_example(desk: Desk, visit: Visit) -> None:
    desk.step(visit, "the dog", form(desk))
    assert [m.content for m in trace(desk, visit).experiment.messages or ()] == ["the dog"]
    assert len(ids(desk, visit)) == 1


def test_a_message_after_the_answer_is_the_next_turn(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    run(desk, visit, "and then")
    after = trace(desk, visit)
    assert after.experiment.follow_ups == ("and then",)
    assert after.turns == 2
    assert after.rendered(1).reused > 0
    assert visit.notice == ""


def test_a_message_in_the_middle_of_an_answer_must_wait(desk: Desk, visit: Visit) -> None:
    desk.step(visit, "", form(desk))
    desk.step(visit, "the dog", form(desk))
    assert "not finished" in visit.notice
    assert trace(desk, visit).turns == 1


def test_new_settings_with_a_message_keep_the_answer_as_history(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    answer = trace(desk, visit).answer(0)
    run(desk, visit, "and then", seed=9)
    messages = trace(desk, visit).experiment.messages or ()
    assert [(m.role, m.content) for m in messages] == [
        ("user", "the cat sat"),
        ("assistant", answer),
        ("user", "and then"),
    ]


def test_nothing_to_do_is_said(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    made = ids(desk, visit)
    desk.step(visit, "  ", form(desk))
    assert "ended" in visit.notice
    desk.move(visit, 1)
    assert "ended" in visit.notice
    assert ids(desk, visit) == made


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"temperature": -1}, "sampling.temperature"),
        ({"top_p": float("nan")}, "sampling.top_p"),
        ({"stop_strings": "s" * 5_000}, "stop.stop_strings[0]"),
        ({"grammar_kind": "regex", "grammar_source": "("}, "does not compile"),
        ({"max_new_tokens": 101}, "at most 100"),
        ({"system_prompt": "a" * 20_000}, "tokens"),
    ],
)
def test_bad_input_is_refused_and_the_session_lives_on(
    desk: Desk, visit: Visit, changes: dict[str, object], said: str
) -> None:
    desk.step(visit, "", form(desk, **changes))
    view = desk.view(visit)
    stopped = view.trace.stopped(0) if view.trace else None
    message = visit.notice or (str(stopped.evidence["message"]) if stopped else "")
    assert said in message
    desk.new(visit, "the cat", form(desk))
    desk.step(visit, "", form(desk))
    assert visit.notice == ""
    assert len(ids(desk, visit)) == 1


def test_lone_surrogates_are_replaced_at_the_door(desk: Desk, visit: Visit) -> None:
    desk.step(visit, "a\ud800b", form(desk))
    assert [m.content for m in trace(desk, visit).experiment.messages or ()] == ["a\ufffdb"]


def test_the_arrow_keys_walk_the_tokens_and_make_new_ones_at_the_end(desk: Desk, visit: Visit) -> None:
    desk.move(visit, 1)
    assert len(ids(desk, visit)) == 1
    desk.move(visit, -1)
    last_of_the_prompt = trace(desk, visit).steps(0)[0].position - 1
    assert visit.cursor.position == last_of_the_prompt
    desk.move(visit, 1)
    assert visit.cursor.position == last_of_the_prompt + 1
    assert len(ids(desk, visit)) == 1


def test_without_the_template_the_message_alone_is_the_prompt(desk: Desk, visit: Visit) -> None:
    desk.step(visit, "", form(desk))
    desk.ask(visit, "without_template")
    assert visit.results["without_template"].experiment.prompt == "the cat sat"
    assert len(visit.results["without_template"].steps(0)) > 0


def test_the_loop_equals_generate_from_the_page(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    desk.ask(visit, "parity")
    assert visit.results["parity"].equal


def test_a_step_without_its_cache_has_the_same_logits(desk: Desk, visit: Visit) -> None:
    desk.ask(visit, "uncached")
    assert "no token yet" in visit.notice
    desk.step(visit, "", form(desk))
    desk.step(visit, "", form(desk))
    desk.ask(visit, "uncached")
    assert visit.notice == ""
    assert visit.results["uncached"].step == 1
    assert visit.results["uncached"].reused > 0
    assert visit.results["uncached"].max_difference < 1e-4


def test_what_is_pressed_before_the_page_has_opened_gets_a_session_of_its_own(desk: Desk) -> None:
    early, other = Visit(), Visit()
    desk.step(early, "", form(desk))
    desk.step(other, "", form(desk))
    assert early.session_id != other.session_id
    assert len(trace(desk, early).events) == len(trace(desk, other).events) > 0


def test_a_check_asked_again_looks_at_the_tokens_made_since(desk: Desk, visit: Visit) -> None:
    for made in (1, 2):
        desk.step(visit, "", form(desk))
        desk.ask(visit, "parity")
        assert len(visit.results["parity"].ours) == made


def test_a_probe_is_run_once_for_a_step_and_again_when_the_run_changes(desk: Desk, visit: Visit, monkeypatch) -> None:
    desk.step(visit, "", form(desk))
    calls = []
    probe = desk.runtime.probe
    monkeypatch.setattr(desk.runtime, "probe", lambda *names, **told: calls.append(told) or probe(*names, **told))
    found = [desk.view(visit).probe("distribution", step=0, query=" cat") for _ in range(2)]
    assert found[0] is found[1]
    assert len(calls) == 1
    desk.view(visit).probe("distribution", step=0, query=" dog")
    desk.back(visit)
    desk.step(visit, "", form(desk))
    desk.view(visit).probe("distribution", step=0, query=" cat")
    assert len(calls) == 3


def test_a_session_that_was_put_away_is_opened_anew(desk: Desk, visit: Visit) -> None:
    desk.close(visit.session_id)
    desk.step(visit, "", form(desk))
    assert "put away" in visit.notice
    assert trace(desk, visit).steps(0) == ()


def test_a_fault_inside_is_told_and_logged(desk: Desk, visit: Visit, monkeypatch, caplog) -> None:
    monkeypatch.setattr(desk.runtime, "step", lambda session_id: 1 / 0)
    desk.step(visit, "", form(desk))
    assert "ZeroDivisionError" in visit.notice
    assert "ZeroDivisionError" in caplog.text


def test_two_visitors_share_nothing(desk: Desk, visit: Visit) -> None:
    other = desk.open("another visitor")
    desk.step(visit, "the dog", form(desk))
    assert trace(desk, other).steps(0) == ()


def test_a_follow_up_that_does_not_fit_is_told_and_a_shorter_one_takes_its_place(desk: Desk, visit: Visit) -> None:
    run(desk, visit)
    answer = trace(desk, visit).answer(0)
    run(desk, visit, "the cat sat " * desk.runtime.facts.context)
    assert "shorten it" in failure(desk.view(visit))
    run(desk, visit, "the cat sat")
    assert failure(desk.view(visit)) == ""
    messages = trace(desk, visit).experiment.messages
    assert messages is not None
    assert [message.content for message in messages] == ["the cat sat", answer, "the cat sat"]
    assert trace(desk, visit).answer(0)
