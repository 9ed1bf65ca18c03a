"""How far a decode step is from the floor: the time that reading every weight once takes.

The floor is measured beside it, as one matrix–vector product whose matrix has the bytes of the model's weights.
"""

import time

import torch

from benchmarks.decode import in_turn, traced
from benchmarks.figures import Figure
from benchmarks.prompts import experiment_of, prompt_of
from engine.linear import choose_products
from engine.model import LoadedModel


@torch.inference_mode()
def measure(loaded: LoadedModel, *, context: int = 64, new_tokens: int = 24, rounds: int = 7) -> list[Figure]:
    """Seconds of a traced decode step over seconds of the product; both medians over interleaved rounds."""
    experiment = experiment_of(loaded.facts.model_id, prompt_of(loaded.tokenizer, context), new_tokens)
    # Tied weights are one tensor here, as they are in memory.
    numbers = sum(parameter.numel() for parameter in loaded.model.parameters())
    width = loaded.facts.hidden_size
    matrix = torch.nn.Linear(width, numbers // width, bias=False, dtype=loaded.model.dtype, device=loaded.device)
    choose_products(matrix)
    vector = torch.ones(1, width, dtype=loaded.model.dtype, device=loaded.device)

    def product() -> float:
        started = time.perf_counter()
        for _ in range(new_tokens):
            matrix(vector)
        return (time.perf_counter() - started) / new_tokens

    seconds = in_turn(rounds, traced=lambda: traced(loaded, experiment).step_seconds, product=product)
    read = matrix.weight.nbytes
    bandwidth = read / seconds["product"]
    note = (
        f"{seconds['traced'] * 1e3:.1f} ms a token / {seconds['product'] * 1e3:.1f} ms"
        f" for {read / 1e6:.0f} MB at {bandwidth / 1e9:.1f} GB/s"
    )
    return [Figure(f"decode / floor, context {context}", seconds["traced"] / seconds["product"], "×", note=note)]
