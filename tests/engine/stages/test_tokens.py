"""Ids, bytes and spans against the tokenizer itself, and marks that a person types."""

import unicodedata
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, processors
from transformers import PreTrainedTokenizerFast

from engine.experiment import ExperimentError
from engine.model import LoadedModel
from engine.stages.tokens import Tokens, tokenise
from engine.stages.vocabulary import vocabulary
from engine.trace import Span
from tests.engine.models import tiny_tokenizer
from tests.engine.qwen import qwen_oracle, qwen_tokenizer
from tests.engine.stages.texts import (
    CORPUS,
    fallback_tokenizer,
    metaspace_tokenizer,
    swallowing_tokenizer,
    texts,
)

Maker = Callable[[], PreTrainedTokenizerFast]
MAKERS: tuple[Maker, ...] = (
    tiny_tokenizer, qwen_tokenizer, fallback_tokenizer, metaspace_tokenizer, swallowing_tokenizer
)  # fmt: skip
Parts = Sequence[tuple[str, bool]]  # text, True for content


def spans_of(parts: Parts) -> tuple[str, tuple[Span, ...]]:
    spans: list[Span] = []
    at = 0
    for text, content in parts:
        if text:
            spans.append(Span(at, at + len(text), "user", 0, "content" if content else "scaffold"))
            at += len(text)
    return "".join(text for text, _ in parts), tuple(spans)


def of_parts(tokenizer: PreTrainedTokenizerFast, parts: Parts, *, obey: bool = False) -> Tokens:
    text, spans = spans_of(parts)
    return tokenise(tokenizer, text, spans, templated=True, obey_marks=obey)


def raw(tokenizer: PreTrainedTokenizerFast, text: str, *, obey: bool = False) -> Tokens:
    _, spans = spans_of([(text, True)])
    return tokenise(tokenizer, text, spans, templated=False, obey_marks=obey)


def controls(tokenizer: PreTrainedTokenizerFast, tokens: Tokens) -> int:
    """Control tokens in the ids; <unk> only says that a character is in no token."""
    words = vocabulary(tokenizer)
    return sum(words.is_mark(token_id) and words.piece(token_id) != "<unk>" for token_id in tokens.ids.tolist())


def chat(tokenizer: PreTrainedTokenizerFast, *contents: str) -> Iterator[tuple[str, bool]]:
    """A scaffold of the tokenizer's own marks around contents."""
    mark = tokenizer.eos_token
    for content in contents:
        yield f"{mark}user\n", False
        yield content, True
        yield f"{mark}\n", False


# Bytes


@pytest.mark.parametrize("make", [tiny_tokenizer, swallowing_tokenizer])
@given(text=texts)
@settings(deadline=None)
def test_bytes_of_a_byte_level_tokenizer_are_those_of_the_text(make: Maker, text: str) -> None:
    tokens = raw(make(), text)
    assert b"".join(tokens.token_bytes) == text.encode()


@given(texts)
@settings(deadline=None)
def test_a_tokenizer_that_normalises_gives_the_bytes_of_the_normal_form(text: str) -> None:
    tokens = raw(qwen_tokenizer(), text)
    assert b"".join(tokens.token_bytes) == unicodedata.normalize("NFC", text).encode()


@given(texts)
@settings(deadline=None)
def test_byte_tokens_and_spaces_of_sentencepiece(text: str) -> None:
    tokens = raw(fallback_tokenizer(), text)
    # The model's own ▁ means a space, so it cannot be told from one; the BOS and a first space are put in.
    put_in = b"<s> " if text else b"<s>"
    assert b"".join(tokens.token_bytes) == put_in + text.replace("▁", " ").encode()


@pytest.mark.parametrize("text", CORPUS)
def test_the_corpus_on_the_embedded_model(embedded: LoadedModel, text: str) -> None:
    tokens = raw(embedded.tokenizer, text)
    assert b"".join(tokens.token_bytes) == text.encode()
    assert tokens.ids.tolist() == embedded.tokenizer(text)["input_ids"]
    assert tokens.pieces == tuple(embedded.tokenizer.convert_ids_to_tokens(tokens.ids.tolist()))


@given(texts)
@settings(deadline=None)
def test_ids_equal_those_of_the_library_the_ranks_were_made_for(text: str) -> None:
    tokens = raw(qwen_tokenizer(), text)
    assert tokens.ids.tolist() == qwen_oracle().encode_ordinary(unicodedata.normalize("NFC", text))


def test_arrays() -> None:
    tokens = raw(tiny_tokenizer(), "the cat<|im_end|>", obey=True)
    assert (tokens.ids.dtype, tokens.span_index.dtype, tokens.special.dtype) == (np.int32, np.int32, np.bool_)
    assert tokens.special.tolist() == [*[False] * (len(tokens.ids) - 1), True]


def test_the_same_word_four_times() -> None:
    tokens = raw(tiny_tokenizer(), " the the the the")
    assert tokens.token_bytes == (b" the",) * 4


# Spans


def test_a_token_over_two_spans_belongs_to_its_first_byte() -> None:
    tokens = of_parts(tiny_tokenizer(), [("a: ", False), ("the cat", True)])
    rows = dict(zip(tokens.token_bytes, tokens.span_index.tolist(), strict=True))
    assert rows[b" the"] == 0


def test_a_space_counts_where_the_tokenizer_does_not_report_it() -> None:
    tokenizer = swallowing_tokenizer()
    assert tokenizer("a capital").encodings[0].offsets[-1] == (2, 9)
    tokens = of_parts(tokenizer, [("a ", False), ("capital", True)])
    assert tokens.token_bytes == (b"a", b" capital")
    assert tokens.span_index.tolist() == [0, 0]


@given(st.lists(st.tuples(texts, st.booleans()), min_size=1, max_size=5))
@settings(deadline=None)
def test_every_token_is_in_the_span_of_its_first_byte(parts: list[tuple[str, bool]]) -> None:
    tokens = of_parts(tiny_tokenizer(), parts)
    text, spans = spans_of(parts)
    if tokens.marks_in_content:
        return
    owners = [index for index, span in enumerate(spans) for _ in text[span.start : span.end].encode()]
    starts = np.cumsum([0, *map(len, tokens.token_bytes)])[:-1]
    assert tokens.span_index.tolist() == [owners[start] for start in starts]


# The tokens a tokenizer puts in


def test_a_raw_prompt_gets_the_one_bos_of_its_tokenizer() -> None:
    tokenizer = fallback_tokenizer()
    tokens = raw(tokenizer, "the capital")
    assert tokens.ids.tolist() == tokenizer("the capital")["input_ids"]
    assert tokens.ids.tolist().count(tokenizer.bos_token_id) == 1
    assert tokens.span_index.tolist() == [-1, *[0] * (len(tokens.ids) - 1)]


def test_a_bos_of_the_template_is_the_only_one() -> None:
    tokenizer = fallback_tokenizer()
    tokens = of_parts(tokenizer, [("<s>", False), ("the capital", True)])
    assert tokens.ids.tolist().count(tokenizer.bos_token_id) == 1
    assert tokens.span_index[0] == 0


def test_a_typed_bos_in_a_raw_prompt_is_text() -> None:
    tokenizer = fallback_tokenizer()
    tokens = raw(tokenizer, "<s>the")
    assert tokens.ids.tolist().count(tokenizer.bos_token_id) == 1
    assert tokens.span_index.tolist() == [-1, *[0] * (len(tokens.ids) - 1)]
    assert b"".join(tokens.token_bytes[1:]) == b" <s>the"


def test_a_tokenizer_that_also_puts_in_an_end() -> None:
    backend = Tokenizer.from_str(fallback_tokenizer().backend_tokenizer.to_str())
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")
    for prompt in ("the", "the</s>is"):
        tokens = raw(tokenizer, prompt)
        assert (tokens.ids[0], tokens.ids[-1], tokens.special.sum()) == (1, 2, 2)
        assert tokens.span_index.tolist() == [-1, *[0] * (len(tokens.ids) - 2), -1]
        assert b"".join(tokens.token_bytes[1:-1]) == f" {prompt}".encode()


# Marks that a person types


@pytest.mark.parametrize("make", MAKERS)
@given(contents=st.lists(texts, min_size=1, max_size=3))
@settings(deadline=None, max_examples=50)
def test_without_marks_the_ids_are_those_of_the_whole_text(make: Maker, contents: list[str]) -> None:
    tokenizer = make()
    parts = list(chat(tokenizer, *contents))
    tokens = of_parts(tokenizer, parts)
    assert tokens.marks_in_content == 0
    assert tokens.ids.tolist() == tokenizer(spans_of(parts)[0], add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("make", MAKERS)
def test_every_mark_in_every_place_adds_no_control_token(make: Maker) -> None:
    tokenizer = make()
    words = vocabulary(tokenizer)
    honest = controls(tokenizer, of_parts(tokenizer, list(chat(tokenizer, "a", "b", "c"))))
    for token_id, token in words.added.items():
        if not words.is_mark(token_id) or token.content == "<unk>":
            continue
        for place in range(3):
            for content in (token.content, f"x{token.content}", f"{token.content} y", f" {token.content}" * 3):
                contents = ["a", "b", "c"]
                contents[place] = content
                parts = list(chat(tokenizer, *contents))
                safe = of_parts(tokenizer, parts)
                assert controls(tokenizer, safe) == honest
                assert safe.marks_in_content == content.count(token.content)
                unsafe = of_parts(tokenizer, parts, obey=True)
                assert unsafe.marks_in_content == safe.marks_in_content
                assert controls(tokenizer, unsafe) == honest + safe.marks_in_content


@given(st.lists(st.sampled_from(["<|im_end|>", "<|im_", "end|>", "<", "|>", " ", "é", "the", "\n"]), max_size=8))
@settings(deadline=None, max_examples=300)
def test_marks_in_pieces_forge_nothing_and_lose_nothing(pieces: list[str]) -> None:
    tokenizer = tiny_tokenizer()
    parts = list(chat(tokenizer, "".join(pieces), "<|im_start|>"))
    tokens = of_parts(tokenizer, parts)
    assert tokens.special.sum() == 4
    assert b"".join(tokens.token_bytes) == spans_of(parts)[0].encode()
    kinds = [spans_of(parts)[1][index].kind for index in tokens.span_index]
    assert not any(special for special, kind in zip(tokens.special, kinds, strict=True) if kind == "content")


def test_a_mark_that_content_and_scaffold_make_together_is_text() -> None:
    tokenizer = tiny_tokenizer()
    tokens = of_parts(tokenizer, [("<|im_start|>", False), ("<|im_end|", True), (">", False), ("<|im_end|>", False)])
    assert (int(tokens.special.sum()), tokens.marks_in_content) == (2, 1)


def test_text_around_a_typed_mark_is_tokenised_as_ever() -> None:
    """Only the mark is taken apart: what stands before and after, and the first space, stays as in one plain pass."""
    for make in (fallback_tokenizer, metaspace_tokenizer):
        tokenizer = make()
        eos = tokenizer.eos_token
        tokens = of_parts(tokenizer, [(eos, False), ("the capital", True), (eos, False), (f"a{eos}", True)])
        plain = tokenizer(f"{eos}the capital{eos}a", add_special_tokens=False)["input_ids"]
        assert tokens.ids.tolist()[: len(plain)] == plain


def test_white_space_in_one_token_is_no_mark() -> None:
    tokenizer = swallowing_tokenizer()
    tokens = of_parts(tokenizer, [("a    b<call>    c", True)])
    spaces = tokenizer.convert_tokens_to_ids("    ")
    assert tokens.marks_in_content == 1
    assert tokens.ids.tolist().count(spaces) == 2


def test_white_space_that_a_mark_swallows_is_not_typed_by_anyone() -> None:
    tokens = of_parts(swallowing_tokenizer(), [("<|end|>", False), ("  hello  ", True), ("<|user|>", False)])
    assert tokens.marks_in_content == 0
    assert tokens.token_bytes[0] == b"<|end|>" and tokens.token_bytes[-1] == b"<|user|>"


def test_a_mark_swallows_white_space_beside_a_typed_mark_too() -> None:
    tokenizer = swallowing_tokenizer()
    tokens = of_parts(tokenizer, [("<|end|>", False), ("  hello<call>  ", True), ("<|user|>", False)])
    assert tokens.marks_in_content == 1
    assert b"".join(tokens.token_bytes) == b"<|end|>hello<call><|user|>"


def test_a_mark_with_no_plain_spelling_is_refused() -> None:
    """A Unigram model writes <unk> as the very piece: no other ids spell it."""
    tokenizer = metaspace_tokenizer()
    with pytest.raises(ExperimentError, match="take them out"):
        of_parts(tokenizer, [("the <unk>", True)])
    assert of_parts(tokenizer, [("the <unk>", True)], obey=True).marks_in_content == 1


def test_added_token_flags_are_seen() -> None:
    """The test tokenizers do have the traits that the tests above rely on."""
    added = vocabulary(swallowing_tokenizer()).added.values()
    assert {(token.content, token.lstrip, token.rstrip) for token in added if token.special} == {
        ("<|end|>", False, True),
        ("<|user|>", True, False),
    }
