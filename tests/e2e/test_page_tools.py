"""A chat with a tool on the page: the call is forced, run, read back and answered, and each step of it can be seen."""

from tests.e2e.conftest import OpenApp
from tests.patience import eventually


def test_a_calculator_is_called_and_its_result_said(visit: OpenApp) -> None:
    page = visit()
    page.set("tool_calculator", True)
    page.choose("tool_choice", "required: it must call one first")
    page.set("do_sample", False)
    page.set("max_new_tokens", 40)
    page.type("What is 23 * 19?")
    page.press("new")
    eventually(lambda: "You can use these tools" in "".join(page.texts("#timeline .t")).replace("␣", " "), "the prompt")
    page.run()
    assert page.messages[1:3] == [
        '<tool_call>\n{"name": "calculator", "arguments": {"expression": "23 * 19"}}\n</tool_call>',
        "23 * 19 = 437",
    ]
    assert "437" in page.messages[-1]
    assert (page.station("tools"), page.note("tools")) == ("1 call", "calculator")
    page.open("tools")
    eventually(lambda: len(page.rows("tools-loop")) == 2, "the loop")
    call, answer = page.rows("tools-loop")
    assert call[7:] == ["calculator(expression='23 * 19')", "23 * 19 = 437"]
    assert answer[7] == "no call: the answer"
    forced = page.texts("#tools-forced .t[data-state=grammar]")
    assert len(forced) == int(call[4])
    assert forced[:5] == ["<", "tool", "_", "call", ">"]
    assert "tool⏎\n23 * 19 = 437" in page.texts("#tools-seen .strip")[0]
    assert page.texts("#tools-definitions .strip")[0].startswith("You can use these tools:")
    page.press("back")
    eventually(lambda: len(page.tokens) == int(answer[3]) - 1, "the answer without its last token")
