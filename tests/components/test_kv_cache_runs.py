"""What the station of the cache says where a step feeds more than one token, or the cache holds less than was fed."""

import plotly.graph_objects as go
import pytest

from components.kv_cache import growth as kv_growth
from components.kv_cache import panel as kv_cache
from components.kv_cache.growth import growth_figure
from components.panel import Cursor, View
from engine.conversation import Conversation
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny

SET = {"sampling": {"temperature": 0.8, "seed": 3, "min_new_tokens": 20}, "stop": {"max_new_tokens": 20}}


def begun(**fields) -> Conversation:
    """A run of twenty tokens on a small random model, whose prompt has 23."""
    return Conversation(
        tiny("llama"), experiment(messages=[{"role": "user", "content": "hello the cat sat"}], **SET | fields)
    )


def live_view(**fields) -> View:
    trace = finish(begun(**fields))
    return View(trace.facts, trace, Cursor())


def told(view: View, step) -> list[str]:
    """What is said of a step: what it fed, and how many positions there are."""
    return [group.note for group in kv_cache.notes(view, step)]


def test_a_run_without_a_cache_says_so():
    view = live_view(mistake="history_reencoded")
    step = view.steps[5]
    fed, count = told(view, step)
    assert step.shapes["input_ids"][-1] == step.position
    assert f"{step.position} tokens in one forward" in fed
    assert "This run keeps no cache" in fed
    assert "came from there" not in fed
    assert "None of it is kept: this run has no cache" in count
    assert "This run" not in "".join(told(view, view.steps[0])), "the prompt's forward has a cache like any other"


def test_a_window_that_starts_again_feeds_all_that_stays_once_it_is_full():
    view = live_view(context={"strategy": "sliding_window", "max_tokens": 30, "positions": "restart"})
    for step in view.steps[1:]:
        fed, count = told(view, step)
        assert ("Positions start again in this window" in fed) == (step.position > 30)
        assert ("30 tokens in one forward" in fed) == (step.position > 30)
        assert ("left the sliding window" in count) == (step.position > 30)
        assert ("One token" in fed) == (step.shapes["input_ids"] == (1, 1))


def test_a_cache_that_was_given_back_is_said_to_be_built_anew():
    conversation = begun()
    for _ in range(6):
        conversation.advance()
    conversation.release()
    conversation.advance()
    conversation.advance()
    view = View(conversation.trace.facts, conversation.trace, Cursor())
    *_, rebuilt, usual = view.steps
    fed, _ = told(view, rebuilt)
    assert rebuilt.shapes["input_ids"][-1] == rebuilt.kv_tokens > 1
    assert f"{rebuilt.kv_tokens} tokens in one forward" in fed
    assert "the cache had been given back" in fed
    assert "One token" in told(view, usual)[0]


# Where fewer positions are held than were fed.


@pytest.mark.parametrize("positions", ["go_on", "restart"])
def test_in_a_window_each_step_of_the_chart_has_its_place(positions):
    conversation = begun(context={"strategy": "sliding_window", "max_tokens": 30, "positions": positions})
    finish(conversation)
    conversation.say("and the dog")
    finish(conversation)
    for turn in (0, 1):
        view = View(conversation.trace.facts, conversation.trace, Cursor(turn=turn))
        places = [step.position for step in view.steps]
        part = kv_growth.select(view)[-1]
        assert (part.origin, part.positions) == ("sampled", len(places) - 1)
        for step in view.steps:
            figure = go.Figure(growth_figure(view, step))
            area = figure.data[-1]
            assert [key["position"] for key in area.customdata] == list(area.x) == places
            assert area.name == f"sampled and fed: {len(places) - 1}"
            assert figure.layout.shapes[0].x0 == step.position
            assert figure.layout.annotations[0].text.startswith(f"{step.kv_tokens} positions")
        assert max(part.held) == part.held[-1] == 30
        assert area.hovertext[-1].startswith("30 positions")


def test_without_a_cache_the_bytes_fall_to_nothing_and_the_tokens_stay():
    view = live_view(mistake="history_reencoded")
    computed, sampled = kv_growth.select(view)
    assert sampled.fed == tuple(step.position for step in view.steps)
    assert sampled.bytes_held == (computed.bytes_held[-1], *[0] * (len(view.steps) - 1))
    figure = go.Figure(growth_figure(view, view.steps[-1]))
    assert max(max(trace.y) for trace in figure.data) >= 1, "the unit is that of the greatest size"
