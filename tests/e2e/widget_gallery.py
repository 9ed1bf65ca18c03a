"""Every widget on one page, with data like that of a first screen; `python -m tests.e2e.widget_gallery` shows it."""

import os
from typing import Any

import gradio as gr
import numpy as np

from components.theme import theme
from components.widgets import chart_host, heatmap, host, rail, table, token_strip
from components.widgets.rail import Station
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Chip, Group
from tests.e2e import figures

STATIONS = (
    ("prompt", "Prompt", "42 tok", "ChatML"),
    ("tokens", "Tokens", "49", "6 bytes split"),
    ("tensors", "Tensors", "(1, 1)", "pos 48"),
    ("layers", "Layers", "30 × 576", "‖h‖ 61 → 24"),
    ("attention", "Attention", "9 / 3 heads", "44% on ①"),
    ("lens", "Lens", "rank 5", "top at L30: ,"),
    ("logits", "Logits", "49,152", "H 3.14 nat"),
    ("processors", "Processors", "49,152→20→8", "H 1.75 nat"),
    ("draw", "Draw", '"!"', "u .794"),
    ("stop", "Stop?", "no", "EOS rank 212"),
    ("text", "Text", "…meet you!", "0 bytes held"),
    ("kv_cache", "KV cache", "2.15 MiB", "+45 KiB"),
)
CHECKS = ("cached = uncached", "last lens row = logits", "rows sum to 1", "loop = generate")
SYSTEM = [
    "You",
    "␣are",
    "␣a",
    "␣helpful",
    "␣AI",
    "␣assistant",
    "␣named",
    "␣Sm",
    "ol",
    "LM",
    ",",
    "␣trained",
    "␣by",
    "␣H",
    "ugging",
    "␣Face",
]
USER = ["Write", "␣a", "␣short", "␣birthday", "␣wish", "␣for", "␣a", "␣friend", "␣who", "␣loves", "␣basketball", "."]
ANSWER = ["A", "w", "esome", "␣to", "␣meet", "␣you", "!"]
STAGES = ("logits", "repetition 1.1", "temperature 0.7", "top-k 20", "top-p 0.9")
KEPT = (
    "49,152 kept · H 3.14",
    "49,152 · H 3.65",
    "49,152 · H 2.41",
    "20 kept · −5.6% mass",
    "8 kept · −9.1% mass",
)
CANDIDATES: tuple[tuple[str, tuple[float | None, ...]], ...] = (
    ("␣at", (0.1092, 0.1589, 0.2607, 0.2746, 0.302)),
    ("␣in", (0.0894, 0.1301, 0.196, 0.2065, 0.2271)),
    (",", (0.3153, 0.1162, 0.1668, 0.1757, 0.1933)),
    ("!", (0.0635, 0.0925, 0.1203, 0.1267, 0.1394)),
    ("␣there", (0.033, 0.048, 0.0471, 0.0496, 0.0546)),
    ("␣on", (0.0215, 0.0312, 0.0255, 0.0269, 0.0296)),
    (".", (0.0704, 0.0297, 0.0238, 0.025, 0.0275)),
    ("␣and", (0.0199, 0.029, 0.0229, 0.0242, 0.0266)),
    ("␣for", (0.02, 0.0281, 0.021, 0.0222, None)),
    ("␣with", (0.012, 0.0174, 0.0112, 0.0118, None)),
    ("␣soon", (0.006, 0.0088, 0.004, None, None)),
)


def stations(active: str = "processors") -> dict[str, Any]:
    return rail.value([Station(*one) for one in STATIONS], active=active)


def status() -> dict[str, Any]:
    facts = ("position 48 · step 6", "18.2 tok/s · TTFT 0.31 s", "KV 49 tokens · 2.15 MiB")
    checks = [Station("", "", check, "", "ok") for check in CHECKS]
    return rail.value([Station("", "", fact) for fact in facts] + checks, active=None)


def timeline(selected: int = 48) -> dict[str, Any]:
    def scaffold(*texts: str) -> list[tuple[str, str]]:
        return [(text, "scaffold") for text in texts]

    tokens = scaffold("<|im_start|>", "system", "⏎") + [(text, "system") for text in SYSTEM]
    tokens += scaffold("<|im_end|>", "⏎", "<|im_start|>", "user", "⏎") + [(text, "user") for text in USER]
    tokens += scaffold("<|im_end|>", "⏎", "<|im_start|>", "ass", "istant", "⏎")
    chips = [
        Chip(text, place, role, "reused" if place < 8 else "computed", f"position {place}")
        for place, (text, role) in enumerate(tokens)
    ]
    chips += [
        Chip(text, len(chips) + place, "assistant", "forced" if place == 4 else "sampled")
        for place, text in enumerate(ANSWER)
    ]
    legend = (("system", "system"), ("user", "user"), ("assistant", "sampled"), ("scaffold", "scaffold"))
    return token_strip.value([Group(chips)], selected=selected, legend=[*legend, ("", "␣ space"), ("", "⏎ line break")])


def conversation(selected: int = 48) -> dict[str, Any]:
    def message(texts: list[str], first: int, role: str, label: str, state: str = "computed") -> Group:
        chips = [Chip(text.replace("␣", " "), first + place, role, state) for place, text in enumerate(texts)]
        return Group(chips, label, role, as_text=True)

    groups = [
        message(SYSTEM, 3, "system", "system · added by the template"),
        message(USER, 24, "user", "user"),
        message(ANSWER, 42, "assistant", "assistant · 7 tokens so far", "sampled"),
    ]
    return token_strip.value(groups, selected=selected)


def candidates(selected: int = 3) -> dict[str, Any]:
    columns = [
        Column("token", mono=True),
        *(Column(stage, "right", kept) for stage, kept in zip(STAGES, KEPT, strict=True)),
    ]
    rows = []
    for token, shares in CANDIDATES:
        cells = [
            Cell("cut", "cut") if share is None else Cell(f"{share:.4f}", bar=share if place == 4 else None)
            for place, share in enumerate(shares)
        ]
        rows.append([Cell(token, "accent" if token == "!" else ""), *cells])
    return table.value(columns, rows, selected=selected, key=[token for token, _ in CANDIDATES])


def slope() -> dict[str, Any]:
    height, least, most = 380, 0.0, 0.6
    figure = figures.base_figure(height, margin={"l": 84, "r": 104, "t": 46, "b": 8})
    ends = [next(share for share in reversed(shares) if share is not None) ** 0.5 for _, shares in CANDIDATES]
    alive = [shares[-1] is not None for _, shares in CANDIDATES]
    gap = 15 * (most - least) / (height - 54)
    labels = iter(figures.spread([end for end, lives in zip(ends, alive, strict=True) if lives], gap))
    for (token, shares), end, lives in zip(CANDIDATES, ends, alive, strict=True):
        kept = [share for share in shares if share is not None]
        color = {"!": "var(--accent)", ",": "var(--system)"}.get(token, "var(--ink)" if lives else "var(--cut)")
        figure.add_trace(
            figures.line(
                list(range(len(kept))),
                [share**0.5 for share in kept],
                color=color,
                width=2.6 if token in "!," else 1.3,
                name=token,
                customdata=[token] * len(kept),
                text=[f"{token} {share:.3f}" for share in kept],
                hovertemplate="%{text}<extra></extra>",
                cliponaxis=False,
            )
        )
        if lives:
            figures.note(figure, len(kept) - 1, next(labels), f"{token} {kept[-1]:.3f}", color)
        else:
            figures.note(figure, len(kept) - 1, end, f"✕ {token}", "var(--faint)")
    for token, shares in CANDIDATES[:4]:
        figures.note(figure, 0, (shares[0] or 0) ** 0.5, f"{token} {shares[0]:.3f}", side="left")
    figures.columns(figure, STAGES, KEPT)
    figure.update_yaxes(visible=False, range=[least, most])
    label = "The candidates after each processor"
    return chart_host.value(figures.plain(figure), label=label, height=height, width=680, numbers=candidates())


def cumulative() -> dict[str, Any]:
    figure = figures.base_figure(170, margin={"l": 60, "r": 12, "t": 8, "b": 30})
    shares = [shares[4] for _, shares in CANDIDATES if shares[4] is not None]
    figure.add_trace(figures.bars([token for token, _ in CANDIDATES][:8], shares, color=list(figures.SERIES)))
    figures.ticks(figure, "y", [token for token, _ in CANDIDATES][:8])
    figure.update_yaxes(autorange="reversed")
    return chart_host.value(figures.plain(figure), label="The survivors", height=170)


def attention(size: int = 49, selected: tuple[int, int] | None = (48, 0)) -> dict[str, Any]:
    random = np.random.default_rng(0)
    weights = np.tril(random.dirichlet(np.full(size, 0.08), size) + np.eye(size, k=-1) * 0.2)
    weights /= weights.sum(-1, keepdims=True)
    labels = (
        [chip[1] for chip in host.read(timeline())["chips"]][:size] if size <= 49 else [str(n) for n in range(size)]
    )
    shown = np.where(np.tri(size), np.sqrt(weights), np.nan)
    return heatmap.value(shown, x=labels, y=labels, label="Attention of one head", low=0, high=1, selected=selected)


def build() -> tuple[gr.Blocks, list[gr.HTML]]:
    """The page and its widgets, in the order of `values`."""
    with gr.Blocks(title="Widgets", analytics_enabled=False, fill_width=True) as blocks:
        with gr.Row(elem_id="header"):
            gr.Markdown("# Decodescope", elem_id="title")
            gr.Textbox("SmolLM2-135M-Instruct", label="model", interactive=False, max_lines=1, elem_id="model")
        parts = [rail.build("rail", "Pipeline")]
        with gr.Row(elem_id="main"):
            with gr.Column(elem_id="left", elem_classes="pane"):
                gr.Markdown("## Conversation", elem_classes="panel-title")
                parts.append(token_strip.build("conversation", "Conversation"))
                gr.Textbox(placeholder="Say something", label="message", show_label=False, lines=1, elem_id="message")
                with gr.Row(elem_classes="go"):
                    gr.Button("Step ▸")
                    gr.Button("Run ▶", variant="primary")
                    gr.Button("Stop ■", interactive=False)
                    gr.Button("◂ Back")
                gr.Markdown("## Timeline", elem_classes="panel-title")
                parts.append(token_strip.build("timeline", "Timeline", height=190))
                with gr.Group(elem_classes="settings"):
                    gr.Number(0.7, label="temperature", step=0.1, min_width=120)
                    gr.Number(20, label="top-k", min_width=120)
                    gr.Number(0.9, label="top-p", min_width=120)
                    gr.Number(1.1, label="repetition penalty", min_width=120)
                    gr.Number(3, label="seed", min_width=120)
                    gr.Dropdown(["transformers", "llama.cpp"], value="transformers", label="order", min_width=120)
                    gr.Checkbox(True, label="sample", min_width=120)
                with gr.Accordion("Stop and grammar", open=False, elem_classes="fold"):
                    gr.Textbox("", label="stop strings", info="one a line", lines=2)
            with gr.Column(elem_id="right", elem_classes="pane"), gr.Tabs(elem_id="panels"), gr.Tab("Processors"):
                gr.Markdown("## Processors, step 6 of 7 · position 48", elem_classes="panel-title")
                gr.Markdown(
                    "Each column is the distribution after one more processor. A line that ends was cut there. "
                    "Try moving temperature behind top-p: the same four settings keep a different set.",
                    elem_classes="panel-intro",
                )
                parts.append(chart_host.build("slope", "Candidates"))
                parts.append(table.build("candidates", "Candidates", height=220))
                parts.append(chart_host.build("draw", "The draw"))
                gr.Markdown(
                    "**Why did the comma fall from first to third?** The repetition penalty counts every token of the "
                    "context, and the default system prompt holds a comma.",
                    elem_classes="note",
                )
                parts.append(heatmap.build("attention", "Attention"))
        parts.append(rail.build("status", "Status", variant="status"))
        blocks.load(values, None, parts, show_progress="hidden", api_visibility="private")
    return blocks, parts


def values() -> list[dict[str, Any]]:
    return [stations(), conversation(), timeline(), slope(), candidates(), cumulative(), attention(), status()]


def launch(blocks: gr.Blocks, **options: Any) -> str:
    """Serve `blocks` with the product's look, not blocking; the address."""
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    _, address, _ = blocks.launch(
        theme=theme(),
        head=host.head(),
        quiet=True,
        prevent_thread_lock=True,
        ssr_mode=False,
        run_history=False,
        **options,
    )
    return address


if __name__ == "__main__":
    print(launch(build()[0]))
    input()
