"""What the panels say of positions holds of every run: sums add up, limits are those that apply, causes are so."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from components.context import notes as context_notes
from components.kv_cache import panel as kv_cache
from components.kv_cache.tables import formula_text
from components.panel import Cursor, View
from components.stopping.reasons import reasons
from components.turns import ledger
from components.turns import panel as turns
from components.turns.tables import turns_table
from components.widgets.host import read
from engine.conversation import Conversation
from engine.history import render_turn
from engine.model import LoadedModel
from engine.trace import Rendered, Stepped, Trace
from engine.truncated import Truncated
from tests.engine.callers import EOS, SUM, caller, experiment
from tests.engine.conversations import finish
from tests.engine.models import tiny, tiny_tokenizer

MODELS = ("llama", "qwen3", "gpt2", "mixed", "sliding", "hybrid")
CHAT = [{"role": "system", "content": "be nice"}, {"role": "user", "content": "hello the cat sat"}]
LONG = "one two three four five six seven eight nine ten and then the dog sat there too on the mat"
#: What leaves the context, and the mistakes: each way in which the numbers of positions can go apart.
WAYS: dict[str, dict[str, Any]] = {
    "nothing leaves": {},
    "a limit": {"context": {"strategy": "none", "max_tokens": 90}},
    **{
        strategy: {"context": {"strategy": strategy, "max_tokens": 60}}
        for strategy in ("drop_oldest", "keep_system", "drop_middle")
    },
    "summary": {"context": {"strategy": "summary", "max_tokens": 150}},
    **{
        f"window, {positions}": {"context": {"strategy": "sliding_window", "max_tokens": 40, "positions": positions}}
        for positions in ("go_on", "restart")
    },
    **{mistake: {"mistake": mistake} for mistake in ("history_reencoded", "mask_not_extended", "eos_not_watched")},
}
#: Answers that are read back as they were said.
WORDS = ("the cat sat on the mat and then the dog", "one two", "three")
#: An answer of a token a letter, which is read back in far fewer.
SPELLED = [
    {"turn": 0, "step": step, "token_id": token_id}
    for step, token_id in enumerate([*(tiny_tokenizer().encode(letter)[0] for letter in LONG), EOS])
]

Run = tuple[LoadedModel, Trace]


def run(loaded: LoadedModel, answers: Sequence[str] = (), **fields: Any) -> Run:
    given: dict[str, Any] = {"messages": CHAT, "tools": [], "stop": {"max_new_tokens": 8}}
    return loaded, finish(Conversation(loaded, experiment(answers, **given | fields)))


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """Each way on each model, over three turns; what the model is made to say decides what can be used of its cache."""
    llama, short, long = tiny("llama"), ["and the dog", "ok"], [LONG, "ok"]
    found = [run(tiny(model), follow_ups=short, **fields) for model in MODELS for fields in WAYS.values()]
    for fields in WAYS.values():
        stop = {"max_new_tokens": 20}
        found += [run(llama, WORDS, follow_ups=follow_ups, stop=stop, **fields) for follow_ups in (short, long)]
    stop = {"max_new_tokens": len(SPELLED)}
    found.append(run(llama, forced=SPELLED, follow_ups=short, stop=stop, **WAYS["window, go_on"]))
    called = {"tools": ["calculator"], "follow_ups": ["and", "ok"], "stop": {"max_new_tokens": 90}}
    for way in ("nothing leaves", "keep_system", "window, go_on", "history_reencoded"):
        found.append(run(caller(), (SUM, "it is 5", "the", "cat"), **called | WAYS[way]))
    return found


@dataclass(frozen=True, eq=False)
class Sides:
    """A turn's context beside what the turn before had left, both by the place of each id in the whole history."""

    before: list[int]  # the whole history that was fed, and the newest token
    start: int  # of the first cached position
    cached: list[int]
    now: list[int]  # the whole history as it reads now
    begin: int  # of the context's first token
    context: list[int]


def sides(loaded: LoadedModel, trace: Trace, rendered: Rendered) -> Sides:
    def history(turn: int) -> tuple[list[int], int]:
        truncated, fed = trace.truncated(turn), trace.rendered(turn)
        assert fed is not None
        if trace.experiment.context.strategy == "sliding_window":
            return render_turn(loaded, trace, turn).token_ids.tolist(), truncated.offset if truncated else 0
        return fed.token_ids.tolist(), 0

    before, (now, begin) = history(rendered.turn - 1)[0], history(rendered.turn)
    before += [step.token_id for step in trace.steps(rendered.turn - 1)]
    start = len(before) - 1 - rendered.cached
    if trace.experiment.context.positions == "restart":
        begin = start  # both are counted from 0 again
    return Sides(before, start, before[start:-1], now, begin, rendered.token_ids.tolist())


def numbers(pattern: str, text: str) -> tuple[int, ...] | None:
    """The numbers of a sentence; None where it is not there."""
    found = re.search(pattern, text)
    return tuple(int(one.replace(",", "")) for one in found.groups()) if found else None


# The limits.


def test_no_more_is_used_than_there_is_and_the_run_ends_where_it_is_all_used(runs: list[Run]) -> None:
    endless = 0
    for _, trace in runs:
        for step in trace.of(Stepped):
            (length, *_) = reasons(View(trace.facts, trace, Cursor(turn=step.turn, position=step.position)))
            ended = step is trace.steps(step.turn)[-1]
            if length.state != "not_yet":
                continue
            new = numbers(r"^([\d,]+) of at most ([\d,]+) new tokens?; ", length.evidence)
            assert new is not None
            assert new[0] < new[1] or ended
            if "do not run out" in length.evidence:
                endless += 1
                assert trace.experiment.context.positions == "restart"
                continue
            used = numbers(r"([\d,]+) of ([\d,]+) positions? used$", length.evidence)
            assert used is not None
            assert used[0] < used[1] or ended
    assert endless


def test_a_limit_is_shown_as_it_applies() -> None:
    def said(**context: Any) -> str:
        _, trace = run(tiny("llama"), context=context, stop={"max_new_tokens": 50})
        step = trace.steps(0)[30]
        return reasons(View(trace.facts, trace, Cursor(turn=0, position=step.position)))[0].evidence

    used = 40 + 31  # of the prompt and of the answer
    assert said(strategy="none", max_tokens=80) == f"31 of at most 50 new tokens; {used} of 80 positions used"
    assert said(strategy="drop_oldest", max_tokens=60) == f"31 of at most 50 new tokens; {used} of 512 positions used"
    # Of a window that goes on the positions count that have left it, too: 10 of the prompt did.
    window = {"strategy": "sliding_window", "max_tokens": 30}
    assert said(**window) == f"31 of at most 50 new tokens; {used} of 512 positions used"
    assert said(**window, positions="restart").startswith("31 of at most 50 new tokens; positions start again")


# The sums of a turn.


def test_every_sum_that_is_written_out_adds_up(runs: list[Run]) -> None:
    seen = set()
    for _, trace in runs:
        for count, event in enumerate(trace.events, 1):
            if isinstance(event, Stepped):
                part = replace(trace, events=trace.events[:count])
                seen.add(check_sums(read(turns_table(ledger.select(part)))["caption"], event))
    assert seen == {"whole", "slid", "none"}


def check_sums(caption: str, step: Stepped) -> str:
    reused = numbers(r"(\d+) reused \+ (\d+) computed = (\d+) in the context", caption)
    assert reused is not None
    assert reused[0] + reused[1] == reused[2]
    if dropped := numbers(r"(\d+) cached before − (\d+) kept = (\d+) dropped", caption):
        assert dropped[0] - dropped[1] == dropped[2] >= 0
    assert (fed := numbers(r"(\d+) \+ (\d+) of the answer − 1 = (\d+)", caption)) is not None
    assert fed[0] + fed[1] - 1 == fed[2]
    if held := numbers(r"− 1 = (\d+) in the cache now", caption):
        assert held == (step.kv_tokens,)
        return "whole"
    if slid := numbers(r"− 1 = (\d+), of which (\d+) ha(?:ve|s) left the window and (\d+) (?:are|is) in", caption):
        assert slid[0] - slid[1] == slid[2] == step.kv_tokens
        return "slid"
    assert ", and 0 in the cache now: this run keeps none" in caption
    assert step.kv_tokens == 0
    return "none"


def test_the_cache_s_own_sums_add_up(runs: list[Run]) -> None:
    for _, trace in runs:
        for step in trace.of(Stepped):
            fed, count = kv_cache.notes(View(trace.facts, trace, Cursor(step.turn, position=step.position)), step)
            title = numbers(r"^Why (\d+) positions? for (\d+) tokens", str(count.label))
            whole = numbers(r"^(\d+) of the prompt \+ (\d+) sampled − 1 = (\d+)\.", str(count.note))
            assert title is not None and whole is not None
            assert whole[0] + whole[1] - 1 == whole[2] == title[1] - 1
            left = numbers(r"(\d+) of them ha(?:ve|s) left the sliding window again", str(count.note)) or (0,)
            held = 0 if "None of it is kept" in str(count.note) else whole[2] - left[0]
            assert held == title[0] == step.kv_tokens
            assert ("One token, " in str(fed.note)) == (step.step > 0 and step.shapes["input_ids"][-1] == 1)


def test_the_bytes_of_the_formula_are_those_that_were_measured(runs: list[Run]) -> None:
    for _, trace in runs:
        step = next(trace.of(Stepped), None)
        if step and "stateful" not in trace.facts.layer_kinds:  # a running state has bytes of its own
            text = formula_text(trace.facts, step).replace(",", "")
            found = re.match(r"(.*) = (\d+) bytes a position.*; × (.*) = (\d+) bytes", text)
            assert found is not None
            assert worth(found[1]) == int(found[2])
            assert int(found[2]) * worth(found[3]) == int(found[4]) == step.kv_bytes


def worth(text: str) -> int:
    """Products of the numbers in it, added up."""
    return sum(math.prod(map(int, re.findall(r"\d+", part))) for part in text.split("+"))


# What the cache gave, and why no more.


def test_what_is_said_of_two_contexts_is_so(runs: list[Run]) -> None:
    seen = set()
    for loaded, trace in runs:
        if trace.turns < 2:
            continue
        table = read(turns.render(View(trace.facts, trace, Cursor(turn=trace.turns - 1)))[2])
        for turn, row in enumerate(table["rows"], 1):
            rendered = trace.rendered(turn)
            assert rendered is not None
            text = row[-1] if isinstance(row[-1], str) else row[-1][0]
            if rendered.parted is None:
                seen.add(check_pair(text, sides(loaded, trace, rendered), rendered))
            assert ("Nothing could be kept: " in text) == (rendered.refused is not None)
    assert seen == {"given back", "all", "rest", "old", "before", "other"}


def check_pair(text: str, pair: Sides, rendered: Rendered) -> str:
    """Hold one sentence against the ids; gives which it was."""
    if "left no cache" in text:
        assert rendered.cached == 0
        return "given back"
    if "begins with all that was cached" in text:
        assert pair.context[: rendered.reused] == pair.cached
        return "all"
    if "is the beginning of what was cached" in text:
        assert rendered.reused == len(pair.context) - 1
        assert pair.context == pair.cached[: len(pair.context)]
        return "beginning"
    if rest := numbers(r"the (\d+) oldest positions? had left the window, and all (\d+) after", text):
        left, reused = rest
        assert left == pair.begin - pair.start
        assert (left + reused, reused) == (rendered.cached, rendered.reused)
        assert pair.cached[left:] == pair.context[:reused]
        return "rest"
    assert rendered.reused == 0
    if old := numbers(r"all (\d+) positions? that were cached are too old", text):
        assert old == (rendered.cached,)
        assert pair.start + rendered.cached <= pair.begin
        return "old"
    if before := numbers(r"the window now begins (\d+) positions? before the oldest", text):
        assert before == (pair.start - pair.begin,)
        return "before"
    assert "the history that leads up to the window is no longer the one that was fed" in text
    assert pair.now[: pair.begin] != pair.before[: pair.begin]
    return "other"


def test_what_is_said_of_the_cache_where_something_left_is_so(runs: list[Run]) -> None:
    seen = set()
    for loaded, trace in runs:
        for truncated in trace.of(Truncated):
            rendered = trace.rendered(truncated.turn)
            assert rendered is not None
            view = View(trace.facts, trace, Cursor(turn=truncated.turn))
            said = next(one.note for one in context_notes.notes(view) if one.label == "The cache")
            seen.add(check_cache(str(said), loaded, trace, rendered))
    assert seen == {"none", "refused", "lost", "old", "before", "other", "whole", "some"}


def check_cache(text: str, loaded: LoadedModel, trace: Trace, rendered: Rendered) -> str:
    """Hold one sentence against the ids; gives which it was."""
    if "Nothing was in the cache" in text:
        assert rendered.cached == 0
        return "none"
    pair = sides(loaded, trace, rendered)
    assert str(rendered.cached) in re.findall(r"\d+", text)
    if used := numbers(r"(\d+) go(?:es)? on being used.*[,;] (\d+) (?:ha(?:ve|s) left|(?:are|is) lost)", text):
        assert used == (rendered.reused, rendered.cached - rendered.reused)
        return "some"
    if "the new prompt begins with all of them" in text:
        assert pair.context[: rendered.reused] == pair.cached
        return "whole"
    assert rendered.reused == 0
    if "differs from the first one on" in text:
        assert pair.context[0] != pair.cached[0]
        return "lost"
    if "could not be cut back" in text:
        assert rendered.refused is not None
        assert text.endswith(f"{rendered.refused}.")
        assert pair.context[0] == pair.cached[0]
        return "refused"
    assert rendered.parted is None
    return check_pair(re.sub(r"^Lost: (all \d+ positions?) that it held", r"\1 that were cached", text), pair, rendered)
