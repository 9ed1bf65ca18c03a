"""Learned positions against the library's own sum of the two tables."""

import numpy as np
import pytest
import torch
from torch import nn

from engine.anatomy import AnatomyError
from engine.probes import positions as module
from engine.probes.positions import positions
from tests.engine.models import CONTEXT, tiny
from tests.engine.probes.tables import with_table
from tests.engine.probes.test_lens import talk, whole
from tests.engine.probes.test_residual import hidden_states


def test_the_two_rows_add_up_to_what_the_first_layer_reads() -> None:
    loaded = tiny("gpt2")
    conversation = talk(loaded)
    ids = whole(conversation)
    learned = loaded.model.transformer.wpe.weight.double().numpy()  # type: ignore[union-attr, operator]
    token = loaded.model.transformer.wte.weight.double().numpy()  # type: ignore[union-attr, operator]
    entered = hidden_states(loaded, ids)[0]
    for position in (0, 7, len(ids) - 1):
        found = positions(conversation, position=position)
        own, row = learned[position], token[ids[position]]
        assert (found.count, found.position) == (CONTEXT, position)
        assert found.norm == pytest.approx(np.linalg.norm(own), rel=1e-5)
        assert found.token_norm == pytest.approx(np.linalg.norm(row), rel=1e-5)
        assert found.cosine == pytest.approx(own @ row / np.linalg.norm(own) / np.linalg.norm(row), abs=1e-5)
        assert found.sum_norm == pytest.approx(float(entered[position].norm()), rel=1e-5)


class Shifted(nn.Embedding):
    """As in OPT: the first rows of the table belong to no position."""

    offset = 2

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        return super().forward(positions + self.offset)


def test_a_table_whose_first_rows_belong_to_no_position_is_read_from_the_first_that_does() -> None:
    loaded = with_table("gpt2", {})
    torch.manual_seed(1)
    loaded.model.transformer.wpe = Shifted(CONTEXT + 2, 32)
    conversation = talk(loaded)
    entered = hidden_states(loaded, whole(conversation))[0]
    for position in (0, 6):
        found = positions(conversation, position=position)
        assert found.count == CONTEXT
        assert found.sum_norm == pytest.approx(float(entered[position].norm()), rel=1e-5)
        own = loaded.model.transformer.wpe.weight[position + 2]  # type: ignore[union-attr, index]
        assert found.norm == pytest.approx(float(own.detach().norm()), rel=1e-5)


def test_norms_and_cosines_are_those_of_the_table() -> None:
    loaded = tiny("gpt2")
    learned = loaded.model.transformer.wpe.weight.double().numpy()  # type: ignore[union-attr, operator]
    norms = np.linalg.norm(learned, axis=1)
    found = positions(talk(loaded), position=5)
    assert found.curve.tolist() == list(range(CONTEXT))
    np.testing.assert_allclose(found.norms, norms, rtol=1e-5)
    places = found.places
    assert {0, 5, CONTEXT - 1} <= set(places.tolist()) and len(places) <= 129
    expected = learned[places] @ learned[places].T / np.outer(norms[places], norms[places])
    np.testing.assert_allclose(found.cosines, expected, atol=1e-5)


def test_of_many_positions_some_are_shown_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CURVE", 5)
    assert positions(talk(tiny("gpt2"))).curve.tolist() == [0, 128, 256, 383, 511]


@pytest.mark.parametrize("name", ["llama", "mixed"])
def test_a_model_that_learned_none_says_so(name: str) -> None:
    with pytest.raises(AnatomyError, match="has no learned positions"):
        positions(talk(tiny(name)))
