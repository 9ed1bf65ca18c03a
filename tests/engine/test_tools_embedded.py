"""The embedded model calls a tool and reads its result: the whole way, with the figures that the loop gives."""

import json

from engine.conversation import Conversation
from engine.dialogue import messages_of
from engine.experiment import Experiment
from engine.kv_cache import common_prefix
from engine.model import LoadedModel
from engine.stages.definitions import supports
from engine.tools.registry import TOOLS
from engine.trace import ToolCalled, Trace
from tests.engine.conversations import finish


def ask(question: str, *tools: str, **fields: object) -> Experiment:
    return Experiment.model_validate(
        {
            "version": 1,
            "model": "smollm2-135m-instruct",
            "messages": [{"role": "user", "content": question}],
            "tools": tools,
            "tool_choice": "required",
            "sampling": {"do_sample": False},
            "stop": {"max_new_tokens": 60},
            **fields,
        }
    )


def test_its_template_knows_no_tools(embedded: LoadedModel) -> None:
    assert not supports(embedded.tokenizer, [TOOLS["calculator"].definition])


def test_23_times_19_is_437(embedded: LoadedModel) -> None:
    trace = finish(Conversation(embedded, ask("What is 23 * 19?", "calculator")))
    (called,) = trace.of(ToolCalled)
    assert (called.name, called.arguments) == ("calculator", {"expression": "23 * 19"})
    assert called.result == "23 * 19 = 437"
    assert [trace.stopped(turn).reason for turn in (0, 1)] == ["tool_call", "eos"]  # type: ignore[union-attr]
    assert "437" in trace.answer(1)
    assert [one.role for one in messages_of(trace, 2)] == ["user", "assistant", "tool", "assistant"]
    forced_by_the_grammar(trace)
    the_cache_is_reused(trace)


def forced_by_the_grammar(trace: Trace) -> None:
    """Only the tool's free text was chosen: the expression between its quotes, and where it ends."""
    steps = trace.steps(0)
    free = [step for step in steps if step.stages[-1].parameters["legal"] > 1]
    said = b"".join(step.token_bytes for step in free).decode()
    assert "23 * 19" in said
    assert "name" not in said
    call = trace.answer(0)
    body = call.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>")
    assert json.loads(body) == {"name": "calculator", "arguments": {"expression": "23 * 19"}}


def the_cache_is_reused(trace: Trace) -> None:
    first, second, prefilled = trace.rendered(0), trace.rendered(1), trace.prefilled(1)
    assert first is not None
    assert second is not None
    assert prefilled is not None
    cached = [*first.token_ids.tolist(), *(step.token_id for step in trace.steps(0))][:-1]
    assert second.reused == common_prefix(cached, second.token_ids.tolist())
    assert second.reused > len(first.token_ids)
    assert prefilled.last - prefilled.first + 1 == len(second.token_ids) - second.reused
