"""Attention, lens and stream of the embedded model beside what transformers alone says (golden/make_inside.py).

The prompt is "The capital of China is Beijing. The capital of France is"; all is at its last position, " is", where
" Paris" comes next.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.conversation import Conversation
from engine.model import LoadedModel
from engine.probes.attention import attention
from engine.probes.attention_matrix import attention_matrix
from engine.probes.lens import lens
from engine.probes.residual import residual
from tests.engine.probes.test_lens import FACTS, talk, whole

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[2] / "golden" / "inside.json").read_text("utf-8"))
PARIS = FACTS["smollm2-135m-instruct-q4_1"]["weights_embedded"]
LAST = len(GOLDEN["token_ids"]) - 1


@pytest.fixture(scope="module")
def capital(embedded: LoadedModel) -> Conversation:
    fields = {"model": embedded.facts.model_id, "prompt": PARIS["prompt"], "sampling": {"do_sample": False}}
    conversation = talk(embedded, tokens=2, **fields)
    assert whole(conversation) == [*GOLDEN["token_ids"], PARIS["paris_id"], whole(conversation)[-1]]
    return conversation


def test_paris_at_every_row_of_the_lens(capital: Conversation) -> None:
    found = lens(capital, position=LAST)
    column = found.token_ids.tolist().index(PARIS["paris_id"])
    assert found.next_id == PARIS["paris_id"]
    assert found.ranks[:, column].tolist() == GOLDEN["paris_ranks"]
    assert max(GOLDEN["paris_ranks"]) > 1_000
    assert GOLDEN["paris_ranks"][-1] == 1
    np.testing.assert_allclose(found.probabilities[:, column], GOLDEN["paris_probabilities"], atol=2e-5)
    assert found.top_ids.tolist() == GOLDEN["top_ids"]


def test_what_every_part_adds_to_the_stream_and_to_paris(capital: Conversation) -> None:
    found = residual(capital, position=LAST)
    assert (found.target_id, found.target_chosen) == (PARIS["paris_id"], True)
    assert found.logit == pytest.approx(GOLDEN["paris_logit"], abs=1e-3)
    np.testing.assert_allclose(found.norms, GOLDEN["stream_norms"], rtol=1e-4, atol=1e-3)
    assert found.normed_norm == pytest.approx(GOLDEN["normed_norm"], rel=1e-4)
    np.testing.assert_allclose(found.attention_norms, GOLDEN["attention_norms"], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.feed_forward_norms, GOLDEN["feed_forward_norms"], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.attention_shares, GOLDEN["attention_shares"], atol=1e-3)
    np.testing.assert_allclose(found.feed_forward_shares, GOLDEN["feed_forward_shares"], atol=1e-3)
    assert found.embedding_share == pytest.approx(GOLDEN["embedding_share"], abs=1e-3)


def test_every_head_s_share_on_the_first_token_and_on_itself(capital: Conversation) -> None:
    found = attention(capital, position=LAST)
    np.testing.assert_allclose(found.figures.on_first, GOLDEN["on_first"], atol=2e-5)
    np.testing.assert_allclose(found.figures.on_self, GOLDEN["on_self"], atol=2e-5)


@pytest.mark.parametrize("place", GOLDEN["rows"])
def test_a_head_s_whole_row(capital: Conversation, place: str) -> None:
    layer, head = map(int, place.split("."))
    found = attention(capital, position=LAST, layer=layer, head=head)
    np.testing.assert_allclose(found.weights[head], GOLDEN["rows"][place], atol=2e-5)
    np.testing.assert_allclose(found.moves.weights, GOLDEN["rows"][place], atol=2e-5)
    matrix = attention_matrix(capital, layer=layer, head=head, position=LAST)
    np.testing.assert_allclose(matrix.weights[-1], GOLDEN["rows"][place], atol=2e-5)
