"""Sums of rows against a table written by hand, formulas as people type them, and what a model really gives."""

import math

import numpy as np
import pytest

from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.probes.arithmetic import arithmetic, parse_formula
from engine.stages.vocabulary import vocabulary
from tests.engine.models import ROWS, tiny, tiny_tokenizer
from tests.engine.probes.tables import with_table
from tests.engine.probes.test_lens import FACTS, talk


def row_of(word: str) -> int:
    return vocabulary(tiny_tokenizer()).find(f" {word}")[0]


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("king - man + woman", [(1, "king"), (-1, "man"), (1, "woman")]),
        ("  king − man+woman ", [(1, "king"), (-1, "man"), (1, "woman")]),
        ("king – man", [(1, "king"), (-1, "man")]),
        ("- a + b", [(-1, "a"), (1, "b")]),
        ("Paris", [(1, "Paris")]),
        ("a+b+c+d+e-f", [(1, word) for word in "abcde"] + [(-1, "f")]),
    ],
)
def test_a_formula_is_read_as_it_is_written(formula: str, terms: list[tuple[int, str]]) -> None:
    assert parse_formula(formula) == terms


@pytest.mark.parametrize("formula", ["", "  ", "+", "a -", "a - + b", "a - - b", "a+b+c+d+e+f+g", "x" * 201])
def test_what_is_no_formula_is_refused(formula: str) -> None:
    with pytest.raises(ExperimentError):
        parse_formula(formula)


def test_a_word_of_several_tokens_is_named_and_nothing_is_added_up(llama: LoadedModel) -> None:
    with pytest.raises(ExperimentError, match="'Sphinx' is no single token"):
        arithmetic(talk(llama), formula="the - sat + Sphinx")
    for hostile in ("<b>x</b> - the", "\ud800 + the", "the + \u202e\u0000", "[special] + ${x}"):
        with pytest.raises(ExperimentError, match="no single token"):
            arithmetic(talk(llama), formula=hostile)


def test_a_word_is_taken_with_a_space_before_it_where_that_is_a_token(llama: LoadedModel) -> None:
    (spaced, bare) = arithmetic(talk(llama), formula="sat + Z").terms
    assert (spaced.token_bytes, bare.token_bytes) == (b" sat", b"Z")


def test_the_sum_of_a_table_written_by_hand() -> None:
    """Worked by hand, in two dimensions. " the" (1, 0), " sat" (0, 1), " on" (2, 2): the − sat + on = (3, 1), whose
    length is √10. Cosines with it: row 300, (3, 1): 1; " the" 3 / √10 = .949; " on" 8 / √80 = .894;
    row 301, (1, 4): 7 / √170 = .537; " sat" 1 / √10 = .316; all others stand at right angles to that plane: 0, but
    row 302, (−3, −1): −1. With " the" come row 300 (.949), " on" (.707), row 301 (.243); with " sat" row 301 (.970),
    " on" (.707), row 300 (.316); with " on" row 300 (.894) and row 301 (10 / √136 = .857).
    """
    the, sat, on = (row_of(word) for word in ("the", "sat", "on"))
    rows: dict[int, list[float]] = {row: [0, 0, 1] for row in range(ROWS)}
    rows |= {the: [1, 0], sat: [0, 1], on: [2, 2], 300: [3, 1], 301: [1, 4], 302: [-3, -1]}
    conversation = talk(with_table("llama", rows), tokens=1)
    found = arithmetic(conversation, formula="the - sat + on", count=100)
    assert [(term.sign, term.token_id) for term in found.terms] == [(1, the), (-1, sat), (1, on)]
    assert [term.norm for term in found.terms] == pytest.approx([1, 1, math.sqrt(8)])
    assert [term.cosine for term in found.terms] == pytest.approx([3 / 10**0.5, 1 / 10**0.5, 8 / 80**0.5], abs=1e-6)
    assert [term.rank for term in found.terms] == [2, 5, 3]
    assert found.norm == pytest.approx(math.sqrt(10))
    assert found.token_ids[:2].tolist() == [300, 301]
    np.testing.assert_allclose(found.cosines[:3], [1, 7 / 170**0.5, 0], atol=1e-6)
    assert not {the, sat, on, 302} & set(found.token_ids.tolist())
    assert found.near_terms[:2].tolist() == [[1, 3, 1], [3, 1, 2]]


def test_a_word_taken_from_itself_leads_nowhere(llama: LoadedModel) -> None:
    found = arithmetic(talk(llama), formula="the - the")
    assert (found.norm, len(found.token_ids), found.near_terms.shape) == (0, 0, (0, 2))
    assert [(term.cosine, term.rank) for term in found.terms] == [(0, 0), (0, 0)]


def test_a_word_without_a_direction_stands_nowhere() -> None:
    the = row_of("the")
    found = arithmetic(talk(with_table("llama", {the: [0]}), tokens=1), formula="the + sat")
    assert (found.terms[0].norm, found.terms[0].cosine, found.terms[0].rank) == (0, 0, 0)
    assert (found.near_terms[:, 0] == 0).all()
    assert np.isfinite(found.cosines).all()


@pytest.mark.parametrize("count", [0, 101])
def test_a_count_out_of_range_is_refused(llama: LoadedModel, count: int) -> None:
    with pytest.raises(ExperimentError, match="1 to 100"):
        arithmetic(talk(llama), formula="the", count=count)


@pytest.mark.parametrize("name", ["qwen3", "gpt2", "mixed"])
def test_one_word_alone_gives_its_neighbours(name: str) -> None:
    found = arithmetic(talk(tiny(name)), formula="the", count=4)
    assert found.near_terms.tolist() == [[1], [2], [3], [4]]
    assert found.terms[0].rank == 1


#: Obtained apart from this program: `get_input_embeddings().weight` of plain transformers as float64, the rows of
#: " king" and so on added up, `torch.nn.functional.normalize(table) @ normalize(sum)`, `topk(6)` without the words.
GOLDEN = [
    ("king - man + woman", 3.2694, [(b" queen", 0.716), (b" Queen", 0.629), (b" princess", 0.625)]),
    ("Paris - France + China", 2.4411, [(b" Beijing", 0.563), (b"China", 0.539), (b" Chinese", 0.524)]),
    ("uncle - man + woman", 4.0938, [(b" aunt", 0.780), (b" grandmother", 0.736), (b" nephew", 0.724)]),
]


@pytest.mark.parametrize(("formula", "norm", "nearest"), GOLDEN)
def test_the_embedded_model_s_sums(
    embedded: LoadedModel, formula: str, norm: float, nearest: list[tuple[bytes, float]]
) -> None:
    golden = FACTS["smollm2-135m-instruct-q4_1"]["weights_embedded"]
    conversation = talk(embedded, 1, model=embedded.facts.model_id, prompt=golden["prompt"])
    found = arithmetic(conversation, formula=formula)
    assert found.norm == pytest.approx(norm, abs=1e-4)
    assert list(zip(found.token_bytes[:3], found.cosines[:3].round(3).tolist(), strict=True)) == [
        (token, pytest.approx(cosine)) for token, cosine in nearest
    ]
