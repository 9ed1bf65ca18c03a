"""Ranks on the page are those of the whole vocabulary, or bounds that hold there."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from components.panel import Cursor, View
from components.sampling.notes import notes
from components.sampling.ranks import RANKED, Rank, ranks_at
from components.sampling.repetition import penalty_hits
from components.sampling.tables import candidates_table, penalty_table
from components.widgets.host import read
from engine import numerics
from engine.conversation import Conversation
from engine.experiment import parse_experiment
from engine.model import LoadedModel
from engine.stages.candidates import FOLLOWED
from engine.stages.processors import Chain
from engine.stages.snapshots import Snapshot
from engine.trace import Trace
from engine.trace_json import trace_from_json, trace_to_json
from tests.components.staged import chain, cut_below, staged_step
from tests.engine.models import tiny

Stages = tuple[Snapshot, ...]
SETTINGS: dict[str, Sequence[Any]] = {
    "temperature": (1.0, 0.3, 0.7, 1.6),
    "top_k": (None, 1, 5, 20),
    "top_p": (None, 0.5, 0.9),
    "min_p": (None, 0.05),
    "typical_p": (None, None, 0.8),
    "repetition_penalty": (1.05, 1.3, 2.5, 0.7),
    "no_repeat_ngram_size": (0, 0, 2),
    "suppress_tokens": ((), (), (5, 9, 11)),
}


def random_settings(seed: int) -> dict[str, Any]:
    """A value for each processor, in one of the two usual orders or shuffled."""
    rng = np.random.default_rng(seed)
    settings: dict[str, Any] = {name: values[int(rng.integers(len(values)))] for name, values in SETTINGS.items()}
    shuffled = [str(name) for name in rng.permutation(list(SETTINGS))]
    return settings | {"seed": seed, "order": ("transformers", "llama.cpp", shuffled)[int(rng.integers(3))]}


@pytest.fixture
def kept_stages(monkeypatch: pytest.MonkeyPatch) -> list[Stages]:
    """The snapshots of every step that is run, whole distributions and all."""
    kept: list[Stages] = []
    run = Chain.run

    def keeping(self: Chain, *args: Any) -> Stages:
        kept.append(run(self, *args))
        return kept[-1]

    monkeypatch.setattr(Chain, "run", keeping)
    return kept


def played(loaded: LoadedModel, sampling: dict[str, Any], text: str, tokens: int) -> Trace:
    model = loaded.facts.model_id
    value = {"version": 1, "model": model, "messages": [{"role": "user", "content": text}], "sampling": sampling}
    experiment = parse_experiment(value | {"stop": {"max_new_tokens": tokens}}, models=[model])
    conversation = Conversation(loaded, experiment)
    while conversation.advance():
        pass
    return conversation.trace


def holds(rank: Rank, true: int) -> bool:
    return rank.least == true if rank.exact else rank.least <= true


def checked(trace: Trace, whole: list[Stages]) -> Counter[bool]:
    """Holds every rank that is shown against the whole rows; counts the exact and the bounded ones after a penalty."""
    told: Counter[bool] = Counter()
    for step, stages in zip(trace.steps(0), whole, strict=True):
        view = View(trace.facts, trace, Cursor(position=step.position))
        assert view.rendered is not None
        penalty = next(i for i, item in enumerate(stages) if item.stage.name == "repetition_penalty")
        for index, token_id in enumerate(step.candidate_ids.tolist()):
            for stage, item in enumerate(stages):
                if np.isfinite(item.row[token_id]):
                    assert holds(ranks_at(step, stage)[index], numerics.rank(item.row, token_id))
            own = numerics.rank(stages[0].row, token_id)
            assert ranks_at(step, 0)[index] == (Rank(own, True) if own <= RANKED else Rank(RANKED + 1, False))
        hits = penalty_hits(view.rendered, view.steps, step)
        rows = read(penalty_table(view.rendered, view.steps, step))["rows"]
        for hit, row in zip(hits, rows, strict=True):
            token_id = int(step.candidate_ids[hit.index])
            before, after = (numerics.rank(stages[at].row, token_id) for at in (penalty - 1, penalty))
            assert holds(hit.rank_before, before)
            assert holds(hit.rank_after, after)
            assert row[-1] == f"{hit.rank_before.text} → {hit.rank_after.text}"
            assert hit.places_lost <= max(0, after - before)
            told[hit.rank_after.exact] += 1
    return told


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_shown_ranks_are_those_of_the_whole_vocabulary(name: str, kept_stages: list[Stages]) -> None:
    told: Counter[bool] = Counter()
    for seed in range(40):
        kept_stages.clear()
        trace = played(tiny(name), random_settings(seed), "hello the cat sat", 8)
        told += checked(trace, kept_stages[: len(trace.steps(0))])
    assert told[True] > 100
    assert told[False] > 20


def test_so_they_are_on_the_embedded_model_and_in_its_record(embedded: LoadedModel, kept_stages: list[Stages]) -> None:
    settings = {"temperature": 0.7, "top_k": 5, "top_p": 0.9, "repetition_penalty": 1.3, "seed": 1}
    trace = played(embedded, settings, "What is the capital of France?", 6)
    assert checked(trace, kept_stages)[True] >= 5
    assert checked(trace_from_json(trace_to_json(trace)), kept_stages)[True] >= 5
    # Recounted on the whole rows: the comma stood at 4 and fell to 13, three of the better ones are not followed.
    said = notes(View(trace.facts, trace, Cursor(position=trace.steps(0)[2].position)), trace.steps(0)[2])
    assert said[0].label == "Why did “,” fall from rank 4 to below rank 10?"
    comma = trace.steps(0)[2].candidate_bytes.index(b",")
    token_id = int(trace.steps(0)[2].candidate_ids[comma])
    assert [numerics.rank(item.row, token_id) for item in kept_stages[2][:2]] == [4, 13]


def test_a_rank_is_exact_where_nothing_unseen_can_stand_before_it() -> None:
    own = np.linspace(6, 1.4, 24).astype(np.float32)
    after = own.copy()
    after[[0, 1]] = 3.85, 1.5
    cut = cut_below(after, 3)
    parameters = {"repetition_penalty": 1.6}
    step = staged_step([("logits", {}, own), ("repetition_penalty", parameters, after), ("top_k", {}, cut)], token=2)
    index = step.candidate_ids.tolist().index
    # 12 are followed of the model's own, down to 3.8: what stands above that is known, what fell lower is not.
    assert len(step.candidate_ids) == RANKED == FOLLOWED
    assert ranks_at(step, 1)[index(0)] == Rank(int((after > after[0]).sum()) + 1, exact=True)
    assert ranks_at(step, 1)[index(1)] == Rank(12, exact=False)
    assert int((after > after[1]).sum()) + 1 == 23
    lifting = dataclasses.replace(step.stages[1], parameters={"repetition_penalty": 0.9})
    lifted = dataclasses.replace(step, stages=(step.stages[0], lifting, step.stages[2]))
    assert not ranks_at(lifted, 1)[index(0)].exact, "a penalty under 1 may have lifted others over it"


def test_a_rank_of_which_nothing_is_known_is_a_dash() -> None:
    assert [Rank(least, exact=False).text for least in (1, 2, 13)] == ["–", ">1", ">12"]
    assert Rank(1, exact=True).text == "1"


def test_every_rank_of_the_last_stage_is_known_up_to_twelve() -> None:
    for seed in range(20):
        stages = chain(seed, kept=6)
        step = staged_step(stages, token=int(stages[-1][2].argmax()))
        for at, token_id in enumerate(step.candidate_ids.tolist()):
            if np.isfinite(stages[-1][2][token_id]):
                assert ranks_at(step, 2)[at] == Rank(numerics.rank(stages[-1][2], token_id), exact=True)
            shown = read(candidates_table(step))
            row = [key["token_id"] for key in shown["keys"]].index(token_id)
            assert shown["rows"][row][0][0] == ranks_at(step, 0)[at].text
