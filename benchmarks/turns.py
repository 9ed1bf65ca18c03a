"""What a second turn costs: its prefill beside the same cold, and the comparing and cutting that reuse needs."""

import time
from statistics import median
from typing import Any

import torch

from benchmarks.decode import in_turn
from benchmarks.figures import Figure
from benchmarks.prompts import prompt_of
from engine import kv_cache
from engine.conversation import Conversation
from engine.experiment import Experiment, Message, Sampling, Stop
from engine.model import LoadedModel
from engine.probes.cold_turn import cold_turn

SHARED = 300
NEW = (100, 200, 300)
LONG = 4_000


def chat(loaded: LoadedModel, shared: int, new: int) -> Conversation:
    """A chat whose second turn has been prefilled: about `shared` positions of it stood in the cache."""
    experiment = Experiment(
        version=1,
        model=loaded.facts.model_id,
        messages=(Message(role="user", content=prompt_of(loaded.tokenizer, shared - 40)),),
        follow_ups=(prompt_of(loaded.tokenizer, new - 8),),
        sampling=Sampling(do_sample=False),
        stop=Stop(max_new_tokens=4),
    )
    talk = Conversation(loaded, experiment)
    while talk.trace.prefilled(1) is None:
        talk.advance()
    return talk


def second_turn(loaded: LoadedModel, *, shared: int, new: int, rounds: int) -> Figure:
    """The prefill of a second turn over what it may take: its share of new positions × 1.3 + 5 ms of the same cold."""
    rendered: Any = chat(loaded, shared, new).trace.rendered(1)
    positions, reused = len(rendered.token_ids), rendered.reused
    seconds = in_turn(
        rounds,
        warm=lambda: float(chat(loaded, shared, new).trace.prefilled(1).seconds),  # type: ignore[union-attr]
        cold=lambda: cold_turn(chat(loaded, shared, new)).cold_seconds,
    )
    share = (positions - reused) / positions
    allowed = seconds["cold"] * share * 1.3 + 0.005
    note = f"{seconds['warm'] * 1000:.0f} / {seconds['cold'] * 1000:.0f} ms, {positions - reused} of {positions} new"
    name = f"second-turn prefill / allowed, {reused} shared, {positions - reused} new"
    return Figure(name, seconds["warm"] / allowed, "×", 1.0, note=note)


def products(loaded: LoadedModel, *, positions: int, new: int, rounds: int) -> Figure:
    """What no cache can save: the layers' matrix products of the new positions over those of all, by share.

    1 would be a product whose time is as its number of rows. The library reads every weight whatever that number is.
    """
    layers = [module for module in loaded.model.get_decoder().modules() if isinstance(module, torch.nn.Linear)]

    def taken(rows: int) -> float:
        fed = {width: torch.ones(rows, width) for width in {layer.in_features for layer in layers}}
        started = time.perf_counter()
        with torch.inference_mode():
            for layer in layers:
                layer(fed[layer.in_features])
        return time.perf_counter() - started

    seconds = in_turn(rounds, new=lambda: taken(new), whole=lambda: taken(positions))
    note = f"{seconds['new'] * 1000:.0f} / {seconds['whole'] * 1000:.0f} ms, {new} of {positions} rows"
    name = f"the layers' products alone / their share, {new} new"
    return Figure(name, seconds["new"] / seconds["whole"] / (new / positions), "×", note=note)


def compare_and_cut(loaded: LoadedModel, *, positions: int, rounds: int) -> Figure:
    """Milliseconds to compare the ids of a long context with the cache's and to cut the cache back by one position."""
    facts = loaded.facts
    cache = kv_cache.new_cache(loaded.model.config)
    states = torch.zeros((1, facts.kv_heads, positions, facts.head_dim), device=loaded.device)
    for layer in range(facts.layers):
        cache.update(states, states, layer)
    ids = torch.arange(positions).tolist()
    times = []
    for _ in range(rounds):
        view = kv_cache.slice_cache(cache, positions)
        started = time.perf_counter()
        common = kv_cache.common_prefix(ids, [*ids[:-1], -1])
        if not kv_cache.cut_back(view, common):
            raise RuntimeError("the cache could not be cut back")
        times.append(time.perf_counter() - started)
    spread = f"{min(times) * 1000:.2f} to {max(times) * 1000:.2f} ms"
    return Figure(f"comparing and cutting, {positions:,} positions", median(times) * 1000, "ms", 5.0, note=spread)


def measure(loaded: LoadedModel, *, rounds: int = 7) -> list[Figure]:
    """The second turn with fewer and more new positions, what of the first no cache can save, and the cut."""
    rendered: Any = chat(loaded, SHARED, NEW[0]).trace.rendered(1)
    positions = len(rendered.token_ids)
    return [
        *(second_turn(loaded, shared=SHARED, new=new, rounds=rounds) for new in NEW),
        products(loaded, positions=positions, new=positions - rendered.reused, rounds=rounds),
        compare_and_cut(loaded, positions=LONG, rounds=max(rounds, 20)),
    ]
