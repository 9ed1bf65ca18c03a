"""Each measurement runs, on small models and short lengths, and gives finite numbers; the table judges them."""

import math

import pytest

from benchmarks import decode, floor, footprint, grid, inside, transformer_lens, turns
from benchmarks.__main__ import main
from benchmarks.figures import Figure, table
from benchmarks.prompts import prompt_of
from engine.model import LoadedModel


def test_decode_measures_both_kinds_of_generate(llama: LoadedModel) -> None:
    figures = decode.measure(llama, contexts=(16, 24), new_tokens=4, rounds=1)
    assert len(figures) == 8
    assert all(math.isfinite(figure.value) and figure.value > 0 for figure in figures)


def test_decode_refuses_to_compare_different_work(llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "traced", lambda *_: decode.Decoded((1, 2, 3, 4), 1.0))
    with pytest.raises(RuntimeError, match="different tokens"):
        decode.measure(llama, contexts=(16,), new_tokens=4, rounds=1)


def test_floor_is_a_product_with_the_bytes_of_the_weights(llama: LoadedModel) -> None:
    (figure,) = floor.measure(llama, context=16, new_tokens=4, rounds=1)
    assert math.isfinite(figure.value)
    assert figure.value > 0


def test_footprint_counts_json_and_memory_by_holder(llama: LoadedModel) -> None:
    json_size, events, back, rest = footprint.measure(llama, context=16, steps=20)
    assert 0.5 < json_size.value < 100
    assert 1 < events.value < 12
    assert 5 < back.value < 6
    assert -1 < rest.value < footprint.LEAK


def test_grid_is_measured_beside_its_runs(llama: LoadedModel) -> None:
    (figure,) = grid.measure(llama, context=16, new_tokens=4, rounds=1)
    assert 0 < figure.value < 10


def test_grid_refuses_to_compare_different_work(llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "together", lambda *_: ([(1, 2)] * 8, 0))
    with pytest.raises(RuntimeError, match="different tokens"):
        grid.measure(llama, context=16, new_tokens=4, rounds=1)


def test_inside_measures_step_lens_map_and_matrix(llama: LoadedModel) -> None:
    figures = inside.measure(llama, context=24, whole=32, rounds=1)
    assert [figure.bar for figure in figures] == [1.5, 1.3, 1.3, None, 1.3, None]
    assert all(math.isfinite(figure.value) and figure.value > 0 for figure in figures)


def test_transformer_lens_is_left_out_with_the_reason(
    embedded: LoadedModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def none() -> None:
        raise OSError("no package index")

    monkeypatch.setattr("benchmarks.model.embedded", lambda: embedded)
    monkeypatch.setattr(transformer_lens, "_environment", none)
    assert transformer_lens.measure() == []
    assert capsys.readouterr().err == "TransformerLens left out: no package index\n"


def test_turns_measures_a_second_turn_and_the_cut(llama: LoadedModel) -> None:
    second = turns.second_turn(llama, shared=120, new=60, rounds=1)
    assert 0 < second.value < 100
    assert "shared" in second.name
    alone = turns.products(llama, positions=40, new=10, rounds=1)
    assert (alone.bar, alone.note.rpartition(", ")[2]) == (None, "10 of 40 rows")
    assert 0 < alone.value < 100
    cut = turns.compare_and_cut(llama, positions=400, rounds=3)
    assert 0 < cut.value < 100


def test_in_turn_takes_medians_and_leaves_out_the_first_round() -> None:
    values = {"a": [100.0, 1.0, 2.0, 9.0], "b": [100.0, 3.0, 4.0, 5.0]}
    found = decode.in_turn(3, a=lambda: values["a"].pop(0), b=lambda: values["b"].pop(0))
    assert found == {"a": 2.0, "b": 4.0}


def test_a_prompt_has_its_length(llama: LoadedModel) -> None:
    for length in (1, 16, 64):
        assert len(llama.tokenizer.encode(prompt_of(llama.tokenizer, length))) == length


def test_the_table_is_aligned_and_names_what_missed() -> None:
    figures = [
        Figure("speed", 0.94, "×", 0.95, "at least"),
        Figure("a longer name", 30.0, "ms", 30),
        Figure("only told", 7.0, "KB", note="of 9"),
    ]
    head, *lines = table(figures).splitlines()
    assert [line.split()[-1] for line in lines] == ["miss", "ok", "9"]
    assert all(line.index("at ") == head.index("bar") for line in lines[:2])
    assert Figure("broken", math.nan, "×", 1.0).missed
    assert Figure("broken", math.inf, "×").missed


@pytest.mark.parametrize(("value", "code"), [(1.0, 0), (2.0, 1)])
def test_a_missed_bar_is_the_exit_code(
    value: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measurement() -> list[Figure]:
        return [Figure("made up", value, "s", 1.5)]

    monkeypatch.setattr("benchmarks.__main__.MEASUREMENTS", {"made-up": (measurement, measurement)})
    assert main(["--only", "made-up"]) == code
    assert "made up" in capsys.readouterr().out
