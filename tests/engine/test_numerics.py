"""Ranks and the best of logits, against worked examples and a full sort."""

import numpy as np

from engine.numerics import rank, top_k

INF = np.inf


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
