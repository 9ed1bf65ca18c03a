"""Attention at one position and as a whole matrix: worked by hand, identities, what is hidden and capped."""

import numpy as np
import pytest
import torch

from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.probes import attention_matrix as matrices
from engine.probes.attention import attention, moves_of
from engine.probes.attention_matrix import attention_matrix
from engine.probes.head_kinds import KINDS, kinds, measure
from engine.probes.table import PROBES
from tests.engine.conversations import experiment, finish
from tests.engine.models import WINDOW, tiny
from tests.engine.test_attention import eager, hand

LONG = "the cat sat on the mat and then the dog sat there too"


def ended(name: str, **fields) -> Conversation:
    conversation = Conversation(tiny(name), experiment(prompt=LONG, **fields))
    finish(conversation)
    return conversation


def test_the_five_moves_of_the_worked_example():
    """The first head of `hand`: its values (3, 4), (0, 2), (1, 0) have lengths 5, 2, 1; mixed by .0900, .2447, .6652
    they give (.2701 + .6652, .3601 + .4895) = (.9353, .8496), of length 1.2636.
    """
    moves = moves_of(hand(), 0)
    assert moves.raw.tolist() == [2, 4, 6]
    assert moves.scaled.tolist() == moves.masked.tolist() == [1, 2, 3]
    assert moves.hidden_by == (None, None, None)
    np.testing.assert_allclose(moves.weights, [0.0900, 0.2447, 0.6652], atol=5e-5)
    assert moves.value_norms.tolist() == [5, 2, 1]
    assert moves.mixed_norm == pytest.approx(1.2636, abs=1e-4)


def test_masked_positions_say_which_mask_hides_them():
    record = hand()
    mask = torch.tensor([[[[True, False, False], [False, True, False], [False, False, True]]]])
    hidden = moves_of(type(record)(**{**vars(record), "mask": mask}), 0, window=2)
    assert hidden.hidden_by == ("window", "padding", None)
    assert hidden.masked.tolist() == [-np.inf, -np.inf, 3]
    assert hidden.weights.tolist() == [0, 0, 1]


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2", "full", "sliding", "mixed", "capped"])
@pytest.mark.parametrize("position", [None, 0, 1, 20])
def test_one_position_equals_eager_attention_and_the_matrix_s_row(name, position):
    conversation = ended(name)
    found = attention(conversation, position=position, layer=1, head=2)
    ids = conversation.trace.rendered(0).token_ids.tolist() + [s.token_id for s in conversation.trace.steps(0)]
    theirs = eager(conversation.loaded, torch.tensor([ids[: found.position + 1]]))
    for layer, expected in enumerate(theirs):
        rows = expected[0, :, -1].numpy()
        np.testing.assert_allclose(found.figures.on_self[layer], rows[:, -1], atol=1e-5)
        np.testing.assert_allclose(found.figures.on_first[layer], rows[:, 0], atol=1e-5)
        logs = np.log(np.where(rows > 0, rows, 1))
        np.testing.assert_allclose(found.figures.entropy[layer], -(rows * logs).sum(-1), atol=1e-4)
    np.testing.assert_allclose(found.weights, theirs[1][0, :, -1, found.first :].numpy(), atol=1e-5)
    np.testing.assert_allclose(found.weights.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(found.moves.weights, found.weights[2], atol=1e-6)
    matrix = attention_matrix(conversation, layer=1, head=2)
    np.testing.assert_allclose(
        matrix.weights[found.position, found.first : found.position + 1], found.weights[2], atol=1e-5
    )
    whole = eager(conversation.loaded, torch.tensor([ids[: matrix.last + 1]]))[1][0, 2].numpy()
    np.testing.assert_allclose(matrix.weights, whole, atol=1e-5)


@pytest.mark.parametrize(("name", "group", "kv_head"), [("llama", (2, 3), 1), ("gpt2", (3,), 3), ("full", (3,), 3)])
def test_heads_that_share_a_key_value_head_are_named(name, group, kv_head):
    found = attention(ended(name), head=3)
    assert (found.group, found.kv_head) == (group, kv_head)


def test_a_sliding_layer_says_its_window_and_what_it_hides():
    conversation = ended("sliding")
    found = attention(conversation, layer=0, head=0)
    assert found.window == WINDOW
    reach = found.position - found.first + 1
    assert found.moves.hidden_by == ("window",) * (reach - WINDOW) + (None,) * WINDOW
    assert (found.figures.on_first == 0).all()
    assert attention(ended("llama")).window is None


def test_a_mask_that_was_not_extended_hides_the_answer_as_padding():
    conversation = ended("llama", mistake="mask_not_extended")
    prompt = len(conversation.trace.rendered(0).token_ids)
    found = attention(conversation)
    hidden = found.moves.hidden_by
    assert hidden == (None,) * prompt + ("padding",) * (found.position + 1 - prompt)


def test_the_position_counts_and_what_comes_later_is_hidden():
    conversation = ended("llama")
    total = len(conversation.trace.rendered(0).token_ids) + len(conversation.trace.steps(0))
    assert attention(conversation, position=4).later == total - 5
    assert attention(conversation).later == 1


@pytest.mark.parametrize("probe", ["attention", "attention_matrix"])
@pytest.mark.parametrize(("asked", "said"), [
    ({"layer": 2, "head": 0}, "layers 0 to 1"), ({"layer": 0, "head": -1}, "heads 0 to 3"),
    ({"layer": 0, "head": 0, "position": 500}, "no position 500"),
])  # fmt: skip
def test_what_is_not_there_is_said(probe, asked, said):
    with pytest.raises(ExperimentError, match=said):
        PROBES[probe](ended("llama"), **asked)


def test_other_heads_of_a_layer_and_questions_again_cost_no_forward(monkeypatch):
    conversation, forwards = ended("llama"), []
    feed = matrices.feed
    monkeypatch.setattr(matrices, "feed", lambda *given: forwards.append(1) or feed(*given))
    for layer, head in [(0, 0), (0, 3), (1, 0), (0, 1), (1, 2)]:
        attention_matrix(conversation, layer=layer, head=head)
    assert len(forwards) == 2
    attention_matrix(conversation, layer=0, head=0, position=9)
    attention_matrix(conversation, layer=0, head=0)
    assert len(conversation.captured) == matrices.KEPT_LAYERS
    conversation.release()
    assert conversation.captured == {}


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("name", ["llama", "gpt2", "mixed"])
def test_a_long_context_is_capped_to_its_newest_positions(name, held, monkeypatch):
    conversation = ended(name)
    whole = attention_matrix(conversation, layer=1, head=2)
    assert (whole.first, whole.positions, whole.outside.max()) == (0, len(whole.weights), 0)
    monkeypatch.setattr(matrices, "MAX_POSITIONS", 10)
    conversation.captured.clear()
    if not held:
        conversation.release()
    capped = attention_matrix(conversation, layer=1, head=2)
    assert capped.weights.shape == (10, 10)
    assert (capped.first, capped.last, capped.positions) == (whole.last - 9, whole.last, whole.positions)
    np.testing.assert_allclose(capped.weights, whole.weights[-10:, -10:], atol=1e-5)
    np.testing.assert_allclose(capped.weights.sum(-1) + capped.outside, 1, atol=1e-5)


@pytest.mark.parametrize(
    ("weights", "kind"),
    [
        ([0.1, 0.1, 0.1, 0.1, 0.6], "self"),
        ([0.5, 0.1, 0.1, 0.2, 0.1], "first"),
        ([0.1, 0.0, 0.1, 0.7, 0.1], "previous"),
        ([0.2, 0.2, 0.2, 0.2, 0.2], "spread"),
        ([0.05, 0.9, 0.05, 0.0, 0.0], "content"),
        ([0.45, 0.4, 0.05, 0.05, 0.05], "spread"),  # entropy 1.18 of ln 5 = 1.61 nats: .73
        ([0.3, 0.45, 0.25, 0.0, 0.0], "content"),  # .66: the largest share lies elsewhere
        ([0.1, 0.55, 0.15, 0.1, 0.1], "spread"),  # .80: another place names no head by its majority alone
        ([0.45, 0.4, 0.0, 0.15, 0.0], "first"),  # .63: the largest share, without a majority
    ],
)
def test_kinds_follow_from_the_rules(weights, kind):
    row = np.array([weights], np.float32)
    assert KINDS[kinds(measure(row, first=0, visible=5))[0]] == kind


def test_figures_worked_by_hand():
    figures = measure(np.array([[0.5, 0.25, 0.25, 0.0]], np.float32), first=0, visible=4)
    assert figures.entropy[0] == pytest.approx(1.5 * np.log(2))
    assert figures.evenness[0] == pytest.approx(0.75)
    assert [figures.on_first[0], figures.on_previous[0], figures.on_self[0], figures.elsewhere[0]] == [
        0.5,
        0.25,
        0,
        0.25,
    ]


def test_at_the_first_positions_places_fall_together():
    alone = measure(np.array([[1.0]], np.float32), first=0, visible=1)
    assert (alone.on_first[0], alone.on_self[0], alone.on_previous[0], alone.evenness[0]) == (1, 1, 0, 0)
    assert KINDS[kinds(alone)[0]] == "self"
    assert f"{alone.entropy[0]:.2f}" == "0.00"
    pair = measure(np.array([[0.75, 0.25]], np.float32), first=0, visible=2)
    assert pair.on_first[0] == pair.on_previous[0] == 0.75
    assert pair.elsewhere[0] == 0
    assert KINDS[kinds(pair)[0]] == "first"
    assert measure(np.array([[0.75, 0.25]], np.float32), first=7, visible=2).on_first[0] == 0


def test_the_embedded_model_s_attention_is_seen_in_one_decode_step(embedded):
    text = "The capital of China is Beijing. The capital of France is"
    fields = {"sampling": {"do_sample": False}, "stop": {"max_new_tokens": 2}}
    conversation = Conversation(embedded, experiment(prompt=text, **fields))
    finish(conversation)
    fed = []
    hook = embedded.model.register_forward_pre_hook(
        lambda model, arguments, named: fed.append(tuple(named["input_ids"].shape)), with_kwargs=True
    )
    found = attention(conversation, layer=9, head=4)
    hook.remove()
    assert fed == [(1, 1)]
    assert found.figures.entropy.shape == (30, 9)
    assert found.group == (3, 4, 5)
    ids = [*conversation.trace.rendered(0).token_ids.tolist(), conversation.trace.steps(0)[0].token_id]
    theirs = eager(embedded, torch.tensor([ids]))
    np.testing.assert_allclose(found.weights, theirs[9][0, :, -1].numpy(), atol=1e-5)
