"""The widgets in a real browser: hostile texts, choices that reach Python, updates in place, keys, themes, a phone."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr
import numpy as np
import pytest

from components import figures
from components.widgets import chart_host, heatmap, rail, table, token_strip
from components.widgets.rail import Station
from components.widgets.table import Cell, Column
from components.widgets.token_strip import Chip, Group
from tests.e2e import widget_gallery as gallery
from tests.e2e.browser import Watched

OpenPage = Callable[..., Watched]

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
STEPS = 300


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
        chart_host.value(figure, label=HOSTILE[0], height=420, numbers=grid, title=HOSTILE[0]),
        grid,
        chart_host.value(figures.base_figure(100), label=HOSTILE[4], height=100),
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
            chart_host.value(figure, label="l", height=380),
            table.value([Column("n"), Column("p", "right")], rows, selected=step % 20, key=list(range(20))),
            skip,
            skip,
            skip,
        ]


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """The gallery with four buttons that change it, and a list of the choices that reached Python."""
    chosen: list[tuple[str, dict[str, Any]]] = []
    blocks, parts = gallery.build()
    quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}

    def listen(part: gr.HTML) -> None:
        def hear(event: gr.EventData) -> None:
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


def eventually(condition: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.mark.parametrize("dark", [False, True])
def test_hostile_texts_stay_texts_in_every_widget(site, browser_page: OpenPage, dark: bool):
    watched = ready(browser_page(site[0], dark=dark))
    asked: list[str] = []
    watched.page.on("request", lambda request: asked.append(request.url))
    watched.page.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
    expected = list(HOSTILE)
    press(watched, "hostile")
    eventually(lambda: texts(watched, "#rail .st b") == expected)
    assert texts(watched, "#rail .st small") == expected
    assert texts(watched, "#conversation .t") == expected
    assert texts(watched, "#timeline .t") == expected
    assert texts(watched, "#timeline .key > span") == expected
    assert texts(watched, "#candidates tbody td:nth-child(1)") == expected
    assert texts(watched, "#candidates tbody td:nth-child(2)") == expected
    assert texts(watched, "#slope .numbers td:nth-child(1)") == expected
    assert texts(watched, "#status .fact") == [f"✓ {text} {text}" for text in HOSTILE]
    assert texts(watched, "#attention .heat-y span")[0] == HOSTILE[0]
    eventually(lambda: len(texts(watched, "#slope .annotation-text")) == len(HOSTILE))
    for shown in (texts(watched, "#slope .annotation-text"), texts(watched, "#slope .textpoint text")):
        assert [text.replace("\u200b", "") for text in shown] == [text.replace("\u200b", "") for text in expected]
    watched.page.wait_for_timeout(300)
    assert watched.page.evaluate("window.ran") is None
    assert watched.page.locator(".ds-widget :is(img, script, iframe, a, object)").count() == 0
    assert [url for url in asked if "/gradio_api/" not in url and not url.startswith("data:")] == []


def test_choices_reach_python(site, browser_page: OpenPage):
    address, chosen = site
    watched = ready(browser_page(address))
    page = watched.page
    chosen.clear()
    page.click('#rail .st[data-id="draw"]')
    page.click('#conversation .t[data-position="26"]')
    page.click('#timeline .t[data-position="44"]')
    page.click("#candidates tbody tr:nth-child(2)")
    eventually(lambda: len(chosen) == 4)
    box = page.locator("#attention canvas.heat-cells").bounding_box()
    assert box is not None
    page.locator("#attention canvas.heat-cells").click(position={"x": box["width"] - 2, "y": 2})
    page.locator("#slope .numbers summary").click()
    page.locator("#slope .numbers tbody tr").nth(2).click()
    eventually(lambda: len(chosen) == 6)
    assert sorted(map(repr, chosen)) == sorted(
        map(
            repr,
            [
                ("rail", {"id": "draw"}),
                ("conversation", {"position": 26}),
                ("timeline", {"position": 44}),
                ("candidates", {"row": 1, "key": "␣in"}),
                ("attention", {"row": 0, "column": 48}),
                ("slope", {"x": None, "y": None, "key": ","}),
            ],
        )
    )


def test_a_clicked_point_gives_its_key(site, browser_page: OpenPage):
    address, chosen = site
    watched = ready(browser_page(address))
    chosen.clear()
    point = watched.page.locator("#slope .scatterlayer .trace").nth(3).locator(".points path").nth(2)
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    assert box is not None
    watched.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    watched.page.wait_for_timeout(200)
    watched.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    eventually(lambda: bool(chosen))
    name, data = chosen[0]
    assert (name, data["x"], data["key"]) == ("slope", 2, "!")


def test_keys_move_and_pick(site, browser_page: OpenPage):
    address, chosen = site
    page = ready(browser_page(address)).page
    chosen.clear()
    assert page.locator('#rail .st[aria-current="step"]').get_attribute("data-id") == "processors"
    assert page.locator('#rail .st[tabindex="0"]').count() == 1
    page.locator('#rail .st[tabindex="0"]').focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.locator('#timeline .t[tabindex="0"]').focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    page.locator('#candidates tr[tabindex="0"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("#attention canvas.heat-cells").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    eventually(lambda: len(chosen) == 4)
    assert sorted(map(repr, chosen)) == sorted(
        map(
            repr,
            [
                ("rail", {"id": "draw"}),
                ("timeline", {"position": 1}),
                ("candidates", {"row": 4, "key": "␣there"}),
                ("attention", {"row": 48, "column": 1}),
            ],
        )
    )


def run_frames(watched: Watched) -> None:
    """All frames, whatever stands there before them."""
    press(watched, "regroup")
    eventually(lambda: watched.page.locator("#timeline .t").count() == 5)
    press(watched, "frames")
    eventually(lambda: watched.page.locator("#timeline .t").count() == 700 + STEPS, 60)


def test_a_run_changes_the_page_in_place(site, browser_page: OpenPage):
    watched = ready(browser_page(site[0]))
    page = watched.page
    names = ("#timeline .t", "#timeline .t:nth-child(300)", "#candidates tbody tr", "#rail .st", "#slope .main-svg")
    press(watched, "frames")
    eventually(lambda: page.locator("#timeline .t").count() > 705)
    page.evaluate("names => { window.marked = names.map((name) => document.querySelector(name)); }", names)
    eventually(lambda: page.locator("#timeline .t").count() == 700 + STEPS, 60)
    assert page.evaluate(
        "names => window.marked.map((node, at) => node === document.querySelector(names[at]))", names
    ) == [True] * len(names)
    assert texts(watched, "#timeline .t[aria-current]") == [f"␣w{699 + STEPS}"]
    assert page.locator("#timeline .t").last.evaluate(
        "node => node.getBoundingClientRect().bottom <= node.closest('.strip-box').getBoundingClientRect().bottom + 1"
    )
    assert page.evaluate("window.scrollY") == 0


def test_a_strip_does_not_pull_back_who_scrolled_away(site, browser_page: OpenPage):
    watched = ready(browser_page(site[0]))
    press(watched, "frames")
    eventually(lambda: watched.page.locator("#timeline .t").count() > 705)
    watched.page.locator("#timeline .strip-box").evaluate("box => { box.scrollTop = 0; }")
    eventually(lambda: watched.page.locator("#timeline .t").count() == 700 + STEPS, 60)
    assert watched.page.locator("#timeline .strip-box").evaluate("box => box.scrollTop") == 0


def test_a_zoomed_chart_stays_zoomed(site, browser_page: OpenPage):
    watched = ready(browser_page(site[0]))
    page = watched.page
    span = 'document.querySelector("#slope .plot").layout.xaxis.range'
    run_frames(watched)
    eventually(lambda: page.evaluate(span) == [0, 10])
    area = page.locator("#slope .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 100, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 200, steps=5)
    page.mouse.up()
    eventually(lambda: page.evaluate(span) != [0, 10])
    zoomed = page.evaluate(span)
    run_frames(watched)
    assert page.evaluate(span) == zoomed


def test_a_step_costs_few_bytes(site, browser_page: OpenPage):
    watched = ready(browser_page(site[0]))
    received: list[int] = []
    session = watched.page.context.new_cdp_session(watched.page)
    session.send("Network.enable")
    session.on("Network.dataReceived", lambda event: received.append(event["dataLength"]))
    press(watched, "frames")
    eventually(lambda: watched.page.locator("#timeline .t").count() == 700 + STEPS, 60)
    assert sum(received) / STEPS < 12_000


def test_groups_that_come_and_go_are_placed_anew(site, browser_page: OpenPage):
    watched = ready(browser_page(site[0]))
    press(watched, "regroup")
    eventually(lambda: texts(watched, "#timeline .t") == ["(5,)"] * 5)
    assert watched.page.locator("#timeline .strip-group").count() == 1


def test_a_chart_follows_the_theme(site, browser_page: OpenPage):
    page = ready(browser_page(site[0])).page
    ink = 'document.querySelector("#slope .scatterlayer .trace path.js-line").style.stroke'
    light = page.evaluate(ink)
    page.evaluate('document.body.classList.add("dark")')
    eventually(lambda: page.evaluate(ink) == "rgb(231, 233, 236)")
    assert light == "rgb(29, 33, 38)"


def test_the_matrix_is_read_under_the_pointer(site, browser_page: OpenPage):
    page = ready(browser_page(site[0])).page
    page.locator("#attention canvas.heat-cells").hover(position={"x": 2, "y": 2})
    eventually(lambda: page.locator("#attention output").inner_text().startswith("<|im_start|> × <|im_start|>: 1.000"))


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_never_scrolls_sideways(site, browser_page: OpenPage, width: int, height: int, dark: bool):
    watched = ready(browser_page(site[0], width=width, height=height, dark=dark))
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    press(watched, "hostile")
    eventually(lambda: len(texts(watched, "#timeline .t")) == len(HOSTILE))
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
