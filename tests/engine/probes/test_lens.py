"""The lens ends in the model's own logits, and every row of it is what a plain forward and the final norm give."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine import numerics
from engine.anatomy import anatomy
from engine.conversation import Conversation
from engine.experiment import Experiment, ExperimentError
from engine.model import LoadedModel
from engine.probes import lens_map as mapping
from engine.probes.distribution import find_tokens
from engine.probes.lens import lens
from engine.probes.lens_map import lens_map
from engine.probes.norms import norms
from engine.probes.residual import residual
from tests.distributions import entropy, log_softmax
from tests.engine.models import ROWS, tiny

FAMILIES = ["llama", "qwen3", "gpt2", "mixed", "sliding", "capped", "multiplied"]
SAMPLED = {"temperature": 0.8, "top_k": 30, "seed": 3}
FACTS = json.loads((Path(__file__).parents[2] / "golden" / "facts.json").read_text(encoding="utf-8"))


def talk(loaded: LoadedModel, tokens: int = 6, **fields: Any) -> Conversation:
    value = {"version": 1, "model": "tiny", "prompt": "the cat sat on the mat", "sampling": SAMPLED}
    conversation = Conversation(
        loaded, Experiment.model_validate(value | {"stop": {"max_new_tokens": tokens}} | fields)
    )
    while conversation.advance():
        pass
    return conversation


def whole(conversation: Conversation) -> list[int]:
    rendered = conversation.trace.rendered(0)
    assert rendered is not None
    return [*rendered.token_ids.tolist(), *(step.token_id for step in conversation.trace.steps(0))]


def oracle(loaded: LoadedModel, ids: list[int]) -> np.ndarray:
    """Logits [r, n, vocab] of every row, by the library's own hidden states in one forward without a cache."""
    parts = anatomy(loaded.model)
    with torch.inference_mode():
        output = loaded.model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
        divisor = getattr(loaded.model.config, "logits_scaling", 1.0)  # Granite
        early = [parts.head(parts.final_norm(state[0])) / divisor for state in output.hidden_states[:-1]]
        cap = getattr(loaded.model.config, "final_logit_softcapping", None)
        early = [row if cap is None else cap * torch.tanh(row / cap) for row in early]
        return torch.stack([*early, output.logits[0]]).numpy()


@pytest.mark.parametrize("name", FAMILIES)
def test_every_row_is_the_final_norm_and_the_head_of_that_row(name: str) -> None:
    loaded = tiny(name)
    conversation = talk(loaded)
    ids = whole(conversation)
    expected = oracle(loaded, ids)
    for position in (0, 5, len(ids) - 2):
        found = lens(conversation, position=position, token_ids=[7, 8])
        rows = expected[:, position]
        np.testing.assert_allclose(found.logits, rows[:, found.token_ids], atol=2e-4)
        log_probabilities = log_softmax(rows)
        np.testing.assert_allclose(found.probabilities, np.exp(log_probabilities)[:, found.token_ids], atol=1e-4)
        np.testing.assert_allclose(found.entropies, entropy(log_probabilities), atol=1e-3)
        np.testing.assert_allclose(found.top_probabilities, np.exp(log_probabilities.max(axis=1)), atol=1e-4)
        assert found.next_id == ids[position + 1]
        assert {7, 8, found.next_id} <= set(found.token_ids.tolist())
        assert (found.position, found.asked, len(found.ranks)) == (position, (7, 8), loaded.facts.layers + 1)


@pytest.mark.parametrize("name", FAMILIES)
def test_ranks_and_leaders_belong_to_the_same_rows(name: str) -> None:
    conversation = talk(tiny(name))
    rows = oracle(tiny(name), whole(conversation))[:, 8]
    found = lens(conversation, position=8)
    ids = found.token_ids.tolist()
    for row in range(len(rows)):
        assert found.top_ids[row] == rows[row].argmax()
        assert [int(rank) for rank in found.ranks[row]] == [numerics.rank(rows[row], token) for token in ids]
    assert set(found.top_ids.tolist()) <= set(ids)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_last_row_is_the_model_s_own_logits(name: str) -> None:
    conversation = talk(tiny(name))
    for step in conversation.trace.steps(0):
        found = lens(conversation, position=step.position - 1)
        assert found.max_difference <= 1e-5
        assert found.next_id == step.token_id
        place = step.candidate_ids.tolist().index(step.token_id)
        assert found.logits[-1, 0] == pytest.approx(float(step.logits[0, place]), abs=2e-4)


def test_a_missing_or_doubled_final_norm_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = talk(tiny("llama"))
    norm = anatomy(tiny("llama").model).final_norm
    forward = norm.forward
    for wrong in (lambda stream: stream, lambda stream: forward(forward(stream))):
        # Only the lens norms several rows at once; the model itself goes on norming one position.
        monkeypatch.setattr(norm, "forward", lambda x, wrong=wrong: wrong(x) if x.dim() == 2 else forward(x))
        assert lens(conversation).max_difference > 0.1
        monkeypatch.undo()
    assert lens(conversation).max_difference <= 1e-5


def test_tokens_are_found_by_their_text_and_bad_ones_refused(llama: LoadedModel) -> None:
    conversation = talk(llama)
    found = lens(conversation, query="s")
    assert found.asked == find_tokens(conversation, "s")
    assert set(found.asked) <= set(found.token_ids.tolist())
    with pytest.raises(ExperimentError) as caught:
        lens(conversation, token_ids=[ROWS])
    assert caught.value.path == "token_ids"
    with pytest.raises(ExperimentError):
        lens(conversation, position=999)


def test_the_newest_token_s_successor_is_not_known(llama: LoadedModel) -> None:
    conversation = talk(llama)
    last = len(whole(conversation)) - 1
    found = lens(conversation, position=last)
    assert found.next_id is None
    assert found.eos_id in llama.facts.eos_ids


@pytest.mark.parametrize("name", FAMILIES)
def test_the_map_is_the_lens_of_each_position(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "PIECE", 5 * ROWS)  # rows of one position end up in several pieces
    conversation = talk(tiny(name), tokens=20)
    ids = whole(conversation)
    found = lens_map(conversation, count=7)
    assert found.first == len(ids) - 1 - 7
    assert found.next_ids.tolist() == ids[found.first + 1 :]
    for column in range(7):
        one = lens(conversation, position=found.first + column)
        place = one.token_ids.tolist().index(found.next_ids[column])
        assert found.top_ids[:, column].tolist() == one.top_ids.tolist()
        assert found.next_ranks[:, column].tolist() == one.ranks[:, place].tolist()
        np.testing.assert_allclose(found.top_probabilities[:, column], one.top_probabilities, atol=1e-4)
        assert tuple(row[column] for row in found.top_bytes) == one.top_bytes


def test_the_map_does_not_need_the_run_s_cache(llama: LoadedModel) -> None:
    conversation = talk(llama, tokens=20)
    kept = lens_map(conversation, count=5)
    held = conversation.cache_bytes
    lens_map(conversation, first=2, count=3)
    assert conversation.cache_bytes == held
    conversation.release()
    anew = lens_map(conversation, count=5)
    assert conversation.cache_bytes == 0
    np.testing.assert_array_equal(kept.top_ids, anew.top_ids)
    np.testing.assert_allclose(kept.top_probabilities, anew.top_probabilities, atol=1e-5)


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("name", ["llama", "gpt2", "mixed"])
def test_a_map_sees_the_mask_that_the_run_saw(name: str, held: bool) -> None:
    """Under the mistake a token of the answer sees the prompt alone: every column is the lens of its position."""
    conversation = talk(tiny(name), mistake="mask_not_extended")
    if not held:
        conversation.release()
    found = lens_map(conversation, count=8)
    right = lens_map(talk(tiny(name), forced=forced(conversation)), count=8)
    assert np.abs(found.top_probabilities - right.top_probabilities)[:, -3:].max() > 1e-3
    for column, probabilities in enumerate(found.top_probabilities.T):
        one = lens(conversation, position=found.first + column)
        assert found.top_ids[:, column].tolist() == one.top_ids.tolist()
        np.testing.assert_allclose(probabilities, one.top_probabilities, atol=1e-4)
    np.testing.assert_allclose(norms(conversation).stream[-1, -1], residual(conversation).norms[-1], rtol=1e-4)


def forced(conversation: Conversation) -> list[dict[str, int]]:
    return [{"step": step.step, "token_id": step.token_id} for step in conversation.trace.steps(0)]


@pytest.mark.parametrize(
    ("arguments", "path"), [({"count": 65}, "count"), ({"count": 0}, "count"), ({"first": 99}, "first")]
)
def test_a_map_that_cannot_be_drawn_is_refused(llama: LoadedModel, arguments: dict[str, int], path: str) -> None:
    with pytest.raises(ExperimentError) as caught:
        lens_map(talk(llama), **arguments)
    assert caught.value.path == path


def test_paris_climbs_in_the_embedded_model(embedded: LoadedModel) -> None:
    golden = FACTS["smollm2-135m-instruct-q4_1"]["weights_embedded"]
    fields = {"model": embedded.facts.model_id, "prompt": golden["prompt"], "sampling": {"do_sample": False}}
    conversation = talk(embedded, tokens=2, **fields)
    position = len(whole(conversation)) - 3
    found = lens(conversation, position=position)
    assert found.next_id == golden["paris_id"]
    ranks = found.ranks[:, found.token_ids.tolist().index(golden["paris_id"])]
    assert {row: int(ranks[int(row)]) for row in golden["paris_rank_by_lens_row"]} == golden["paris_rank_by_lens_row"]
    assert found.probabilities[-1].max() == pytest.approx(golden["p_paris"], abs=5e-5)
    assert found.max_difference <= 5e-5  # one product of 31 rows sums in another order than one of a single row
    assert (
        lens_map(conversation, count=4).next_ranks[:, position - conversation.trace.steps(0)[0].position + 3].tolist()
        == ranks.tolist()
    )
