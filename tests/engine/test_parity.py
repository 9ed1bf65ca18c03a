"""The loop draws the very tokens of `generate`, over random settings of everything that both can do."""

from typing import Any

import numpy as np
import pytest
import torch

from engine.conversation import Conversation
from engine.experiment import Experiment
from engine.model import LoadedModel
from engine.probes.parity import parity
from tests.engine.models import tiny

SETTINGS = 300
BATCHES = 6
#: None begins in a prompt or lies within a mark: `generate` would find it there.
STOPS = ("h", " ", "c", "The", "9", "<|im_start|>")
WORDS = ("the", " cat", "one", "Paris", "is", "and then", "{")


def maybe(rng: np.random.Generator, value: Any, neutral: Any) -> Any:
    return value if rng.random() < 0.4 else neutral


def random_sampling(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    return {
        "do_sample": bool(rng.random() < 0.8),
        "temperature": maybe(rng, float(rng.choice([0.0, 0.3, 0.7, 1.5, 10.0])), 1.0),
        "top_k": maybe(rng, int(rng.choice([1, 2, 5, 40, 10_000])), None),
        "top_p": maybe(rng, float(rng.choice([0.0, 0.1, 0.7, 0.95, 1.0])), None),
        "min_p": maybe(rng, float(rng.choice([0.0, 0.02, 0.3, 1.0])), None),
        "typical_p": maybe(rng, float(rng.choice([0.1, 0.6, 0.95, 1.0])), None),
        "repetition_penalty": maybe(rng, float(rng.choice([0.7, 1.1, 1.5])), 1.0),
        "no_repeat_ngram_size": maybe(rng, int(rng.integers(1, 4)), 0),
        "min_new_tokens": maybe(rng, int(rng.integers(1, 15)), 0),
        "bad_words": maybe(rng, tuple(rng.choice(WORDS, size=2, replace=False).tolist()), ()),
        "suppress_tokens": maybe(rng, tuple(rng.integers(0, rows, size=rng.integers(1, 30)).tolist()), ()),
        "seed": int(rng.integers(0, 2**40)),
    }


def random_prompt(rng: np.random.Generator, loaded: LoadedModel, longest: int) -> str:
    """A text of 1 … `longest` tokens that encodes to exactly the ids it was made of."""
    wanted = int(rng.integers(1, longest + 1))
    letters = "abcdefghijklmnopqrstuvwxyz ,.\n你é"
    text = "".join(rng.choice(list(letters), size=wanted))
    ids = loaded.tokenizer.encode(text, add_special_tokens=False)[:wanted]
    return str(loaded.tokenizer.decode(ids)).replace("\ufffd", "") or "a"


def random_stop(rng: np.random.Generator, new_tokens: int) -> dict[str, Any]:
    strings = rng.choice(STOPS, size=2, replace=False).tolist() if rng.random() < 0.2 else []
    return {"max_new_tokens": new_tokens, "stop_strings": strings}


def compare(loaded: LoadedModel, sampling: dict[str, Any], prompt: str, stop: dict[str, Any]) -> tuple[int, ...]:
    experiment = Experiment(version=1, model="tiny", prompt=prompt, sampling=sampling, stop=stop)
    conversation = Conversation(loaded, experiment)
    while conversation.advance():
        pass
    stopped = conversation.trace.stopped(0)
    assert stopped is not None
    if stopped.reason == "no_candidate":
        # generate has no word for this: it raises, or takes id 0.
        if conversation.turn is None or not conversation.turn.answer:
            return ()
    else:
        assert stopped.reason in {"eos", "length", "stop_string"}, stopped.evidence
    result = parity(conversation)
    assert result.reason is None
    assert result.theirs == result.ours, (sampling, prompt, stop)
    return result.ours


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2"])
@pytest.mark.parametrize("batch", range(BATCHES))
def test_tokens_equal_generate(name: str, batch: int) -> None:
    loaded = tiny(name)
    rng = np.random.default_rng(1_000 + batch)
    before = torch.get_rng_state()
    lengths = set()
    for _ in range(SETTINGS // BATCHES):
        sampling = random_sampling(rng, loaded.facts.vocab_rows)
        prompt = random_prompt(rng, loaded, longest=200)
        lengths.add(len(compare(loaded, sampling, prompt, random_stop(rng, int(rng.integers(1, 16))))))
    assert max(lengths) > 10
    assert torch.equal(torch.get_rng_state(), before)


def test_tokens_equal_generate_on_the_embedded_model(embedded: LoadedModel) -> None:
    rng = np.random.default_rng(7)
    prompts = ["The capital of France is", "Once upon a time", "1, 2, 3,", "你好", "def add(a, b):\n"]
    for index in range(20):
        sampling = random_sampling(rng, embedded.facts.vocab_rows)
        compare(embedded, sampling, prompts[index % len(prompts)], random_stop(rng, 5))
