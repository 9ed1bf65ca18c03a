"""The embedding panel shows the numbers of its probes: rows, neighbours, sums, and what a person types."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from components.embedding import norms, panel, row, sums
from engine.refusals import Refused
from tests.components.embedding_visit import Looked, cells, drawn, looks, said
from tests.components.handmade import make_view
from tests.components.reading import read, read_figure, station

Look = Callable[[str], Looked]


@pytest.fixture(scope="module")
def look() -> Iterator[Look]:
    yield from looks()


def test_the_row_and_its_neighbours_are_the_probe_s(look: Look) -> None:
    view = look("llama").at(2)
    shown, found = drawn(view), view.results["embedding"]
    assert found.position == view.fed_position == 2
    assert f"Row {found.token_id:,}, norm {found.norm:.2f}" in said(shown["row"])
    for number in (found.smallest, found.median, found.largest):
        assert f"{number:.2f}" in said(shown["row"])
    assert "Untied: two tables" in said(shown["row"]) and f"{found.head_cosine:+.2f}" in said(shown["row"])
    lines = cells(shown["neighbours"])
    assert [line[1] for line in lines] == [str(token) for token in found.neighbour_ids]
    assert [line[2] for line in lines] == [f"{cosine:.3f}" for cosine in found.neighbour_cosines]
    assert [line[3] for line in lines] == [f"{norm:.2f}" for norm in found.neighbour_norms]
    unowned = found.neighbour_bytes.index(b"") if b"" in found.neighbour_bytes else None
    assert unowned is None or lines[unowned][0] == f"no token, row {found.neighbour_ids[unowned]}"


def test_a_row_that_no_token_owns_is_named_by_its_number() -> None:
    assert row.row_name(b"", 310) == "no token, row 310"
    assert read({"rows": [json.dumps([row.name_cell(b"", 310).text])]})["rows"] == [["no token, row 310"]]


def test_the_norms_lead_to_their_positions(look: Look) -> None:
    looked = look("llama")
    view = looked.at()
    shown, found = drawn(view), view.results["embedding"]
    figure = read_figure(shown["norms"])
    bars = figure["data"][0]
    np.testing.assert_allclose(bars["y"], found.position_norms, atol=1e-4)
    assert bars["marker"]["color"].index("var(--accent)") == found.position
    assert figure["data"][1]["y"] == [round(found.median, 4)] * 2
    numbers = read(shown["norms"]["numbers"])
    assert numbers["keys"] == bars["customdata"]
    assert numbers["selected"] == found.position
    assert "The newest token was chosen but not fed yet" in numbers["caption"]
    *fed, newest = zip(bars["x"], bars["customdata"], strict=True)
    assert newest == (view.fed_position + 1, {})  # type: ignore[operator]  # chosen, and not fed yet
    for at, key in fed:
        assert looked.at(key["position"]).fed_position == at
    go.Figure(figure)


def test_a_sum_is_shown_with_what_its_words_alone_would_give(look: Look) -> None:
    view = look("llama").at()
    shown, found = drawn(view), view.results["arithmetic"]
    assert found.formula == "the - sat + on"
    text = said(shown["sums_note"])
    assert text.startswith("“␣the” − “␣sat” + “␣on”")
    for term in found.terms:
        assert f"“{'␣' + term.token_bytes.decode().strip()}” would have rank {term.rank:,} ({term.cosine:+.2f})" in text
    first = row.row_name(found.token_bytes[0], int(found.token_ids[0]))
    near = found.near_terms[0]
    assert f"Without any, {first} is already neighbour {near[0]} of “␣the”; neighbour {near[2]} of “␣on”." in text
    lines = cells(shown["sums"])
    assert [line[1] for line in lines] == [f"{cosine:.3f}" for cosine in found.cosines]
    assert [line[2:] for line in lines] == [[f"{places[0]:,}", f"{places[2]:,}"] for places in found.near_terms]
    assert [column[0] for column in read(shown["sums"])["columns"]] == ["token", "cosine", "near ␣the", "near ␣on"]


def test_a_sum_is_worked_out_once_and_anew_when_another_is_typed(look: Look) -> None:
    looked = look("llama")
    first = sums.asked(looked.at(1))
    asked: list[str] = []

    def counting(name: str, **arguments: Any) -> Any:
        asked.append(name)
        return looked.at(1).probe(name, **arguments)  # type: ignore[misc]

    view = dataclasses.replace(looked.at(3), probe=counting)
    assert sums.asked(view) is first
    assert asked == []
    looked.desk.look_up(looked.visit, "the + on", "formula")
    other = sums.asked(dataclasses.replace(looked.desk.view(looked.visit), probe=counting))
    assert asked == ["arithmetic"] and not isinstance(other, str)
    assert len(other.terms) == 2


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("the - Sphinx + on", "no single token"),
        ("the -", "words with + or - between them"),
        ("x" * 200, "no single token"),
        ("the + \u202e", r"'\u202e' is no single token"),
        ("<img src=x onerror=alert(1)> + ${x}", "no single token"),
    ],
)
def test_what_cannot_be_added_up_says_so_in_its_place(look: Look, formula: str, reason: str) -> None:
    shown = drawn(look("llama").at(formula=formula))
    assert reason in said(shown["sums_note"])
    assert "\u202e" not in said(shown["sums_note"])
    assert shown["sums"] is None
    assert shown["neighbours"] is not None and shown["phase"] is not None


def test_without_a_formula_the_example_is_worked_out(look: Look) -> None:
    note = said(drawn(look("llama").at(formula=" "))["sums_note"])
    assert "'king' is no single token" in note  # of this small vocabulary


def test_a_sum_that_is_zero_points_nowhere(look: Look) -> None:
    shown = drawn(look("llama").at(formula="the - the"))
    assert "points nowhere" in said(shown["sums_note"])
    assert cells(shown["sums"]) == []


def test_the_station_tells_the_norm_once_the_panel_was_looked_at(look: Look) -> None:
    looked = look("gpt2")
    assert station(panel, looked.at(1)) == ("320 × 32", "tied")
    panel.render(looked.at(1))
    norm = looked.visit.results["embedding"].norm
    assert station(panel, looked.at(1)) == (f"‖e‖ {norm:.2f}", "tied")
    assert station(panel, looked.at(2))[0] == "320 × 32"
    assert station(panel, look("llama").at(1))[1] == "untied"


def test_a_step_s_values_are_small(look: Look) -> None:
    for name in ("llama", "mixed", "gpt2"):
        assert len(json.dumps(panel.render(look(name).at()))) < 60_000


HOSTILE = b"<img src=x onerror=alert(1)>${x}\xe2\x91"


def test_hostile_tokens_stay_text(look: Look) -> None:
    looked = look("llama")

    def probe(name: str, **arguments: Any) -> Any:
        found = looked.desk.view(looked.visit).probe(name, **arguments)  # type: ignore[misc]
        if name == "embedding":
            every = {key: tuple(HOSTILE for _ in getattr(found, key)) for key in ("neighbour_bytes", "position_bytes")}
            return dataclasses.replace(found, token_bytes=HOSTILE, smallest_bytes=HOSTILE, **every)
        if name == "arithmetic":
            return dataclasses.replace(found, token_bytes=tuple(HOSTILE for _ in found.token_bytes))
        return found

    view = dataclasses.replace(looked.at(), probe=probe, results={})
    shown = drawn(view)
    written = "<img␣src=x␣onerror=alert(1)>${x}⟨E2⟩⟨91⟩"
    assert cells(shown["neighbours"])[0][0] == cells(shown["sums"])[0][0] == written
    assert written in said(shown["row"]) and written in said(shown["sums_note"])
    assert all("hovertemplate" not in trace for trace in read_figure(shown["norms"])["data"])
    assert norms.norms_numbers(view.probe("embedding", position=1), view)["caption"].startswith("Positions 0 to")  # type: ignore[misc]


def test_a_refusal_is_said_in_its_place(look: Look) -> None:
    def refuse(name: str, **_: Any) -> Any:
        raise Refused("no table")

    where, *others = panel.render(dataclasses.replace(look("llama").at(), probe=refuse, results={}))
    assert read(where)["stations"][0][2] == "no table"
    assert others == [None] * 13


def test_a_recorded_run_says_why_there_is_nothing() -> None:
    assert "no model is loaded" in (panel.unavailable(make_view()) or "")
    assert station(panel, make_view()) == ("24 × 16", "tied")
