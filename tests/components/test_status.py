"""What the page says when a run ended badly."""

from dataclasses import replace

import pytest

from components.status import failure
from engine.trace import Stopped
from tests.components.handmade import make_trace, make_view


@pytest.mark.parametrize(
    ("reason", "evidence", "said"),
    [
        (
            "error",
            {"message": "the prompt has 9031 tokens", "field": "messages"},
            "messages: the prompt has 9031 tokens",
        ),
        ("error", {"message": "memory ran out", "field": ""}, "memory ran out"),
        ("no_candidate", {"stage": "suppress_tokens"}, "suppress left no token that may be drawn"),
        ("eos", {"token_id": 2, "also": []}, ""),
        ("cancelled", {"step": 3}, ""),
    ],
)
def test_a_bad_end_is_told_and_an_ordinary_one_is_not(reason: str, evidence: dict[str, object], said: str) -> None:
    trace = make_trace()
    stopped = Stopped(0, reason, evidence, "")  # type: ignore[arg-type]
    events = (*(event for event in trace.events if not isinstance(event, Stopped)), stopped)
    assert failure(make_view(replace(trace, events=events))) == said


def test_a_run_under_way_has_not_failed() -> None:
    trace = make_trace()
    events = tuple(event for event in trace.events if not isinstance(event, Stopped))
    assert failure(make_view(replace(trace, events=events))) == ""
