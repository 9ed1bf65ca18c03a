"""The panel Compare on hand-made runs: what changed, where two runs part, what each gave the other, and a grid."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from components.compare.changes import changes
from components.compare.grid import MARK, entropy_map, grid_table, marked_text
from components.compare.panel import CONTROLS, chosen, render, stations, unavailable
from components.compare.parting import Parting, parting, recorded
from components.compare.sides import sides_value
from components.panel import View
from components.widgets import host
from engine.answers.grid import CellResult, GridResult
from engine.branches import Branch
from engine.trace import Stopped, Trace
from tests.components.handmade import PROMPT, make_experiment, make_rendered, make_trace, make_view


def view_with(here: Trace, *theirs: Trace, probe: Any = None, **cursor: Any) -> View:
    branches = tuple(Branch(index + 1, trace) for index, trace in enumerate(theirs))
    return dataclasses.replace(make_view(here, **cursor), branches=branches, probe=probe)


def cells(value: Any) -> list[list[str]]:
    return [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in host.read(value)["rows"]]


HERE = make_trace(answer=(15, 16, 17), stop=False)
THERE = make_trace(answer=(15, 18, 16), stop=False)


# --- where two runs part ---


def test_two_runs_part_at_the_first_step_that_differs() -> None:
    assert parting(HERE, THERE) == Parting(turn=0, their_turn=0, step=1, position=None)


def test_a_run_that_goes_on_parts_where_the_other_ends() -> None:
    shorter = make_trace(answer=(15,), stop=False)
    assert parting(HERE, shorter) == Parting(0, 0, 1, None)
    assert parting(HERE, HERE) is None


def test_another_context_parts_before_the_first_step() -> None:
    other = make_rendered([*PROMPT[:-1], (*PROMPT[-1][:3], PROMPT[-1][3][:-1])])
    there = dataclasses.replace(THERE, events=(other, *THERE.events[1:]))
    found = parting(HERE, there)
    assert found == Parting(0, 0, 0, len(other.token_ids))


def test_nothing_parts_where_nothing_was_begun() -> None:
    assert parting(HERE, dataclasses.replace(THERE, events=())) is None


def test_a_probability_is_that_of_the_trace_or_unknown() -> None:
    step = HERE.steps(0)[0]
    followed = int(step.candidate_ids[1])
    assert recorded(step, followed) == pytest.approx(float(step.probabilities[-1, 1]))
    assert recorded(step, followed, stage=0) == pytest.approx(float(step.probabilities[0, 1]))
    assert recorded(step, 999) is None


# --- what changed ---


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"sampling": {"temperature": 0.9, "top_k": 4, "seed": 3}}, "temperature 0.9, here 0.5"),
        ({"sampling": {"temperature": 0.5, "seed": 3}}, "top_k off, here 4"),
        ({"stop": {"max_new_tokens": 5}}, "max_new_tokens 5, here 16"),
        ({"messages": [{"role": "user", "content": "<b>x"}]}, "message 1 (user): “<b>x”"),
        ({"forced": [{"step": 1, "token_id": 18}]}, "step 1: "),
        ({}, "nothing in its settings"),
    ],
)
def test_what_is_different_is_named(fields: dict[str, Any], said: str) -> None:
    there = dataclasses.replace(THERE, experiment=make_experiment(**fields))
    assert changes(there, HERE).startswith(said)


def test_a_long_message_is_cut_and_its_marks_are_named() -> None:
    text = "\u202e" + "a" * 100
    there = dataclasses.replace(THERE, experiment=make_experiment(messages=[{"role": "user", "content": text}]))
    assert "⟨U+202E⟩" in changes(there, HERE)
    assert "a…”" in changes(there, HERE)


# --- side by side ---


def test_the_first_difference_has_the_probability_each_gave_the_other() -> None:
    value = sides_value(view_with(HERE, THERE), Branch(1, THERE))
    rows = cells(value)
    assert [row[0] for row in rows] == ["0", "1", "2"]
    assert value["selected"] == 1
    assert rows[0][3] == rows[0][6] == ""  # the same token: there is no other
    ours, theirs = HERE.steps(0)[1], THERE.steps(0)[1]
    for row_text, step, other in ((rows[1][3], ours, theirs), (rows[1][6], theirs, ours)):
        known = recorded(step, other.token_id)
        if known is None:
            assert row_text == "–"  # no model is at hand to ask
        else:
            assert row_text == ("0" if known == 0 else f"{known:.3f}"[1:])


def test_what_was_not_followed_is_asked_where_they_part_and_only_there() -> None:
    asked: list[dict[str, Any]] = []

    def probe(name: str, **arguments: Any) -> Any:
        asked.append({"name": name, **arguments})
        return SimpleNamespace(probabilities=np.array([[0.5], [0.125]]))

    blind = [
        dataclasses.replace(step, candidate_ids=np.array([step.token_id], np.int32),
                            logits=step.logits[:, :1], probabilities=step.probabilities[:, :1])
        for step in THERE.steps(0)
    ]  # fmt: skip
    there = dataclasses.replace(THERE, events=(*THERE.events[:2], *blind))
    rows = cells(sides_value(view_with(HERE, there, probe=probe), Branch(1, there)))
    assert rows[1][6] == ".125"
    assert rows[2][6] == "–"
    token = HERE.steps(0)[1].token_id
    assert {"name": "distribution", "turn": 0, "step": 1, "token_ids": (token,), "branch": 1} in asked


def test_the_caption_says_where_and_what_the_model_itself_gave() -> None:
    said = sides_value(view_with(HERE, THERE), Branch(1, THERE))["caption"]
    assert said.startswith("Turn 1: the same up to step 1, where they part: ")
    assert (
        "contexts differ from position"
        in sides_value(view_with(HERE, longer := _other_context()), Branch(1, longer))["caption"]
    )


def _other_context() -> Trace:
    other = make_rendered([*PROMPT[:-1], (*PROMPT[-1][:3], PROMPT[-1][3][:-1])])
    return dataclasses.replace(THERE, events=(other, *THERE.events[1:]))


# --- the panel ---


def test_the_newest_branch_is_compared_until_another_is_chosen() -> None:
    third = make_trace(answer=(18,), stop=False)
    view = view_with(HERE, THERE, third)
    assert chosen(view).id == 2
    assert chosen(dataclasses.replace(view, cursor=dataclasses.replace(view.cursor, branch=1))).id == 1
    assert chosen(dataclasses.replace(view, cursor=dataclasses.replace(view.cursor, branch=9))).id == 2
    assert chosen(view_with(HERE)) is None


def test_the_station_says_how_many_and_where() -> None:
    (quiet,) = stations(view_with(HERE))
    assert (quiet.result, quiet.note) == ("–", "")
    (one,) = stations(view_with(HERE, THERE))
    assert (one.result, one.note) == ("1 branch", "parts at step 1")
    (two,) = stations(view_with(HERE, THERE, HERE))
    assert (two.result, two.note) == ("2 branches", "the same so far")


def test_the_list_has_a_key_for_every_branch_and_none_for_the_run() -> None:
    value = host.read(render(view_with(HERE, THERE, HERE))[0])
    assert value["keys"] == [{}, {"branch": 2}, {"branch": 1}]
    assert value["selected"] == 1


def test_without_a_branch_or_a_grid_it_says_how_to_get_one() -> None:
    branches, sides, grid, entropies = render(view_with(HERE))
    assert "No branch yet" in cells(branches)[0][0]
    assert sides is None
    assert "Press Grid" in cells(grid)[0][0]
    assert entropies is None
    assert CONTROLS.idle(view_with(HERE))
    assert not CONTROLS.idle(view_with(HERE, THERE))
    assert unavailable(view_with(HERE)) is None
    assert unavailable(View(HERE.facts, None, make_view(HERE).cursor)) is not None


# --- the grid ---


def cell(text: str, tokens: list[bytes], first_difference: int | None, **fields: Any) -> CellResult:
    return CellResult(
        overrides=fields.get("overrides", {"temperature": 0.7, "seed": 1}),
        token_ids=tuple(range(len(tokens))),
        token_bytes=tuple(tokens),
        text=text,
        entropy=np.linspace(0, 1, len(tokens), dtype=np.float32),
        first_difference=first_difference,
        stopped=fields.get("stopped", Stopped(0, "length", {}, "")),
        alone_from=fields.get("alone_from"),
    )


def grid_of(*found: CellResult, done: bool = True) -> GridResult:
    return GridResult(make_experiment(), found, prompt_tokens=9, forwards=5, deviation=1e-6, done=done)


def test_the_mark_stands_before_the_first_token_that_differs() -> None:
    assert marked_text(cell("a cat", [b"a", b" cat"], 1)) == f"a{MARK} cat"
    assert marked_text(cell("a cat", [b"a", b" cat"], None)) == "a cat"
    euro = "€".encode()
    assert marked_text(cell("€", [euro[:1], euro[1:]], 1)) == f"{MARK}€"  # the whole character is of the other token
    assert marked_text(cell("shown", [b"not", b"shown"], 1)) == "shown"  # a special token is no text


def test_a_grid_is_a_row_a_cell_with_its_settings_and_figures() -> None:
    hot = {"temperature": 1.0, "seed": 2}
    value = grid_table(grid_of(cell("<b>", [b"<b>"], None), cell("a b", [b"a", b" b"], 0, overrides=hot, alone_from=1)))
    first, second = cells(value)
    assert first == ["temperature 0.7, seed 1", "–", "0.00", "1", "length", "<b>"]
    assert second == ["temperature 1, seed 2", "0", "0.50", "2", "length", f"{MARK}a b"]
    assert host.read(value)["keys"] == [{"cell": 0}, {"cell": 1}]
    assert "5 forward passes for 3 tokens" in value["caption"]
    assert "1 of 2 rows" in value["caption"]


def test_a_grid_that_is_under_way_says_how_far_it_is() -> None:
    value = grid_table(grid_of(cell("a", [b"a"], None, stopped=None), cell("", [], None, stopped=None), done=False))
    assert value["caption"] == "Computing: 1 token so far."
    assert [row[4] for row in cells(value)] == ["goes on", "goes on"]
    assert entropy_map(grid_of(cell("", [], None))) is None


def test_the_map_has_a_row_a_cell_and_leaves_blank_what_was_not_made() -> None:
    value = host.read(entropy_map(grid_of(cell("ab", [b"a", b"b"], None), cell("c", [b"\xe2"], 0))))
    assert (value["rows"], value["columns"]) == (2, 2)
    assert value["texts"] == [["a", "b"], [f"{MARK}⟨E2⟩", ""]]
    assert value["keys"] == {"cell": ["row", 0]}
    assert value["y"] == ["0.7 · 1", "0.7 · 1"]
