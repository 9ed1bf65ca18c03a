"""Settings on the page: a change starts the answer again, and each does to the run what the endpoint does with it."""

import re

from tests.e2e.conftest import OpenApp, RunTrace
from tests.e2e.experiments import answer, default_experiment, events, shown_tokens
from tests.patience import eventually


def test_a_change_starts_the_answer_again(visit: OpenApp) -> None:
    page = visit()
    page.step(3)
    page.set("seed", 5)
    page.press("step")
    eventually(lambda: len(page.tokens) == 1, "a new answer")


def test_greedy_takes_the_best_and_draws_nothing(visit: OpenApp, run_trace: RunTrace) -> None:
    page = visit()
    page.set("do_sample", False)
    page.run()
    trace = run_trace(default_experiment(sampling={"do_sample": False}))
    assert page.tokens == shown_tokens(trace)
    assert page.note("draw") == "greedy"
    assert all(step["draw"] is None for step in events(trace, "stepped"))


def test_an_order_of_ones_own_is_the_order_of_the_stages(visit: OpenApp) -> None:
    page = visit()
    page.choose("order", "my own")
    page.set("custom_order", "top_p top_k repetition_penalty temperature")
    page.open("processors")
    page.step()
    eventually(lambda: page.texts("#sampling-candidates th"), "the candidates")
    stages = [text for text in page.texts("#sampling-candidates th")[3:-1] if text != "p"]
    assert stages == ["logits", "top-p 0.9", "top-k 20", "repetition 1.1", "temperature 0.7"]


def test_a_grammar_leaves_only_what_it_allows(visit: OpenApp) -> None:
    page = visit()
    page.choose("grammar_kind", "regular expression")
    page.set("grammar_source", "[0-9]{4}")
    page.say("In which year did the first person walk on the moon?")
    assert re.fullmatch("[0-9]{4}", page.messages[-1])
    assert page.station("stop") in ("yes: grammar", "yes: EOS")
    page.open("processors")
    eventually(lambda: "grammar" in " ".join(page.texts("#sampling-candidates th")), "the stage")


def test_a_stop_string_across_tokens_is_never_shown(visit: OpenApp, run_trace: RunTrace) -> None:
    page = visit()
    page.set("stop_strings", "is Paris")
    page.page.evaluate(
        """() => {
          window.shown = new Set();
          const look = () => {
            window.shown.add(document.querySelector("#conversation").textContent.split("assistant · ").at(-1));
            requestAnimationFrame(look);
          };
          look();
        }"""
    )
    page.run()
    assert page.station("stop") == "yes: stop string"
    assert page.tokens[-2:] == ["␣is", "␣Paris"]
    assert page.messages[-1] == "The capital of France "
    assert not [text for text in page.page.evaluate("[...window.shown]") if "France i" in text]
    page.open("text")
    eventually(lambda: page.texts("#stopping-answer .strip"), "the answer as shown")
    assert page.texts("#stopping-answer .strip")[0] == "The capital of France "
    assert answer(run_trace(default_experiment(stop={"stop_strings": ["is Paris"]}))) == "The capital of France "


def test_a_mask_that_stays_short_is_told(visit: OpenApp) -> None:
    page = visit()
    page.choose("mistake", "attention mask stays at prompt length")
    page.open("run_table")
    page.step(4)
    assert "✗ mask = context" in page.status
    eventually(lambda: "37 entries" in " ".join(page.rows("run-mistakes")[0]), "what the mistake did")


def test_a_history_fed_again_gives_the_same_tokens(visit: OpenApp) -> None:
    page = visit()
    page.choose("mistake", "whole history fed at every step")
    page.open("run_table")
    page.run()
    assert page.messages[-1] == "The capital of France is Paris."
    eventually(lambda: page.rows("run-mistakes")[1][2].startswith("44 tokens fed"), "what the mistake did")


def test_an_end_mark_that_nobody_watches_is_run_over(visit: OpenApp) -> None:
    page = visit()
    page.choose("mistake", "end-of-sequence not watched")
    page.set("max_new_tokens", 12)
    page.open("run_table")
    page.run()
    assert len(page.tokens) == 12
    assert page.tokens[7] == "<|im_end|>"
    assert page.station("stop") == "yes: length"
    eventually(lambda: page.rows("run-mistakes")[2][2].startswith("4 tokens came after"), "what the mistake did")


def test_a_system_prompt_takes_the_place_of_the_templates(visit: OpenApp) -> None:
    page = visit()
    page.set("system_prompt", "Answer in one word.")
    page.step()
    assert page.messages[0] == "Answer in one word."
    assert page.texts("#conversation .strip-label")[0] == "system"


def test_without_the_template_the_text_stands_alone(visit: OpenApp) -> None:
    page = visit()
    page.set("use_template", False)
    page.step()
    assert page.station("prompt") == "7 tok"
    assert page.texts("#timeline .t")[:7] == ["What", "␣is", "␣the", "␣capital", "␣of", "␣France", "?"]
