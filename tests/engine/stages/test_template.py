"""The rendered text against transformers' own, and its spans against hand-worked ones."""

import time
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.experiment import Message
from engine.model import LoadedModel
from engine.stages.template import RenderedText, TemplateError, render, render_raw
from engine.stages.tokens import tokenise
from engine.trace import Span
from tests.engine.qwen import DEFAULT_SYSTEM
from tests.engine.stages.templates import TEMPLATES, templated
from tests.engine.stages.texts import texts

Row = tuple[str, int | None, str, str]  # role, message, kind, text


def rows(rendered: RenderedText) -> list[Row]:
    return [(span.role, span.message, span.kind, rendered.text[span.start : span.end]) for span in rendered.spans]


def contents(rendered: RenderedText) -> list[tuple[int | None, str]]:
    return [(message, text) for _, message, kind, text in rows(rendered) if kind == "content"]


def chat(*turns: tuple[str, str]) -> list[Message]:
    return [Message(role=role, content=content) for role, content in turns]


U = "user"
A = "assistant"
S = "system"


def test_chatml_by_hand() -> None:
    rendered = render(templated("chatml"), chat((S, "Be kind."), (U, "Hi"), (A, "Hello!"), (U, "Bye")))
    assert rows(rendered) == [
        (S, 0, "scaffold", "<|im_start|>system\n"),
        (S, 0, "content", "Be kind."),
        (S, 0, "scaffold", "<|im_end|>\n"),
        (U, 1, "scaffold", "<|im_start|>user\n"),
        (U, 1, "content", "Hi"),
        (U, 1, "scaffold", "<|im_end|>\n"),
        (A, 2, "scaffold", "<|im_start|>assistant\n"),
        (A, 2, "content", "Hello!"),
        (A, 2, "scaffold", "<|im_end|>\n"),
        (U, 3, "scaffold", "<|im_start|>user\n"),
        (U, 3, "content", "Bye"),
        (U, 3, "scaffold", "<|im_end|>\n"),
        (A, None, "scaffold", "<|im_start|>assistant\n"),
    ]


def test_a_default_system_prompt_is_the_templates_own() -> None:
    assert rows(render(templated("qwen"), chat((U, "Hi")))) == [
        (S, None, "scaffold", "<|im_start|>system\n"),
        (S, None, "content", DEFAULT_SYSTEM),
        (S, None, "scaffold", "<|im_end|>\n"),
        (U, 0, "scaffold", "<|im_start|>user\n"),
        (U, 0, "content", "Hi"),
        (U, 0, "scaffold", "<|im_end|>\n"),
        (A, None, "scaffold", "<|im_start|>assistant\n"),
    ]


def test_a_given_system_prompt_takes_the_place_of_the_default() -> None:
    assert contents(render(templated("qwen"), chat((S, ""), (U, "Hi")))) == [(1, "Hi")]
    assert contents(render(templated("qwen"), chat((S, DEFAULT_SYSTEM), (U, "Hi")))) == [(0, DEFAULT_SYSTEM), (1, "Hi")]


def test_the_embedded_model_adds_its_system_prompt(embedded: LoadedModel) -> None:
    rendered = render(embedded.tokenizer, chat((U, "What is the capital of France?")))
    assert contents(rendered) == [
        (None, "You are a helpful AI assistant named SmolLM, trained by Hugging Face"),
        (0, "What is the capital of France?"),
    ]
    tokens = tokenise(embedded.tokenizer, rendered.text, rendered.spans, templated=True, obey_marks=False)
    assert len(tokens.ids) == 37


def test_a_system_part_without_a_message() -> None:
    assert rows(render(templated("llama-3-dated"), chat((U, "Hi"))))[:2] == [
        (
            S,
            None,
            "scaffold",
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nToday: 26 Jul 2024\n\n<|eot_id|>",
        ),
        (U, 0, "scaffold", "<|start_header_id|>user<|end_header_id|>\n\n"),
    ]


def test_no_system_part_is_seen_where_none_is_written() -> None:
    assert rows(render(templated("bare"), chat((U, "Hi")))) == [
        (U, 0, "scaffold", "<s>user: "),
        (U, 0, "content", "Hi"),
    ]


def test_a_template_that_trims() -> None:
    assert rows(render(templated("llama-3"), chat((S, " s\n"), (U, "\n a  b ")))) == [
        (S, 0, "scaffold", "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"),
        (S, 0, "content", "s"),
        (S, 0, "scaffold", "<|eot_id|>"),
        (U, 1, "scaffold", "<|start_header_id|>user<|end_header_id|>\n\n"),
        (U, 1, "content", "a  b"),
        (U, 1, "scaffold", "<|eot_id|>"),
        (A, None, "scaffold", "<|start_header_id|>assistant<|end_header_id|>\n\n"),
    ]


def test_many_trimmed_messages_with_the_same_words() -> None:
    rendered = render(templated("llama-3"), chat(*[(U, " a ")] * 30))
    assert contents(rendered) == [(index, "a") for index in range(30)]


def test_a_template_with_its_own_role_names() -> None:
    assert rows(render(templated("gemma"), chat((U, "Hi "), (A, "user"), (U, "model")))) == [
        (U, 0, "scaffold", "<bos><start_of_turn>user\n"),
        (U, 0, "content", "Hi"),
        (U, 0, "scaffold", "<end_of_turn>\n"),
        (A, 1, "scaffold", "<start_of_turn>model\n"),
        (A, 1, "content", "user"),
        (A, 1, "scaffold", "<end_of_turn>\n"),
        (U, 2, "scaffold", "<start_of_turn>user\n"),
        (U, 2, "content", "model"),
        (U, 2, "scaffold", "<end_of_turn>\n"),
        (A, None, "scaffold", "<start_of_turn>model\n"),
    ]


def test_a_template_that_moves_the_system_prompt() -> None:
    assert rows(render(templated("mistral"), chat((S, "s"), (U, "a"), (A, "b"), (U, "c")))) == [
        (U, 1, "scaffold", "<s>[INST] "),
        (U, 1, "content", "a"),
        (U, 1, "scaffold", "[/INST]"),
        (A, 2, "scaffold", " "),
        (A, 2, "content", "b"),
        (A, 2, "scaffold", "</s>"),
        (S, 0, "scaffold", "[INST] "),
        (S, 0, "content", "s"),
        (U, 3, "scaffold", "\n\n"),
        (U, 3, "content", "c"),
        (U, 3, "scaffold", "[/INST]"),
    ]
    assert contents(render(templated("mistral"), chat((U, "a\n\na")))) == [(0, "a\n\na")]


def test_a_template_that_drops_thoughts() -> None:
    rendered = render(
        templated("thinking"),
        chat((U, "a"), (A, "<think>\nb\n</think>\n\nc"), (U, "d"), (A, "<think>\ne\n</think>\n\nf")),
    )
    assert contents(rendered) == [(0, "a"), (1, "c"), (2, "d"), (3, "e"), (3, "f")]
    assert rows(rendered)[3:6] == [
        (A, 1, "scaffold", "<|im_start|>assistant\n"),
        (A, 1, "content", "c"),
        (A, 1, "scaffold", "<|im_end|>\n"),
    ]
    assert rows(rendered)[-1] == (A, None, "scaffold", "<|im_start|>assistant\n<think>\n\n</think>\n\n")


def test_an_empty_thought_is_kept_or_dropped_by_the_template_alone() -> None:
    answer = "<think>\n\n</think>\n\nc"
    tokenizer = templated("thinking")
    assert rows(render(tokenizer, chat((U, "a"), (A, answer)), add_generation_prompt=False))[3:] == [
        (A, 1, "scaffold", "<|im_start|>assistant\n<think>\n\n</think>\n\n"),
        (A, 1, "content", "c"),
        (A, 1, "scaffold", "<|im_end|>\n"),
    ]
    assert rows(render(tokenizer, chat((U, "a"), (A, answer), (U, "d"))))[3:5] == [
        (A, 1, "scaffold", "<|im_start|>assistant\n"),
        (A, 1, "content", "c"),
    ]


def test_a_content_that_cannot_be_wrapped_is_found_by_its_words() -> None:
    rendered = render(templated("picky"), chat((U, "a"), (U, "<result>4"), (U, ""), (U, "b")))
    assert contents(rendered) == [(0, "a"), (1, "<result>4"), (3, "b")]


def test_a_template_that_measures_contents() -> None:
    turns = [(U, f"question {index:02}") for index in range(20)]
    rendered = render(templated("measuring"), chat(*turns))
    assert contents(rendered) == [(index, text) for index, (_, text) in enumerate(turns)]


def test_a_content_that_is_not_in_the_text_leaves_scaffold() -> None:
    assert rows(render(templated("counting"), chat((U, "banana")))) == [(U, 0, "scaffold", "user: 6")]


def test_marks_that_cannot_be_told_from_the_templates_own_are_refused() -> None:
    with pytest.raises(TemplateError, match="message 2.*<|im_end|>"):
        render(templated("picky"), chat((U, "a"), (U, "<result><|im_end|>"), (U, "<result><|im_end|>")))


@pytest.mark.parametrize("name", TEMPLATES)
@given(first=texts, second=texts, third=texts)
@settings(deadline=None, max_examples=60)
def test_the_text_is_that_of_transformers_and_spans_partition_it(
    name: str, first: str, second: str, third: str
) -> None:
    tokenizer = templated(name)
    messages = chat((U, first), (A, second), (U, third))
    rendered = render(tokenizer, messages)
    plain = [{"role": message.role, "content": message.content} for message in messages]
    assert rendered.text == tokenizer.apply_chat_template(plain, tokenize=False, add_generation_prompt=True)
    assert "".join(text for *_, text in rows(rendered)) == rendered.text
    assert all(span.start < span.end for span in rendered.spans)
    if name in {"chatml", "qwen", "mistral"}:
        given_texts = [(index, text) for index, text in enumerate((first, second, third)) if text]
        assert [row for row in contents(rendered) if row[0] is not None] == given_texts
    if name in {"llama-3", "llama-3-dated", "gemma"}:
        given_texts = [(index, text.strip()) for index, text in enumerate((first, second, third)) if text.strip()]
        assert contents(rendered) == given_texts


@given(st.lists(st.sampled_from(["<think>", "</think>", "a", "\n", " ", "<|im_end|>", ""]), max_size=8))
@settings(deadline=None, max_examples=200)
def test_no_thought_smuggles_a_mark_into_the_scaffold(pieces: list[str]) -> None:
    """Whatever an answer holds, its marks are content or gone."""
    tokenizer = templated("thinking")
    for messages in (chat((U, "q"), (A, "".join(pieces))), chat((U, "q"), (A, "".join(pieces)), (U, "r"))):
        rendered = render(tokenizer, messages)
        tokens = tokenise(tokenizer, rendered.text, rendered.spans, templated=True, obey_marks=False)
        assert tokens.special.sum() == 2 * len(messages) + 1


def test_private_use_characters_in_messages_change_nothing() -> None:
    block = "".join(map(chr, range(0xE000, 0xF900)))
    rendered = render(templated("qwen"), chat((U, block), (A, "\ue000")))
    assert contents(rendered) == [(None, DEFAULT_SYSTEM), (0, block), (1, "\ue000")]


def test_a_message_with_every_private_use_character_is_found_by_its_words() -> None:
    every = "".join(map(chr, chain(range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))))
    rendered = render(templated("chatml"), chat((U, every), (A, "b")))
    assert contents(rendered) == [(0, every), (1, "b")]
    # The template's default system prompt cannot be told apart then; it is scaffold.
    assert contents(render(templated("qwen"), chat((U, every)))) == [(0, every)]


def test_a_thousand_messages_take_a_moment() -> None:
    messages = chat(*((U, f"question {n}") if n % 2 == 0 else (A, f"answer {n}") for n in range(1_000)))
    start = time.thread_time()
    rendered = render(templated("chatml"), messages)
    assert time.thread_time() - start < 5
    assert [message for message, _ in contents(rendered)] == list(range(1_000))


def test_no_template() -> None:
    with pytest.raises(TemplateError, match="has no chat template. Give 'prompt'"):
        render(templated(None), chat((U, "Hi")))


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (chat((S, "s"), (U, "u")), "System role not supported"),
        (chat((U, "u"), (U, "u")), "roles must alternate"),
    ],
)
def test_a_template_that_refuses_says_why(messages: list[Message], words: str) -> None:
    with pytest.raises(TemplateError, match=f"refuses these messages: .*{words}"):
        render(templated("gemma"), messages)


def test_a_raw_prompt_is_content() -> None:
    assert render_raw("Hi") == RenderedText("Hi", (Span(0, 2, "user", 0, "content"),))
    assert render_raw("") == RenderedText("", ())
