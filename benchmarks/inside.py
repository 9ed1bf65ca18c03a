"""What looking inside costs: beside the decode step, the matrix product or the forward that it cannot do without.

All sides of a ratio take turns in one process on the same conversation. The lens is measured from the inside on, which
has its own row: what is left is a norm, the product with the output head, and reading what it gives.
"""

import copy
import time
from collections.abc import Callable
from functools import partial

import torch

from benchmarks.decode import in_turn
from benchmarks.figures import Figure
from benchmarks.prompts import experiment_of, prompt_of
from engine import kv_cache
from engine.conversation import Conversation
from engine.model import LoadedModel
from engine.probes import lens_map
from engine.probes.attention_matrix import attention_matrix
from engine.probes.inside import context_of, inside
from engine.probes.lens import read_stream
from engine.probes.recompute import cache_before
from engine.probes.stretch import stretch
from engine.stages.forward import forward
from engine.stages.inputs import make_inputs

#: Positions of the map, and of the whole matrix.
MAPPED, WHOLE = 64, 256


def measure(loaded: LoadedModel, *, context: int = 128, whole: int = WHOLE, rounds: int = 7) -> list[Figure]:
    """The inside of a step, its lens, the lens of many positions, and the whole matrix of a head."""
    conversation = _ended(loaded, context)
    return [
        _step(conversation, rounds),
        _lens(conversation, rounds),
        *_map(conversation, max(1, rounds // 2)),
        *_matrix(_ended(loaded, whole), max(1, rounds // 2)),
    ]


def _ended(loaded: LoadedModel, context: int) -> Conversation:
    """A raw prompt of that length and two tokens after it; the last that was fed is the first of them."""
    conversation = Conversation(loaded, experiment_of(loaded.facts.model_id, prompt_of(loaded.tokenizer, context), 2))
    while conversation.advance():
        pass
    return conversation


def _step(conversation: Conversation, rounds: int) -> Figure:
    loaded = conversation.loaded
    turn, ids = context_of(conversation, None, None)

    def plain() -> object:
        cache = cache_before(conversation, ids, 1)
        inputs = make_inputs(ids[-1:], past=kv_cache.tokens(cache), device=loaded.device)
        return forward(loaded.model, inputs, cache)

    def complete() -> object:
        found = inside(conversation, turn=turn)
        return [record.all_weights() for record in found.attended.values()]

    seconds = in_turn(3 * rounds, plain=timed(plain), complete=timed(complete))
    note = f"{_ms(seconds['complete'])} / {_ms(seconds['plain'])}; every stream, q, k, v and attention row"
    name = f"inside of a step / plain step, context {len(ids)}"
    return Figure(name, seconds["complete"] / seconds["plain"], "×", 1.5, note=note)


def _lens(conversation: Conversation, rounds: int) -> Figure:
    found = inside(conversation)
    normed = found.parts.final_norm(found.stream)
    seconds = in_turn(
        3 * rounds,
        product=timed(partial(found.parts.head, normed)),
        lens=timed(partial(read_stream, conversation, 0, found)),
    )
    note = f"{_ms(seconds['lens'])} / {_ms(seconds['product'])} for {len(normed)} rows"
    return Figure("lens of a step / its product", seconds["lens"] / seconds["product"], "×", 1.3, note=note)


def _map(conversation: Conversation, rounds: int) -> list[Figure]:
    _, ids = context_of(conversation, None, None)
    count = min(MAPPED, len(ids))
    vocab = conversation.loaded.facts.vocab_rows
    found = stretch(conversation, ids, count)
    rows = torch.cat([found.parts.final_norm(found.stream[:-1]), found.normed[None]]).flatten(0, 1)
    following = torch.tensor([*ids[len(ids) - count + 1 :], 0]).int().numpy()
    each = max(1, lens_map.PIECE // vocab)

    def products() -> None:
        for at in range(0, len(rows), each):
            found.parts.head(rows[at : at + each])

    seconds = in_turn(
        rounds,
        products=timed(products),
        read=timed(partial(lens_map.read_pieces, found, following, vocab)),
        whole=timed(partial(lens_map.lens_map, conversation, count=count)),
    )
    held = each * vocab * 4
    name = f"lens map, {count} positions × {len(found.stream)} rows"
    return [
        Figure(
            f"{name} / its products",
            seconds["read"] / seconds["products"],
            "×",
            1.3,
            note=f"{_ms(seconds['read'])} / {_ms(seconds['products'])}; logits held: {held / 2**20:.0f} MiB a piece",
        ),
        Figure(
            f"{name}, forward included / its products",
            seconds["whole"] / seconds["products"],
            "×",
            note=f"{_ms(seconds['whole'])}, of which a forward of {count} positions",
        ),
    ]


def _matrix(conversation: Conversation, rounds: int) -> list[Figure]:
    loaded = conversation.loaded
    _, ids = context_of(conversation, None, None)
    ids = ids[:-1]
    inputs = make_inputs(ids, past=0, device=loaded.device)
    last = loaded.facts.layers - 1
    eager = copy.deepcopy(loaded.model)  # a second model, because the switch below belongs to the whole model
    eager.set_attn_implementation("eager")

    def matrix() -> object:
        conversation.captured.clear()
        return attention_matrix(conversation, layer=last, head=0, position=len(ids) - 1)

    def plain() -> object:
        return forward(loaded.model, inputs, kv_cache.new_cache(loaded.model.config))

    def every() -> object:
        with torch.inference_mode():
            return eager(inputs.input_ids, output_attentions=True, use_cache=False).attentions

    seconds = in_turn(rounds, plain=timed(plain), matrix=timed(matrix), every=timed(every))
    return [
        Figure(
            f"whole attention matrix of the last layer / plain forward, {len(ids)} tokens",
            seconds["matrix"] / seconds["plain"],
            "×",
            1.3,
            note=f"{_ms(seconds['matrix'])} / {_ms(seconds['plain'])}",
        ),
        Figure(
            "BertViz's way (eager, all attentions) / plain forward",
            seconds["every"] / seconds["plain"],
            "×",
            note=f"{_ms(seconds['every'])}, all layers and heads at once",
        ),
    ]


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """The same work, giving the seconds it takes."""

    def run() -> float:
        started = time.perf_counter()
        with torch.inference_mode():
            work()
        return time.perf_counter() - started

    return run


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"
