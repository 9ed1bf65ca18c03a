"""Numbers of a distribution, against worked examples and torch."""

import math

import numpy as np
import pytest
import torch

from engine.numerics import entropy, log_softmax, rank, top_k

INF = np.inf


def test_log_softmax_of_a_worked_example() -> None:
    # e^0 : e^ln2 : e^ln5 = 1 : 2 : 5
    logits = np.array([0.0, math.log(2), math.log(5)])
    assert np.allclose(np.exp(log_softmax(logits)), [1 / 8, 2 / 8, 5 / 8])


def test_log_softmax_equals_torch_on_many_rows() -> None:
    logits = np.random.default_rng(0).normal(0, 20, (7, 1000)).astype(np.float32)
    theirs = torch.from_numpy(logits).double().log_softmax(-1).numpy()
    assert np.allclose(log_softmax(logits), theirs, atol=1e-12)


def test_cut_tokens_have_probability_0_and_add_no_entropy() -> None:
    found = log_softmax(np.array([1.0, -INF, 1.0]))
    assert found[1] == -INF
    assert math.isclose(float(entropy(found)), math.log(2))


def test_entropy_of_certainty_and_of_a_fair_choice() -> None:
    assert float(entropy(np.array([0.0, -INF, -INF]))) == 0.0
    assert np.allclose(entropy(np.log(np.full((2, 8), 1 / 8))), math.log(8))


@pytest.mark.parametrize("row", [[-INF, -INF], [math.nan, 0.0], [INF, 0.0]])
def test_a_row_without_a_distribution_is_refused(row: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        log_softmax(np.array(row))


def test_rank_counts_the_strictly_better() -> None:
    logits = np.array([3.0, 1.0, 3.0, 2.0, -INF])
    assert [rank(logits, token) for token in range(5)] == [1, 4, 1, 3, 5]


def test_top_k_is_best_first_and_leaves_out_what_was_cut() -> None:
    values = np.array([1.0, 5.0, -INF, 5.0, 3.0])
    assert top_k(values, 3).tolist() == [1, 3, 4]
    assert top_k(values, 10).tolist() == [1, 3, 4, 0]


def test_top_k_equals_a_full_sort() -> None:
    values = np.random.default_rng(1).integers(0, 50, 5_000).astype(float)
    assert top_k(values, 40).tolist() == np.argsort(-values, kind="stable")[:40].tolist()
