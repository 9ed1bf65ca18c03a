"""Identities of the residual stream: parts add up to the stream, shares add up to the logit, norms are the model's."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from engine.anatomy import anatomy
from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.probes.contributions import LinearNorm, linear_norm
from engine.probes.inside import inside
from engine.probes.norms import norms
from engine.probes.residual import residual
from tests.engine.far import far
from tests.engine.models import tiny
from tests.engine.probes.test_lens import FACTS, FAMILIES, talk, whole


def hidden_states(loaded: LoadedModel, ids: list[int]) -> list[torch.Tensor]:
    """[n, hidden] before each layer, and after the final norm, by the library in one forward without a cache."""
    with torch.inference_mode():
        output = loaded.model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
    return [state[0] for state in output.hidden_states]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_shares_of_the_logit_add_up_to_it(name: str) -> None:
    conversation = talk(tiny(name))
    ids = whole(conversation)
    for position in (0, 4, len(ids) - 2, len(ids) - 1):
        found = residual(conversation, position=position)
        total = found.embedding_share + float(found.attention_shares.sum() + found.feed_forward_shares.sum())
        assert total + found.constant_share == pytest.approx(found.uncapped, abs=1e-4)
        assert found.max_difference <= 1e-4
        cap = found.softcap
        assert cap == (4.0 if name == "capped" else None)
        bent = found.uncapped if cap is None else cap * np.tanh(found.uncapped / cap)
        assert bent == pytest.approx(found.logit, abs=1e-5)
        chosen = position + 1 < len(ids)
        assert found.target_chosen is chosen
        if chosen:
            assert found.target_id == ids[position + 1]
        else:
            assert found.target_id == int(inside(conversation, position=position).logits.argmax())


def test_taking_one_part_away_takes_its_share_away() -> None:
    """With the scale held fixed: the logit of the stream without a part is lower by just that part's share."""
    loaded = tiny("llama")
    conversation = talk(loaded)
    found, inner = residual(conversation), inside(conversation)
    parts, end = anatomy(loaded.model), inner.stream[-1]
    scale = torch.rsqrt(end.pow(2).mean() + loaded.model.config.rms_norm_eps)
    with torch.inference_mode():
        read = parts.final_norm.weight * parts.head.weight[found.target_id]
    for layer, share in enumerate(found.attention_shares):
        assert float(inner.attention[layer] * scale @ read) == pytest.approx(float(share), abs=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_norm_taken_apart_is_the_norm(name: str) -> None:
    norm = anatomy(tiny(name).model).final_norm
    torch.manual_seed(0)
    stream = torch.randn(32) * 5 + 1
    with torch.inference_mode():
        apart = linear_norm(norm, stream)
        assert apart.centres is isinstance(norm, nn.LayerNorm)
        centred = stream - stream.mean() if apart.centres else stream
        torch.testing.assert_close(apart.gain * centred + apart.bias, norm(stream), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_norms_and_cosines_are_those_of_the_library_s_hidden_states(name: str) -> None:
    loaded = tiny(name)
    conversation = talk(loaded)
    position = len(whole(conversation)) - 2
    states = [state[position] for state in hidden_states(loaded, whole(conversation))]
    found = residual(conversation)
    assert found.position == position
    np.testing.assert_allclose(found.norms[:-1], [float(state.norm()) for state in states[:-1]], rtol=1e-4)
    assert found.normed_norm == pytest.approx(float(states[-1].norm()), rel=1e-4)
    assert found.cosines[0, 1] == pytest.approx(float(torch.cosine_similarity(states[0], states[1], dim=0)), abs=1e-4)
    np.testing.assert_allclose(np.diag(found.cosines), 1, atol=1e-5)
    inner = inside(conversation)
    added = inner.attention[0] + inner.feed_forward[0]
    torch.testing.assert_close(states[0] + added, states[1], atol=1e-4, rtol=1e-4)
    cosine = torch.cosine_similarity(inner.feed_forward[0], states[0] + inner.attention[0], dim=0)
    assert found.feed_forward_cosines[0] == pytest.approx(float(cosine), abs=1e-4)
    assert found.attention_norms[0] == pytest.approx(float(inner.attention[0].norm()), rel=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_norms_by_position_are_the_library_s(name: str) -> None:
    loaded = tiny(name)
    conversation = talk(loaded)
    ids = whole(conversation)
    states = hidden_states(loaded, ids)
    found = norms(conversation, count=4)
    n = len(ids) - 1
    assert found.positions.tolist() == [0, *range(n - 4, n)]
    places = torch.from_numpy(found.positions).long()
    for row, state in enumerate(states[:-1]):
        np.testing.assert_allclose(found.stream[row], state[places].norm(dim=-1).numpy(), rtol=1e-4)
    np.testing.assert_allclose(found.normed, states[-1][places].norm(dim=-1).numpy(), rtol=1e-4)
    assert found.stream[-1, -1] == pytest.approx(float(residual(conversation).norms[-1]), rel=1e-4)
    assert norms(conversation).positions.tolist() == list(range(n))


@pytest.mark.parametrize("arguments", [{"count": 0}, {"count": 65}, {"turn": 3}])
def test_norms_that_are_not_there_are_refused(llama: LoadedModel, arguments: dict[str, Any]) -> None:
    with pytest.raises(ExperimentError):
        norms(talk(llama), **arguments)


def test_the_first_position_of_the_embedded_model_is_massive_until_the_final_norm(embedded: LoadedModel) -> None:
    golden = FACTS["smollm2-135m-instruct-q4_1"]["weights_embedded"]
    fields = {"model": embedded.facts.model_id, "prompt": golden["prompt"], "sampling": {"do_sample": False}}
    conversation = talk(embedded, tokens=1, **fields)
    found = norms(conversation)
    assert found.stream[:, 0].max() > 20 * found.stream[:, 1:].max()
    assert found.normed.max() < 1.5 * found.normed.min()
    shares = residual(conversation)
    assert (shares.target_id, shares.logit) == (golden["paris_id"], pytest.approx(17.91, abs=0.01))
    assert shares.max_difference < 1e-4
    assert shares.attention_shares.argmax() == 23  # measured: +6.62 of 17.91


@pytest.mark.parametrize("centres", [False, True])
def test_a_norm_is_taken_apart_on_a_device_without_float64(centres: bool) -> None:
    gain, output = torch.linspace(-1, 2, 8), torch.linspace(3, -1, 8)
    there = LinearNorm(far(gain), far(torch.zeros(8)), centres).direction(far(output))
    assert torch.equal(there, LinearNorm(gain, torch.zeros(8), centres).direction(output))
