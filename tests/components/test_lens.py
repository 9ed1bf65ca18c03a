"""The lens and the layers show the numbers of their probes, whatever the tokens are made of."""

import dataclasses
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from components import checks, inside
from components.desk import Desk
from components.lens import panel as lens
from components.lens.rows import climb, rows_value
from components.panel import View
from components.residual import panel as residual
from components.units import probability_text
from engine.answers.lens import Lens
from engine.catalog import load_catalog
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.refusals import Refused
from engine.runtime import Runtime
from engine.settings import Settings
from tests.components.handmade import make_view
from tests.components.reading import read, read_figure

HOSTILE = b"<img src=x onerror=alert(1)>${x}\xe2\x91"


@pytest.fixture(scope="module")
def looked(llama: LoadedModel) -> Iterator[Callable[..., View]]:
    """A visit of a small model's run of six tokens, with a view of any position."""
    runtime = Runtime(llama, load_catalog(), Settings())
    default = Experiment.model_validate(
        {
            "version": 1,
            "model": llama.facts.model_id,
            "prompt": "the cat sat",
            "sampling": {"seed": 1, "min_new_tokens": 6},
            "stop": {"max_new_tokens": 6},
        }
    )
    ready: Future[Runtime] = Future()
    ready.set_result(runtime)
    desk = Desk(ready, default)
    visit = desk.open("visitor")
    for _ in range(6):
        runtime.step("visitor")

    def at(position: int | None = None, query: str = "") -> View:
        visit.cursor = dataclasses.replace(visit.cursor, position=position, query=query)
        return desk.view(visit)

    at.desk, at.visit = desk, visit  # type: ignore[attr-defined]
    yield at
    runtime.shut_down()


def cells(value: dict[str, Any]) -> list[list[str]]:
    return [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in read(value)["rows"]]


def traces(chart: dict[str, Any]) -> dict[str, Any]:
    return {trace["name"]: trace for trace in read_figure(chart)["data"]}


def test_the_position_in_sight_is_the_one_that_was_fed(looked: Callable[..., View]) -> None:
    prompt = len(looked().rendered.token_ids)
    assert looked().fed_position == looked().steps[-1].position - 1
    assert looked(prompt).fed_position == prompt - 1
    assert looked(1).fed_position == 1
    for position in range(prompt + 5):
        assert looked(inside.cursor_at(looked(), position)).fed_position == position


def test_the_lens_panel_shows_the_probe_s_numbers(looked: Callable[..., View]) -> None:
    view = looked(query="s")
    _, ranks, probabilities, rows, *_ = lens.render(view)
    found = view.results["lens"]
    assert found.position == view.fed_position
    ids = found.token_ids.tolist()
    next_column = ids.index(view.step.token_id)
    loudest = read_figure(ranks)["data"][-1]
    np.testing.assert_allclose(10 ** np.array(loudest["y"]), found.ranks[:, next_column], rtol=1e-3)
    assert loudest["line"]["color"] == "var(--accent)"
    curve = read_figure(probabilities)["data"][-1]
    np.testing.assert_allclose(curve["y"], found.probabilities[:, next_column], atol=1e-5)
    shown = cells(rows)
    assert len(shown) == len(found.top_ids) == view.facts.layers + 1
    asked = [next_column, *(ids.index(token) for token in found.asked if ids.index(token) != next_column)]
    for row, line in enumerate(shown):
        assert line[3] == f"{found.entropies[row]:.2f}"
        assert line[4:] == [f"{found.ranks[row, column]:,}" for column in asked]
    assert len(asked) >= 2
    for chart in (ranks, probabilities):
        go.Figure(read_figure(chart))


def test_a_line_is_told_of_where_it_ends(looked: Callable[..., View]) -> None:
    view = looked(query="s")
    _, ranks, probabilities, *_ = lens.render(view)
    found = view.results["lens"]
    ids = found.token_ids.tolist()
    told = {note["text"]: note["y"] for note in read_figure(ranks)["layout"]["annotations"]}
    assert sorted(int(text.rsplit(" ")[-1]) for text in told) == sorted(found.ranks[-1].tolist())
    ends = {note["text"]: note["y"] for note in read_figure(probabilities)["layout"]["annotations"]}
    wanted = {
        view.step.token_id,
        *found.asked,
        *(token for token in ids if found.probabilities[-1, ids.index(token)] >= 0.01),
    }
    assert 2 <= len(wanted) < len(ids)
    assert sorted(ends.values()) == pytest.approx(
        sorted(found.probabilities[-1, ids.index(token)] for token in wanted), abs=1e-5
    )
    for text, height in ends.items():
        assert text.endswith(f" {probability_text(height)}")


def test_a_row_is_chosen_to_follow_its_guess_and_again_to_let_it_go(looked: Callable[..., View]) -> None:
    desk, visit = looked.desk, looked.visit  # type: ignore[attr-defined]
    for position in range(len(looked().rendered.token_ids)):
        keys = read(lens.render(looked(position))[3])["keys"]
        place, key = next(((place, key) for place, key in enumerate(keys) if key), (None, None))
        if key is None:
            continue
        desk.select(visit, key)
        view = desk.view(visit)
        again = read(lens.render(view)[3])["keys"]
        found = view.results["lens"]
        assert found.top_bytes[place] == key["query"].encode()
        assert found.top_ids[place] in found.asked
        assert again[place] == {"query": ""}
        desk.select(visit, again[place])
        assert visit.cursor.query == ""
        return
    pytest.fail("this model's guesses are all pieces of characters")


def test_a_piece_of_a_character_and_a_recorded_row_cannot_be_followed(looked: Callable[..., View]) -> None:
    found = dataclasses.replace(_lens(looked()), top_bytes=(b"\xe2\x91", b" a", b"b"))
    assert read(rows_value(found, "", live=True))["keys"] == [{}, {"query": " a"}, {"query": "b"}]
    assert read(rows_value(found, "", live=False))["keys"] is None


def _lens(view: View) -> Lens:
    lens.render(view)
    found: Lens = view.results["lens"]
    return found


def test_stations_tell_once_the_panel_was_looked_at(looked: Callable[..., View]) -> None:
    view = looked(2)
    (before,) = lens.stations(view)
    assert before.result == "3 rows"
    lens.render(view)
    (after,) = lens.stations(view)
    found = view.results["lens"]
    rank = found.ranks[-1, found.token_ids.tolist().index(found.next_id)]
    assert after.result.startswith("#1 at" if rank == 1 else f"rank {rank:,}")
    residual.render(view)
    (layers,) = residual.stations(view)
    norms = view.results["residual"].norms
    assert (layers.id, layers.result) == ("layers", "2 × 32")
    assert layers.note == f"‖h‖ {norms[0]:,.0f} → {norms[-1]:,.0f}"
    assert lens.stations(looked(1))[0].result == "3 rows"


def test_the_row_from_which_a_token_leads() -> None:
    found = Lens(ranks=np.array([[1, 9, 2], [3, 1, 1], [1, 1, 4]]))
    assert [climb(found, column) for column in range(3)] == [2, 1, 3]


class Lens:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def test_the_map_waits_to_be_asked_and_leads_to_its_positions(looked: Callable[..., View]) -> None:
    view = looked()
    assert lens.render(view)[-1] is None
    looked.desk.ask(looked.visit, "lens_map")
    assert looked.visit.notice == ""
    view = looked()
    found, value = view.results["lens_map"], read(lens.render(view)[-1])
    assert (value["rows"], value["columns"]) == found.top_ids.shape
    assert found.first + value["columns"] - 1 == view.fed_position
    assert value["selected"] == [value["rows"] - 1, view.fed_position - found.first]
    for column, key in enumerate(value["column_keys"]):
        assert looked(key["position"]).fed_position == found.first + column
    rank = found.next_ranks[-1, 0]
    assert value["texts"][-1][0].endswith(f"has rank {rank:,}")


def test_the_map_ends_at_the_selected_position(looked: Callable[..., View]) -> None:
    looked(2)
    looked.desk.ask(looked.visit, "lens_map")
    found = looked.visit.results["lens_map"]
    assert (found.first, found.top_ids.shape[1]) == (0, 3)


def test_the_layers_panel_shows_the_probe_s_numbers(looked: Callable[..., View]) -> None:
    view = looked()
    _, note, shares, _, stream, cosines, *_ = residual.render(view)
    found = view.results["residual"]
    bars = traces(shares)
    np.testing.assert_allclose(bars["attention"]["y"], found.attention_shares, atol=1e-4)
    np.testing.assert_allclose(bars["feed-forward"]["y"], found.feed_forward_shares, atol=1e-4)
    assert f"together {found.logit:.2f}" in read(note)["groups"][0][2]
    numbers = cells(shares["numbers"])
    assert numbers[-1][-1] == f"{found.logit:.2f}"
    np.testing.assert_allclose(traces(stream)["stream"]["y"], found.norms, rtol=1e-4)
    assert [row[1] for row in cells(stream["numbers"])[:-1]] == [f"{norm:.1f}" for norm in found.norms]
    assert (cosines["rows"], cosines["columns"]) == found.cosines.shape
    for chart in (shares, stream):
        go.Figure(read_figure(chart))


def test_norms_by_position_are_asked_for(looked: Callable[..., View]) -> None:
    assert residual.render(looked())[-2:] == [None, None]
    looked.desk.ask(looked.visit, "norms")
    view = looked()
    found = view.results["norms"]
    chart, picture = residual.render(view)[-2:]
    lines = traces(chart)
    np.testing.assert_allclose(lines["before the final norm"]["y"], found.stream[-1], rtol=1e-4)
    np.testing.assert_allclose(lines["after it"]["y"], found.normed, rtol=1e-4)
    assert read(picture)["column_keys"] == lines["after it"]["customdata"]
    go.Figure(read_figure(chart))


def test_the_checks_follow_the_position(looked: Callable[..., View]) -> None:
    view = looked()
    lens.render(view)
    residual.render(view)
    found = {check.label: check for check in checks.select(view)}
    assert found["last lens row = logits"].ok is True
    assert found["shares add up"].ok is True
    for name, label in (("lens", "last lens row = logits"), ("residual", "shares add up")):
        for wrong in (0.5, float("nan")):
            view.results[name] = dataclasses.replace(view.results[name], max_difference=wrong)
            assert {check.label: check.ok for check in checks.select(view)}[label] is False
    assert "shares add up" not in {check.label for check in checks.select(looked(1))}


def test_hostile_tokens_stay_text(looked: Callable[..., View]) -> None:
    view = looked(query="${x}</script>")

    def probe(name: str, **arguments: Any) -> Any:
        found = looked().probe(name, **arguments)
        if name == "residual":
            return dataclasses.replace(found, target_bytes=HOSTILE)
        every = tuple(HOSTILE for _ in found.token_bytes)
        return dataclasses.replace(found, token_bytes=every, top_bytes=tuple(HOSTILE for _ in found.top_bytes))

    hostile = dataclasses.replace(view, probe=probe)
    _, ranks, _, rows, *_ = lens.render(hostile)
    assert cells(rows)[0][1] == "<img␣src=x␣onerror=alert(1)>${x}⟨E2⟩⟨91⟩"
    assert all("hovertemplate" not in trace for trace in read_figure(ranks)["data"])
    assert "<img" in read(residual.render(hostile)[1])["groups"][0][2]


def test_a_refusal_is_said_in_its_place(looked: Callable[..., View]) -> None:
    def refuse(name: str, **_: Any) -> Any:
        raise Refused("no final norm")

    view = dataclasses.replace(looked(), probe=refuse, results={})
    for panel, count in ((lens, 6), (residual, 9)):
        where, *others = panel.render(view)
        assert read(where)["stations"][0][2] == "no final norm"
        assert len(others) == count - 1
        assert others[0] is None


def test_a_recorded_run_says_why_there_is_nothing() -> None:
    for panel in (lens, residual):
        assert "no model is loaded" in panel.unavailable(make_view())


def test_a_prompt_that_was_refused_is_not_looked_into(looked: Callable[..., View]) -> None:
    """Its ids may be more than the model can take."""
    view = looked()
    refused = dataclasses.replace(view, trace=dataclasses.replace(view.trace, events=view.trace.events[:1]))
    for panel in (lens, residual):
        assert panel.unavailable(view) is None
        assert "not computed" in panel.unavailable(refused)
