"""A chat over its limit on the page: what stays, what leaves, and every strategy side by side."""

from tests.e2e.conftest import OpenApp
from tests.patience import eventually


def test_a_chat_over_the_limit_is_cut_and_every_strategy_compared(visit: OpenApp) -> None:
    page = visit()
    page.control("seed")
    page.set("system_prompt", "Answer in few words.")
    page.set("max_new_tokens", 3)
    page.choose("strategy", "keep the system prompt and the newest")
    page.set("max_tokens", 50)
    for question in ("What is the capital of France?", "Which river runs through it?", "And through London?"):
        page.say(question)
    assert page.notice == ""
    assert page.note("context") == "system + recent"
    page.open("context")
    eventually(lambda: page.rows("context-history"), "the history")
    rows = page.rows("context-history")
    assert [row[1] for row in rows[:-1]] == ["system", "user", "assistant", "user", "assistant", "user", "assistant"]
    stays = [row[2].split(" of ") for row in rows]
    assert [kept == tokens for kept, tokens in stays[:-1]] == [True, False, False, *[True] * 4]
    assert [int(kept) for kept, _ in stays[1:3]] == [0, 0]
    kept, before = map(int, stays[-1])
    assert page.station("context") == f"{before} → {kept} tok"
    assert kept == sum(int(one) for one, _ in stays[:-1]) <= 50 < before
    assert "What is the capital" not in " ".join(page.messages)

    page.press("ask-policies")
    eventually(lambda: len(page.rows("context-policies")) == 7, "the comparison")
    found = {row[0]: row[1:] for row in page.rows("context-policies")}
    assert found["everything"][:2] == ["0–5", str(before)]
    assert found["system + recent"][:2] == ["0 3–5", str(kept)]
    assert found["drop oldest"][4] == "template's"
    assert found["window, positions go on"][1] == "50"
    answer = page.texts("#conversation .strip .t[data-state=sampled]")
    assert answer
    assert "".join(answer).strip() in found["system + recent"][5]
