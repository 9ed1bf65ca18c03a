"""What a step leaves behind: bytes of its events as compact JSON, and bytes of memory by who holds them."""

import json
import tracemalloc
from statistics import median

from benchmarks.figures import Figure
from benchmarks.held import Ledger
from benchmarks.prompts import experiment_of, prompt_of
from engine.conversation import Conversation
from engine.model import LoadedModel
from engine.trace_json import event_to_json

#: Steps before the first look, in which caches of the libraries fill that do not grow later.
SETTLING = 8
#: KB a step that may be held by nothing known: the odds and ends of Python. A single row of scores over the vocabulary
#: is 196 KB, one layer's output for one token 2.3 KB.
LEAK = 4


def measure(loaded: LoadedModel, *, context: int = 64, steps: int = 200) -> list[Figure]:
    """All figures of one run: the largest step as JSON, and how each holder's memory grows over `steps` steps."""
    prompt = prompt_of(loaded.tokenizer, context)
    conversation = Conversation(loaded, experiment_of(loaded.facts.model_id, prompt, SETTLING + steps))
    conversation.advance()
    for _ in range(SETTLING):
        conversation.advance()
    grown = growth(conversation, steps)
    sizes = [
        len(json.dumps(event_to_json(step), separators=(",", ":"), ensure_ascii=False).encode())
        for step in conversation.trace.steps(0)
    ]
    spread = f"median {median(sizes) / 1e3:.1f} KB over {len(sizes)} steps"
    over = f"growth over {steps} steps"
    return [
        Figure("largest step as JSON", max(sizes) / 1e3, "KB", 12, note=spread),
        Figure("memory a token: its events", grown.events / steps / 1e3, "KB", 12, note=over),
        Figure("memory a token: its way back", grown.back / steps / 1e3, "KB", 8, note="state of the generator"),
        Figure(
            "memory a token: held by nothing known",
            grown.others / steps / 1e3,
            "KB",
            LEAK,
            note=f"the cache with its spare room apart: {grown.cache / steps / 1e3:.1f} KB",
        ),
    ]


def growth(conversation: Conversation, steps: int) -> Ledger:
    """By how much each holder's bytes grow over that many steps."""
    tracemalloc.start()
    try:
        before = Ledger.of(conversation)
        for _ in range(steps):
            conversation.advance()
        return Ledger.of(conversation) - before
    finally:
        tracemalloc.stop()
