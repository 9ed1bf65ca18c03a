"""What a step leaves behind: bytes of its events as compact JSON, and bytes of memory beside the KV cache."""

import gc
import json
import tracemalloc
from statistics import median

import torch

from benchmarks.figures import Figure
from benchmarks.prompts import experiment_of, prompt_of
from engine.conversation import Conversation
from engine.model import LoadedModel
from engine.trace_json import event_to_json

#: Steps before the first look, in which caches of the libraries fill that do not grow later.
SETTLING = 8


def measure(loaded: LoadedModel, *, context: int = 64, steps: int = 200) -> list[Figure]:
    """Both figures of one run.

    Memory is what Python and numpy hold by tracemalloc plus what torch's tensors hold, each storage once, as it grows
    over the steps of a conversation that is kept whole; the KV cache is taken off. JSON is the largest step's.
    """
    prompt = prompt_of(loaded.tokenizer, context)
    conversation = Conversation(loaded, experiment_of(loaded.facts.model_id, prompt, SETTLING + steps))
    conversation.advance()
    for _ in range(SETTLING):
        conversation.advance()
    tracemalloc.start()
    before = _beside_the_cache(conversation)
    for _ in range(steps):
        conversation.advance()
    grown = (_beside_the_cache(conversation) - before) / steps
    tracemalloc.stop()
    sizes = [
        len(json.dumps(event_to_json(step), separators=(",", ":"), ensure_ascii=False).encode())
        for step in conversation.trace.steps(0)
    ]
    spread = f"median {median(sizes) / 1e3:.1f} KB over {len(sizes)} steps"
    return [
        Figure("largest step as JSON", max(sizes) / 1e3, "KB", 12, note=spread),
        Figure("memory a token beside the cache", grown / 1e3, "KB", 20, note=f"growth over {steps} steps"),
    ]


def _beside_the_cache(conversation: Conversation) -> int:
    """Bytes of Python's and numpy's allocations and of all tensors, without the keys and values of the cache."""
    gc.collect()
    storages: dict[int, int] = {}
    for item in gc.get_objects():
        if issubclass(type(item), torch.Tensor):
            storage = item.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return tracemalloc.get_traced_memory()[0] + sum(storages.values()) - conversation.cache_bytes
