"""The gallery served, with buttons that drive its widgets: hostile texts, a run of tokens, groups that move."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gradio as gr
import numpy as np

from components.widgets import chart_host, heatmap, rail, table, token_strip
from components.widgets.rail import Station
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Chip, Group
from tests.e2e import figures
from tests.e2e import widget_gallery as gallery
from tests.e2e.browser import Watched

HOSTILE = (
    "<img src=x onerror=\"window.ran='img'\">",
    "<script>window.ran='script'</script>",
    "</script><script>window.ran='close'</script>",
    "</style><svg onload=window.ran='svg'>",
    "${window.ran='template'}",
    "`${alert(1)}`",
    "{{x}}{{#each value}}",
    '<a href="javascript:window.ran=1">x</a>',
    "<b>bold</b>",
    "&lt;b&gt; &amp; &#60;",
    "%{x}%{customdata}",
    "var(--accent)",
    "javascript:window.ran='url'",
    "$\\text{math}$",
    "שלום \u202etxt",
    "a\x00b",
    "\ufeff\u200b",
    "👩🏽‍🚀",
    "__proto__",
    "x" * 10_000,
)
STEPS = 120
Site = tuple[str, list[tuple[str, dict[str, Any]]]]


def hostile_values() -> list[dict[str, Any]]:
    chips = [Chip(text, place, text, text, text) for place, text in enumerate(HOSTILE)]
    figure = figures.base_figure(420, title={"text": HOSTILE[0]})
    numbers = list(range(len(HOSTILE)))
    figure.add_trace(
        figures.line(numbers, numbers, name=HOSTILE[0], text=HOSTILE, customdata=HOSTILE).update(
            mode="lines+markers+text"
        )
    )
    for place, text in enumerate(HOSTILE):
        figures.note(figure, place, 1, text)
    figures.ticks(figure, "x", HOSTILE)
    cells = [[Cell(text, title=text), text] for text in HOSTILE]
    grid = table.value(
        [Column(text, help=text, mono=True) for text in HOSTILE[:2]], cells, caption=HOSTILE[0], key=HOSTILE
    )
    return [
        rail.value([Station(text, text, text, text) for text in HOSTILE], active=HOSTILE[0]),
        token_strip.value([Group(chips, text, text, text, as_text=True) for text in HOSTILE[:1]]),
        token_strip.value([Group(chips, *HOSTILE[:3])], legend=[(text, text) for text in HOSTILE]),
        chart_host.value(figures.plain(figure), label=HOSTILE[0], height=420, numbers=grid, title=HOSTILE[0]),
        grid,
        chart_host.value(figures.plain(figures.base_figure(100)), label=HOSTILE[4], height=100),
        heatmap.value(
            np.eye(len(HOSTILE)),
            x=HOSTILE,
            y=HOSTILE,
            label=HOSTILE[0],
            low=0,
            high=1,
            unit=HOSTILE[0],
            selected=(0, 0),
        ),
        rail.value([Station(text, text, text, text, "ok") for text in HOSTILE]),
    ]


def frames() -> Iterator[list[Any]]:
    """A run of STEPS tokens: every widget changes a little with each."""
    before = [Chip(f"␣{place}", place, "user", "computed", f"position {place}") for place in range(700)]
    skip = gr.skip()
    for step in range(STEPS):
        sampled = [Chip(f"␣w{place}", place, "assistant", "sampled") for place in range(700, 701 + step)]
        newest = 700 + step
        stations = [Station(*one) for one in gallery.STATIONS[:-1]]
        rows = [[str(row), Cell(f"{row / (step + 1):.6f}", bar=row / 20)] for row in range(20)]
        figure = figures.base_figure(380, xaxis={"range": [0, 10]}, yaxis={"range": [0, 1]})
        for line in range(12):
            figure.add_trace(figures.line(list(range(5)), [(line + 1) / (step + place + 13) for place in range(5)]))
        yield [
            rail.value([*stations, Station("kv_cache", "KV cache", f"{step} tok")], active="processors"),
            skip,
            token_strip.value([Group(before), Group(sampled)], selected=newest),
            chart_host.value(figures.plain(figure), label="l", height=380),
            table.value([Column("n"), Column("p", "right")], rows, selected=step % 20, key=list(range(20))),
            skip,
            skip,
            skip,
        ]


@contextmanager
def served() -> Iterator[Site]:
    """The gallery with four buttons that change it, and a list of the choices that reached Python."""
    chosen: list[tuple[str, dict[str, Any]]] = []
    blocks, parts = gallery.build()
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}

    def listen(part: gr.HTML) -> None:
        def hear(event: gr.EventData) -> None:
            assert event._data.pop("order") > 0  # the page's number of the choice
            chosen.append((str(part.elem_id), event._data))

        part.select(hear, None, None, **quiet)

    with blocks:
        for part in parts:
            listen(part)
        gr.Button("hostile", elem_id="hostile").click(hostile_values, None, parts, **quiet)
        gr.Button("run", elem_id="frames").click(frames, None, parts, **quiet)
        gr.Button("regroup", elem_id="regroup").click(regrouped, None, parts[2:3], **quiet)
    address = gallery.launch(blocks)
    yield address, chosen
    blocks.close()


def regrouped() -> Iterator[dict[str, Any]]:
    """Groups that come, move and go, within one stream."""
    for shape in ((3, 2), (2,), (1, 1, 4), (0, 5), (5,)):
        places = iter(range(sum(shape)))
        yield token_strip.value([Group([Chip(f"{shape}", next(places)) for _ in range(size)]) for size in shape])


def press(watched: Watched, button: str) -> None:
    watched.page.locator(f"#{button}").evaluate("node => node.click()")


def texts(watched: Watched, selector: str) -> list[str]:
    return watched.page.locator(selector).evaluate_all("nodes => nodes.map((node) => node.textContent)")


def ready(watched: Watched) -> Watched:
    watched.page.wait_for_selector("#slope .main-svg")
    watched.page.wait_for_selector("#attention .heat-y span")
    watched.page.wait_for_selector("#status .fact")
    return watched
