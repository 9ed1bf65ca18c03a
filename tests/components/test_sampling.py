import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components import sampling
from components.panel import View
from components.repetition import context_ids, origin, penalty_hits, repeated_ngrams
from components.sampling_bars import bars_figure
from components.sampling_candidates import RANKED, cut_stage, most_moved, rank_at, shown, stage_label
from components.sampling_draw import draw_figure, interval_numbers, intervals
from components.sampling_lookup import lookup_table
from components.sampling_notes import _effect, notes
from components.sampling_slope import slope_figure
from components.sampling_tables import candidates_table, penalty_table
from components.widgets.host import read
from engine.experiment import ExperimentError
from engine.stages.candidates import FOLLOWED

from .handmade import make_experiment, make_rendered, make_trace, make_view
from .staged import CUT, cut_below, staged_step

VOCAB = 24


def random_logits(seed: int, scale: float = 3.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, scale, VOCAB).astype(np.float32)


def chain(seed: int = 0, kept: int = 5):
    own = random_logits(seed)
    warm = own / np.float32(0.7)
    few = cut_below(warm, kept)
    return [("logits", {}, own), ("temperature", {"temperature": 0.7}, warm), ("top_k", {"top_k": kept}, few)]


def best(stages) -> int:
    return int(stages[-1][2].argmax())


def view_of(step, *, experiment=None, probe=None, query="") -> View:
    """A view whose selected step is `step`, with two plain steps before it."""
    trace = make_trace(answer=(15, 16), stop=False)
    trace = dataclasses.replace(trace, events=(*trace.events, step), experiment=experiment or make_experiment())
    return dataclasses.replace(make_view(trace, query=query), probe=probe)


def texts(figure) -> list[str]:
    return [note.text for note in figure.layout.annotations]


# The slope.


def test_each_line_is_its_candidates_way_through_the_stages_and_ends_where_it_was_cut():
    stages = chain()
    step = staged_step(stages, token=best(stages))
    figure = slope_figure(step)
    drawn = {}
    for trace in figure.data:
        token_id = trace.customdata[0]["token_id"]
        index = int((step.candidate_ids == token_id).argmax())
        drawn[token_id] = trace
        end = cut_stage(step, index)
        expected = [math.sqrt(p) for p in step.probabilities[:end, index]]
        assert list(trace.y) == pytest.approx(expected)
        assert list(trace.x) == list(range(len(expected)))
        assert {key["token_id"] for key in trace.customdata} == {token_id}
    assert set(drawn) == {int(step.candidate_ids[i]) for i in shown(step)}
    assert drawn[step.token_id].line.color == "var(--accent)"
    assert figure.data[-1].customdata[0]["token_id"] == step.token_id, "the chosen line lies on top"


def test_heads_give_kept_counts_entropy_and_mass():
    stages = chain(kept=5)
    step = staged_step(stages, token=best(stages))
    heads = texts(slope_figure(step))
    removed = 100 * step.stages[2].mass_removed
    assert "top-k 5" in heads
    assert "5 kept" in heads
    assert heads.count("24 kept") == 2
    assert f"H {step.stages[2].entropy:.2f} · −{removed:.1f}%" in heads


def test_every_cut_line_carries_its_token_at_the_end():
    stages = chain(kept=3)
    step = staged_step(stages, token=best(stages))
    cut = [i for i in shown(step) if cut_stage(step, i) is not None]
    assert cut
    ends = [text for text in texts(slope_figure(step)) if text.startswith("✕ ")]
    assert len(ends) == len(cut)


def test_labels_at_each_end_do_not_overlap():
    stages = [("logits", {}, np.zeros(VOCAB, np.float32)), ("top_k", {"top_k": 24}, np.zeros(VOCAB, np.float32))]
    step = staged_step(stages, token=3)  # all lines lie on each other
    figure = slope_figure(step)
    pixels = (figure.layout.height - figure.layout.margin.t - figure.layout.margin.b) / figure.layout.yaxis.range[1]
    for anchor in ("left", "right"):
        places = [note.y * pixels - note.ay for note in figure.layout.annotations if note.xanchor == anchor]
        gaps = np.diff(sorted(places))
        assert len(places) >= 8
        assert (gaps >= 14.9).all()


def test_labels_of_cut_lines_lie_under_the_lines_that_go_on():
    stages = chain(kept=3)
    step = staged_step(stages, token=best(stages))
    figure = slope_figure(step)
    pixels = (figure.layout.height - figure.layout.margin.t - figure.layout.margin.b) / figure.layout.yaxis.range[1]
    survivors = [trace for trace in figure.data if len(trace.x) == len(step.stages)]
    lowest = min(min(trace.y[1:]) for trace in survivors) * pixels
    cut = [note.y * pixels - note.ay for note in figure.layout.annotations if note.text.startswith("✕")]
    assert len(cut) == 5
    assert max(cut) < lowest


def test_what_moved_most_is_told_apart():
    own = np.full(VOCAB, -9.0, np.float32)
    own[:4] = [4.0, 3.0, 2.0, 1.0]
    lower = own.copy()
    lower[0] = 1.5  # from first to third
    step = staged_step([("logits", {}, own), ("repetition_penalty", {"repetition_penalty": 2.0}, lower)], token=1)
    moved = most_moved(step, shown(step))
    assert moved is not None
    assert step.candidate_ids[moved] == 0
    blue = [trace for trace in slope_figure(step).data if trace.line.color == "var(--system)"]
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
    before, after = bars_figure(step).data
    indices = shown(step)
    assert list(before.x) == pytest.approx(step.probabilities[0, indices].tolist())
    assert list(after.x) == pytest.approx(step.probabilities[-1, indices].tolist())
    assert [key["token_id"] for key in before.customdata] == step.candidate_ids[indices].tolist()


def test_the_bars_axis_ends_at_the_whole():
    own = np.full(VOCAB, -9.0, np.float32)
    own[3] = 9.0
    figure = bars_figure(staged_step([("logits", {}, own)], token=3))
    assert list(figure.layout.xaxis.tickvals)[:3] == pytest.approx([0, 0.2, 0.4])
    assert max(figure.layout.xaxis.tickvals) <= 1
    assert figure.layout.xaxis.range[1] > 1


def test_every_dropped_bar_names_the_stage_that_dropped_it():
    stages = chain(kept=3)
    step = staged_step(stages, token=best(stages))
    for i, text in zip(shown(step), texts(bars_figure(step)), strict=True):
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


def test_ranks_are_of_the_whole_vocabulary_or_not_given():
    assert RANKED == FOLLOWED
    for seed in range(20):
        stages = chain(seed, kept=6)
        step = staged_step(stages, token=int(np.random.default_rng(seed).integers(VOCAB)))
        for stage, (_, _, row) in enumerate(stages):
            for index, token_id in enumerate(step.candidate_ids):
                true = int((row > row[token_id]).sum()) + 1
                known = np.isfinite(row[token_id]) and true <= RANKED
                assert rank_at(step, index, stage) == (true if known else None)


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
    figure = draw_figure(step)
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
    assert not draw_figure(step).layout.shapes
    labels = [group.label for group in notes(view_of(step), step)]
    assert "Nothing is drawn" in labels
    assert sampling.stations(view_of(step))[2].note == "greedy"


# The notes.


def note(view: View, step, start: str) -> str:
    return next(group.note for group in notes(view, step) if group.label.startswith(start))


def penalised(**changes):
    """The penalty at 2: 9 stands in the default system prompt, 14 (its logit below 0) in the user's, 19 nowhere."""
    own = np.linspace(-1, -3, VOCAB).astype(np.float32)
    own[[9, 19, 14]] = [4.0, 3.0, -0.5]
    after = own.copy()
    after[9], after[14] = 2.0, -1.0
    return staged_step(
        [("logits", {}, own), ("repetition_penalty", {"repetition_penalty": 2.0}, after)], token=19, **changes
    )


def test_the_penalty_names_where_the_token_stands_and_what_became_of_its_logit():
    step = penalised()
    view = view_of(step)
    hits = penalty_hits(view.rendered, view.steps, step)
    assert {int(step.candidate_ids[hit.index]) for hit in hits} == {9, 14}
    kind = next(hit for hit in hits if step.candidate_ids[hit.index] == 9)
    assert kind.places == {"default_system": [4]}
    assert (kind.rank_before, kind.rank_after, kind.divided) == (1, 2, True)
    text = note(view, step, "Why did “␣kind” fall from rank 1 to 2?")
    assert "the system prompt that the template added, at 4" in text
    assert "4.00 is positive, so it was divided by 2 and became 2.00" in text
    assert "before you wrote a word" in text


def test_a_negative_logit_is_multiplied():
    step = penalised()
    view = view_of(step)
    user = next(hit for hit in penalty_hits(view.rendered, view.steps, step) if step.candidate_ids[hit.index] == 14)
    assert not user.divided
    assert (user.logit_before, user.logit_after) == (-0.5, -1.0)
    assert user.places == {"user": [14]}
    rows = read(penalty_table(view.rendered, view.steps, step))["rows"]
    assert rows[1][:3] == ["␣user", "a user message, at 14", "-0.50 → -1.00"]


def test_tokens_of_the_answer_and_the_scaffold_are_told_apart():
    rendered = make_rendered()
    assert [origin(rendered, position) for position in (0, 3, 10, 19, 21)] == [
        "scaffold", "default_system", "user", "scaffold", "answer",
    ]  # fmt: skip
    step = penalised()
    assert context_ids(rendered, view_of(step).steps, step)[-2:] == [15, 16]


def test_a_ban_on_n_grams_names_the_n_gram_and_where_it_stands():
    # The context ends in … 15, 16; with the prompt's "Be kind" made "Hi ‏ kind" the trigram 15 16 9 stands at 3.
    parts = list(make_rendered().token_ids)
    rendered = make_rendered(
        (("system", None, "content", (15, 16, 9)), ("user", 0, "content", tuple(int(i) for i in parts[7:])))
    )
    own = random_logits(2)
    own[9] = own.max() + 1
    after = own.copy()
    after[9] = CUT
    step = staged_step(
        [("logits", {}, own), ("no_repeat_ngram_size", {"no_repeat_ngram_size": 3}, after)], token=int(after.argmax())
    )
    view = view_of(step)
    events = tuple(rendered if event.kind == "rendered" else event for event in view.trace.events)
    view = dataclasses.replace(view, trace=dataclasses.replace(view.trace, events=events))
    (gram,) = repeated_ngrams(rendered, view.steps, step)
    assert gram.token_ids == (15, 16, 9)
    assert gram.position == 0
    assert "already stands at positions 0 to 2" in note(view, step, "Why is “␣kind” ruled out?")


def test_a_constraint_gives_the_number_of_legal_tokens():
    own = random_logits(3)
    legal = cut_below(own, 2)
    stages = [("logits", {}, own), ("grammar", {"kind": "regex", "legal": 2}, legal)]
    step = staged_step(stages, token=int(own.argmax()))
    text = note(view_of(step), step, "What does grammar regex allow?")
    assert "forbids 22 tokens" in text
    assert "leaves 2 of 24" in text


def test_a_cut_end_of_sequence_token_is_said_with_its_stage():
    stages = chain(kept=2)
    step = staged_step(stages, token=best(stages))
    step = dataclasses.replace(step, eos=dataclasses.replace(step.eos, rank=7, cut_by="top_k"))
    assert note(view_of(step), step, "It cannot stop").startswith("top-k cut the end-of-sequence token")


def test_a_forced_token_names_what_the_draw_had_given():
    stages = chain()
    step = staged_step(stages, token=best(stages))
    other = next(int(i) for i in step.candidate_ids if i != step.token_id)
    forced = dataclasses.replace(step, token_id=other, forced=True)
    text = note(view_of(forced), forced, "A person chose")
    assert "The draw itself had given" in text
    assert sampling.stations(view_of(forced))[2].note == "forced"


def keep(logits: np.ndarray, names: list[str], temperature: float, top_p: float, min_p: float) -> set[int]:
    """The tokens that are left after these processors in this order, worked out plainly."""
    row = logits.astype(np.float64)
    for name in names:
        p = np.exp(row - row.max())
        p /= p.sum()
        if name == "temperature":
            row = row / temperature
        elif name == "top_p":
            order = np.argsort(-p, kind="stable")
            before = np.cumsum(p[order]) - p[order]
            row = np.where(np.isin(np.arange(len(row)), order[before < top_p]), row, CUT)
        else:
            row = np.where(p >= min_p * p.max(), row, CUT)
    return set(np.flatnonzero(np.isfinite(row)).tolist())


@given(
    seed=st.integers(0, 10_000),
    temperature=st.sampled_from([0.3, 0.7, 1.5, 3.0]),
    top_p=st.floats(0.1, 0.99),
    min_p=st.floats(0.01, 0.5),
)
def test_what_is_said_about_the_other_order_is_true(seed, temperature, top_p, min_p):
    logits = random_logits(seed)
    transformers = keep(logits, ["temperature", "top_p", "min_p"], temperature, top_p, min_p)
    llama = keep(logits, ["top_p", "min_p", "temperature"], temperature, top_p, min_p)
    said = _effect({"temperature", "top_p", "min_p"}, temperature, "llama")
    assert said == ("keeps_more" if temperature < 1 else "keeps_fewer")
    assert (len(llama) >= len(transformers)) if said == "keeps_more" else (len(llama) <= len(transformers))
    assert _effect({"temperature", "top_k"}, temperature, "llama") == "keeps_same"


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
    step = staged_step([("logits", {}, -np.abs(np.arange(VOCAB) - 12).astype(np.float32))], token=12)
    rows = read(candidates_table(step))["rows"]
    tokens = {cell if isinstance(cell, str) else cell[0] for row in rows for cell in row[2:3]}
    assert {"<script>alert(1)</script>", "${x}", "⟨U+200F⟩", "⟨F0⟩⟨9F⟩"} <= tokens
    names = {trace.name for trace in slope_figure(step).data}
    assert {"<script>alert…", "${x}"} <= names


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
