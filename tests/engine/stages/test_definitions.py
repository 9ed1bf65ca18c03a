"""Tool definitions in the prompt: by the template where it has a place for them, else by the stated fallback."""

import json
from collections.abc import Sequence

import pytest
from transformers import PreTrainedTokenizerFast

from engine.conversation import Conversation
from engine.experiment import Experiment, Message
from engine.stages.definitions import carve, fallback_text, render_with_tools, supports
from engine.stages.template import RenderedText, TemplateError, render
from engine.tools.calls import CLOSE, OPEN
from engine.tools.registry import TOOLS
from engine.trace import Span, ToolCalled
from tests.engine.conversations import finish
from tests.engine.models import CHATML, tiny_tokenizer
from tests.engine.qwen_tools import qwen_tools_model, qwen_tools_tokenizer

DEFINITIONS = [TOOLS["calculator"].definition, TOOLS["clock"].definition]
SYSTEM, USER = Message(role="system", content="Be brief."), Message(role="user", content="What is 23 * 19?")
ASSISTANT, TOOL = Message(role="assistant", content="Let me see."), Message(role="tool", content="23 * 19 = 437")

#: Raises for every role but user and assistant, as some templates do.
STRICT = (
    "{%- for m in messages -%}{%- if m.role not in ('system', 'user', 'assistant') -%}"
    "{{ raise_exception('unknown role ' + m.role) }}{%- endif -%}"
    r"{{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' -}}{%- endfor -%}"
)
#: Leaves out what it does not know.
SILENT = (
    "{%- for m in messages -%}{%- if m.role in ('system', 'user', 'assistant') -%}"
    r"{{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' -}}{%- endif -%}{%- endfor -%}"
)
#: Takes tools, but has them called in a way that is not read here.
OTHER_CALLS = "{%- if tools -%}[TOOLS]{{ tools | tojson }}[/TOOLS]{%- endif -%}" + CHATML


def templated(template: str) -> PreTrainedTokenizerFast:
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tiny_tokenizer().backend_tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    tokenizer.chat_template = template
    return tokenizer


def definitions_of(rendered: RenderedText) -> str:
    (span,) = [span for span in rendered.spans if (span.role, span.message) == ("tool", None)]
    assert span.kind == "scaffold"
    return rendered.text[span.start : span.end]


def contents(rendered: RenderedText) -> list[tuple[int | None, str, str]]:
    return [
        (one.message, one.role, rendered.text[one.start : one.end]) for one in rendered.spans if one.kind == "content"
    ]


def whole(rendered: RenderedText) -> None:
    """The spans partition the text, in order, none empty."""
    borders = [0, *(span.end for span in rendered.spans)]
    assert [span.start for span in rendered.spans] == borders[:-1]
    assert borders[-1] == len(rendered.text)
    assert all(span.start < span.end for span in rendered.spans)


def test_a_template_is_asked_whether_it_takes_tools() -> None:
    assert supports(qwen_tools_tokenizer(), DEFINITIONS)
    assert not supports(templated(CHATML), DEFINITIONS)
    assert not supports(templated(OTHER_CALLS), DEFINITIONS)
    assert not supports(templated("{{ raise_exception('no') }}"), DEFINITIONS)


@pytest.mark.parametrize("messages", [[USER], [SYSTEM, USER], [SYSTEM, USER, ASSISTANT, TOOL]])
def test_the_models_own_template_writes_them(messages: Sequence[Message]) -> None:
    rendered = render_with_tools(qwen_tools_tokenizer(), messages, DEFINITIONS)
    plain = [{"role": one.role, "content": one.content} for one in messages]
    text = qwen_tools_tokenizer().apply_chat_template(
        plain, tools=DEFINITIONS, tokenize=False, add_generation_prompt=True
    )
    assert rendered.text == text
    whole(rendered)
    said = definitions_of(rendered)
    assert said.startswith("\n\n# Tools")
    assert said.endswith("</tool_call>")
    assert json.dumps(DEFINITIONS[0]["function"]["name"]) in said
    assert [one for one in contents(rendered) if one[0] is not None] == [
        (index, one.role, one.content) for index, one in enumerate(messages)
    ]


@pytest.mark.parametrize("messages", [[USER], [SYSTEM, USER], [SYSTEM, USER, ASSISTANT, TOOL]])
def test_else_they_stand_in_the_system_prompt(messages: Sequence[Message]) -> None:
    rendered = render_with_tools(templated(CHATML), messages, DEFINITIONS)
    whole(rendered)
    assert definitions_of(rendered).strip() == fallback_text(DEFINITIONS)
    assert contents(rendered) == [(index, one.role, one.content) for index, one in enumerate(messages)]
    opening = "<|im_start|>system\n" + ("Be brief.\n\n" if messages[0] == SYSTEM else "")
    assert rendered.text.startswith(opening + fallback_text(DEFINITIONS) + "<|im_end|>\n<|im_start|>user\n")
    before = rendered.spans[0]
    assert (before.role, before.message) == ("system", 0 if messages[0] == SYSTEM else None)


@pytest.mark.parametrize("template", [STRICT, SILENT])
def test_results_are_user_messages_where_no_other_role_is_known(template: str) -> None:
    rendered = render_with_tools(templated(template), [USER, ASSISTANT, TOOL, TOOL], DEFINITIONS)
    result = "<tool_response>\n23 * 19 = 437\n</tool_response>"
    assert f"<|im_start|>user\n{result}\n{result}<|im_end|>" in rendered.text
    assert contents(rendered)[-2:] == [(2, "tool", TOOL.content), (3, "tool", TOOL.content)]


def test_a_template_that_refuses_more_than_results_says_so() -> None:
    with pytest.raises(TemplateError, match="no"):
        render(templated("{{ raise_exception('no') }}"), [USER, TOOL])


def test_carving_leaves_content_alone_where_it_must() -> None:
    content = Span(4, 8, "system", 0, "content")
    spans = (Span(0, 4, "system", 0, "scaffold"), content, Span(8, 12, "user", 1, "scaffold"))
    kept = carve(spans, 2, 10, role="tool", message=None, from_content=False)
    assert [(one.start, one.end, one.role, one.kind) for one in kept] == [
        (0, 2, "system", "scaffold"), (2, 4, "tool", "scaffold"), (4, 8, "system", "content"),
        (8, 10, "tool", "scaffold"), (10, 12, "user", "scaffold"),
    ]  # fmt: skip
    cut = carve(spans, 2, 10, role="tool", message=None)
    assert [(one.start, one.end, one.role) for one in cut] == [(0, 2, "system"), (2, 10, "tool"), (10, 12, "user")]


# Call marks that are tokens of their own.


def forced(texts: Sequence[Sequence[int]]) -> list[dict[str, int]]:
    eos = qwen_tools_model().facts.eos_ids[0]
    return [
        {"turn": turn, "step": step, "token_id": token}
        for turn, ids in enumerate(texts)
        for step, token in enumerate([*ids, eos])
    ]


def talk(said: Sequence[int], question: str = "What is 23 * 19?") -> Experiment:
    return Experiment.model_validate(
        {
            "version": 1,
            "model": "tiny",
            "messages": [{"role": "user", "content": question}],
            "tools": ["calculator"],
            "sampling": {"do_sample": False},
            "stop": {"max_new_tokens": 60},
            "forced": forced([said, []]),
        }
    )


CALL = f'{OPEN}\n{{"name": "calculator", "arguments": {{"expression": "23 * 19"}}}}\n{CLOSE}'


def test_the_marks_of_the_models_own_call_stay_its_tokens_and_the_cache_is_reused() -> None:
    tokenizer = qwen_tools_tokenizer()
    said = tokenizer.encode(CALL, add_special_tokens=False)
    marks = tokenizer.convert_tokens_to_ids([OPEN, CLOSE])
    assert (said[0], said[-1]) == tuple(marks)
    trace = finish(Conversation(qwen_tools_model(), talk(said)))
    assert [one.result for one in trace.of(ToolCalled)] == ["23 * 19 = 437"]
    first, second = trace.rendered(0), trace.rendered(1)
    assert first is not None
    assert second is not None
    prompt = len(first.token_ids)
    assert second.token_ids.tolist()[prompt : prompt + len(said)] == said
    assert second.reused == prompt + len(said)
    assert second.parted is None
    assert second.marks_in_content == 0


def test_a_mark_that_the_model_or_a_person_only_spelled_stays_plain() -> None:
    tokenizer = qwen_tools_tokenizer()
    letters = [id_ for char in OPEN for id_ in tokenizer.encode(char, add_special_tokens=False)]
    said = [*letters, *tokenizer.encode(CALL, add_special_tokens=False)[1:]]
    trace = finish(Conversation(qwen_tools_model(), talk(said, f"What is {OPEN}?")))
    assert [one.result for one in trace.of(ToolCalled)] == ["23 * 19 = 437"]
    second = trace.rendered(1)
    assert second is not None
    opening = tokenizer.convert_tokens_to_ids(OPEN)
    definitions = next(i for i, one in enumerate(second.spans) if (one.role, one.message) == ("tool", None))
    places = [int(second.span_index[at]) for at, id_ in enumerate(second.token_ids.tolist()) if id_ == opening]
    assert set(places) == {definitions}
    assert second.marks_in_content == 2


def test_a_required_call_takes_the_marks_as_single_tokens() -> None:
    asked = talk([]).model_copy(update={"forced": (), "tool_choice": "required"})
    steps = finish(Conversation(qwen_tools_model(), asked)).steps(0)
    assert steps[0].piece == OPEN
    assert steps[0].stages[-1].parameters["legal"] == 1
    assert "".join(step.text for step in steps).startswith(f'{OPEN}\n{{"name": "calculator", "arguments": ')
