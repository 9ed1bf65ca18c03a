"""The first two minutes: the page opens with a question, Step and Run answer it, and the numbers are the trace's."""

from itertools import pairwise
from typing import Any

import pytest

from tests.e2e.conftest import OpenApp, RunTrace
from tests.e2e.experiments import KV_BYTES_PER_TOKEN, answer, default_experiment, events, shown_tokens
from tests.e2e.visitor import Visitor
from tests.patience import eventually

TOKEN = ["prompt", "tokens", "tensors", "logits", "processors", "draw", "stop", "text", "kv_cache", "run_table"]
INSIDE = ["model", "embedding", "layers", "layer", "attention", "feed_forward", "lens"]
CHAT = ["turns", "context", "tools", "compare"]
PARIS = 5  # the step that gives " Paris"


def close(shown: str, probability: float) -> bool:
    """True where ".773", "1.00", "<.001" or "✕" says this probability."""
    if shown == "✕":
        return probability == 0
    return probability < 0.0006 if shown == "<.001" else abs(float(shown) - probability) < 0.00051


def test_the_page_opens_with_a_question_that_waits_for_its_first_token(visit: OpenApp) -> None:
    page = visit()
    assert page.stations == [*TOKEN, *INSIDE, *CHAT]
    assert page.station("prompt") == "37 tok"
    assert page.station("tokens") == "37"
    assert page.messages[1] == "What is the capital of France?"
    assert len(page.texts("#timeline .t")) == 37
    assert page.tokens == []
    assert [page.station(name) for name in ("logits", "processors", "draw", "kv_cache")] == ["–"] * 4
    assert "What is the capital of France?" in "".join(page.texts("#prompt-strip .t"))
    assert page.notice == ""


def test_a_step_makes_one_token(visit: OpenApp) -> None:
    page = visit()
    page.step()
    assert page.tokens == ["The"]
    assert page.cursor == 37
    assert page.station("draw") == '"The"'
    assert page.station("kv_cache") == "1.63 MiB"
    assert page.status[0] == "position 37 · step 0"


def test_a_run_answers_and_stops_at_the_end_mark(visit: OpenApp, paris: dict[str, Any]) -> None:
    page = visit()
    page.run()
    assert page.messages[-1] == "The capital of France is Paris." == answer(paris)
    assert page.tokens == shown_tokens(paris)
    assert page.station("stop") == "yes: EOS"
    assert not page.running
    checks = [fact for fact in page.status if fact[0] in "✓✗"]
    assert checks == [f"✓ {name}" for name in ("bytes = formula", "prompt + sampled − 1", "mask = context",
                                               "stages only cut", "draw in its interval")]  # fmt: skip


@pytest.fixture
def at_paris(visit: OpenApp) -> Visitor:
    """A visitor who looks at the step that gave " Paris", with the panel of the processors open."""
    page = visit()
    page.run()
    page.open("processors")
    page.select(37 + PARIS)
    return page


def test_stepping_leads_to_paris_and_the_processors_say_why(visit: OpenApp, paris: dict[str, Any]) -> None:
    page, step = visit(), events(paris, "stepped")[PARIS]
    page.step(PARIS + 1)
    assert page.tokens == shown_tokens(paris)[: PARIS + 1]
    assert page.tokens[-1] == "␣Paris"
    assert page.station("draw") == '"␣Paris"'
    kept = [stage["kept"] for stage in step["stages"]]
    counts = [kept[0], *(after for before, after in pairwise(kept) if after < before)]
    assert page.station("processors") == "→".join(f"{count:,}" for count in counts)
    assert page.note("processors") == f"H {step['stages'][-1]['entropy']:.2f} nat"
    assert page.note("draw") == f"u {step['draw']['u']:.3f}".replace("0.", ".")


def test_every_number_of_the_candidates_is_the_traces(at_paris: Visitor, paris: dict[str, Any]) -> None:
    step = events(paris, "stepped")[PARIS]
    stages = len(step["stages"])
    eventually(lambda: len(at_paris.rows("sampling-candidates")) == len(step["candidate_ids"]), "the candidates")
    for row in at_paris.rows("sampling-candidates"):
        candidate = step["candidate_ids"].index(int(row[1]))
        for stage in range(stages):
            shown_logit, shown_probability = row[3 + 2 * stage : 5 + 2 * stage]
            logit, probability = step["logits"][stage][candidate], step["probabilities"][stage][candidate]
            assert shown_logit == ("−∞" if logit is None else f"{logit:.2f}")
            assert close(shown_probability, probability)
    chosen = at_paris.page.locator("#sampling-candidates tr[aria-current] td")
    assert chosen.nth(1).inner_text() == "7042"
    at_paris.drawn("sampling-slope")
    kept = [f"{stage['kept']:,} kept" for stage in step["stages"]]

    def headed() -> bool:
        heads = at_paris.texts("#sampling-slope .annotation-text")
        return all(any(wanted in head for head in heads) for wanted in kept)

    eventually(headed, "the heads of this step")


def test_the_cache_shows_the_bytes_of_the_trace(at_paris: Visitor, paris: dict[str, Any]) -> None:
    step = events(paris, "stepped")[PARIS]
    assert step["kv_bytes"] == step["kv_tokens"] * KV_BYTES_PER_TOKEN
    at_paris.open("kv_cache")
    eventually(lambda: at_paris.rows("kv-formula"), "the formula")
    assert at_paris.rows("kv-formula")[-1][1] == f"{step['kv_bytes']:,} ✓"
    assert at_paris.rows("kv-layers")[-1][-1] == f"{step['kv_bytes']:,} ✓"
    assert f"KV {step['kv_tokens']} tokens · {step['kv_bytes'] / 2**20:.2f} MiB" in at_paris.status


def test_a_token_looked_up_by_its_text_has_its_numbers_at_every_stage(at_paris: Visitor, paris: dict[str, Any]) -> None:
    step = events(paris, "stepped")[PARIS]
    place = step["candidate_ids"].index(7042)
    at_paris.page.fill("#sampling-look-up textarea", " Paris")
    at_paris.page.press("#sampling-look-up textarea", "Enter")
    eventually(lambda: at_paris.rows("sampling-lookup"), "the token")
    rows = at_paris.rows("sampling-lookup")
    first = next(number for number, row in enumerate(rows) if row[0].endswith("· 7042"))
    for stage, row in enumerate(rows[first : first + len(step["stages"])]):
        assert row[2] == f"{step['logits'][stage][place]:.2f}"
        assert close(row[3], step["probabilities"][stage][place])
        assert row[4] == "1"
    at_paris.page.fill("#sampling-look-up textarea", " Berlin")
    at_paris.page.press("#sampling-look-up textarea", "Enter")
    eventually(lambda: at_paris.rows("sampling-lookup")[0][0].startswith("␣Berlin"), "the other token")
    model, *_, last = at_paris.rows("sampling-lookup")[: len(step["stages"])]
    assert int(model[4].replace(",", "")) > 1
    assert last[2:] == ["−∞", "✕", "–"]


def test_a_second_turn_reuses_the_cache_and_answers_as_the_endpoint_does(visit: OpenApp, run_trace: RunTrace) -> None:
    page = visit()
    page.run()
    page.say("And of Spain?")
    trace = run_trace(default_experiment(follow_ups=["And of Spain?"]))
    rendered = events(trace, "rendered", 1)[0]
    assert rendered["reused"] >= 44
    assert len(page.texts("#timeline .t[data-state=reused]")) == rendered["reused"]
    assert page.tokens == shown_tokens(trace, 1)
    assert page.messages[-3:] == ["The capital of France is Paris.", "And of Spain?", answer(trace, 1)]
