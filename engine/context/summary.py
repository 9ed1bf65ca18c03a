"""The model sums up what is dropped: a short greedy answer, apart from the run's draws and its cache."""

from collections.abc import Sequence

import torch

from engine import kv_cache
from engine.experiment import Message
from engine.model import LoadedModel
from engine.stages.forward import forward
from engine.stages.inputs import make_inputs

#: Tokens that a summary may have. It is one piece of work for the worker: other visitors wait for all of it.
SUMMARY_TOKENS = 32

REQUEST = "Sum up our conversation so far in one or two short sentences."


def pair(text: str) -> list[Message]:
    """The two messages that take the place of those that were dropped: roles go on alternating."""
    return [Message(role="user", content=REQUEST), Message(role="assistant", content=text)]


def greedy_ids(loaded: LoadedModel, prompt_ids: Sequence[int], count: int) -> list[int]:
    """Up to `count` best tokens after the prompt, without the one that ends them; at most `count` forwards.

    The cache is its own and starts empty, so that the same messages give the same ids whatever ran before.
    """
    cache = kv_cache.new_cache(loaded.model.config)
    fed, found = list(prompt_ids), list[int]()
    while len(found) < count:
        inputs = make_inputs(fed, past=kv_cache.tokens(cache), device=loaded.device)
        token_id = int(torch.argmax(forward(loaded.model, inputs, cache).logits))
        if token_id in loaded.facts.eos_ids:
            break
        found.append(token_id)
        fed = [token_id]
    return found


def text_of(loaded: LoadedModel, ids: Sequence[int]) -> str:
    """What stands in the message: the tokens as text, without control marks."""
    return str(loaded.tokenizer.decode(list(ids), skip_special_tokens=True)).strip()
