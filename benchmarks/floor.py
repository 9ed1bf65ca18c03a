"""How far a decode step is from the floor: the time that reading every weight once takes.

The floor is measured beside it, as one matrix–vector product whose matrix has the bytes of the model's weights.
"""

import time

import torch

from benchmarks.decode import in_turn, traced
from benchmarks.figures import Figure
from benchmarks.prompts import experiment_of, prompt_of
from engine.model import LoadedModel


def measure(loaded: LoadedModel, *, context: int = 64, new_tokens: int = 24, rounds: int = 7) -> list[Figure]:
    """Seconds of a traced decode step over seconds of the product; both medians over interleaved rounds."""
    experiment = experiment_of(loaded.facts.model_id, prompt_of(loaded.tokenizer, context), new_tokens)
    # Tied weights are one tensor here, as they are in memory.
    numbers = sum(parameter.numel() for parameter in loaded.model.parameters())
    width = loaded.facts.hidden_size
    matrix = torch.ones(numbers // width, width, dtype=loaded.model.dtype, device=loaded.device)
    vector = torch.ones(width, dtype=matrix.dtype, device=matrix.device)

    def product() -> float:
        started = time.perf_counter()
        for _ in range(new_tokens):
            torch.mv(matrix, vector)
        return (time.perf_counter() - started) / new_tokens

    seconds = in_turn(rounds, traced=lambda: traced(loaded, experiment).step_seconds, product=product)
    bandwidth = matrix.nbytes / seconds["product"]
    note = (
        f"{seconds['traced'] * 1e3:.1f} ms a token / {seconds['product'] * 1e3:.1f} ms"
        f" for {matrix.nbytes / 1e6:.0f} MB at {bandwidth / 1e9:.1f} GB/s"
    )
    return [Figure(f"decode / floor, context {context}", seconds["traced"] / seconds["product"], "×", note=note)]
