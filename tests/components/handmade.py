"""Traces built by hand from the classes of engine.trace: no model, every number worked out beside the panels.

The vocabulary is tiny and hostile: markup, template text, half characters, a right-to-left mark.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from components.panel import Cursor, View
from engine import numerics
from engine.experiment import Experiment
from engine.facts import ModelFacts, SpecialMark
from engine.trace import Draw, EosScore, Prefilled, Rendered, Span, Stage, Stepped, Stopped, Trace
from tests.distributions import entropy, log_softmax

#: id → (piece as the vocabulary writes it, bytes)
VOCABULARY: dict[int, tuple[str, bytes]] = {
    0: ("<|endoftext|>", b"<|endoftext|>"),
    1: ("<|im_start|>", b"<|im_start|>"),
    2: ("<|im_end|>", b"<|im_end|>"),
    3: ("system", b"system"),
    4: ("user", b"user"),
    5: ("ass", b"ass"),
    6: ("istant", b"istant"),
    7: ("Ċ", b"\n"),
    8: ("Be", b"Be"),
    9: ("Ġkind", b" kind"),
    10: ("âij", b"\xe2\x91"),
    11: ("ł", b"\xa0"),
    12: ("<script>alert(1)</script>", b"<script>alert(1)</script>"),
    13: ("${x}", b"${x}"),
    14: ("Ġuser", b" user"),
    15: ("Hi", b"Hi"),
    16: ("âĢı", "\u200f".encode()),
    17: ("ðŁ", b"\xf0\x9f"),
    18: ("ĺĢ", b"\x98\x80"),
    19: ("!", b"!"),
}
VOCAB_ROWS = 24

#: (role, message, kind, ids)
PROMPT: tuple[tuple[str, int | None, str, tuple[int, ...]], ...] = (
    ("system", None, "scaffold", (1, 3, 7)),
    ("system", None, "content", (8, 9)),
    ("system", None, "scaffold", (2, 7)),
    ("user", 0, "scaffold", (1, 4, 7)),
    ("user", 0, "content", (10, 11, 12, 13, 14)),
    ("user", 0, "scaffold", (2, 7)),
    ("assistant", None, "scaffold", (1, 5, 6, 7)),
)
ANSWER = (15, 16, 17, 18, 19, 2)
STAGES = (("logits", {}), ("temperature", {"temperature": 0.5}), ("top_k", {"top_k": 4}))


def make_facts(**changes: Any) -> ModelFacts:
    facts = ModelFacts(
        model_id="tiny",
        title="Tiny",
        architecture="llama",
        layers=2,
        hidden_size=16,
        heads=4,
        kv_heads=2,
        head_dim=4,
        ffn_size=32,
        vocab_rows=VOCAB_ROWS,
        vocab_base=17,
        vocab_with_special=20,
        context=128,
        parameters=1000,
        tied_embeddings=True,
        dtype="float32",
        itemsize=4,
        device="cpu",
        layer_kinds=("full", "full"),
        sliding_window=None,
        eos_ids=(2,),
        special_marks=(
            SpecialMark("<|endoftext|>", 0, ("unk",)),
            SpecialMark("<|im_start|>", 1, ("bos",)),
            SpecialMark("<|im_end|>", 2, ("eos", "pad")),
        ),
        chat_template="{% for m in messages %}<|im_start|>{{ m.role }}{% endfor %}",
    )
    return dataclasses.replace(facts, **changes)


def make_experiment(**changes: Any) -> Experiment:
    fields: dict[str, Any] = {
        "version": 1,
        "model": "tiny",
        "messages": [{"role": "user", "content": "①<script>alert(1)</script>${x} user"}],
        "sampling": {"temperature": 0.5, "top_k": 4, "seed": 3},
        "stop": {"max_new_tokens": 16},
    }
    fields.update(changes)
    return Experiment.model_validate(fields)


def make_rendered(parts: Sequence[tuple[str, int | None, str, Sequence[int]]] = PROMPT, **changes: Any) -> Rendered:
    text, spans, ids, index = "", [], [], []
    for role, message, kind, part in parts:
        piece = b"".join(VOCABULARY[token][1] for token in part).decode()
        spans.append(Span(len(text), len(text) + len(piece), role, message, kind))  # type: ignore[arg-type]
        index += [len(spans) - 1] * len(part)
        text += piece
        ids += part
    rendered = Rendered(
        turn=0,
        text=text,
        spans=tuple(spans),
        token_ids=np.array(ids, np.int32),
        span_index=np.array(index, np.int32),
        pieces=tuple(VOCABULARY[token][0] for token in ids),
        token_bytes=tuple(VOCABULARY[token][1] for token in ids),
        special=np.array([token < 3 for token in ids]),
        marks_in_content=0,
        reused=0,
        parted=None,
    )
    return dataclasses.replace(rendered, **changes)


def make_shapes(fed: int, total: int, facts: ModelFacts) -> dict[str, tuple[int, ...]]:
    """The tensors of one forward that is fed `fed` tokens and leaves `total` positions in the cache."""
    kv = (1, facts.kv_heads, total, facts.head_dim)
    return {
        "input_ids": (1, fed),
        "attention_mask": (1, total),
        "position_ids": (1, fed),
        "logits": (1, 1, facts.vocab_rows),
        "keys": kv,
        "values": kv,
    }


def make_step(step: int, prompt: int, token: int, facts: ModelFacts, *, turn: int = 0, **changes: Any) -> Stepped:
    """Step `step` of a turn whose prompt has `prompt` tokens; `token` wins a race over logits that favour it."""
    logits = np.linspace(1.0, -1.0, facts.vocab_rows, dtype=np.float32)[(np.arange(facts.vocab_rows) - token)]
    cold = logits / np.float32(0.5)
    cut = np.where(cold >= np.sort(cold)[-4], cold, -np.inf).astype(np.float32)
    rows = np.stack([logits, cold, cut])
    logp = np.array([log_softmax(row) for row in rows])
    probabilities = np.exp(logp)
    candidates = numerics.top_k(logits, 6)
    drawn = float(probabilities[2, token])
    total = prompt + step
    eos = facts.eos_ids[0]
    stepped = Stepped(
        turn=turn,
        step=step,
        position=total,
        token_id=token,
        piece=VOCABULARY[token][0],
        token_bytes=VOCABULARY[token][1],
        special=token < 3,
        forced=False,
        shapes=make_shapes(1 if step else prompt, total, facts),
        stages=tuple(
            Stage(
                name=name,
                parameters=dict(parameters),
                kept=int(np.isfinite(rows[i]).sum()),
                entropy=float(entropy(logp[i])),
                mass_removed=float(probabilities[1][~np.isfinite(rows[2])].sum()) if i == 2 else 0.0,
            )
            for i, (name, parameters) in enumerate(STAGES)
        ),
        candidate_ids=candidates.astype(np.int32),
        candidate_bytes=tuple(VOCABULARY.get(int(i), ("", b""))[1] for i in candidates),
        logits=rows[:, candidates],
        probabilities=probabilities[:, candidates].astype(np.float32),
        draw=Draw(
            u=drawn * 0.25, low=0.0, high=drawn, drawn_id=token, race_time=1.386, runner_up_id=3, runner_up_time=2.0
        ),
        eos=EosScore(
            eos,
            float(logits[eos]),
            float(probabilities[0, eos]),
            numerics.rank(logits, eos),
            "top_k" if not np.isfinite(cut[eos]) else None,
        ),
        kv_tokens=total,
        kv_bytes=facts.kv_bytes_per_token * total,
        seconds=0.0 if step == 0 else 0.05,
        overhead_seconds=0.002,
        text="",
        held_bytes=0,
    )
    return dataclasses.replace(stepped, **changes)


def make_trace(
    answer: Sequence[int] = ANSWER, *, stop: bool = True, facts: ModelFacts | None = None, **experiment: Any
) -> Trace:
    """One turn: rendered, prefilled, a step for each id of `answer`, stopped by EOS."""
    facts = facts or make_facts()
    rendered = make_rendered()
    n = len(rendered.token_ids)
    events: list[Any] = [
        rendered,
        Prefilled(0, 0, n - 1, make_shapes(n, n, facts), n, facts.kv_bytes_per_token * n, 0.25),
    ]
    shown = ("Hi", "\u200f", "", "😀", "!", "")
    for step, token in enumerate(answer):
        text = shown[step] if tuple(answer[: step + 1]) == ANSWER[: step + 1] else ""
        events.append(make_step(step, n, token, facts, text=text, held_bytes=2 if token == 17 else 0))
    if stop and answer:
        events.append(Stopped(0, "eos", {"token_id": 2}, ""))
    return Trace(make_experiment(**experiment), facts, {"torch": "0"}, tuple(events))


def make_view(trace: Trace | None = None, *, results: dict[str, Any] | None = None, **cursor: Any) -> View:
    trace = trace or make_trace()
    return View(trace.facts, trace, Cursor(**cursor), results=results or {})
