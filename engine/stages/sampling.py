"""One token from the final distribution: the best one, or torch's own race."""

import math

import torch

from engine.trace import Draw


def greedy(scores: torch.Tensor) -> int:
    """The id of the highest score of a row [vocab]; the lowest such id on a tie, as in `generate`."""
    return int(torch.argmax(scores[None], dim=-1))


@torch.inference_mode()
def draw(scores: torch.Tensor, generator: torch.Generator, left: torch.Tensor | None = None) -> Draw:
    """Draw from softmax(scores), scores [vocab] float32, exactly as `torch.multinomial(…, 1)` would.

    torch runs an exponential race (aten/src/ATen/native/Distributions.cpp, multinomial without replacement):
    q_i ~ Exp(1), the winner is argmax p_i / q_i. Running it here gives the same token, leaves the generator in the
    same state, and lets the arrival times be seen. See `Draw` for how the uniform number follows from them.

    `left` are rising ids, all those whose score is not −inf among them, where that is known: only these can win.
    """
    probabilities = torch.softmax(scores[None], dim=-1)
    race = torch.empty_like(probabilities).exponential_(1, generator=generator)
    row, times = probabilities[0], race[0]
    total = row.sum()
    if left is not None:
        row, times = row[left], times[left]

    def token(index: int) -> int:
        return index if left is None else int(left[index])

    speeds = row / times
    winner = int(torch.argmax(speeds))
    won = row[winner]
    # Up to the winner on the cumulative line: likelier tokens, and equally likely ones of a lower id.
    above = torch.nonzero(row >= won).flatten()
    likely = row[above]
    # MPS has no float64.
    ahead = float(likely[(likely > won) | (above < winner)].cpu().double().sum())
    low, high = ahead / float(total), min(1.0, (ahead + float(won)) / float(total))
    race_time = 1.0 / float(speeds[winner])
    speeds[winner] = 0
    runner_up = int(torch.argmax(speeds))
    runner_up_speed = float(speeds[runner_up])
    return Draw(
        u=min(low + (high - low) * math.exp(-race_time), math.nextafter(high, low)),
        low=low,
        high=high,
        drawn_id=token(winner),
        race_time=race_time,
        runner_up_id=token(runner_up) if runner_up_speed > 0 else None,
        runner_up_time=1.0 / runner_up_speed if runner_up_speed > 0 else None,
    )
