"""The published numbers of Qwen2.5's tokenizer, with its real ranks, against tests/golden/facts.json."""

import json
from pathlib import Path

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from engine.experiment import Message
from engine.stages.detokenizer import Detokenizer
from engine.stages.template import RenderedText, render
from engine.stages.tokens import Tokens, tokenise
from engine.stages.vocabulary import vocabulary
from tests.engine.qwen import NOT_SPECIAL, SPECIAL, qwen_tokenizer, ranks

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "facts.json").read_text(encoding="utf-8"))
QWEN = GOLDEN["qwen2.5-0.5b-instruct"]
FACTS = QWEN["tokenizer"]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return qwen_tokenizer()


@pytest.fixture(scope="module")
def rendered(tokenizer: PreTrainedTokenizerFast) -> RenderedText:
    """The published prompt, rendered from its two messages."""
    _, system, user, _ = FACTS["prompt"].split("<|im_start|>")
    messages = [
        Message(role=role, content=part.removeprefix(f"{role}\n").removesuffix("<|im_end|>\n"))
        for role, part in (("system", system), ("user", user))
    ]
    return render(tokenizer, messages)


@pytest.fixture(scope="module")
def tokens(tokenizer: PreTrainedTokenizerFast, rendered: RenderedText) -> Tokens:
    return tokenise(tokenizer, rendered.text, rendered.spans, templated=True, obey_marks=False)


def test_the_template_writes_the_published_prompt(rendered: RenderedText) -> None:
    assert rendered.text == FACTS["prompt"]


def test_the_prompt_has_the_published_tokens(tokens: Tokens) -> None:
    assert len(tokens.ids) == FACTS["count"] == 131
    assert tokens.ids[17:30].tolist() == FACTS["user_content_first_13"]
    assert tokens.ids[-4:].tolist() == FACTS["last_4"]
    assert b"".join(tokens.token_bytes) == FACTS["prompt"].encode()
    assert tokens.marks_in_content == 0


def test_the_tokens_add_up_by_span(rendered: RenderedText, tokens: Tokens) -> None:
    counts = np.bincount(tokens.span_index, minlength=len(rendered.spans)).tolist()
    by_owner: dict[tuple[int | None, str], int] = {}
    for span, count in zip(rendered.spans, counts, strict=True):
        by_owner[span.message, span.kind] = by_owner.get((span.message, span.kind), 0) + count
    expected = FACTS["by_span"]
    assert by_owner[0, "scaffold"] + by_owner[0, "content"] == expected["system"]
    assert by_owner[1, "content"] == expected["user_content"]
    # The user's scaffold is the published opening and the first part of the closing; the rest asks for an answer.
    assert by_owner[1, "scaffold"] + by_owner[None, "scaffold"] == expected["user_opening"] + expected["closing"]
    opening = next(index for index, span in enumerate(rendered.spans) if span.message == 1)
    assert counts[opening] == expected["user_opening"]


def test_the_first_line_token_by_token(tokens: Tokens) -> None:
    """The 13 rows: a character over two tokens shows as bytes, and comes back whole."""
    rows = tokens.token_bytes[17:30]
    assert b"".join(rows).decode() == "① 角色  你是一位中文写作助手。\n"
    assert rows[:4] == (b"\xe2\x91", b"\xa0", b" \xe8\xa7", b"\x92")
    assert [row.decode() for row in rows[4:]] == ["色", " ", " ", "你", "是一位", "中文", "写作", "助手", "。\n"]


def test_half_a_character_is_held_back(tokenizer: PreTrainedTokenizerFast) -> None:
    ids = [48312, 254, 54955, 240, 38035]
    expected = FACTS["decode_48312_254_54955_240_38035"]
    assert tokenizer.decode(ids) == expected == "① 角色"
    detokenizer = Detokenizer(tokenizer)
    pieces = [detokenizer.push(token_id) for token_id in ids]
    assert [piece.text for piece in pieces] == ["", "①", " ", "角", "色"]
    assert [piece.held_bytes for piece in pieces] == [2, 0, 2, 0, 0]
    assert detokenizer.flush() == ""


def test_special_marks_and_a_word_that_looks_like_one(tokenizer: PreTrainedTokenizerFast) -> None:
    words = vocabulary(tokenizer)
    for mark, token_id in FACTS["special"].items():
        assert words.find(mark) == (token_id,)
        assert words.is_special(token_id)
    assistant = FACTS["ordinary"]["assistant"]
    assert words.find("assistant")[0] == assistant
    assert not words.is_special(assistant)


def test_three_vocabulary_numbers(tokenizer: PreTrainedTokenizerFast) -> None:
    assert tokenizer.vocab_size == len(ranks()) == FACTS["base_entries"]
    assert len(tokenizer) == len(ranks()) + len(SPECIAL) + len(NOT_SPECIAL) == FACTS["with_special"]
    assert QWEN["config"]["vocab_rows"] == 151_936 > len(tokenizer)
    # Every entry but the 256 bytes is the fruit of one merge.
    assert sum(len(data) > 1 for data in ranks()) == FACTS["merges"]


def test_rows_without_a_token_are_empty(tokenizer: PreTrainedTokenizerFast) -> None:
    words = vocabulary(tokenizer)
    for row in (FACTS["with_special"], QWEN["config"]["vocab_rows"] - 1):
        assert (words.piece(row), words.bytes(row), words.is_special(row)) == ("", b"", False)


def test_left_padding(tokenizer: PreTrainedTokenizerFast) -> None:
    padding = FACTS["padding"]
    batch = tokenizer(padding["texts"], padding=True)
    assert batch["input_ids"] == padding["input_ids"]
    assert batch["attention_mask"] == padding["attention_mask"]
    mask = np.array(batch["attention_mask"])
    assert ((mask.cumsum(axis=1) - 1).clip(min=0)).tolist() == padding["positions_by_mask"]
    # A batch leaves nothing behind in the tokenizer: the next text alone is not padded.
    alone = tokenise(tokenizer, padding["texts"][0], [], templated=False, obey_marks=False)
    assert alone.ids.tolist() == [104455]


def test_tokens_are_found_by_their_text(tokenizer: PreTrainedTokenizerFast) -> None:
    words = vocabulary(tokenizer)
    sample = list(ranks().items())[::97]
    assert [words.bytes(token_id) for _, token_id in sample] == [data for data, _ in sample]
    whole = {data.decode("utf-8", "ignore"): token_id for data, token_id in sample}
    whole = {text: token_id for text, token_id in whole.items() if words.bytes(token_id) == text.encode()}
    assert len(whole) > 1_000
    for text, token_id in whole.items():
        assert words.find(text)[0] == token_id
