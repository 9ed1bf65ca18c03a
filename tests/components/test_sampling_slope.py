import math

import numpy as np
import plotly.graph_objects as go
import pytest

from components.sampling.bars import bars_figure
from components.sampling.candidates import cut_stage, most_moved, shown
from components.sampling.slope import least_width, slope_figure, slope_height
from components.sampling.tables import candidates_table
from components.widgets.host import read

from .staged import VOCAB, best, chain, random_logits, staged_step, texts


def lines(figure: go.Figure) -> list[go.Scatter]:
    return [trace for trace in figure.data if trace.mode == "lines+markers"]


def labels(figure: go.Figure) -> list[tuple[str, str, float]]:
    """Text, side and height in pixels of every label at the end of a line."""
    (trace,) = (trace for trace in figure.data if trace.mode == "markers+text")
    pixels = (figure.layout.height - figure.layout.margin.t - figure.layout.margin.b) / figure.layout.yaxis.range[1]
    return [(text, side, y * pixels) for text, side, y in zip(trace.text, trace.textposition, trace.y, strict=True)]


def test_each_line_is_its_candidates_way_through_the_stages_and_ends_where_it_was_cut():
    stages = chain()
    step = staged_step(stages, token=best(stages))
    figure = go.Figure(slope_figure(step))
    drawn = {}
    for trace in lines(figure):
        token_id = trace.customdata[0]["token_id"]
        index = int((step.candidate_ids == token_id).argmax())
        drawn[token_id] = trace
        end = cut_stage(step, index)
        expected = [math.sqrt(p) for p in step.probabilities[:end, index]]
        assert list(trace.y) == pytest.approx(expected, abs=1e-5)
        assert list(trace.x) == list(range(len(expected)))
        assert {key["token_id"] for key in trace.customdata} == {token_id}
    assert set(drawn) == {int(step.candidate_ids[i]) for i in shown(step)}
    assert drawn[step.token_id].line.color == "var(--accent)"
    assert figure.data[-1].customdata[0]["token_id"] == step.token_id, "the chosen line lies on top"


def test_without_processors_the_candidates_stand_in_rows_at_their_probabilities():
    step = staged_step([("logits", {}, random_logits(2))], token=4)
    figure = go.Figure(slope_figure(step))
    (dots,) = figure.data
    indices = shown(step)
    own = np.exp(step.logits[0, indices].astype(float))
    whole = np.exp(random_logits(2).astype(float)).sum()
    assert [x**2 for x in dots.x] == pytest.approx((own / whole).tolist(), abs=1e-4)
    assert list(dots.x) == sorted(dots.x, reverse=True)
    assert [key["token_id"] for key in dots.customdata] == step.candidate_ids[indices].tolist()
    place = [key["token_id"] for key in dots.customdata].index(4)
    assert [at for at, color in enumerate(dots.marker.color) if color == "var(--accent)"] == [place]
    ends = [(line.x0, line.x1, line.y0, line.y1) for line in figure.layout.shapes]
    assert ends == [(0, pytest.approx(x), row, row) for row, x in enumerate(dots.x)]
    assert f"24 kept · H {step.stages[0].entropy:.2f} · no processor is on" in texts(figure)
    assert [share for share in figure.layout.xaxis.ticktext if not share.endswith("%")] == ["0"]
    assert figure.layout.height == slope_height(step) < slope_height(staged_step(chain(), token=best(chain())))
    assert least_width(step) == 0


def test_heads_give_kept_counts_entropy_and_mass():
    stages = chain(kept=5)
    step = staged_step(stages, token=best(stages))
    heads = texts(go.Figure(slope_figure(step)))
    removed = 100 * step.stages[2].mass_removed
    assert "top-k 5" in heads
    assert f"5 kept\nH {step.stages[2].entropy:.2f} · −{removed:.1f}%" in heads
    assert [f"24 kept\nH {stage.entropy:.2f}" in heads for stage in step.stages[:2]] == [True, True]


def test_every_cut_line_carries_its_token_at_the_end():
    stages = chain(kept=3)
    step = staged_step(stages, token=best(stages))
    cut = [i for i in shown(step) if cut_stage(step, i) is not None]
    assert cut
    ends = [text for text, *_ in labels(go.Figure(slope_figure(step))) if text.startswith("✕ ")]
    assert len(ends) == len(cut)


def test_labels_at_each_end_do_not_overlap():
    stages = [("logits", {}, np.zeros(VOCAB, np.float32)), ("top_k", {"top_k": 24}, np.zeros(VOCAB, np.float32))]
    step = staged_step(stages, token=3)  # all lines lie on each other
    figure = go.Figure(slope_figure(step))
    for wanted in ("middle left", "middle right"):
        places = [place for _, side, place in labels(figure) if side == wanted]
        gaps = np.diff(sorted(places))
        assert len(places) >= 8
        assert (gaps >= 14.9).all()


def test_labels_of_cut_lines_lie_under_the_lines_that_go_on():
    stages = chain(kept=3)
    step = staged_step(stages, token=best(stages))
    figure = go.Figure(slope_figure(step))
    pixels = (figure.layout.height - figure.layout.margin.t - figure.layout.margin.b) / figure.layout.yaxis.range[1]
    survivors = [trace for trace in lines(figure) if len(trace.x) == len(step.stages)]
    lowest = min(min(trace.y[1:]) for trace in survivors) * pixels
    cut = [place for text, _, place in labels(figure) if text.startswith("✕")]
    assert len(cut) == 5
    assert max(cut) < lowest


def test_a_cut_line_that_ends_among_lines_that_go_on_has_its_label_under_all_of_them():
    own = np.zeros(VOCAB, np.float32)
    own[3] = 14.0  # all others have next to nothing
    topped = np.where(np.arange(VOCAB) < 8, own, -np.inf).astype(np.float32)
    figure = go.Figure(slope_figure(staged_step([("logits", {}, own), ("top_k", {"top_k": 8}, topped)], token=3)))
    lowest, highest = figure.layout.yaxis.range
    pixels = (figure.layout.height - figure.layout.margin.t - figure.layout.margin.b) / (highest - lowest)
    (trace,) = (trace for trace in figure.data if trace.mode == "markers+text")
    cut = [y * pixels for text, y in zip(trace.text, trace.y, strict=True) if text.startswith("✕")]
    assert cut
    assert max(cut) < 0
    assert min(cut) > lowest * pixels


def test_a_label_moved_away_from_its_line_has_a_lead_to_it():
    stages = [("logits", {}, np.zeros(VOCAB, np.float32)), ("top_k", {"top_k": 24}, np.zeros(VOCAB, np.float32))]
    figure = go.Figure(slope_figure(staged_step(stages, token=3)))  # all lines lie on each other
    height = figure.data[1].y[0]
    leads = [shape for shape in figure.layout.shapes if shape.xsizemode == "pixel"]
    (texts_drawn,) = (trace for trace in figure.data if trace.mode == "markers+text")
    away = [y for y in texts_drawn.y if abs(y - height) * 300 > 3]
    assert len(away) > 10
    assert {round(shape.y0, 5) for shape in leads} == {round(height, 5)}
    assert set(away) <= {shape.y1 for shape in leads}


def test_what_moved_most_is_told_apart():
    own = np.full(VOCAB, -9.0, np.float32)
    own[:4] = [4.0, 3.0, 2.0, 1.0]
    lower = own.copy()
    lower[0] = 1.5  # from first to third
    step = staged_step([("logits", {}, own), ("repetition_penalty", {"repetition_penalty": 2.0}, lower)], token=1)
    moved = most_moved(step, shown(step))
    assert moved is not None
    assert step.candidate_ids[moved] == 0
    blue = [trace for trace in lines(go.Figure(slope_figure(step))) if trace.line.color == "var(--system)"]
    assert [trace.customdata[0]["token_id"] for trace in blue] == [0]


def test_the_models_own_favourites_are_shown_wherever_they_ended():
    own = random_logits(1)
    punished = own.copy()
    punished[own.argmax()] = own.min() - 5
    step = staged_step([("logits", {}, own), ("repetition_penalty", {"repetition_penalty": 9.0}, punished)], token=3)
    assert step.candidate_ids[shown(step)[0]] == own.argmax()
    assert 3 in step.candidate_ids[shown(step)]


# Before and after, and the tables.


def test_bars_hold_the_probabilities_before_and_after():
    stages = chain()
    step = staged_step(stages, token=best(stages))
    before, after = go.Figure(bars_figure(step)).data
    indices = shown(step)
    assert list(before.x) == pytest.approx(step.probabilities[0, indices].tolist(), abs=1e-6)
    assert list(after.x) == pytest.approx(step.probabilities[-1, indices].tolist(), abs=1e-6)
    assert [key["token_id"] for key in before.customdata] == step.candidate_ids[indices].tolist()


def test_the_bars_axis_ends_at_the_whole():
    own = np.full(VOCAB, -9.0, np.float32)
    own[3] = 9.0
    figure = go.Figure(bars_figure(staged_step([("logits", {}, own)], token=3)))
    assert list(figure.layout.xaxis.tickvals)[:3] == pytest.approx([0, 0.2, 0.4])
    assert max(figure.layout.xaxis.tickvals) <= 1
    assert figure.layout.xaxis.range[1] > 1


def test_every_dropped_bar_names_the_stage_that_dropped_it():
    stages = chain(kept=3)
    step = staged_step(stages, token=best(stages))
    for i, text in zip(shown(step), texts(go.Figure(bars_figure(step))), strict=True):
        assert ("✕ top-k 3" in text) == (cut_stage(step, i) is not None)


def test_the_table_gives_every_candidate_with_the_stage_that_cut_it():
    stages = chain(kept=4)
    step = staged_step(stages, token=best(stages))
    value = read(candidates_table(step))
    assert len(value["rows"]) == len(step.candidate_ids)
    for row, key in zip(value["rows"], value["keys"], strict=True):
        cells = [cell if isinstance(cell, str) else cell[0] for cell in row]
        index = int((step.candidate_ids == key["token_id"]).argmax())
        cut = cut_stage(step, index)
        assert cells[1] == str(key["token_id"])
        assert cells[3] == f"{step.logits[0, index]:.2f}"
        assert cells[-1] == ("" if cut is None else "top-k 4")
        assert (cells[-3], cells[-2]) == ("−∞", "✕") if cut is not None else cells[-2] != "✕"
    assert value["keys"][value["selected"]] == {"token_id": step.token_id}
