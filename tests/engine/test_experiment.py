"""An experiment is validated at the door: what is wrong is named by its path, and nothing else gets in."""

import copy
import json
import math
import random
import time

import pytest

from engine.experiment import (
    LLAMA_CPP_ORDER,
    MAX_JSON_BYTES,
    TRANSFORMERS_ORDER,
    Experiment,
    ExperimentError,
    parse_experiment,
)

SMALL = {"version": 1, "model": "tiny", "messages": [{"role": "user", "content": "hi"}]}


def parse(**fields: object) -> Experiment:
    return parse_experiment(SMALL | fields, models=["tiny"], tools=["calculator"])


def refusal(source: object) -> ExperimentError:
    with pytest.raises(ExperimentError) as refused:
        parse_experiment(source, models=["tiny"], tools=["calculator"])  # type: ignore[arg-type]
    return refused.value


def test_defaults_leave_the_logits_as_they_are() -> None:
    assert parse().processors == ()


def test_json_text_bytes_and_objects_give_the_same() -> None:
    text = json.dumps(SMALL)
    assert parse_experiment(text, models=["tiny"]) == parse_experiment(text.encode(), models=["tiny"]) == parse()
    assert parse_experiment(parse().model_dump_json(), models=["tiny"]) == parse()


@pytest.mark.parametrize(
    ("fields", "path", "said"),
    [
        ({"samplin": {}}, "samplin", "unknown field"),
        ({"sampling": {"top_q": 1}}, "sampling.top_q", "unknown field"),
        ({"sampling": {"top_p": 1.5}}, "sampling.top_p", "less than or equal to 1, got 1.5"),
        ({"sampling": {"top_p": math.nan}}, "sampling.top_p", "finite"),
        ({"sampling": {"temperature": math.inf}}, "sampling.temperature", "finite"),
        ({"sampling": {"temperature": -0.1}}, "sampling.temperature", "greater than or equal to 0"),
        ({"sampling": {"top_k": -1}}, "sampling.top_k", "greater than or equal to 0"),
        ({"sampling": {"repetition_penalty": 0}}, "sampling.repetition_penalty", "greater than 0"),
        ({"sampling": {"bad_words": [""]}}, "sampling.bad_words[0]", "at least 1 character"),
        ({"sampling": {"suppress_tokens": [3, -1]}}, "sampling.suppress_tokens[1]", "greater than or equal to 0"),
        ({"max-new-tokens": 5}, "max-new-tokens", "unknown field"),
        ({"sampling": {"top-k": 5}}, "sampling.top-k", "unknown field"),
        ({"messages": [{"role": "user", "content": "", "a\nb\x1b": 1}]}, r"messages[0].a\nb\x1b", "unknown field"),
        ({"stop": {"s p" * 99: 1}}, "stop." + "s p" * 20, "unknown field"),
        ({"": 1}, "''", "unknown field"),
        ({"sampling": {"order": "ollama"}}, "sampling.order", "'transformers' or 'llama.cpp'"),
        ({"sampling": {"order": 5}}, "sampling.order", "'transformers' or 'llama.cpp'"),
        ({"sampling": {"order": ["top_p", "topk"]}}, "sampling.order[1]", "'repetition_penalty', 'no_repeat_ngram_"),
        ({"sampling": {"order": ["top_p", 7]}}, "sampling.order[1]", "'typical_p', got 7"),
        ({"sampling": {"order": ["top_p"] * 12}}, "sampling.order", "List should have at most 11 items, got"),
        ({"sampling": {"seed": 2**63}}, "sampling.seed", "less than 9223372036854775808, got 9223372036854775808"),
        ({"sampling": {"suppress_tokens": {"a": 1}}}, "sampling.suppress_tokens", "should be a list, got {'a': 1}"),
        ({"sampling": [1]}, "sampling", "Input should be an object, got [1]"),
        ({"sampling": {"top_k": 5, "order": ["top_p"]}}, "sampling", "order leaves out 'top_k'"),
        ({"sampling": {"order": ["top_p", "top_p"]}}, "sampling", "twice"),
        ({"messages": []}, "messages", "at least 1 item"),
        ({"messages": [{"role": "narrator", "content": ""}]}, "messages[0].role", "'system', 'user'"),
        ({"messages": None}, "", "exactly one of 'messages' and 'prompt'"),
        ({"prompt": "x"}, "", "exactly one of 'messages' and 'prompt'"),
        ({"messages": None, "prompt": "x", "follow_ups": ["y"]}, "", "no turns"),
        ({"stop": {"max_new_tokens": 0}}, "stop.max_new_tokens", "greater than or equal to 1"),
        ({"stop": {"stop_strings": ["s" * 5_000]}}, "stop.stop_strings[0]", "at most 200 characters"),
        ({"context": {"strategy": "drop_all"}}, "context.strategy", "'none'"),
        ({"forced": [{"step": -1, "token_id": 0}]}, "forced[0].step", "greater than or equal to 0"),
        ({"grammar": {"kind": "bnf", "source": "x"}}, "grammar.kind", "'json_schema', 'regex' or 'lark'"),
        ({"grammar": {"kind": "regex", "source": "x"}, "sampling": {"order": []}}, "", "leaves out 'grammar'"),
        ({"model": "gpt-5"}, "model", "unknown model 'gpt-5'; allowed: tiny"),
        ({"tools": ["calculator", "shell"]}, "tools[1]", "unknown tool 'shell'; allowed: calculator"),
        ({"version": 2}, "version", "should be 1"),
        ({"mistake": "none"}, "mistake", "'mask_not_extended'"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(fields: dict[str, object], path: str, said: str) -> None:
    error = refusal(SMALL | fields)
    assert error.path == path
    assert said in error.message
    assert "\n" not in str(error)


@pytest.mark.parametrize("source", ["", "{", "[]", "1", '"x"', "null", b"\xff\xfe", "{" * 100_000, "[" * 100_000])
def test_no_json_object_is_refused(source: str | bytes) -> None:
    assert refusal(source).message


def test_an_oversized_text_is_refused_before_it_is_read() -> None:
    assert f"{MAX_JSON_BYTES:,}" in refusal(" " * (MAX_JSON_BYTES + 1)).message


def test_lone_surrogates_become_the_replacement_character_and_pairs_are_joined() -> None:
    source = json.dumps(SMALL | {"messages": [{"role": "user", "content": "a\ud800b \ud83d\udc4d"}]})
    assert parse_experiment(source, models=["tiny"]).messages[0].content == "a\ufffdb 👍"


def test_temperature_0_and_no_sampling_are_greedy_and_need_no_warpers() -> None:
    for setting in ({"temperature": 0}, {"do_sample": False, "temperature": 0.5}):
        experiment = parse(sampling=setting | {"top_k": 5, "top_p": 0.5, "repetition_penalty": 1.2})
        assert experiment.sampling.greedy
        assert experiment.processors == ("repetition_penalty",)


def test_neutral_values_add_no_processor() -> None:
    neutral = {"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0, "typical_p": 1, "repetition_penalty": 1}
    assert parse(sampling=neutral).processors == ()


def test_orders_name_the_same_processors() -> None:
    assert sorted(TRANSFORMERS_ORDER) == sorted(LLAMA_CPP_ORDER)
    settings = {"temperature": 0.7, "top_k": 5, "top_p": 0.9, "min_p": 0.1, "typical_p": 0.9}
    assert parse(sampling=settings).processors == ("temperature", "top_k", "top_p", "min_p", "typical_p")
    llama_cpp = parse(sampling=settings | {"order": "llama.cpp"})
    assert llama_cpp.processors == ("top_k", "typical_p", "top_p", "min_p", "temperature")
    own = parse(sampling=settings | {"order": ["top_p", "min_p", "typical_p", "top_k", "temperature", "bad_words"]})
    assert own.processors == ("top_p", "min_p", "typical_p", "top_k", "temperature")


def test_forced_tokens_are_found_by_turn_and_step() -> None:
    experiment = parse(forced=[{"step": 3, "token_id": 7042}, {"turn": 1, "step": 3, "token_id": 5}])
    assert experiment.forced_token(0, 3) == 7042
    assert experiment.forced_token(1, 3) == 5
    assert experiment.forced_token(0, 4) is None


#: Values that people, links and programs send where something else is wanted.
HOSTILE = (
    None, True, -1, 0, 1, 1.5, -0.0, 1e308, math.inf, -math.inf, math.nan, 2**31, 2**63, 2**70, "", "x", "1", "NaN",
    "\ud800", "\x00", "\u202e", "${1}", "<script>", [], [[]], [None], ["x"], [1], [math.nan], {}, {"x": 1}, {"role": 1},
    "x" * 300, [{"turn": 0}], [{"step": 1, "token_id": 2**40}],
)  # fmt: skip


def test_fifty_thousand_mutations_are_refused_or_valid_and_never_anything_else() -> None:
    random.seed(0)
    full = parse(
        grammar={"kind": "regex", "source": "a"}, forced=[{"step": 1, "token_id": 2}], tools=["calculator"]
    ).model_dump()
    accepted, refused = 0, []
    for _ in range(50_000):
        mutated = json.loads(json.dumps(full))
        for _ in range(random.randint(1, 3)):
            _mutate(mutated)
        try:
            experiment = parse_experiment(mutated, models=["tiny"], tools=["calculator"])
        except ExperimentError as error:
            refused.append(str(error))
            continue
        accepted += 1
        numbers = [value for value in experiment.sampling.model_dump().values() if isinstance(value, float)]
        assert all(map(math.isfinite, numbers))
        again = parse_experiment(experiment.model_dump_json(), models=["tiny"], tools=["calculator"])
        assert again == experiment
    assert 500 < accepted < 49_500
    assert all(message and "\n" not in message for message in refused)


def _nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"messages": [{"role": "user", "content": "x" * 200_000}] * 6}, "at most 1,000,000 bytes"),
        ({"prompt": "x", **{f"k{i}": 1 for i in range(150_000)}}, "at most 1,000,000 bytes"),
        ({"sampling": {"order": ["x"] * 300_000}}, "sampling.order"),
        ({"model": "m" * 900_000}, "unknown model"),
        ({"tools": ["t" * 900_000]}, "unknown tool"),
        ({"k" * 900_000: 1}, "unknown field"),
        ({"version": _nested(100_000)}, "version"),
        ({"sampling": _nested(100_000)}, "sampling"),
    ],
)
def test_what_is_much_too_large_is_refused_soon_and_in_a_few_words(fields: dict[str, object], said: str) -> None:
    started = time.process_time()
    with pytest.raises(ExperimentError, match=said) as caught:
        parse(**fields)
    assert time.process_time() - started < 2
    assert len(str(caught.value)) < 300


def _mutate(value: dict[str, object]) -> None:
    """Put something hostile at a random place."""
    place: object = value
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))  # type: ignore[arg-type]
        if not keys:
            return
        key = random.choice(list(keys))
        inner = place[key]  # type: ignore[index]
        if isinstance(inner, dict | list) and inner and random.random() < 0.7:
            place = inner
            continue
        if isinstance(place, dict) and random.random() < 0.1:
            place[random.choice(("x", "", "sampling", "__class__"))] = copy.deepcopy(random.choice(HOSTILE))
        else:
            place[key] = copy.deepcopy(random.choice(HOSTILE))  # type: ignore[index]
        return
