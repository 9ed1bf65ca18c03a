"""The page in another language: by the browser, by the switch, remembered, and switched without losing anything."""

from components.copy import words_in
from tests.components.languages import english
from tests.e2e.conftest import OpenApp
from tests.e2e.visitor import Visitor
from tests.patience import eventually

RUN = {language: words_in(language, "page").text("run") for language in ("en", "zh")}
SWITCH = {"en": "English", "zh": "中文"}

#: All that can be read or heard: texts in sight, labels, tooltips and placeholders.
READABLE = """() => {
  const seen = [];
  const sees = (node) => node.checkVisibility({ visibilityProperty: true });
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (parent && !["SCRIPT", "STYLE"].includes(parent.tagName) && sees(parent)) seen.push(walker.currentNode.data);
  }
  for (const node of document.querySelectorAll("[aria-label], [title], [placeholder]")) {
    if (sees(node)) seen.push(...["aria-label", "title", "placeholder"].map((name) => node.getAttribute(name) || ""));
  }
  return seen.filter((text) => text.trim());
}"""


def written(page: Visitor, selector: str) -> list[str]:
    return [text.strip() for text in page.texts(selector)]


def switch(page: Visitor, language: str) -> None:
    """Press the switch of the header and wait for the labels."""
    page.page.get_by_label(SWITCH[language], exact=True).check()
    speaks(page, language)


def speaks(page: Visitor, language: str) -> None:
    """Wait until the labels and what is in sight are in the language."""
    eventually(lambda: written(page, "#run") == [RUN[language]], f"the labels in {language}")
    rail = words_in(language, "prompt").title
    eventually(lambda: page.texts('#rail .st[data-id="prompt"] small') == [rail], f"the rail in {language}")
    assert page.page.evaluate("document.documentElement.lang") == language
    assert page.page.get_by_label(SWITCH[language], exact=True).is_checked()


def test_a_switch_changes_every_word_and_nothing_else(visit: OpenApp) -> None:
    page = visit()
    page.run()
    tokens = page.tokens
    page.select(40)
    page.set("temperature", 0.9)
    page.type("Und Italien?")
    switch(page, "zh")
    plain = english()
    for station in page.stations:
        page.open(station)
        say = words_in("zh", owner(page))
        eventually(lambda say=say: say.title in written(page, "#right .panel-title"), say.title)
        readable = page.page.evaluate(READABLE)
        assert len(readable) > 100
        assert [text for text in readable if any(own in text for own in plain)] == [], station
    assert (page.tokens, page.cursor) == (tokens, 40)
    assert page.control("temperature").input_value() == "0.9"
    assert page.control("order").input_value() == words_in("zh", "settings").text("order:transformers")
    assert page.control("strategy").input_value() == words_in("zh", "settings").text("strategy:none")
    assert page.page.input_value("#message textarea") == "Und Italien?"
    names = page.page.locator("[aria-label]").evaluate_all("nodes => nodes.map((node) => node.ariaLabel)")
    assert {words_in("zh", "page").text(name) for name in ("rail", "timeline", "conversation")} <= set(names)
    page.press("step")  # with the new temperature and the message, which begin a new answer
    eventually(lambda: len(page.tokens) == 1, "a new answer")
    switch(page, "en")
    assert page.page.input_value("#message textarea") == ""
    assert page.control("strategy").input_value() == "refuse it"


def owner(page: Visitor) -> str:
    """The panel that is open, by the id of its tab."""
    found: str = page.page.locator("#panels [id$='-body']").evaluate_all(
        "nodes => nodes.find((node) => node.parentElement.checkVisibility()).id"
    )
    return found.removesuffix("-body")


def test_a_chinese_browser_gets_chinese_on_a_phone_and_what_it_chose_when_it_comes_again(visit: OpenApp) -> None:
    page = visit(width=390, locale="zh-CN")
    speaks(page, "zh")
    for station in ("prompt", "logits", "kv_cache", "model", "turns"):
        page.open(station)
        assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), station
    switch(page, "en")
    # A page that is left while an event is open says so in the console ("AbortError: signal is aborted", "Connection
    # errored out"). That is gradio 6.31 itself, whose client gives up its stream where the page goes: a page of one
    # button and a generator, without a line of ours, says the very same two.
    page.reload()
    eventually(lambda: page.texts("#timeline .t"), "the first prompt")
    speaks(page, "en")


def test_a_run_goes_on_while_the_language_is_switched(visit: OpenApp) -> None:
    page = visit()
    page.set("max_new_tokens", 40)
    page.set("min_new_tokens", 40)
    page.begin()
    switch(page, "zh")
    assert page.running
    eventually(lambda: len(page.tokens) == 40 and not page.running, "the end of the run")
    assert words_in("zh", "page").text("answer_ended", count=40) in " ".join(page.texts("#conversation .strip-label"))


def test_a_refusal_is_told_in_the_language_of_the_page(visit: OpenApp) -> None:
    page = visit(locale="zh-CN")
    speaks(page, "zh")
    page.set("temperature", -1)
    page.press("step")
    told = words_in("zh", "refusals").text("field_greater_than_equal", ge=0, got="-1")
    eventually(lambda: told in page.notice, "the refusal")
