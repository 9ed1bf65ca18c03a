"""A run on the page: it is followed live, stops, goes back, takes another token, and begins anew."""

from typing import Any

import pytest

from tests.e2e.conftest import OpenApp, RunTrace
from tests.e2e.experiments import KV_BYTES_PER_TOKEN, answer, default_experiment, events, shown_tokens
from tests.e2e.visitor import Visitor
from tests.patience import eventually

LONG = 48

#: Notes what every part shows, picture by picture, while a run is under way.
WATCH = """() => {
  const parts = ['#rail .st[data-id="kv_cache"] b', '#rail .st[data-id="draw"] em', "#timeline .strip",
                 "#conversation .strip-group:last-child .strip", "#status .fact", "#kv-formula tr:last-child td + td"];
  window.frames_seen = [];
  const look = () => {
    const nodes = parts.map((part) => document.querySelector(part));
    if (!document.querySelector("#stop").disabled && nodes.every((node) => node))
      window.frames_seen.push(nodes.map((node) => node.textContent));
    requestAnimationFrame(look);
  };
  look();
}"""


#: Notes who asks for a size of the page's outside of a picture, and how often the whole page's language is set.
ASKED = """() => {
  window.asked = [];
  window.languages = 0;
  let drawing = 0;
  const next = window.requestAnimationFrame;
  window.requestAnimationFrame = (work) => next((time) => {
    drawing += 1;
    try { work(time); } finally { drawing -= 1; }
  });
  const note = (owner, name) => {
    const { get, value } = Object.getOwnPropertyDescriptor(owner, name);
    function noting() {
      const { stack } = new Error();
      const apart = /plotly|at draw|ResizeObserver/.test(stack); // charts take turns of their own
      if (!drawing && !apart) window.asked.push(`${name} of ${this.className || this.id}: ${stack}`);
      return (get || value).call(this);
    }
    Object.defineProperty(owner, name, get ? { get: noting } : { value: noting });
  };
  note(Element.prototype, "getBoundingClientRect");
  const ofAll = ["scrollWidth", "scrollHeight", "clientWidth", "clientHeight", "scrollTop"];
  for (const name of ofAll) note(Element.prototype, name);
  for (const name of ["offsetWidth", "offsetHeight"]) note(HTMLElement.prototype, name);
  const watch = new MutationObserver((changes) => (window.languages += changes.length));
  watch.observe(document.documentElement, { attributeFilter: ["lang"] });
}"""


def long_run(page: Visitor, tokens: int = LONG) -> None:
    """Settings under which an answer takes a while."""
    page.set("min_new_tokens", tokens)
    page.set("max_new_tokens", tokens)


def cache_bytes(page: Visitor) -> int:
    """The bytes measured, from the open panel of the cache."""
    return int(page.rows("kv-formula")[-1][1].split()[0].replace(",", ""))


def after_a_run(page: Visitor, watch: str) -> Visitor:
    """The page at the end of a long run with the cache's panel open, which a script watched."""
    page.open("kv_cache")
    long_run(page)
    page.page.evaluate(watch)
    page.run()
    assert len(page.tokens) == LONG
    return page


def test_everything_in_sight_follows_a_run(visit: OpenApp) -> None:
    page = after_a_run(visit(), WATCH)
    assert page.station("stop") == "yes: length"
    frames: list[list[str]] = page.page.evaluate("window.frames_seen")
    assert page.texts("#kv-growth .main-svg")
    seen = [len(set(shown)) for shown in zip(*frames, strict=True)]
    # A slow browser draws few pictures, and a table fewer than a word; what stands still is seen twice at most.
    assert min(seen) > min(3, max(seen) // 3), f"a part stood still: {seen}"


def test_while_tokens_come_in_the_page_is_laid_out_once_a_picture(visit: OpenApp) -> None:
    """A size asked for between two pictures, and the language set anew, have the browser style the whole page again."""
    page = after_a_run(visit(), ASKED)
    assert page.page.evaluate("window.asked") == []
    assert page.page.evaluate("window.languages") == 0


def test_stop_ends_the_run_within_a_step_and_a_step_goes_on(visit: OpenApp, run_trace: RunTrace) -> None:
    page = visit()
    long_run(page)
    page.begin()
    at_stop: int = page.page.evaluate(
        """() => {
          document.querySelector("#stop").click();
          return document.querySelectorAll("#timeline .t[data-state=sampled]").length;
        }"""
    )
    eventually(lambda: page.runs_ended == 1, "the end")
    count = len(page.tokens)
    # One token may have been on its way to the browser, one more in the model.
    assert at_stop <= count <= at_stop + 2 < LONG
    assert page.station("stop") == "yes: from outside"
    page.step(2)
    settings = {"min_new_tokens": LONG}
    trace = run_trace(default_experiment(sampling=settings, stop={"max_new_tokens": LONG}))
    assert page.tokens == shown_tokens(trace)[: count + 2]


def test_a_second_run_while_running_changes_nothing(visit: OpenApp, run_trace: RunTrace) -> None:
    page = visit()
    length = 2 * LONG  # the presses below come before its end on a slow machine too
    long_run(page, length)
    page.begin()
    assert page.page.is_disabled("#run")
    page.page.evaluate("document.querySelector('#run').click()")
    page.page.press("#message textarea", "Enter")
    page.press("step")
    eventually(lambda: "press Stop first" in page.notice, "the refusal of a step")
    count = len(page.tokens)
    eventually(lambda: len(page.tokens) > count, "the run going on")
    page.press("stop")
    eventually(lambda: page.runs_ended == 1, "the end")
    made = len(page.tokens)
    trace = run_trace(default_experiment(sampling={"min_new_tokens": length}, stop={"max_new_tokens": made}))
    assert page.tokens == shown_tokens(trace)


def test_a_message_sent_during_a_run_stays_in_its_field_and_the_run_goes_on(visit: OpenApp) -> None:
    page = visit()
    tokens = 4 * LONG  # time enough for a browser that is slow to show the first of them
    long_run(page, tokens)
    page.begin()
    page.type("And of Spain?")
    page.page.press("#message textarea", "Enter")
    eventually(lambda: "not finished" in page.notice, "the word that it has to wait")
    count = len(page.tokens)
    assert page.running
    eventually(lambda: len(page.tokens) > count and page.running, "the run going on")
    page.press("stop")
    eventually(lambda: page.runs_ended == 1, "the end")
    assert page.messages[1] == "What is the capital of France?"
    assert page.page.input_value("#message textarea") == "And of Spain?"
    eventually(lambda: not page.notice, "nothing to wait for any more")
    page.page.press("#message textarea", "Enter")
    eventually(lambda: page.page.input_value("#message textarea") == "", "the message taken")


def test_a_station_is_chosen_while_text_is_marked(visit: OpenApp) -> None:
    page = visit()
    page.page.evaluate("getSelection().selectAllChildren(document.querySelector('#conversation'))")
    page.open("tokens")


def test_back_takes_one_token_and_its_bytes(visit: OpenApp) -> None:
    page = visit()
    page.open("kv_cache")
    page.run()
    eventually(lambda: page.rows("kv-formula"), "the formula")
    before, tokens = cache_bytes(page), page.tokens
    page.press("back")
    eventually(lambda: page.tokens == tokens[:-1], "one token less")
    eventually(lambda: cache_bytes(page) == before - KV_BYTES_PER_TOKEN, "one position less")
    page.press("back")
    eventually(lambda: page.tokens == tokens[:-2], "two tokens less")
    eventually(lambda: cache_bytes(page) == before - 2 * KV_BYTES_PER_TOKEN, "two positions less")
    page.run()
    assert page.tokens == tokens


def test_another_candidate_is_taken_and_the_run_goes_on_from_there(
    visit: OpenApp, paris: dict[str, Any], run_trace: RunTrace
) -> None:
    page = visit()
    page.run()
    page.open("processors")
    page.select(42)
    eventually(lambda: page.rows("sampling-candidates"), "the candidates")
    row = page.rows("sampling-candidates")[1]
    assert row[2] != "␣Paris"
    page.page.click("#sampling-candidates tbody tr:nth-child(2)")
    eventually(lambda: len(page.texts("#timeline .t[data-state=forced]")) == 1, "the token taken instead")
    assert page.tokens == [*shown_tokens(paris)[:5], row[2]]
    page.run()
    trace = run_trace(default_experiment(forced=[{"turn": 0, "step": 5, "token_id": int(row[1])}]))
    assert events(trace, "stepped")[5]["forced"]
    assert page.tokens == shown_tokens(trace)
    assert page.messages[-1].rstrip() == answer(trace).replace("\n", "⏎\n").rstrip()


def test_enter_sends_a_message_and_new_chat_starts_again(visit: OpenApp) -> None:
    page = visit()
    page.say("Say hello.")
    assert page.messages[1] == "Say hello."
    assert page.tokens
    assert page.page.input_value("#message textarea") == ""
    page.type("What is two plus two?")
    page.press("new")
    eventually(lambda: page.messages[1] == "What is two plus two?", "the new conversation")
    assert page.tokens == []
    assert len(page.messages) == 2
    page.press("new")
    page.step()
    assert page.messages[1] == "What is two plus two?"


def test_a_message_before_the_answer_ended_waits_for_stop(visit: OpenApp) -> None:
    page = visit()
    page.step(2)
    page.type("And of Spain?")
    page.press("step")
    eventually(lambda: "press Stop" in page.notice, "the refusal")
    assert page.page.input_value("#message textarea") == "And of Spain?"
    assert page.tokens == ["The", "␣capital"]
    page.page.fill("#message textarea", "")
    page.step()
    assert page.notice == ""


TYPE_AND_PRESS_AT_THE_END = """(message) => {
  const [run, stop] = ["run", "stop"].map((id) => document.getElementById(id));
  const field = document.querySelector("#message textarea");
  new MutationObserver((_, watching) => {
    if (run.disabled) {
      field.value = message;
      field.dispatchEvent(new Event("input"));
    } else if (field.value === message) {
      watching.disconnect();
      run.click();
    }
  }).observe(stop, { attributeFilter: ["disabled"] });
}"""


def test_run_may_be_pressed_the_moment_it_is_free(visit: OpenApp) -> None:
    """What follows the end of the run before is still under way then."""
    page = visit()
    page.set("min_new_tokens", LONG)
    page.page.evaluate(TYPE_AND_PRESS_AT_THE_END, "And Spain?")
    page.press("run")
    eventually(lambda: "And Spain?" in "".join(page.texts("#conversation .strip")), "the run of the message")
    assert page.page.input_value("#message textarea") == ""


TYPE_ON_ONCE_SENT = """(text) => {
  const field = document.querySelector("#message textarea");
  const fetched = window.fetch;
  window.fetch = (resource, options) => {
    if (String(resource.url ?? resource).includes("/queue/join")) {
      field.value += text;
      field.dispatchEvent(new Event("input"));
      window.fetch = fetched;
    }
    return fetched(resource, options);
  };
}"""


@pytest.mark.parametrize("button", ["step", "new", "run"])
def test_what_is_typed_while_a_message_is_on_its_way_stays(visit: OpenApp, button: str) -> None:
    page = visit()
    page.set("max_new_tokens", 2)
    page.run()
    page.type("And Spain?")
    page.page.evaluate(TYPE_ON_ONCE_SENT, " And Italy?")
    page.press(button)
    eventually(lambda: "And Spain?" in page.messages, "the message on the page")
    eventually(lambda: page.calm, "the end of all events")
    assert page.page.input_value("#message textarea") == "And Spain? And Italy?"


def test_a_refused_message_comes_back_before_what_was_typed_meanwhile(visit: OpenApp) -> None:
    page = visit()
    page.step()
    page.type("And Spain?")
    page.page.evaluate(
        """() => {
          const field = document.querySelector("#message textarea");
          new MutationObserver((_, watching) => {
            watching.disconnect();
            field.value = "And Italy?";
            field.dispatchEvent(new Event("input"));
          }).observe(document.querySelector("#notice"), { childList: true, subtree: true });
        }"""
    )
    page.press("run")
    eventually(lambda: "press Stop" in page.notice, "the refusal")
    both = "And Spain?\nAnd Italy?"
    eventually(lambda: page.page.input_value("#message textarea") == both, "both messages in the field")
