"""System prompts computed before: who is served, up to where, within which bytes, and never with another token."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from engine import kv_cache
from engine.catalog import load_catalog
from engine.conversation import Conversation
from engine.model import LoadedModel
from engine.prefix_registry import MOST, PrefixRegistry, system_positions
from engine.refusals import SessionGone
from engine.runtime import PREFIX_SHARE, Runtime
from engine.settings import Settings
from engine.stages.template import render
from engine.trace import Rendered, Trace
from tests.engine.conversations import experiment, finish, ids
from tests.engine.models import CHATML, tiny

SYSTEM = "What is said is what is seen; the cat sat on the mat."
BIG = 1 << 30


def asking(system: str = SYSTEM, user: str = "the dog", **fields: Any) -> Any:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    return experiment(messages=messages, **fields)


def talked(loaded: LoadedModel, registry: PrefixRegistry, visitor: str = "ann", **fields: Any) -> Trace:
    return finish(Conversation(loaded, asking(**fields), prefixes=registry.of(visitor)))


def first(trace: Trace) -> Rendered:
    rendered = trace.rendered(0)
    assert rendered is not None
    return rendered


def system_ids(loaded: LoadedModel, system: str = SYSTEM) -> list[int]:
    """The system prompt as the small template writes it, tokenised alone."""
    return list(loaded.tokenizer.encode(f"<|im_start|>system\n{system}<|im_end|>\n", add_special_tokens=False))


def test_a_second_conversation_takes_the_system_prompt_and_draws_the_same_tokens(architecture: LoadedModel) -> None:
    registry = PrefixRegistry(BIG)
    before = talked(architecture, registry)
    assert first(before).reused == 0
    assert first(before).prefix is not None
    assert first(before).prefix.entries == 0  # type: ignore[union-attr]
    after = talked(architecture, registry, user="and the mat")
    found, rendered = first(after).prefix, first(after)
    whole = len(system_ids(architecture))
    assert found is not None
    assert (found.hit, found.common, found.system, found.entries, found.parted) == (True, whole, whole, 1, None)
    assert (rendered.reused, rendered.cached, rendered.dropped) == (whole, 0, 0)
    assert after.prefilled(0).first == whole  # type: ignore[union-attr]
    cold = finish(Conversation(architecture, asking(user="and the mat")))
    assert ids(after) == ids(cold)
    with torch.inference_mode():
        logits = architecture.model(torch.tensor([rendered.token_ids.tolist()])).logits[0, -1].float()
    step = after.steps(0)[0]
    assert (logits[step.candidate_ids.tolist()] - torch.tensor(step.logits[0])).abs().max() < 1e-3


def test_the_same_on_the_embedded_model(embedded: LoadedModel) -> None:
    registry = PrefixRegistry(BIG)
    fields = {"stop": {"max_new_tokens": 4}, "system": "You are a pirate. Answer in one short sentence."}
    talked(embedded, registry, **fields)
    after = talked(embedded, registry, user="Where is Paris?", **fields)
    assert first(after).prefix.hit  # type: ignore[union-attr]
    cold = finish(Conversation(embedded, asking(user="Where is Paris?", **fields)))
    assert ids(after) == ids(cold)


def test_a_chat_that_goes_on_after_a_hit_leaves_the_entry_as_it_was(llama: LoadedModel) -> None:
    registry = PrefixRegistry(BIG)
    talked(llama, registry)
    (entry,) = registry._entries.values()
    kept = [layer.keys.clone() for layer in entry.cache.layers]  # type: ignore[union-attr]
    talked(llama, registry, user="and the mat", follow_ups=["go on", "the cat"])
    assert kv_cache.tokens(entry.cache) == len(system_ids(llama))
    assert all(torch.equal(a, b.keys) for a, b in zip(kept, entry.cache.layers, strict=True))  # type: ignore[union-attr]


def test_an_own_prompt_serves_up_to_the_first_token_that_differs(llama: LoadedModel) -> None:
    registry = PrefixRegistry(BIG)
    talked(llama, registry, system=f"{SYSTEM} Now it is 12.")
    after = first(talked(llama, registry, system=f"{SYSTEM} Now it is 13."))
    old, new = (system_ids(llama, f"{SYSTEM} Now it is 1{digit}.") for digit in "23")
    common = next(place for place, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1])
    assert after.prefix is not None
    assert (after.prefix.hit, after.prefix.common, after.reused) == (False, common, common)
    assert after.prefix.parted is not None
    assert after.prefix.parted.position == common
    assert (after.prefix.parted.cached_id, after.prefix.parted.new_id) == (old[common], new[common])


def test_another_visitors_prompt_is_neither_used_nor_counted(llama: LoadedModel) -> None:
    registry = PrefixRegistry(BIG)
    talked(llama, registry, visitor="ann")
    rendered = first(talked(llama, registry, visitor="bob"))
    assert rendered.reused == 0
    assert rendered.prefix is not None
    assert (rendered.prefix.entries, rendered.prefix.common, rendered.prefix.parted) == (0, 0, None)


def test_open_to_everyone_another_visitors_prompt_serves_whole_and_gives_no_token_away(llama: LoadedModel) -> None:
    registry = PrefixRegistry(BIG, everyone=True)
    talked(llama, registry, visitor="ann")
    near = first(talked(llama, registry, visitor="eve", system=SYSTEM[:-1] + "!"))
    assert near.prefix is not None
    assert (near.reused, near.prefix.entries, near.prefix.common, near.prefix.parted) == (0, 0, 0, None)
    same = first(talked(llama, registry, visitor="bob", user="and the mat"))
    assert same.prefix is not None
    assert same.prefix.hit
    assert same.reused == len(system_ids(llama))


def test_no_message_and_no_answer_is_kept(llama: LoadedModel) -> None:
    registry = PrefixRegistry(BIG)
    talked(llama, registry, user="the dog", follow_ups=["go on"])
    finish(Conversation(llama, experiment(), prefixes=registry.of("ann")))  # no system prompt at all
    finish(Conversation(llama, experiment(prompt="the cat"), prefixes=registry.of("ann")))
    assert list(registry._entries) == [tuple(system_ids(llama))]
    (entry,) = registry._entries.values()
    assert kv_cache.tokens(entry.cache) == len(system_ids(llama))
    assert entry.nbytes == llama.facts.kv_bytes(len(system_ids(llama)))
    for layer in entry.cache.layers:  # not a view of a longer tensor either
        assert layer.keys.untyped_storage().nbytes() == layer.keys.nbytes  # type: ignore[union-attr]


def test_a_token_that_reaches_into_the_message_after_is_left_out(
    llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A template without marks: the question comes right after the system prompt and joins its last word.
    monkeypatch.setattr(llama.tokenizer, "chat_template", "{%- for m in messages -%}{{ m.content }}{%- endfor -%}")
    rendered = first(finish(Conversation(llama, asking(system="the th", user="e cat"))))
    assert rendered.token_bytes[:3] == (b"t", b"he", b" the")
    assert system_positions(rendered) == 2  # the third token holds the question's "e"


def test_what_the_template_writes_by_itself_is_not_a_persons_system_prompt(
    llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = (
        "{%- if messages[0]['role'] != 'system' -%}{{- '<|im_start|>system\\nthe cat<|im_end|>\\n' -}}{%- endif -%}"
    )
    monkeypatch.setattr(llama.tokenizer, "chat_template", default + CHATML)
    rendered = first(finish(Conversation(llama, experiment())))
    assert rendered.spans[0].role == "system"
    assert render(llama.tokenizer, experiment().messages or ()).spans[0].message is None
    assert system_positions(rendered) == 0


def test_bytes_and_entries_stay_bounded_and_the_least_recently_used_goes(llama: LoadedModel) -> None:
    each = llama.facts.kv_bytes(len(system_ids(llama, "the cat 0")))
    registry = PrefixRegistry(3 * each)
    for number in (0, 1, 2, 0, 3):
        talked(llama, registry, system=f"the cat {number}")
        assert registry.nbytes <= 3 * each
    kept = [first(talked(llama, registry, system=f"the cat {number}")).prefix.hit for number in (0, 2, 3)]  # type: ignore[union-attr]
    assert kept == [True, True, True]
    assert not first(talked(llama, registry, system="the cat 1")).prefix.hit  # type: ignore[union-attr]
    wide = PrefixRegistry(BIG)
    for number in range(MOST + 5):
        talked(llama, wide, system=f"the cat {number}", stop={"max_new_tokens": 1})
    assert len(wide._entries) == MOST
    tight = PrefixRegistry(each - 1)
    talked(llama, tight, system="the cat 0")
    assert tight.nbytes == 0


def test_out_of_memory_gives_everything_back(llama: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = PrefixRegistry(BIG)
    talked(llama, registry)
    assert registry.nbytes > 0

    def full(*arguments: Any, **named: Any) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr("engine.decode.forward", full)
    trace = talked(llama, registry, user="and the mat")
    assert trace.stopped(0).reason == "error"  # type: ignore[union-attr]
    assert registry.nbytes == 0


def test_a_full_window_keeps_nothing(llama: LoadedModel) -> None:
    registry = PrefixRegistry(BIG)
    talked(tiny("sliding"), registry)
    assert registry.nbytes == 0


@pytest.fixture
def runtime(llama: LoadedModel) -> Iterator[Any]:
    made: list[Runtime] = []

    def make(**settings: Any) -> Runtime:
        made.append(Runtime(llama, load_catalog(), Settings(**settings)))
        return made[-1]

    yield make
    for one in made:
        one.shut_down()


def ran(runtime: Runtime, session: str, **fields: Any) -> Rendered:
    runtime.start(session, asking(**fields))
    for _ in runtime.run(session):
        pass
    trace = runtime.trace(session)
    assert trace is not None
    return first(trace)


def test_a_visitors_next_conversation_is_served_and_the_endpoint_stays_cold(runtime: Any) -> None:
    one = runtime()
    session = one.open()
    assert not ran(one, session).reused
    assert ran(one, session, user="and the mat").prefix.hit  # type: ignore[union-attr]
    assert first(one.complete(asking())).reused == 0


@pytest.mark.parametrize(("setting", "hit"), [("off", None), ("visitor", False), ("everyone", True)])
def test_the_setting_says_who_is_served(runtime: Any, setting: str, hit: bool | None) -> None:
    one = runtime(prefix_cache=setting)
    ran(one, one.open())
    found = ran(one, one.open()).prefix
    assert (found.hit if found else None) == hit


def test_sessions_that_need_the_bytes_get_them_and_a_visitor_who_goes_takes_the_prompts_along(
    runtime: Any, llama: LoadedModel
) -> None:
    kept = llama.facts.kv_bytes(len(system_ids(llama)))
    one = runtime(cache_bytes=PREFIX_SHARE * kept)
    session, other = one.open(), one.open()
    ran(one, session)
    assert one._prefixes.nbytes == kept
    # Another's cache nearly fills the budget: what is kept for later goes before anyone's own cache does.
    ran(one, other, user="the cat " * 60, stop={"max_new_tokens": 20})
    assert one._sessions.get(other).cache_bytes > PREFIX_SHARE * kept - 2 * kept
    assert one._sessions.room < kept
    assert one._prefixes.nbytes <= one._sessions.room
    wide = runtime()
    session = wide.open()
    ran(wide, session)
    assert wide._prefixes.nbytes == kept
    wide.close(session)
    ran(wide, wide.open(), system="the dog")
    assert [len(key) for key in wide._prefixes._entries] == [len(system_ids(llama, "the dog"))]
    with pytest.raises(SessionGone):
        wide.trace(session)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ValueError, match="off, visitor, everyone"):
        Settings(prefix_cache="nobody")
