"""Rows of the table against brute force in float64, what is shared, and what the first layer really gets."""

from typing import Any

import numpy as np
import pytest
import torch

from engine.anatomy import anatomy
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.probes import embedding_table
from engine.probes.embedding import embedding
from engine.probes.embedding_table import nearest, row_cosines, row_norms, table_of
from engine.probes.embedding_use import scale_of
from tests.engine.models import CONFIGS, ROWS, tiny
from tests.engine.probes.tables import of_config, with_table
from tests.engine.probes.test_lens import FACTS, talk, whole
from tests.engine.probes.test_residual import hidden_states


def numbers_of(loaded: LoadedModel) -> np.ndarray:
    """The table [rows, hidden] in float64."""
    return np.asarray(table_of(loaded.model.get_input_embeddings()).detach().double().numpy())


def by_force(table: np.ndarray, row: int, count: int) -> list[tuple[int, float]]:
    """Neighbours of a row one pair at a time: rows without length are none, of equals the lower id comes first."""
    found = []
    for other, vector in enumerate(table):
        size = np.sqrt((vector**2).sum() * (table[row] ** 2).sum())
        if other != row and size > 0:
            found.append((-float((vector * table[row]).sum() / size), other))
    return [(other, -cosine) for cosine, other in sorted(found)[:count]]


@pytest.mark.parametrize("piece", [32 * 7, 4 << 20])
@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", "mixed"])
def test_norms_and_neighbours_are_those_of_brute_force(name: str, piece: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(embedding_table, "PIECE", piece)
    loaded = with_table(name, {})
    conversation = talk(loaded)
    table, ids = numbers_of(loaded), whole(conversation)
    norms = np.linalg.norm(table, axis=1)
    for position in (0, 3, len(ids) - 1):
        found, row = embedding(conversation, position=position, count=7), ids[position]
        assert (found.token_id, found.position, found.rows) == (row, position, ROWS)
        assert found.norm == pytest.approx(norms[row], rel=1e-6)
        assert found.shorter == int((norms < norms[row]).sum())
        assert (found.smallest_id, found.largest_id) == (norms.argmin(), norms.argmax())
        np.testing.assert_allclose(
            [found.smallest, found.median, found.largest], [norms.min(), np.median(norms), norms.max()], rtol=1e-6
        )
        expected = by_force(table, row, 7)
        assert found.neighbour_ids.tolist() == [other for other, _ in expected]
        np.testing.assert_allclose(found.neighbour_cosines, [cosine for _, cosine in expected], atol=1e-6)
        np.testing.assert_allclose(found.neighbour_norms, norms[found.neighbour_ids], rtol=1e-6)
        np.testing.assert_allclose(found.position_norms, norms[ids], rtol=1e-6)


def test_ties_go_to_the_lower_id_and_rows_of_zeros_are_nobody_s_neighbours() -> None:
    """Worked by hand: row 7 is (3, 4), length 5. Row 9 points the same way, twice as long: cosine 1. Rows 20 and 11
    are alike, (4, 3): (12 + 12) / 25 = 0.96. Row 30 is zeros.
    """
    rows: dict[int, Any] = {row: [0, 0, 1 + row / 1000] for row in range(ROWS)}
    rows |= {7: [3, 4], 9: [6, 8], 20: [4, 3], 11: [4, 3], 30: [0, 0]}
    module = with_table("llama", rows).model.get_input_embeddings()
    found = nearest(row_cosines(module, table_of(module)[7][None])[0], 3, leave_out=(7,))
    assert found.ids.tolist() == [9, 11, 20]
    np.testing.assert_allclose(found.cosines, [1, 0.96, 0.96], atol=1e-6)
    assert row_norms(module)[[7, 9, 30]].tolist() == [5, 10, 0]
    everyone = nearest(row_cosines(module, table_of(module)[7][None])[0], ROWS, leave_out=(7,))
    assert 30 not in everyone.ids and len(everyone.ids) == ROWS - 2
    assert np.isfinite(everyone.cosines).all()
    assert everyone.ids[3:].tolist() == [row for row in range(ROWS) if row not in rows or row not in (7, 9, 20, 11, 30)]


def test_a_row_of_zeros_has_no_neighbours_and_no_nan_is_shown_as_a_number() -> None:
    ids = whole(talk(tiny("llama")))
    loaded = with_table("llama", {ids[2]: [0]})
    conversation = talk(loaded, tokens=1)
    found = embedding(conversation, position=2)
    assert (found.norm, found.shorter, found.empty_rows, found.smallest) == (0, 0, 1, 0)
    assert len(found.neighbour_ids) == len(found.neighbour_cosines) == 0
    assert np.isnan(found.typical_cosine)
    other = embedding(conversation, position=0, count=100)
    assert ids[2] not in other.neighbour_ids and np.isfinite(other.typical_cosine)


def test_norms_are_worked_out_once_for_a_table() -> None:
    module = with_table("llama", {}).model.get_input_embeddings()
    assert row_norms(module) is row_norms(module)
    assert row_norms(module).nbytes == 4 * ROWS


@pytest.mark.parametrize(("name", "asked"), [("llama", True), ("llama", False), ("gpt2", True), ("mixed", False)])
def test_tied_is_what_the_config_ties(name: str, asked: bool) -> None:
    loaded = of_config(CONFIGS[name], tie_word_embeddings=asked)
    found = embedding(talk(loaded, tokens=1))
    assert (found.tied, loaded.facts.tied_embeddings) == (asked, asked)
    assert found.table_bytes == ROWS * 32 * 4
    head = loaded.model.get_output_embeddings().weight[found.token_id].detach().double().numpy()
    row = numbers_of(loaded)[found.token_id]
    assert found.head_cosine == pytest.approx(head @ row / np.linalg.norm(head) / np.linalg.norm(row), abs=1e-5)
    assert (found.head_cosine == pytest.approx(1, abs=1e-5)) is asked


@pytest.mark.parametrize(
    ("name", "scale"), [("llama", 1), ("qwen3", 1), ("gpt2", 1), ("capped", 32**0.5), ("mixed", 32**0.5)]
)
def test_the_scale_is_that_of_the_library_s_first_hidden_state(name: str, scale: float) -> None:
    loaded = tiny(name)
    conversation = talk(loaded)
    ids = whole(conversation)
    found = embedding(conversation, position=4)
    assert found.scale == pytest.approx(scale, rel=1e-5)
    entered = hidden_states(loaded, ids)[0][4].numpy()
    if found.learned_positions:
        entered = entered - anatomy(loaded.model).positions.weight[4].numpy()  # type: ignore[union-attr, operator]
    np.testing.assert_allclose(entered, found.scale * numbers_of(loaded)[ids[4]], rtol=1e-4, atol=1e-5)
    assert found.learned_positions is (name == "gpt2")


def test_what_is_no_multiple_of_the_row_is_not_called_a_scale() -> None:
    loaded = with_table("llama", {})
    loaded.model.get_input_embeddings().register_forward_hook(lambda module, given, result: result + 0.05)
    assert scale_of(loaded) is None


def test_a_table_of_half_precision_is_measured_in_float32() -> None:
    loaded = with_table("llama", {}, torch.bfloat16)
    found = embedding(talk(loaded, tokens=1), position=1, count=5)
    assert found.neighbour_ids.tolist() == [other for other, _ in by_force(numbers_of(loaded), found.token_id, 5)]
    assert found.scale == pytest.approx(1)
    assert found.table_bytes == ROWS * 32 * 2


def test_of_a_long_text_the_positions_around_the_one_in_sight_are_shown(llama: LoadedModel) -> None:
    conversation = talk(llama, tokens=1, prompt="the cat sat on the mat. " * 40)
    ids = whole(conversation)
    norms = np.linalg.norm(numbers_of(llama), axis=1)
    for position in (0, 150, len(ids) - 1):
        found = embedding(conversation, position=position)
        assert (len(found.positions), found.length) == (128, len(ids))
        assert position in found.positions
        assert 0 <= found.positions[0] and found.positions[-1] < len(ids)
        np.testing.assert_allclose(found.position_norms, norms[np.array(ids)[found.positions]], rtol=1e-6)


@pytest.mark.parametrize("arguments", [{"turn": 3}, {"position": 999}, {"count": 0}, {"count": 101}])
def test_what_is_not_there_is_refused(llama: LoadedModel, arguments: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError):
        embedding(talk(llama), **arguments)


def test_the_embedded_model_s_row_of_paris(embedded: LoadedModel) -> None:
    """Obtained apart from this program: `get_input_embeddings().weight` of plain transformers as
    float64, `torch.nn.functional.normalize(table) @ normalize(table[7042])` and `topk(6)`.
    """
    golden = FACTS["smollm2-135m-instruct-q4_1"]["weights_embedded"]
    conversation = talk(embedded, 1, model=embedded.facts.model_id, prompt=golden["prompt"] + " Paris")
    found = embedding(conversation, position=12, count=5)
    assert (found.token_id, found.token_bytes) == (golden["paris_id"], b" Paris")
    assert (found.norm, found.median) == (pytest.approx(2.2027, abs=1e-4), pytest.approx(3.1539, abs=1e-4))
    assert (found.smallest, found.largest) == (pytest.approx(1.7929, abs=1e-4), pytest.approx(7.4949, abs=1e-4))
    named = list(zip(found.neighbour_bytes, found.neighbour_cosines.round(3).tolist(), strict=True))
    assert named == [
        (b"Paris", pytest.approx(0.813)),
        (b" London", pytest.approx(0.611)),
        (b" France", pytest.approx(0.595)),
        (b" Berlin", pytest.approx(0.595)),
        (b" Montreal", pytest.approx(0.581)),
    ]
    assert (found.tied, found.scale, found.table_bytes) == (True, pytest.approx(1), 49152 * 576 * 4)
