"""Three turns on the page: every number of the Turns panel recomputed from what is shown and from the trace."""

from tests.e2e.conftest import OpenApp, RunTrace
from tests.e2e.experiments import default_experiment
from tests.patience import eventually

FOLLOW_UPS = ("And of China?", "Thanks")


def test_every_number_of_three_turns_can_be_recomputed(visit: OpenApp, run_trace: RunTrace) -> None:
    page = visit()
    page.set("max_new_tokens", 6)
    page.run()
    for message in FOLLOW_UPS:
        page.say(message)
    page.open("turns")
    eventually(lambda: len(page.rows("turns-table")) == 3, "three turns")
    rows = [[int(cell) for cell in row] for row in page.rows("turns-table")]
    before = 0
    for turn, (number, context, cached, reused, computed, dropped, answer, after) in enumerate(rows, start=1):
        assert (number, cached) == (turn, before)
        assert reused + computed == context
        assert cached - reused == dropped
        assert context + answer - 1 == after
        before = after
    assert (page.station("turns"), page.note("turns")) == ("3 turns", f"{rows[2][3]} reused +{rows[2][4]}")
    # What the timeline shows of the newest turn is what the last row counts.
    states = page.page.locator("#timeline .t").evaluate_all("nodes => nodes.map((node) => node.dataset.state)")
    newest = rows[-1]
    assert [states.count(state) for state in ("reused", "computed", "sampled")] == [newest[3], newest[4], newest[6]]
    # The endpoint, which never saw this page, counts the same.
    trace = run_trace(default_experiment() | {"follow_ups": list(FOLLOW_UPS), "stop": {"max_new_tokens": 6}})
    rendered = [event for event in trace["events"] if event["kind"] == "rendered"]
    assert [[len(one["token_ids"]), one["cached"], one["reused"]] for one in rendered] == [row[1:4] for row in rows]
    # Both answers so far ended by length: nobody but the template closed them.
    ends = page.rows("turns-closings")
    assert [row[1] for row in ends] == ["length", "length", "length"]
    assert all("which the model had not said" in row[4] for row in ends[:2])
    page.press("ask-cold_turn")
    eventually(lambda: page.rows("turns-cold"), "the same turn cold")
    assert [row[1:3] for row in page.rows("turns-cold")] == [[str(newest[3]), str(newest[4])], ["0", str(newest[1])]]
    assert f"{newest[6]} tokens, all of them the same" in page.caption("turns-cold")


def test_a_system_prompt_serves_the_next_chat_and_a_word_shows_its_merges(visit: OpenApp) -> None:
    page = visit()
    page.set("max_new_tokens", 3)
    page.set("system_prompt", "Answer like a pirate.")
    page.run()
    page.open("turns")
    eventually(lambda: "Miss" in " ".join(page.texts("#turns-prefix .strip-label")), "the first look-up")
    page.type("Who are you?")
    page.press("new")
    eventually(lambda: "Hit" in " ".join(page.texts("#turns-prefix .strip-label")), "the second look-up")
    eventually(lambda: len(page.rows("turns-table")) == 1, "the new chat")
    (row,) = page.rows("turns-table")
    assert f"Hit: {row[3]} positions" in page.texts("#turns-prefix .strip-label")[0]
    assert int(row[3]) + int(row[4]) == int(row[1])
    page.press("ask-time_in_prompt")
    eventually(lambda: page.rows("turns-time"), "a time first and last")
    first, last = (int(row[2]) for row in page.rows("turns-time"))
    assert first < last < int(page.rows("turns-time")[1][1])
    page.open("tokens")
    page.page.fill("#tokens-look-up textarea", " strawberry")
    page.page.press("#tokens-look-up textarea", "Enter")
    eventually(lambda: page.rows("tokens-merges")[-1:] and page.rows("tokens-merges")[-1][3] == "Ġstrawberry", "merges")
    assert [row[1] for row in page.rows("tokens-merges")[1:4]] == ["7", "10", "65"]
    assert "1 token, id 35199" in page.caption("tokens-merges")
    page.press("ask-tokenizers")
    eventually(lambda: len(page.rows("tokens-tokenizers")) == 6, "the other tokenizers")
    assert page.rows("tokens-tokenizers")[0][2] == "1"
