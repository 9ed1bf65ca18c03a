"""The chain: orders, the effect of each link, and what its snapshots say."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.experiment import Experiment, ExperimentError
from engine.model import LoadedModel
from engine.stages.candidates import best_eos, cut_by, follow
from engine.stages.processors import bad_word_ids, build_chain
from engine.stages.snapshots import NoCandidate, Snapshot
from tests.distributions import entropy, log_softmax
from tests.engine.models import ROWS, tiny, tiny_tokenizer

PROMPT = [50, 60, 70, 60]
LOADED = tiny("llama")
EOS = list(LOADED.facts.eos_ids)


def experiment(**sampling: Any) -> Experiment:
    return Experiment(version=1, model="tiny", prompt="x", sampling=sampling)


def run(logits: torch.Tensor, answer: tuple[int, ...] = (), **sampling: Any) -> tuple[Snapshot, ...]:
    chain = build_chain(
        experiment(**sampling), LOADED.facts, LOADED.tokenizer, prompt_ids=PROMPT, device=torch.device("cpu")
    )
    return chain.run(torch.tensor([[*PROMPT, *answer]]), logits)


def from_probabilities(*probabilities: float) -> torch.Tensor:
    row = torch.full((ROWS,), -torch.inf)
    row[100 : 100 + len(probabilities)] = torch.tensor(probabilities).log()
    return row


def kept(snapshot: Snapshot) -> set[int]:
    return set(torch.nonzero(snapshot.logits > -torch.inf).flatten().tolist())


def random_logits(seed: int) -> torch.Tensor:
    return torch.randn(ROWS, generator=torch.Generator().manual_seed(seed)) * 3


def test_top_p_keeps_the_token_that_crosses_the_line() -> None:
    after = run(from_probabilities(0.5, 0.3, 0.2), top_p=0.7)[-1]
    assert kept(after) == {100, 101}
    assert after.stage.mass_removed == pytest.approx(0.2, abs=1e-6)
    assert after.stage.entropy == pytest.approx(-(0.625 * math.log(0.625) + 0.375 * math.log(0.375)), abs=1e-6)


def test_the_nucleus_is_taken_over_the_whole_vocabulary() -> None:
    after = run(random_logits(0), temperature=10.0, top_p=0.95)[-1]
    assert after.stage.kept > 250


def test_temperature_0_adds_no_stage_and_is_greedy() -> None:
    assert [item.stage.name for item in run(random_logits(0), temperature=0.0, top_k=3, top_p=0.5)] == ["logits"]


@pytest.mark.parametrize("order", ["transformers", "llama.cpp"])
@pytest.mark.parametrize("seed", range(20))
def test_snapshots_say_what_numpy_says(seed: int, order: str) -> None:
    logits = random_logits(seed)
    before = logits.clone()
    stages = run(
        logits,
        answer=(7, 8),
        order=order,
        temperature=0.7,
        top_k=40,
        top_p=0.9,
        min_p=0.01,
        typical_p=0.95,
        repetition_penalty=1.3,
        no_repeat_ngram_size=2,
        suppress_tokens=[3, 4],
        min_new_tokens=5,
        bad_words=["the"],
    )
    assert torch.equal(logits, before), "a processor wrote into the model's own logits"
    wide = [log_softmax(item.logits.numpy()) for item in stages]
    for item, log_probabilities in zip(stages, wide, strict=True):
        assert item.stage.kept == np.isfinite(log_probabilities).sum()
        assert item.stage.entropy == pytest.approx(float(entropy(log_probabilities)), abs=2e-6)
        np.testing.assert_allclose(item.probabilities(np.arange(ROWS)), np.exp(log_probabilities), atol=1e-6)
    for (item, log_probabilities), previous in zip(list(zip(stages, wide, strict=True))[1:], wide, strict=False):
        gone = np.isneginf(log_probabilities) & ~np.isneginf(previous)
        assert item.stage.mass_removed == pytest.approx(float(np.exp(previous[gone]).sum()), abs=1e-6)


def llama_cpp_reference(logits: np.ndarray, k: int, typical: float, top_p: float, min_p: float, temperature: float):
    """top_k, typical_p, top_p, min_p, temperature, on a sorted list of (id, logit), as llama.cpp keeps it."""

    def softmax(items: list[tuple[int, float]]) -> list[float]:
        best = max(logit for _, logit in items)
        weights = [math.exp(logit - best) for _, logit in items]
        return [weight / sum(weights) for weight in weights]

    def until(items: list[tuple[int, float]], mass: float) -> list[tuple[int, float]]:
        total = 0.0
        taken = []
        for item, probability in items:
            taken.append(item)
            total += probability
            if total >= mass:
                break
        return taken

    items = sorted(enumerate(logits.tolist()), key=lambda item: -item[1])[:k]
    probabilities = softmax(items)
    entropy = -sum(p * math.log(p) for p in probabilities)
    ranked = sorted(zip(items, probabilities, strict=True), key=lambda pair: abs(-math.log(pair[1]) - entropy))
    items = sorted(until(ranked, typical), key=lambda item: -item[1])
    items = until(list(zip(items, softmax(items), strict=True)), top_p)
    probabilities = softmax(items)
    items = [item for item, p in zip(items, probabilities, strict=True) if p >= min_p * probabilities[0]]
    items = [(token, logit / temperature) for token, logit in items]
    return dict(zip([token for token, _ in items], softmax(items), strict=True))


@pytest.mark.parametrize("seed", range(40))
def test_the_llama_cpp_order_equals_a_reference(seed: int) -> None:
    logits = random_logits(seed)
    after = run(logits, order="llama.cpp", top_k=40, typical_p=0.9, top_p=0.8, min_p=0.05, temperature=1.7)
    assert [item.stage.name for item in after[1:]] == ["top_k", "typical_p", "top_p", "min_p", "temperature"]
    expected = llama_cpp_reference(logits.numpy().astype(float), 40, 0.9, 0.8, 0.05, 1.7)
    assert kept(after[-1]) == set(expected)
    np.testing.assert_allclose(after[-1].probabilities(np.array(list(expected))), list(expected.values()), atol=1e-6)


def test_the_order_is_data() -> None:
    logits = random_logits(3)
    cut_first = run(logits, order=["top_p", "temperature"], temperature=3.0, top_p=0.8)
    heat_first = run(logits, order=["temperature", "top_p"], temperature=3.0, top_p=0.8)
    assert [item.stage.name for item in cut_first] == ["logits", "top_p", "temperature"]
    assert cut_first[-1].stage.kept < heat_first[-1].stage.kept


def test_the_penalty_hits_each_token_once_and_pushes_negative_logits_down() -> None:
    logits = torch.zeros(ROWS)
    logits[60], logits[70], logits[7], logits[8] = 2.0, -2.0, 3.0, -3.0
    after = run(logits, answer=(7, 7, 8, 60), repetition_penalty=2.0)[-1]
    assert [float(after.logits[token]) for token in (60, 70, 7, 8, 9)] == [1.0, -4.0, 1.5, -6.0, 0.0]
    assert after.stage.parameters == {"repetition_penalty": 2.0, "from_prompt": 3, "from_answer_only": 2}


def test_an_ngram_does_not_come_twice() -> None:
    after = run(torch.zeros(ROWS), answer=(7, 8, 7), no_repeat_ngram_size=2)[-1]
    assert set(range(ROWS)) - kept(after) == {8}


def test_both_spellings_of_a_bad_word_are_banned() -> None:
    tokenizer = tiny_tokenizer()
    bare, spaced = (tokenizer.encode(text, add_special_tokens=False) for text in ("the", " the"))
    assert bad_word_ids(tokenizer, ["the"]) == bad_word_ids(tokenizer, [" the"]) == [bare, spaced]
    after = run(torch.zeros(ROWS), answer=(*spaced[:-1],), bad_words=["the"])[-1]
    assert spaced[-1] not in kept(after)
    after = run(torch.zeros(ROWS), answer=(*bare[:-1],), bad_words=["the"])[-1]
    assert bare[-1] not in kept(after)


def test_every_end_of_sequence_id_waits_for_min_new_tokens() -> None:
    assert len(EOS) == 2
    early = run(torch.zeros(ROWS), answer=(7,), min_new_tokens=2)[-1]
    assert set(range(ROWS)) - kept(early) == set(EOS)
    assert cut_by([*run(torch.zeros(ROWS), min_new_tokens=1)], EOS[1]) == "min_new_tokens"
    late = run(torch.zeros(ROWS), answer=(7, 8), min_new_tokens=2)[-1]
    assert late.stage.kept == ROWS


def test_a_chain_that_leaves_nothing_names_the_stage() -> None:
    everything = list(range(ROWS))
    with pytest.raises(NoCandidate) as caught:
        run(random_logits(0), suppress_tokens=everything, top_k=5, top_p=0.5)
    assert caught.value.stage == "suppress_tokens"
    half = [token for token in everything if token not in {7, 8}]
    with pytest.raises(NoCandidate) as caught:
        run(random_logits(0), answer=(7, 7, 8, 7), suppress_tokens=half, no_repeat_ngram_size=1, order="llama.cpp")
    assert caught.value.stage == "no_repeat_ngram_size"


def test_logits_out_of_range_are_an_error_that_names_the_setting() -> None:
    with pytest.raises(ExperimentError, match="range of float32") as caught:
        run(random_logits(0), temperature=1e-40)
    assert caught.value.path == "sampling.temperature"
    with pytest.raises(ExperimentError, match="not finite") as caught:
        run(torch.full((ROWS,), torch.nan))
    assert caught.value.path == "model"


def test_a_suppressed_id_that_the_model_lacks_is_refused() -> None:
    with pytest.raises(ExperimentError, match=str(ROWS - 1)) as caught:
        run(random_logits(0), suppress_tokens=[1, ROWS])
    assert caught.value.path == "sampling.suppress_tokens[1]"


numbers = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, 1.0, 1e-45, 1e-30, 100.0])


@settings(max_examples=400, deadline=None)
@given(
    seed=st.integers(0, 5),
    temperature=numbers,
    top_k=st.none() | st.integers(-1, 2**33),
    top_p=st.none() | numbers,
    min_p=st.none() | numbers,
    typical_p=st.none() | numbers,
    repetition_penalty=numbers,
    order=st.sampled_from(["transformers", "llama.cpp"]),
)
def test_edges_give_a_distribution_or_a_named_refusal(seed: int, **sampling: Any) -> None:
    try:
        stages = run(random_logits(seed), answer=(7, 8), **sampling)
    except ValueError:  # pydantic's, or ExperimentError: both name the field
        return
    for item in stages:
        assert item.stage.kept >= 1
        assert 0 <= item.stage.entropy <= math.log(ROWS) + 1e-5
        assert 0 <= item.stage.mass_removed <= 1
        assert float(item.probabilities(np.arange(ROWS)).sum()) == pytest.approx(1, abs=1e-4)


def test_candidates_are_the_best_before_and_after_in_order() -> None:
    stages = run(random_logits(4), temperature=0.7, top_k=5, top_p=0.9)
    found = follow(stages, always=[3, EOS[0]], count=12)
    assert {3, EOS[0]} <= set(found.ids.tolist())
    assert set(stages[0].logits.topk(12).indices.tolist()) | kept(stages[-1]) <= set(found.ids.tolist())
    last, own = found.probabilities[-1], found.logits[0]
    for left, right in itertools.pairwise(range(len(found.ids))):
        assert (last[left], own[left]) >= (last[right], own[right])
    assert (found.probabilities[-1] == 0).sum() == len(found.ids) - stages[-1].stage.kept
    np.testing.assert_array_equal(np.isneginf(found.logits), found.probabilities == 0)


def test_the_best_end_of_sequence_token_is_followed(llama: LoadedModel) -> None:
    logits = random_logits(5)
    logits[EOS[0]], logits[EOS[1]] = -1.0, 1.5
    stages = run(logits, temperature=0.5, top_k=3)
    score = best_eos(stages, EOS)
    assert score is not None
    assert (score.token_id, score.logit, score.cut_by) == (EOS[1], 1.5, "top_k")
    assert score.rank == int((logits > 1.5).sum()) + 1
    assert score.probability == pytest.approx(float(torch.softmax(logits, -1)[EOS[1]]), abs=1e-7)
    assert best_eos(stages, ()) is None
