"""A record on the page: the same as the run it was made of, walked through with no model, left for a run of its own."""

import dataclasses

import pytest

from components.frame import recorded_badge, recorded_notice
from engine.playback import Playback
from engine.record import Record, record_from_bytes, record_to_bytes
from engine.refusals import Refused
from tests.components.replays import finished, form, replaying, saved
from tests.engine.records import assert_same, contents, read, recorded


def test_a_record_holds_what_was_looked_at_and_the_inside_of_the_steps_that_were_named(live):
    visit = finished(live)
    view = live.view(visit)
    assert view.probe is not None
    lens = view.probe("lens", turn=0, position=4)
    record = saved(live, visit, "1, 3")
    kept = [(one.probe, one.arguments.get("position")) for one in record.answers]
    first = len(view.rendered.token_ids) - 1
    assert ("lens", 4) in kept
    assert [place for name, place in kept if name == "lens"][1:] == [first + 1, first + 3]
    facts = live.runtime.facts
    attention = [one.arguments for one in record.answers if one.probe == "attention" and
                 one.arguments["position"] == first + 1]  # fmt: skip
    assert len(attention) == facts.layers + facts.heads - 1
    assert kept.count(("layer", first + 3)) == facts.layers
    assert_same(next(one.result for one in record.answers if one.probe == "lens"), lens)
    assert_same(record.trace, view.trace)


@pytest.mark.parametrize(
    ("steps", "said"),
    [("x", "Steps are numbers"), ("99", "there is no step 99"), (",".join(map(str, range(13))), "at most 12 steps")],
)
def test_steps_that_are_not_there_are_refused(live, steps, said):
    visit = finished(live)
    assert list(live.record(visit, steps)) == []
    assert said in visit.notice


def test_saving_can_be_stopped(live):
    visit, seen = finished(live), []
    for record in live.record(visit, "all"):
        seen.append(record)
        live.stop(visit)
    assert seen == [None]
    assert "Nothing was saved" in visit.notice


def test_a_record_is_walked_through_with_no_model(live):
    visit = finished(live, "and a dog")
    record = saved(live, visit)
    turns = [record.trace.steps(turn) for turn in range(2)]
    desk, page = replaying(record)
    view = desk.view(page)
    assert_same(view.trace, record.trace)
    whole = len(turns[0]) + len(turns[1])
    assert (view.recorded.made, view.recorded.steps, view.recorded.alone) == (whole, whole, True)
    assert f"token {whole} of {whole}" in recorded_notice(view)[0].result
    origin = f"made by {record.made_by} on {view.facts.title}"
    assert recorded_badge(view)[0].result == f"record {whole} / {whole} · {origin}"
    assert len(recorded_notice(view)[0].result) < 120
    for _ in range(len(turns[1])):
        desk.back(page)
    view = desk.view(page)
    assert (view.trace.turns, len(view.steps)) == (1, len(turns[0]))
    assert view.trace.experiment.follow_ups == ()
    assert view.trace.stopped(0) is not None
    desk.step(page, "", form(desk, page))
    view = desk.view(page)
    assert (view.trace.turns, len(view.steps), view.trace.experiment.follow_ups) == (2, 1, ("and a dog",))
    desk.back(page)
    for _ in range(len(turns[0]) + 3):
        desk.back(page)
    view = desk.view(page)
    assert (len(view.steps), view.rendered is not None) == (0, True)
    made = [len(desk.view(page).steps) for _ in desk.run(page, "", form(desk, page))]
    assert made == list(range(1, len(turns[0]) + 1))
    desk.move(page, 1)
    assert desk.view(page).trace.turns == 2
    for _ in desk.run(page, "", form(desk, page)):
        pass
    desk.step(page, "", form(desk, page))
    assert page.notice.startswith("The record ends here")


def test_what_needs_a_model_says_so_where_there_is_none(live):
    desk, page = replaying(saved(live, finished(live)))
    with pytest.raises(Refused, match="does not hold the view “lens”"):
        desk.view(page).probe("lens", turn=0, position=3)
    desk.new(page, "hello", form(desk, page))
    assert page.notice == "no model is loaded here: this program shows a recorded run"
    desk.step(page, "hello", form(desk, page))
    assert page.notice.startswith("no model is loaded here")
    desk.step(page, "", form(desk, page) | {"temperature": 0.1})
    assert page.notice.startswith("no model is loaded here")
    desk.run_live(page)
    assert page.notice.startswith("no model is loaded here")
    desk.select(page, {"token_id": 5})
    assert "Press Run live first" in page.notice
    desk.ask(page, "without_template")
    assert "Press Run live first" in page.notice
    desk.ask(page, "parity")
    assert "does not hold the view “parity”" in page.notice
    assert desk.view(page).recorded is not None


def test_what_the_record_has_not_is_computed_where_its_model_is_loaded(live):
    visit = finished(live)
    expected = live.view(visit).probe("residual", turn=0, position=3)
    record = saved(live, visit)
    bare = Record(record.trace)
    live.play(visit, record_from_bytes(record_to_bytes(bare)))
    found = live.view(visit).probe("residual", turn=0, position=3)
    assert found.target_id == expected.target_id
    assert found.norms == pytest.approx(expected.norms, rel=1e-4)
    facts = dataclasses.replace(bare.facts, parameters=7)
    live.play(visit, Record(dataclasses.replace(bare.trace, facts=facts)))
    with pytest.raises(Refused, match="does not hold the view “residual”"):
        live.view(visit).probe("residual", turn=0, position=3)


def test_a_message_or_a_setting_leaves_the_record_for_a_run(live):
    visit = finished(live)
    record = saved(live, visit)
    whole = live.view(visit).trace
    live.play(visit, record)
    assert (visit.refill, live.view(visit).recorded.alone) == (True, False)
    for _ in live.run(visit, "and the dog", form(live, visit)):
        pass
    view = live.view(visit)
    assert (view.recorded, visit.notice) == (None, "")
    assert [message.role for message in view.trace.experiment.messages] == ["user", "assistant", "user"]
    live.play(visit, record, made=2)
    live.step(visit, "and the dog", form(live, visit))
    assert visit.notice.startswith("The answer is not finished")
    assert live.view(visit).recorded.made == 2
    live.step(visit, "", form(live, visit) | {"temperature": 0.5})
    view = live.view(visit)
    assert (view.recorded, len(view.steps), view.trace.experiment.sampling.temperature) == (None, 1, 0.5)
    live.play(visit, record)
    live.run_live(visit)
    view = live.view(visit)
    assert (view.recorded, view.steps, view.trace.experiment) == (None, (), whole.experiment)
    for _ in live.run(visit, "", form(live, visit)):
        pass
    assert [step.token_id for step in live.view(visit).steps] == [step.token_id for step in whole.steps(0)]


def test_an_answer_about_what_comes_later_waits_until_it_is_there(live):
    visit = finished(live)
    matrix = live.view(visit).probe("attention_matrix", turn=0, layer=0, head=0)
    playback = Playback(saved(live, visit))
    asked = {"turn": 0, "layer": 0, "head": 0}
    assert_same(playback.probe(playback.steps, "attention_matrix", **asked), matrix)
    assert_same(playback.probe(playback.steps, "attention_matrix", **asked, position=matrix.last), matrix)
    with pytest.raises(Refused, match="further on in the run"):
        playback.probe(1, "attention_matrix", **asked)
    with pytest.raises(Refused, match="was not kept"):
        playback.probe(1, "attention_matrix", **asked | {"head": 1})


@pytest.mark.parametrize("name", ["norms", "parity"])
def test_an_answer_about_the_whole_turn_waits_for_its_end(live, name):
    visit = finished(live)
    live.ask(visit, name)
    playback = Playback(saved(live, visit))
    assert_same(playback.probe(playback.steps, name), visit.results[name])
    with pytest.raises(Refused, match="further on in the run"):
        playback.probe(1, name)


def test_the_trace_in_a_record_may_have_no_token():
    empty = read_only_prompt()
    desk, page = replaying(empty)
    assert desk.view(page).recorded.steps == 0
    desk.back(page)
    desk.step(page, "", form(desk, page))
    assert page.notice.startswith("The record ends here")


def read_only_prompt() -> Record:
    whole = recorded("llama", ())
    return read(contents(Record(dataclasses.replace(whole.trace, events=whole.trace.events[:2]))))
