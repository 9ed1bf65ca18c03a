"""What the station Context shows, on traces made by hand."""

import dataclasses
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from components.checks import mask_check, positions_check
from components.context import panel as context
from components.context.compare import compare_value, ranges
from components.context.history import history_value, select
from components.context.ways import POLICIES, every_way
from components.copy import DEFAULT, speak
from components.panel import View
from components.prompt import panel as prompt
from components.tensors import panel as tensors
from engine.conversation import Conversation
from engine.said import said
from engine.trace import Parted, PrefixLookup, Rendered, Stopped, Trace
from engine.truncated import Portion, Summary, Truncated
from tests.components.handmade import PROMPT, make_rendered, make_shapes, make_step, make_trace, make_view
from tests.components.reading import read, station
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny

#: The prompt of the hand-made trace is what is left of a longer chat: its own message is the fifth.
CUT = Truncated(
    turn=0, strategy="keep_system", limit=30, kept=(4,), dropped=(1, 2),
    portions=(
        Portion("system", None, 7, 7), Portion("user", 1, 9, 0), Portion("assistant", 2, 5, 0),
        Portion("user", 4, 10, 10), Portion("assistant", None, 4, 4),
    ),
    before=35, after=21, offset=0, system="kept", summary=None, cached=25, reused=7, computed=14,
)  # fmt: skip


def cut_view(*, results: dict[str, Any] | None = None, strategy: str = "keep_system", **changes: Any) -> View:
    trace = make_trace(context={"strategy": strategy, "max_tokens": 30})
    return make_view(
        dataclasses.replace(trace, events=(dataclasses.replace(CUT, strategy=strategy, **changes), *trace.events)),
        results=results,
    )


def labels(view: View) -> list[str]:
    return [group[0] for group in read(context.render(view)[0])["groups"]]


def told(view: View) -> str:
    return " ".join(group[2] for group in read(context.render(view)[0])["groups"])


def text(cell: Any) -> str:
    return cell if isinstance(cell, str) else cell[0]


def test_every_message_is_there_with_its_tokens_and_its_fate() -> None:
    view = cut_view()
    assert view.trace is not None and view.rendered is not None
    rows = read(history_value(select(view.trace, view.rendered), CUT))["rows"]
    assert [[text(cell) for cell in row[:3]] for row in rows] == [
        ["–", "system", "7 of 7"],
        ["1", "user", "0 of 9"],
        ["2", "assistant", "0 of 5"],
        ["4", "user", "10 of 10"],
        ["–", "assistant", "4 of 4"],
        ["", "", "21 of 35"],
    ]
    assert [row[1][1] for row in rows[:3]] == ["system", "cut", "cut"]
    assert [text(row[3]) for row in rows[:1]] == ["added by the template"]


def test_what_the_template_wrote_is_called_what_it_is() -> None:
    told = experiment(tools=("calculator",), stop={"max_new_tokens": 1})
    trace = finish(Conversation(tiny("llama"), told))
    rendered = trace.rendered(0)
    assert rendered is not None
    rows = [(row.portion.role, row.text) for row in select(trace, rendered) if row.portion.message is None]
    assert rows == [
        ("system", "added by the template"),
        ("tool", "the definitions of the tools, and how to call them"),
        ("system", "added by the template"),
        ("assistant", "the generation prompt"),
    ]


def test_a_raw_run_shows_its_text() -> None:
    trace = finish(Conversation(tiny("llama"), experiment(prompt="hello the cat", stop={"max_new_tokens": 1})))
    rendered = trace.rendered(0)
    assert rendered is not None
    assert [(row.portion.message, row.text) for row in select(trace, rendered)] == [(0, "hello the cat")]


def test_a_window_cuts_through_a_message() -> None:
    portions = (Portion("system", 0, 7, 3), Portion("user", 1, 9, 9))
    view = cut_view(portions=portions, strategy="sliding_window", offset=4)
    rows = read(context.render(view)[1])["rows"]
    assert rows[0][2][:2] == ["3 of 7", "warn"]
    assert rows[0][2][2] == pytest.approx(3 / 7, abs=1e-4)


def test_without_a_cut_the_prompt_s_own_messages_stay(trace: Trace) -> None:
    view = make_view(trace)
    assert view.rendered is not None
    rows = select(trace, view.rendered)
    assert [(row.portion.role, row.portion.tokens, row.portion.kept) for row in rows] == [
        ("system", 7, 7),
        ("user", 10, 10),
        ("assistant", 4, 4),
    ]
    assert station(context, view) == ("all kept", "")
    assert "No limit is set. The prompt has 21 tokens, the model has 128 positions" in told(view)


def test_the_sentences_hold_the_numbers_of_the_account() -> None:
    said = told(cut_view())
    assert "The whole history renders to 35 tokens, the limit is 30; the prompt that is left has 21." in said
    assert "It held 25 positions. 7 go on being used, 18 are lost" in said
    assert "14 of the prompt's 21 tokens; 7 come from the cache." in said
    assert "14 tokens fewer" in labels(cut_view())
    assert "14 positions to compute" in labels(cut_view())
    assert station(context, cut_view()) == ("35 → 21 tok", "system + recent")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cached": 0, "reused": 0}, "this is the first turn"),
        ({"system": "none"}, "There is none."),
        ({"system": "cut"}, "A part of it is left"),
        ({"system": "dropped"}, "no longer knows what it was told"),
        ({"system": "replaced"}, "the template has put its own"),
        ({"strategy": "sliding_window", "offset": 5}, "7 go on being used, at the positions that they had; 18 have"),
    ],
)
def test_each_fate_has_its_words(changes: dict[str, Any], said: str) -> None:
    assert said in told(cut_view(**changes))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"parted": Parted(0, 5, 1)}, "Lost: it held 25 positions, and the new prompt differs from the first one on"),
        (
            {"parted": Parted(7, 5, 1), "refused": said("state_no_way_back", layer=2)},
            "could not be cut back to what the new prompt shares with it: layer 2 keeps a running state",
        ),
        # Seven positions came from the cache of system prompts: none of them is of the turn before.
        ({"parted": Parted(0, 5, 1), "reused": 7, "prefix": PrefixLookup(1, 7, 7, None)}, "Lost: it held 25"),
    ],
)
def test_a_cache_of_which_nothing_is_used_has_its_reason(fields: dict[str, Any], words: str) -> None:
    view = cut_view(reused=fields.get("reused", 0))
    assert view.trace is not None
    events = [replace(one, **fields) if isinstance(one, Rendered) else one for one in view.trace.events]
    assert words in told(make_view(replace(view.trace, events=tuple(events))))


def test_a_reason_is_told_in_the_page_s_language() -> None:
    view = cut_view(reused=0)
    assert view.trace is not None
    refused = said("state_no_way_back", layer=2)
    events = [replace(one, refused=refused) if isinstance(one, Rendered) else one for one in view.trace.events]
    speak("zh")
    try:
        assert "第 2 层保存的是运行中的状态，无法退回" in told(make_view(replace(view.trace, events=tuple(events))))
    finally:
        speak(DEFAULT)


def test_a_refused_prompt_is_called_refused() -> None:
    trace = make_trace((), context={"strategy": "keep_system", "max_tokens": 12})
    assert "has 21 tokens and may have 12. Nothing that may leave makes it fit" in told(make_view(trace))
    refused = Stopped(0, "error", {"field": "messages", "message": "too long"}, "")
    ended = dataclasses.replace(trace, events=(*(one for one in trace.events if one.kind == "rendered"), refused))
    assert station(context, make_view(ended)) == ("refused", "system + recent")
    fits = make_trace((), context={"strategy": "keep_system", "max_tokens": 21})
    assert "has 21 tokens and may have 21: nothing had to leave" in told(make_view(fits))


def test_a_summary_is_shown_with_its_cost_as_plain_text() -> None:
    summary = Summary("sum up", "<script>alert(1)</script> ${x}", (1,), 40, 8)
    view = cut_view(strategy="summary", summary=summary, after=30)
    value = read(context.render(view)[0])
    assert "<script>alert(1)</script> ${x}" in [chip[1] for chip in value["chips"]]
    said = told(view)
    assert "It read 40 tokens and wrote 8" in said
    assert "47 more positions computed" in said
    assert "1 of the oldest messages" in said
    assert "the summary, 9 tokens together" in read(context.render(view)[1])["caption"]


def test_the_window_s_reach_is_that_of_the_selected_step() -> None:
    trace = make_trace(context={"strategy": "sliding_window", "max_tokens": 21})
    facts = trace.facts
    steps = [
        dataclasses.replace(step, kv_tokens=21, shapes=make_shapes(1, 21, facts)) if step.step else step
        for step in trace.steps(0)
    ]
    account = dataclasses.replace(CUT, strategy="sliding_window", offset=14)
    window = dataclasses.replace(trace, events=(account, *trace.events[:2], *steps))
    assert "nothing has left since the prompt. The newest token sees 21, at positions 14 to 34." in told(
        make_view(window, position=21)
    )
    view = make_view(window, position=24)
    assert "3 more tokens have left. The newest token sees 21, at positions 17 to 37." in told(view)
    inputs, _, count, note, mask = map(read, tensors.render(view)[:5])
    rows = {row[0]: row for row in inputs["rows"]}
    assert rows["position_ids"][2] == "[37]"
    assert rows["attention_mask"][2] == "all 1, 21 of them"
    assert "3 have left the sliding window; 21 are held" in count["caption"]
    assert "Positions 0–2 have left" in note["groups"][0][2]
    assert mask is not None
    step = view.step
    assert step is not None
    assert positions_check(step, 21).ok and mask_check(step, 21).ok
    assert not positions_check(step).ok and not mask_check(step).ok


def policy(**changes: Any) -> Any:
    fields = {
        "turn": 0, "strategy": "none", "positions": "go_on", "limit": 30, "refusal": None, "kept": (0, 1, 2, 5),
        "dropped": (3, 4), "partly": (), "before": 35, "after": 21, "system": "kept", "reused": 7, "computed": 14,
        "summary": None, "token_ids": (1, 2), "answer": "<b>Hi</b>", "ended": None, "seconds": 0.5,
    }  # fmt: skip
    return SimpleNamespace(**fields | changes)


def test_strategies_stand_side_by_side() -> None:
    policies = [
        policy(),
        policy(strategy="keep_system", token_ids=(1, 3), answer="", ended="eos"),
        policy(strategy="sliding_window", positions="restart", partly=(0,), token_ids=(1, 2)),
        policy(strategy="summary", refusal="too long by 3"),
    ]
    value = read(context.render(cut_view(results={"policies": policies}))[2])
    rows = [[text(cell) for cell in row] for row in value["rows"]]
    assert rows[0] == ["everything", "0–2 5", "21", "7", "14", "kept", "<b>Hi</b>…", "500 ms"]
    assert rows[1][0] == "system + recent"
    assert value["rows"][1][0][1] == "accent"
    assert rows[1][6] == "nothing: it ended at once"
    assert rows[2][:2] == ["window, positions restart", "0–2 5 (0: ½)"]
    assert rows[3][6] == "too long by 3"
    assert "different answers among them: 2." in value["caption"]


def test_results_about_another_turn_are_not_shown() -> None:
    value = read(compare_value([policy(turn=1)], ("none", "go_on"), 0))
    assert value["rows"] == []
    assert "Press the button above" in value["caption"]


def test_ranges() -> None:
    assert ranges(()) == "–"
    assert ranges((3,)) == "3"
    assert ranges((0, 1, 2, 5, 7, 8)) == "0–2 5 7–8"


def test_every_way_is_asked_once() -> None:
    asked: list[tuple[str, str]] = []

    def probe(name: str, *, strategy: str, positions: str) -> str:
        asked.append((strategy, positions))
        return name

    assert every_way(probe) == ("policy",) * 7
    assert asked == list(POLICIES)


def test_the_prompt_names_who_wrote_a_summary() -> None:
    parts = [(role, 5 if role == "user" else 6, kind, ids) for role, _, kind, ids in PROMPT if role != "system"]
    trace = make_trace(context={"strategy": "summary", "max_tokens": 30})
    account = dataclasses.replace(CUT, strategy="summary", summary=Summary("sum up", "two", (), 40, 8))
    view = make_view(dataclasses.replace(trace, events=(account, make_rendered(parts))))
    rows = read(prompt.render(view)[1])["rows"]
    assert [row[1] for row in rows[:2]] == ["the app, to get a summary", "the model, to sum up what was dropped"]


def test_nothing_is_shown_before_the_first_prompt() -> None:
    view = make_view(dataclasses.replace(make_trace(), events=()))
    assert context.unavailable(view) == "Send a message to see what of the chat is fed."
    assert station(context, view) == ("–", "")
    assert make_step(0, 21, 15, view.facts).kv_tokens == 21
