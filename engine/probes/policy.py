"""One strategy on the chat at hand: what it would keep of the newest turn's history, the cost, and what comes of it."""

import time
from dataclasses import replace
from typing import Literal

import torch

from engine.answers.policy import Policy
from engine.context.fit import Fed, fit
from engine.conversation import Conversation
from engine.experiment import ExperimentError
from engine.limits import check_prompt
from engine.new_turn import new_turn
from engine.probes.spared import spared
from engine.reuse import Reuse
from engine.said import said
from engine.trace import Stepped, Stopped, Trace
from engine.truncated import Truncated
from engine.values import Context, Strategy

#: Tokens of an answer. With its prompt and a summary one strategy is one piece of work: other visitors wait for it.
ANSWER_TOKENS = 24

#: Positions that an answer may compute in a window that starts again, which computes all of them at each step.
COMPUTED = 4_096


def policy(
    conversation: Conversation, *, strategy: Strategy, positions: Literal["go_on", "restart"] = "go_on"
) -> Policy:
    """Run a strategy on the newest turn, with the experiment's settings and the random state of the turn's first draw.

    The limit is the experiment's, or two thirds of the history where it has none. `none` keeps everything. Tokens that
    a person chose are not taken, and of a long window that starts again fewer are made. The run stays as it is.
    Raises `ExperimentError` before the first turn.
    """
    trace, turn = conversation.trace, conversation.trace.turns - 1
    rendered = trace.rendered(turn)
    if rendered is None:
        raise ExperimentError("turn", said("nothing_rendered"))
    started = time.perf_counter()
    truncated = trace.truncated(turn)
    whole = truncated.before if truncated else len(rendered.token_ids)
    limit = trace.experiment.context.max_tokens or max(1, whole * 2 // 3)
    context = Context(strategy=strategy, max_tokens=None if strategy == "none" else limit, positions=positions)
    most = min(ANSWER_TOKENS, trace.experiment.stop.max_new_tokens)
    if strategy == "sliding_window" and positions == "restart":
        most = min(most, max(1, COMPUTED // min(limit, whole)))
    stop = trace.experiment.stop.model_copy(update={"max_new_tokens": most})
    changes = {"context": context, "stop": stop, "forced": (), "mistake": None}
    experiment = trace.experiment.model_copy(update=changes)
    earlier = replace(trace, experiment=experiment, events=tuple(event for event in trace.events if event.turn < turn))
    if experiment.prompt is not None and strategy not in ("none", "sliding_window"):
        return Policy(turn, strategy, positions, limit, said("raw_no_messages"), before=whole)
    try:
        fed = fit(conversation.loaded, earlier, turn, cache_budget=conversation.cache_budget)
        if fed.refusal is not None:
            raise fed.refusal
        answer = _answer(conversation, earlier, fed)
        reused = spared(conversation, turn, fed)
    except ExperimentError as error:
        return Policy(turn, strategy, positions, limit, error.message, before=whole)
    found = Policy(turn, strategy, positions, limit, None, before=whole, after=len(fed.rendered.token_ids))
    found = _told(found, fed, reused)
    steps, stopped = answer
    return replace(
        found,
        token_ids=tuple(step.token_id for step in steps),
        answer="".join(step.text for step in steps) + stopped.text,
        ended=None if stopped.evidence.get("limit") == "max_new_tokens" else stopped.reason,
        seconds=time.perf_counter() - started,
    )


def _told(found: Policy, fed: Fed, reused: int) -> Policy:
    account = fed.truncated
    if account is None:
        messages = dict.fromkeys(span.message for span in fed.rendered.spans if span.message is not None)
        system = any(span.role == "system" for span in fed.rendered.spans)
        return replace(
            found,
            kept=tuple(messages),
            system="kept" if system else "none",
            reused=reused,
            computed=found.after - reused,
        )
    told, _ = fed.events(Reuse(None, reused, 0, None))
    assert isinstance(told, Truncated)
    return replace(
        found,
        kept=account.kept,
        dropped=account.dropped,
        partly=tuple(
            portion.message
            for portion in account.portions
            if portion.message is not None and 0 < portion.kept < portion.tokens
        ),
        system=account.system,
        reused=reused,
        computed=told.computed,
        summary=account.summary.text if account.summary else None,
    )


def _answer(conversation: Conversation, trace: Trace, fed: Fed) -> tuple[list[Stepped], Stopped]:
    """The first tokens that the turn would give, from the very random state that it began with."""
    loaded, current, turn_index = conversation.loaded, conversation.turn, fed.rendered.turn
    ids = fed.rendered.token_ids.tolist()
    window = fed.window.begun(trace, fed.rendered.turn, 0) if fed.window else None
    check_prompt(
        trace.experiment, loaded.facts, len(ids), conversation.cache_budget, offset=window.offset if window else 0
    )
    generator = torch.Generator(loaded.device)
    if current is None and turn_index and conversation.trace.steps(turn_index):
        raise ExperimentError("turn", said("random_unknown"))
    if current is not None and current.answer:
        generator.set_state(current.random_state(0))
    else:
        generator.set_state(conversation.random_state)
    turn = new_turn(loaded, trace, turn_index, ids, None, generator, window)
    turn.prefill()
    steps: list[Stepped] = []
    stopped: Stopped | None = None
    while stopped is None:
        for event in turn.step():
            if isinstance(event, Stepped):
                steps.append(event)
            elif isinstance(event, Stopped):
                stopped = event
    return steps, stopped
