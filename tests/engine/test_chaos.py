"""Many visitors doing anything at any moment, two tabs on one session included: nothing breaks, hangs or leaks."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.probes.table import PROBES
from engine.refusals import NothingStarted, Refused, SessionGone
from tests.engine.fakes import experiment, settled
from tests.patience import PATIENCE

SESSIONS, VISITORS, ACTIONS = 10, 20, 60


@pytest.mark.parametrize("seed", range(4))
def test_anything_at_any_moment(make, lab, clock, monkeypatch, seed):
    monkeypatch.setitem(PROBES, "length", lambda conversation: len(conversation.trace.events))
    runtime = make(max_sessions=SESSIONS - 2, max_runs=4, idle_seconds=50, cache_bytes=6_000)
    names = [f"session {number}" for number in range(SESSIONS)]
    refused: list[type[BaseException]] = []

    def fail_now_and_then(conversation):
        if failures.random() < 0.02:
            raise MemoryError("no room")

    failures = random.Random(seed)
    lab.before_forward = fail_now_and_then

    def read_some(name, frames):
        for _, _ in zip(range(frames), runtime.run(name), strict=False):
            pass

    actions = [
        lambda name, dice: runtime.open(name),
        lambda name, dice: runtime.start(name, experiment(dice.randint(1, 30), content=name)),
        lambda name, dice: runtime.prepare(name),
        lambda name, dice: runtime.step(name),
        lambda name, dice: read_some(name, dice.randint(1, 50)),
        lambda name, dice: runtime.stop(name),
        lambda name, dice: runtime.back(name),
        lambda name, dice: runtime.trace(name),
        lambda name, dice: runtime.probe(name, "length"),
        lambda name, dice: runtime.complete(experiment(5, content="complete")),
        lambda name, dice: runtime.close(name),
    ]

    def visit(number):
        dice = random.Random(1_000 * seed + number)
        for _ in range(ACTIONS):
            clock.now += dice.random()
            try:
                dice.choice(actions)(dice.choice(names), dice)
            except (Refused, MemoryError) as error:
                refused.append(type(error))

    with ThreadPoolExecutor(VISITORS) as pool:
        for visitor in [pool.submit(visit, number) for number in range(VISITORS)]:
            visitor.result(3 * PATIENCE)
    assert NothingStarted in refused
    assert any(issubclass(error, SessionGone) for error in refused)
    assert lab.most_inside == 1
    assert len(lab.threads) == 1
    lab.before_forward = lambda conversation: None
    for name in names:
        runtime.close(name)
    settled(runtime)
    assert [made.name for made in lab.made if made.cache_bytes and made.name != "settle"] == []
