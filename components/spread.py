"""Labels of lines moved apart, so that each can be read beside its end."""

from collections.abc import Sequence


def spread(wanted: Sequence[float], gap: float, *, low: float, high: float) -> list[float]:
    """Places in [low, high] at least `gap` apart, in the order of `wanted` and as near to it as squares measure.

    Isotonic regression by pooling adjacent violators (Ayer et al., 1955) after taking the gaps out. Where the
    room is too small for the gaps, they shrink evenly.
    """
    count = len(wanted)
    gap = min(gap, (high - low) / max(count - 1, 1))
    order = sorted(range(count), key=lambda i: wanted[i])
    pools: list[tuple[float, int]] = []  # mean, members
    for place, i in enumerate(order):
        mean, members = wanted[i] - place * gap, 1
        while pools and pools[-1][0] > mean:
            other, size = pools.pop()
            mean, members = (mean * members + other * size) / (members + size), members + size
        pools.append((mean, members))
    flat = [mean for mean, members in pools for _ in range(members)]
    places = [0.0] * count
    for place, i in enumerate(order):
        places[i] = min(max(flat[place], low), high - (count - 1) * gap) + place * gap
    return places
