import dataclasses
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
import pytest

from components.sampling import panel as sampling
from components.sampling.candidates import stage_label
from components.sampling.draw import draw_figure, interval_numbers, intervals
from components.sampling.lookup import lookup_table
from components.sampling.notes import notes
from components.sampling.slope import slope_figure
from components.sampling.tables import candidates_table
from components.widgets.host import read
from engine.experiment import ExperimentError
from engine.stages.candidates import FOLLOWED

from .handmade import make_trace, make_view
from .staged import VOCAB, best, chain, cut_below, random_logits, staged_step, texts, view_of

# The draw.


@pytest.mark.parametrize("seed", range(40))
def test_intervals_tile_the_line(seed):
    rng = np.random.default_rng(seed)
    own = rng.normal(0, rng.uniform(0.1, 5), VOCAB).astype(np.float32)
    final = cut_below(own, int(rng.integers(1, VOCAB)))
    token = int(rng.choice(np.flatnonzero(np.isfinite(final))))
    step = staged_step([("logits", {}, own), ("top_k", {"top_k": 3}, final)], token=token, followed=FOLLOWED)
    tiles = intervals(step)
    assert tiles[0].low == 0
    assert tiles[-1].high == 1
    assert all(left.high == right.low for left, right in pairwise(tiles))
    drawn = next(tile for tile in tiles if tile.token_id == token)
    assert drawn.low <= step.draw.u <= drawn.high
    for tile in tiles:
        if tile.token_id is not None:
            index = int((step.candidate_ids == tile.token_id).argmax())
            assert tile.high - tile.low == pytest.approx(step.probabilities[-1, index], abs=2e-4)


def test_the_draw_marks_u_and_the_drawn_token():
    stages = chain()
    step = staged_step(stages, token=best(stages))
    figure = go.Figure(draw_figure(step))
    (bar,) = figure.data
    accented = [key for key, color in zip(bar.customdata, bar.marker.color, strict=True) if color == "var(--accent)"]
    assert accented == [{"token_id": step.token_id}]
    assert figure.layout.shapes[0].x0 == step.draw.u
    assert f"u = {step.draw.u:.3f}" in texts(figure)[0]
    rows = read(interval_numbers(step))["rows"]
    assert float(rows[0][1]) == 0
    assert float(rows[-1][2]) == 1


def test_greedy_draws_nothing_and_says_so():
    stages = chain()
    step = staged_step(stages, token=best(stages), draw=None)
    assert not go.Figure(draw_figure(step)).layout.shapes
    labels = [group.label for group in notes(view_of(step), step)]
    assert "Nothing is drawn" in labels
    assert sampling.stations(view_of(step))[2].note == "greedy"


# Looking a token up.


def test_a_looked_up_token_is_asked_of_the_model_at_the_selected_step():
    stages = chain(kept=3)
    step = staged_step(stages, token=best(stages))
    asked = []

    def probe(name, **arguments):
        asked.append((name, arguments))
        index = [0, len(step.candidate_ids) - 1]
        ranks = np.array([[1, 20], [1, 20], [1, 0]], np.int32)
        found = dataclasses.make_dataclass(
            "Found", ["stages", "token_ids", "token_bytes", "logits", "probabilities", "ranks"]
        )
        return found(
            step.stages,
            step.candidate_ids[index],
            (b" Hi", b"Hi"),
            step.logits[:, index],
            step.probabilities[:, index],
            ranks,
        )

    value = read(lookup_table(view_of(step, probe=probe, query="Hi"), step))
    assert asked == [("distribution", {"turn": 0, "step": 2, "query": "Hi"})]
    assert [row[1] for row in value["rows"]] == ["logits", "temperature 0.7", "top-k 3"] * 2
    assert [row[-1] if isinstance(row[-1], str) else row[-1][0] for row in value["rows"]] == [
        "1",
        "1",
        "1",
        "20",
        "20",
        "–",
    ]
    assert "with and without a space" in value["caption"]
    assert value["keys"][-1] == {"token_id": int(step.candidate_ids[-1])}


def test_what_the_engine_refuses_is_said_in_the_lookup():
    def probe(name, **arguments):
        raise ExperimentError("turn", "there is no turn 3")

    step = staged_step(chain(), token=1)
    value = lookup_table(view_of(step, probe=probe, query="x"), step)
    assert value["caption"] == "turn: there is no turn 3"


def test_without_a_model_nothing_can_be_looked_up():
    step = staged_step(chain(), token=1)
    assert lookup_table(view_of(step, query="x"), step)["caption"].startswith("No model is loaded")


# The panel.


def test_rail_shows_the_kept_counts_where_they_change():
    stages = chain(kept=5)
    step = staged_step(stages, token=best(stages))
    logits, processors, draw = sampling.stations(view_of(step))
    assert logits.result == "24"
    assert processors.result == "24→5"
    assert draw.note.startswith("u ")
    assert [station.result for station in sampling.stations(make_view(make_trace(answer=())))] == ["–"] * 3


def test_hostile_tokens_stay_text():
    own = -np.abs(np.arange(VOCAB) - 12).astype(np.float32)
    step = staged_step([("logits", {}, own), ("temperature", {"temperature": 2.0}, own / 2)], token=12)
    rows = read(candidates_table(step))["rows"]
    tokens = {cell if isinstance(cell, str) else cell[0] for row in rows for cell in row[2:3]}
    assert {"<script>alert(1)</script>", "${x}", "⟨U+200F⟩", "⟨F0⟩⟨9F⟩"} <= tokens
    names = {trace.name for trace in go.Figure(slope_figure(step)).data}
    assert {"<script>alert…", "${x}"} <= names
    alone = go.Figure(slope_figure(staged_step([("logits", {}, own)], token=12)))
    assert {"<script>alert…", "${x}"} <= set(alone.layout.yaxis.ticktext)


def test_a_prompt_position_shows_the_first_step_and_says_so(view):
    on_prompt = dataclasses.replace(view, cursor=dataclasses.replace(view.cursor, position=3))
    (line,) = read(sampling.render(on_prompt)[0])["stations"]
    assert "first step" in line[2]


def test_render_fills_what_build_makes(view, paris):
    import gradio as gr

    with gr.Blocks():
        parts = sampling.build()
    assert len(sampling.render(view)) == len(parts)
    for step in paris.steps(0):
        assert len(sampling.render(make_view(paris, position=step.position))) == len(parts)


def test_unavailable_before_the_first_token():
    assert sampling.unavailable(make_view(make_trace(answer=()))) is not None
    assert sampling.unavailable(make_view()) is None


def test_a_stage_shows_its_setting():
    step = staged_step(
        [("logits", {}, random_logits(0)), ("bad_words", {"words": ["a", "b"], "ids": [[1]]}, random_logits(0))],
        token=1,
    )
    assert [stage_label(stage) for stage in step.stages] == ["logits", "bad words ×2"]
