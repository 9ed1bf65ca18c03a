"""What one part of the page does while another is at work: a record that is saved while the run changes, and so on."""

import dataclasses

import numpy as np
import pytest

from components.lesson_player.library import read_library
from engine.catalog import load_catalog
from engine.experiment import Forced
from engine.playback import Playback
from engine.record import Record
from tests.components.pages import page_over
from tests.components.replays import finished, form, replaying, saved


def lens(record, position):
    return next(one.result for one in record.answers if one.probe == "lens" and one.arguments["position"] == position)


def test_a_saved_answer_is_of_the_token_that_stands_there_now(live):
    """Another token in the place of the newest one leaves as many events as there were."""
    visit = finished(live)
    view = live.view(visit)
    last = view.steps[-1]
    live.view(visit).probe("lens", turn=0, position=last.position)
    other = next(int(one) for one in last.candidate_ids if one != last.token_id)
    visit.cursor = visit.cursor.__class__(position=last.position)
    live.select(visit, {"token_id": other})
    assert (visit.notice, live.view(visit).steps[-1].token_id) == ("", other)
    assert len(live.view(visit).trace.events) == len(view.trace.events)
    kept = lens(saved(live, visit), last.position)
    live._forget(visit)
    fresh = live.view(visit).probe("lens", turn=0, position=last.position)
    assert np.array_equal(kept.logits, fresh.logits)


@pytest.mark.parametrize(
    "change",
    [
        lambda live, visit: live.back(visit),
        lambda live, visit: live.new(visit, "the dog", form(live, visit)),
        lambda live, visit: live.play(visit, saved(live, finished(live))),
    ],
)
def test_a_run_that_changes_while_it_is_saved_is_not_saved(live, change):
    visit = finished(live)
    given = live.record(visit, "all")
    assert next(given) is None
    change(live, visit)
    assert list(given) == []
    assert "Nothing was saved" in visit.notice


def test_where_no_model_is_a_closed_lesson_leaves_the_program_s_record_in_sight(live):
    desk, page = replaying(saved(live, finished(live)))
    own = page.playing.playback.record
    desk.library = read_library(load_catalog().loadable_ids)
    desk.open_lesson(page, "paris")
    assert page.playing.playback.record is not own
    assert page_over(desk).frame(page)["first"]["lesson"]["note"]["live"] == ""  # there is nothing to run it on
    desk.teach(page, {"do": "close"})
    assert (page.notice, page.reading, page.refill) == ("", None, True)
    assert page.playing.playback.record is own
    assert desk.view(page).trace.experiment == own.trace.experiment


def test_where_no_model_is_a_broken_record_gives_way_to_the_program_s(live, monkeypatch):
    desk, visit = replaying(saved(live, finished(live)))
    own, page = visit.playing.playback.record, page_over(desk)
    broken = dataclasses.replace(own)
    desk.play(visit, broken)
    whole = Playback.trace_at
    monkeypatch.setattr(Playback, "trace_at", lambda self, made: whole(self, made) if self.record is own else 1 / 0)
    page.frame(visit)
    assert "contradicts itself" in visit.notice
    assert visit.playing.playback.record is own


def test_a_session_put_away_while_a_record_is_looked_at_is_not_missed(live):
    visit = finished(live)
    live.play(visit, Record(saved(live, visit).trace))
    live.runtime.close(visit.session_id)
    found = live.view(visit).probe("residual", turn=0, position=3)
    assert found.position == 3
    assert visit.playing is not None


def test_token_ids_of_one_model_are_not_taken_to_another(live):
    visit = finished(live)
    trace = saved(live, visit).trace
    sampling = trace.experiment.sampling.model_copy(update={"suppress_tokens": (7,)})
    update = {"model": "other", "sampling": sampling, "forced": (Forced(step=1, token_id=5),)}
    asked = trace.experiment.model_copy(update=update)
    facts = dataclasses.replace(trace.facts, model_id="other")
    live.play(visit, Record(dataclasses.replace(trace, experiment=asked, facts=facts)))
    live.run_live(visit)
    now = live.view(visit).trace.experiment
    assert (now.forced, now.sampling.suppress_tokens) == ((), ())
    assert now.sampling.seed == sampling.seed
    assert "token ids" in visit.notice
