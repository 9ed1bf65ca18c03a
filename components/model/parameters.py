"""The hard parameters as a table: what was fixed, its value, and a line that says what it means."""

from typing import Any

from components.copy import words
from components.units import bytes_text
from components.widgets import table
from components.widgets.table import Cell, Column
from engine.answers.memory import Memory
from engine.answers.model import Model
from engine.facts import ModelFacts

#: A line: its name, value and meaning.
Line = tuple[str, str, str]


def parameters_value(found: Model, facts: ModelFacts, memory: Memory | None = None) -> dict[str, Any]:
    """With `memory`, also where a model of the catalogue comes from."""
    say = words("model")
    columns = [Column(say.text("col_what")), Column(say.text("col_value"), mono=True), Column(say.text("col_meaning"))]
    lines = [*_sizes(found, facts), *_kinds(found, facts), *_storage(facts), *_origin(memory)]
    return table.value(columns, [[name, value, Cell(meaning, tone="dim")] for name, value, meaning in lines])


def _line(key: str, value: object, meaning: str | None = None, **values: Any) -> Line:
    """A line of the copy file: `key` names it, `key`_said (or `meaning`) explains it."""
    say = words("model")
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return say.text(key), text, say.text(meaning or f"{key}_said", **values)


def _sizes(found: Model, facts: ModelFacts) -> list[Line]:
    group, spare = facts.heads // facts.kv_heads, facts.vocab_rows - facts.vocab_with_special
    return [
        _line("architecture", facts.architecture),
        _layers(found, facts),
        _line("hidden", facts.hidden_size),
        _line("heads", facts.heads),
        _line("kv_heads", facts.kv_heads, "kv_heads_shared" if group > 1 else None, group=group),
        _head_size(found, facts),
        _line("ffn", facts.ffn_size, times=facts.ffn_size / facts.hidden_size),
        _line(
            "rows",
            facts.vocab_rows,
            "rows_spare" if spare > 0 else None,
            tokens=facts.vocab_with_special,
            spare=spare,
        ),
        _line("context", facts.context, tokens=facts.context),
    ]


def _layers(found: Model, facts: ModelFacts) -> Line:
    """Some families have layers without attention (LFM2); told by their weights, where those of attention are known."""
    queries = found.layers("query")
    attend = sum(numbers > 0 for numbers in queries)
    if attend in (0, facts.layers):
        return _line("layers", facts.layers)
    return _line("layers", facts.layers, "layers_some_said", count=attend, layers=facts.layers)


def _head_size(found: Model, facts: ModelFacts) -> Line:
    """Few families scale scores by anything else than the root of the head size."""
    root, scaling = facts.head_dim**0.5, found.score_scaling
    if scaling is None:
        return _line("head_dim", facts.head_dim, "head_dim_alone")
    if abs(scaling * root - 1) < 1e-4:
        return _line("head_dim", facts.head_dim, root=root)
    return _line("head_dim", facts.head_dim, "head_dim_scaled", scaling=scaling)


def _kinds(found: Model, facts: ModelFacts) -> list[Line]:
    say = words("model")
    lines = [_positions(found)]
    if facts.sliding_window is not None:
        sliding = sum(kind == "sliding" for kind in facts.layer_kinds)
        lines.append(_line("window", facts.sliding_window, count=sliding, layers=facts.layers))
    norm = found.norm if found.norm_eps is None else say.text("norm_value", name=found.norm, eps=found.norm_eps)
    lines.append(_line("norm", norm))
    if found.query_key_norm:
        lines.append(_line("qk_norm", say.text("qk_norm_value")))
    if found.gated:
        name = say.text("activation_gated" if found.activation else "activation_gated_alone", name=found.activation)
        lines.append(_line("activation", name, "activation_gated_said"))
    elif found.activation:
        lines.append(_line("activation", found.activation))
    caps = {"softcap_attention": found.attention_softcap, "softcap_final": found.final_softcap}
    lines += [_line(key, f"{cap:g}", "softcap_said", cap=cap) for key, cap in caps.items() if cap is not None]
    tied = "tied_yes" if facts.tied_embeddings else "tied_no"
    return [*lines, _line("tied", say.text(tied), f"{tied}_said")]


def _positions(found: Model) -> Line:
    say = words("model")
    if found.learned_positions:
        return _line("positions", say.text("positions_learned"), "positions_learned_said")
    if found.rope_theta is None:
        return _line("positions", say.text("positions_other"), "positions_other_said")
    scaled = found.rope_type not in (None, "default")
    key = "positions_scaled" if scaled else "positions_rotary"
    text = say.text(key, theta=found.rope_theta, kind=found.rope_type)
    return _line("positions", text, "positions_rotary_said")


def _storage(facts: ModelFacts) -> list[Line]:
    weights, full = bytes_text(facts.parameters * facts.itemsize), bytes_text(facts.kv_bytes(facts.context))
    return [
        _line("dtype", facts.dtype, itemsize=facts.itemsize, bytes=weights),
        _line("device", facts.device),
        _line("kv", bytes_text(facts.kv_bytes_per_token), itemsize=facts.itemsize, full=full),
    ]


def _origin(memory: "Memory | None") -> list[Line]:
    if memory is None or memory.source is None:
        return []
    lines = [_line("licence", memory.licence), _line("source", memory.source)]
    if memory.revision is not None:
        lines.append(_line("revision", memory.revision[:12], whole=memory.revision))
    if memory.stored is not None:
        lines.append(_line("stored", bytes_text(memory.stored)))
    return lines
