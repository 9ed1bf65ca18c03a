"""What the page refuses: it says what is wrong and what to do, and the session lives on."""

from collections.abc import Callable

import pytest

from tests.e2e.conftest import OpenApp
from tests.e2e.visitor import Visitor
from tests.patience import eventually


def still_lives(page: Visitor) -> None:
    """A new chat answers as ever."""
    page.type("What is the capital of France?")
    page.press("new")
    eventually(lambda: page.notice == "", "the end of the trouble")
    page.run()
    assert page.messages[-1] == "The capital of France is Paris."


def refused(page: Visitor, *words: str) -> None:
    eventually(lambda: page.notice, "a refusal")
    for word in words:
        assert word in page.notice
    assert "Traceback" not in page.notice


@pytest.mark.parametrize("message", ["", "   "])
def test_an_empty_message_after_the_end(visit: OpenApp, message: str) -> None:
    page = visit()
    page.run()
    page.type(message)
    page.page.press("#message textarea", "Enter")
    refused(page, "This answer has ended", "Type a message")
    still_lives(page)


def test_a_prompt_over_the_context_is_told_with_both_numbers(visit: OpenApp) -> None:
    page = visit()
    page.type("word " * 9000)
    page.press("step")
    refused(page, "90", "8192", "shorten it")
    still_lives(page)


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("temperature", "-1", "sampling.temperature"),
        ("top_p", "1.5", "sampling.top_p"),
        ("top_k", "2.5", "sampling.top_k"),
        ("max_new_tokens", "0", "stop.max_new_tokens"),
        ("max_new_tokens", "5000", "stop.max_new_tokens"),
        ("stop_strings", "s" * 5_000, "stop.stop_strings"),
        ("suppress_tokens", "7, 99999999999", "sampling.suppress_tokens[1]"),
    ],
)
def test_a_setting_out_of_range_is_named(visit: OpenApp, field: str, value: str, path: str) -> None:
    page = visit()
    good = page.control(field).input_value()
    page.set(field, value)
    page.press("step")
    refused(page, path)
    assert page.tokens == []
    page.set(field, good)
    page.step()
    assert page.tokens == ["The"]
    assert page.notice == ""


def cannot_compile(page: Visitor) -> None:
    page.choose("grammar_kind", "regular expression")
    page.set("grammar_source", "[0-9")


def empties_the_set(page: Visitor) -> None:
    page.choose("order", "my own")
    page.set("custom_order", "temperature top_k")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [(cannot_compile, ("grammar", "regex")), (empties_the_set, ("sampling", "order leaves out"))],
)
def test_settings_that_do_not_fit_together_are_told(
    visit: OpenApp, spoil: Callable[[Visitor], None], words: tuple[str, ...]
) -> None:
    page = visit()
    spoil(page)
    page.press("run")
    refused(page, *words)
    assert page.tokens == []
    assert not page.running
