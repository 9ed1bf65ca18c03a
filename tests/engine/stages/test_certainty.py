"""A choice that is called certain must be the same for any logits within the tolerance; the chain itself is asked."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.experiment import LLAMA_CPP_ORDER, TRANSFORMERS_ORDER, Experiment
from engine.stages.certainty import can_tell, certain
from engine.stages.processors import Chain, build_chain
from tests.engine.models import ROWS, tiny

PROMPT = (5, 9, 17, 9, 30)


def chain_of(**sampling: object) -> Chain:
    loaded = tiny("llama")
    experiment = Experiment.model_validate({"version": 1, "model": "tiny", "prompt": "x", "sampling": sampling})
    return build_chain(experiment, loaded.facts, loaded.tokenizer, prompt_ids=PROMPT, device=loaded.device)


def choice(chain: Chain, ids: torch.Tensor, logits: torch.Tensor, noise: torch.Tensor | None) -> int:
    """What the loop takes: the best of the last stage, or the winner of the race."""
    final = chain.run(ids, logits)[-1].logits
    return int(torch.argmax(final if noise is None else torch.softmax(final[None], dim=-1)[0] / noise))


def row(*logits: float) -> torch.Tensor:
    """A vocabulary of which only the first few have a chance."""
    return torch.cat([torch.tensor(logits), torch.full((ROWS - len(logits),), -50.0)])


IDS = torch.tensor([PROMPT])


def test_the_best_token_is_certain_when_it_leads_by_more_than_twice_the_tolerance() -> None:
    chain = chain_of(do_sample=False)
    assert certain(chain, IDS, row(2.0, 1.0), None, 0.49)
    assert not certain(chain, IDS, row(2.0, 1.0), None, 0.51)


def test_a_penalty_scales_the_tolerance_with_the_logit() -> None:
    chain = chain_of(do_sample=False, repetition_penalty=2.0)  # id 5 was said: 4 becomes 2, and ±0.4 becomes ±0.2
    logits = row(1.0, -50, -50, -50, -50, 4.0)
    assert certain(chain, IDS, logits, None, 0.6)  # 2 − 0.3 against 1 + 0.6
    assert not certain(chain, IDS, logits, None, 0.7)  # 2 − 0.35 against 1 + 0.7


def test_a_token_at_the_border_of_a_cut_that_would_win_makes_it_uncertain() -> None:
    noise = torch.ones(ROWS)
    noise[2] = 0.01  # the third is the fastest by far, where the cut lets it run
    logits = row(3.0, 2.0, 1.99)
    assert choice(chain_of(top_k=2), IDS, logits, noise) == 0
    assert not certain(chain_of(top_k=2), IDS, logits, noise, 0.006)
    assert certain(chain_of(top_k=2), IDS, logits, noise, 0.004)
    noise[2] = 1.0  # one that could not win may come and go
    assert certain(chain_of(top_k=2), IDS, logits, noise, 0.006)


def test_a_winner_that_a_cut_may_take_is_not_certain() -> None:
    noise = torch.ones(ROWS)
    noise[1] = 0.01
    logits = row(3.0, 2.0, 1.99)
    assert choice(chain_of(top_k=2), IDS, logits, noise) == 1
    assert certain(chain_of(top_k=2), IDS, logits, noise, 0.004)
    assert not certain(chain_of(top_k=2), IDS, logits, noise, 0.006)


def test_what_it_cannot_tell_is_said() -> None:
    assert can_tell(chain_of(temperature=0.7, top_k=5, top_p=0.9, min_p=0.1, repetition_penalty=1.2))
    assert not can_tell(chain_of(typical_p=0.5))
    order = ["top_k", "repetition_penalty"]
    assert not can_tell(chain_of(top_k=5, repetition_penalty=1.2, order=order))
    assert can_tell(chain_of(top_k=5, repetition_penalty=1.2, order=order[::-1]))


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 1.7]),
    top_k=st.sampled_from([None, 1, 4, 30]),
    top_p=st.sampled_from([None, 0.3, 0.8, 0.95]),
    min_p=st.sampled_from([None, 0.02, 0.3]),
    penalty=st.sampled_from([1.0, 0.7, 1.5]),
    order=st.sampled_from([TRANSFORMERS_ORDER, LLAMA_CPP_ORDER]),
    tolerance=st.sampled_from([0.003, 0.03, 0.1]),
)
def test_what_is_certain_stays_so_under_any_change_within_the_tolerance(
    seed: int, temperature: float, top_k: int, top_p: float, min_p: float, penalty: float, order: object,
    tolerance: float,
) -> None:  # fmt: skip
    chain = chain_of(
        temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, repetition_penalty=penalty, order=order,
        suppress_tokens=[3, 4], no_repeat_ngram_size=2,
    )  # fmt: skip
    generator = torch.Generator().manual_seed(seed)
    logits = 2.0 * torch.randn(ROWS, generator=generator)
    noise = None if temperature == 0 else torch.empty(ROWS).exponential_(1, generator=generator)
    taken = choice(chain, IDS, logits, noise)
    if not certain(chain, IDS, logits, noise, tolerance):
        return
    changes = [torch.where(logits > logits[taken], tolerance, -tolerance) * sign for sign in (1, -1)]
    changes += [tolerance * (2 * torch.rand(ROWS, generator=generator) - 1) for _ in range(10)]
    changes += [tolerance * torch.randn(ROWS, generator=generator).sign() for _ in range(10)]
    for change in changes:
        assert choice(chain, IDS, logits + change, noise) == taken


@pytest.mark.parametrize("seed", range(5))
def test_most_choices_are_certain_within_what_rows_differ_by(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    chain = chain_of(temperature=0.8, top_p=0.9)
    found = [
        certain(
            chain, IDS, 3 * torch.randn(ROWS, generator=generator),
            torch.empty(ROWS).exponential_(1, generator=generator), 1e-4,
        )
        for _ in range(40)
    ]  # fmt: skip
    assert sum(found) >= 36
