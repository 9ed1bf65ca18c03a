import math
from dataclasses import astuple

import pytest
import torch

from engine.stages.sampling import draw, greedy
from tests.engine.far import far


def scores(seed: int, size: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    row = torch.randn(size, generator=generator) * 3
    if seed % 2:
        row = row.masked_fill(row < row.topk(max(1, size // 10)).values[-1], -torch.inf)
    return row


@pytest.mark.parametrize("size", [1, 3, 128, 49_152])
def test_the_draw_is_that_of_multinomial_and_leaves_the_generator_alike(size: int) -> None:
    ours, theirs = torch.Generator().manual_seed(size), torch.Generator().manual_seed(size)
    for seed in range(60):
        row = scores(seed, size)
        expected = torch.multinomial(torch.softmax(row[None], dim=-1), 1, generator=theirs)
        assert draw(row, ours).drawn_id == int(expected)
        assert torch.equal(ours.get_state(), theirs.get_state())


@pytest.mark.parametrize("size", [1, 3, 128, 49_152])
def test_looking_only_at_what_is_left_changes_nothing(size: int) -> None:
    ours, whole = torch.Generator().manual_seed(size), torch.Generator().manual_seed(size)
    for seed in range(60):
        row = scores(seed, size)
        left = torch.nonzero(row > -torch.inf).flatten()
        assert astuple(draw(row, ours, left)) == astuple(draw(row, whole))
        assert torch.equal(ours.get_state(), whole.get_state())


def test_a_device_without_float64_draws_the_same() -> None:
    here, there = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    for seed in range(20):
        row = scores(seed, 40)
        left = torch.nonzero(row > -torch.inf).flatten()
        assert astuple(draw(far(row), there, far(left))) == astuple(draw(row, here, left))


def test_u_picks_the_same_token_on_the_cumulative_line() -> None:
    generator = torch.Generator().manual_seed(0)
    for seed in range(300):
        row = scores(seed, 40)
        # equal probabilities must not share an interval
        row[5] = row[7]
        drawn = draw(row, generator)
        probabilities = torch.softmax(row.double(), dim=-1)
        order = sorted(range(40), key=lambda token: (-float(row[token]), token))
        line = 0.0
        for token in order:
            if token == drawn.drawn_id:
                break
            line += float(probabilities[token])
        assert drawn.low == pytest.approx(line, abs=1e-6)
        assert drawn.high - drawn.low == pytest.approx(float(probabilities[drawn.drawn_id]), abs=1e-6)
        assert 0 <= drawn.low <= drawn.u < drawn.high <= 1
        assert drawn.race_time > 0
        if drawn.runner_up_time is not None:
            assert drawn.runner_up_time >= drawn.race_time
            assert drawn.runner_up_id != drawn.drawn_id


def test_u_is_uniform() -> None:
    """Kolmogorov-Smirnov: the largest gap between the empirical and the true line, at 1 in 1,000."""
    generator = torch.Generator().manual_seed(1)
    row = scores(2, 50)
    count = 5_000
    numbers = sorted(draw(row, generator).u for _ in range(count))
    gap = max(max(abs(number - at / count), abs(number - (at + 1) / count)) for at, number in enumerate(numbers))
    assert gap < 1.95 / math.sqrt(count)


def test_one_candidate_has_no_runner_up() -> None:
    row = torch.full((5,), -torch.inf)
    row[3] = 2.0
    drawn = draw(row, torch.Generator().manual_seed(0))
    assert (drawn.drawn_id, drawn.low, drawn.high) == (3, 0.0, 1.0)
    assert drawn.runner_up_id is None
    assert drawn.runner_up_time is None


def test_greedy_takes_the_first_of_equals() -> None:
    assert greedy(torch.tensor([0.0, 2.0, 2.0, -torch.inf])) == 1
