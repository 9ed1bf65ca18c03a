from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.spread import spread


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([0, 0], [-5, 5]),
        ([100, 0, 50], [100, 0, 50]),
        ([0, 2, 4], [-8, 2, 12]),
        ([0, 0, 100], [-5, 5, 100]),
    ],
)
def test_spread_by_hand(wanted, expected):
    assert spread(wanted, 10, low=-1000, high=1000) == pytest.approx(expected)


@given(st.lists(st.floats(-50, 350), min_size=1, max_size=14))
def test_spread_keeps_order_room_and_gaps(wanted):
    places = spread(wanted, 15, low=4, high=318)
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    along = [places[i] for i in order]
    assert all(right - left >= 15 - 1e-6 for left, right in pairwise(along))
    assert min(along) >= 4 - 1e-6
    assert max(along) <= 318 + 1e-6


def test_spread_shrinks_the_gap_where_there_is_no_room():
    assert spread([0] * 5, 15, low=0, high=40) == pytest.approx([0, 10, 20, 30, 40])
