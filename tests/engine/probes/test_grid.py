"""A grid gives, cell by cell, what a run of its own gives, whatever rows that are computed together differ by."""

import inspect
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.answers.grid import GridResult, grid_of
from engine.conversation import Conversation
from engine.experiment import Experiment, ExperimentError
from engine.model import LoadedModel
from engine.probes import grid as module
from engine.probes.chances import chances
from engine.probes.grid import MAX_CELLS, Grid, with_sampling
from engine.probes.grid_cell import TOLERANCE
from engine.stages.forward import forward_rows
from engine.trace import Trace
from tests.engine.conversations import experiment, finish
from tests.engine.models import tiny

Overrides = Sequence[Mapping[str, Any]]


def made(loaded: LoadedModel, value: Experiment, overrides: Overrides) -> GridResult:
    grid = Grid(loaded, value, overrides)
    while grid.advance():
        pass
    assert grid.cache_bytes == 0
    return grid.result()


def alone(loaded: LoadedModel, value: Experiment, overrides: Overrides) -> list[Trace]:
    return [finish(Conversation(loaded, with_sampling(value, own, "cell"))) for own in overrides]


def assert_equal(result: GridResult, traces: Sequence[Trace], *, entropy: bool = True) -> None:
    for cell, trace in zip(result.cells, traces, strict=True):
        stopped = trace.stopped(0)
        assert cell.stopped is not None
        assert stopped is not None
        assert cell.token_ids == tuple(step.token_id for step in trace.steps(0))
        assert cell.text == trace.answer(0)
        assert (cell.stopped.reason, cell.stopped.evidence) == (stopped.reason, stopped.evidence)
        if entropy:  # a token at a cut's border may come or go without a say in what is drawn
            np.testing.assert_allclose(cell.entropy, [step.stages[-1].entropy for step in trace.steps(0)], atol=5e-3)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), name=st.sampled_from(["llama", "qwen3", "gpt2", "capped", "sliding", "mixed", "hybrid"]))
def test_every_cell_draws_the_ids_of_a_run_of_its_own(data: st.DataObject, name: str) -> None:
    sampling = {
        "top_k": data.draw(st.sampled_from([None, 5, 40])),
        "top_p": data.draw(st.sampled_from([None, 0.5, 0.9])),
        "min_p": data.draw(st.sampled_from([None, 0.05])),
        "repetition_penalty": data.draw(st.sampled_from([1.0, 1.3])),
        "no_repeat_ngram_size": data.draw(st.sampled_from([0, 2])),
        "order": data.draw(st.sampled_from(["transformers", "llama.cpp"])),
    }
    value = experiment(sampling=sampling, stop={"max_new_tokens": 14, "stop_strings": ["at"]})
    cell = st.fixed_dictionaries({"temperature": st.sampled_from([0, 0.5, 1.0, 1.6]), "seed": st.integers(0, 9)})
    overrides = data.draw(st.lists(cell, min_size=8, max_size=8))
    assert_equal(made(tiny(name), value, overrides), alone(tiny(name), value, overrides))


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2"])
def test_logits_that_are_off_by_as_much_as_is_tolerated_change_no_id(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the rows differ by is random and small; here every logit is off by nearly the whole tolerance."""
    generator = torch.Generator().manual_seed(1)
    value = experiment(sampling={"top_p": 0.9, "top_k": 30}, stop={"max_new_tokens": 20})
    overrides = grid_of([0.0, 0.6, 1.0, 1.5], [1, 2, 3])
    traces = alone(tiny(name), value, overrides)

    def shaken(*arguments: Any) -> torch.Tensor:
        logits = forward_rows(*arguments)
        return logits + 0.95 * TOLERANCE * (2 * torch.rand(logits.shape, generator=generator).round() - 1)

    monkeypatch.setattr(module, "forward_rows", shaken)
    monkeypatch.setattr(module, "SAFETY", 0.0)
    result = made(tiny(name), value, overrides)
    assert_equal(result, traces, entropy=False)
    assert any(cell.alone_from is None for cell in result.cells)


def test_rows_that_are_further_off_than_is_safe_are_not_used(
    llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, overrides = experiment(), grid_of([0.5, 1.2], [1, 2])
    traces = alone(llama, value, overrides)
    monkeypatch.setattr(module, "forward_rows", lambda *arguments: forward_rows(*arguments) + 0.5)
    result = made(llama, value, overrides)
    assert result.deviation == pytest.approx(0.5, abs=1e-3)
    assert all(cell.alone_from == 1 for cell in result.cells if len(cell.token_ids) > 1)
    assert_equal(result, traces)


def test_rows_differ_by_far_less_than_is_tolerated(architecture: LoadedModel) -> None:
    result = made(architecture, experiment(), grid_of([0.5, 1.0], [1, 2]))
    assert result.deviation is not None
    assert result.deviation < TOLERANCE / 100


def test_steps_are_shared_and_each_piece_is_one_forward(llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    forwards: list[torch.Size] = []
    real = type(llama.model).forward

    def counted(self: Any, *arguments: Any, **named: Any) -> Any:
        forwards.append(named["input_ids"].shape)
        return real(self, *arguments, **named)

    counted.__signature__ = inspect.signature(real)  # type: ignore[attr-defined]
    monkeypatch.setattr(type(llama.model), "forward", counted)
    sampling = {"min_new_tokens": 6}
    grid = Grid(llama, experiment(sampling=sampling), [{"seed": seed} for seed in range(4)])
    pieces = 1
    while grid.advance():
        assert len(forwards) <= pieces
        pieces += 1
    result = grid.result()
    assert result.forwards == len(forwards)
    assert sum(size[1] > 1 for size in forwards) == 1  # the prompt, once
    if all(cell.alone_from is None for cell in result.cells):
        assert len(forwards) == 1 + 1 + 5  # the prompt, the row that is checked, the steps after the first


def test_first_differences_and_entropy_of_a_small_grid(llama: LoadedModel) -> None:
    overrides = [{"do_sample": False}, {"do_sample": False}, {"temperature": 1.5, "seed": 3}]
    result = made(llama, experiment(), overrides)
    first, same, other = result.cells
    assert first.first_difference is None
    assert same.first_difference is None
    parted = next(
        index for index in range(6) if first.token_ids[index : index + 1] != other.token_ids[index : index + 1]
    )
    assert other.first_difference == parted
    assert len(other.entropy) == len(other.token_ids)


@pytest.mark.parametrize(
    ("fields", "overrides", "path"),
    [
        ({}, [], "grid"),
        ({}, [{"seed": 1}] * (MAX_CELLS + 1), "grid"),
        ({}, [{"seed": 1}, {"temperature": -1}], "grid[1].sampling.temperature"),
        ({}, [{"colour": 1}], "grid[0].sampling.colour"),
        ({"follow_ups": ["more"]}, [{"seed": 1}], "grid"),
        ({"tools": ["calculator"]}, [{"seed": 1}], "grid"),
        ({"context": {"strategy": "drop_oldest", "max_tokens": 200}}, [{"seed": 1}], "context.strategy"),
        ({"forced": [{"step": 0, "token_id": 3}]}, [{"seed": 1}], "grid"),
        ({"grammar": {"kind": "regex", "source": "("}}, [{"seed": 1}], "grammar.source"),
    ],
)
def test_what_is_no_grid_is_refused(llama: LoadedModel, fields: Any, overrides: Overrides, path: str) -> None:
    with pytest.raises(ExperimentError) as refused:
        Grid(llama, experiment(**fields), overrides)
    assert refused.value.path == path


def test_a_grid_that_does_not_fit_the_budget_is_refused(llama: LoadedModel) -> None:
    with pytest.raises(ExperimentError, match="KV cache"):
        Grid(llama, experiment(), [{"seed": seed} for seed in range(8)], cache_budget=10_000)


def test_a_grammar_and_a_mistake_hold_in_every_cell(llama: LoadedModel) -> None:
    for fields in (
        {"grammar": {"kind": "regex", "source": "[a-c ]{3,9}"}},
        {"mistake": "mask_not_extended"},
        {"mistake": "history_reencoded"},
        {"sampling": {"typical_p": 0.5}},
    ):
        value, overrides = experiment(**fields), [{"seed": seed} for seed in range(3)]
        assert_equal(made(llama, value, overrides), alone(llama, value, overrides))


def test_paris_is_the_word_of_every_cold_cell(embedded: LoadedModel) -> None:
    """p(" Paris") = .962 after this prompt, by transformers alone: tests/golden/facts.json says how."""
    golden = json.loads((Path(__file__).parents[2] / "golden" / "facts.json").read_text("utf-8"))
    paris = golden["smollm2-135m-instruct-q4_1"]["weights_embedded"]
    value = Experiment.model_validate(
        {"version": 1, "model": embedded.facts.model_id, "prompt": paris["prompt"], "stop": {"max_new_tokens": 1}}
    )
    result = made(embedded, value, grid_of([0.0, 0.2], [1, 2, 3]))
    assert {cell.token_bytes for cell in result.cells} == {(b" Paris",)}
    run = Conversation(embedded, with_sampling(value, {"temperature": 0}, "cell"))
    finish(run)
    found = chances(run, turn=0, steps=[0], token_ids=[result.cells[0].token_ids[0]])
    assert found.own[0] == pytest.approx(0.962, abs=1e-3)


def test_eight_cells_of_the_embedded_model_equal_their_runs(embedded: LoadedModel) -> None:
    value = Experiment.model_validate(
        {
            "version": 1,
            "model": embedded.facts.model_id,
            "messages": [{"role": "user", "content": "Name an animal."}],
            "sampling": {"top_p": 0.9},
            "stop": {"max_new_tokens": 8},
        }
    )
    overrides = grid_of([0.3, 0.9, 1.2, 1.6], [1, 2])
    result = made(embedded, value, overrides)
    assert result.deviation is not None
    assert result.deviation < TOLERANCE / 20
    assert_equal(result, alone(embedded, value, overrides))
