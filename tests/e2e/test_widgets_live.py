"""The widgets while a run feeds them: changed in place, followed, zoomed, cheap."""

from typing import Any

from components.widgets import chart_host, host, rail
from components.widgets.rail import Station
from tests.e2e import figures
from tests.e2e.browser import DRAWN, Watched
from tests.e2e.conftest import OpenPage
from tests.e2e.widget_site import STEPS, press, ready, texts
from tests.patience import eventually


def run_frames(watched: Watched) -> None:
    """All frames, whatever stands there before them."""
    press(watched, "regroup")
    eventually(lambda: watched.page.locator("#timeline .t").count() == 5)
    press(watched, "frames")
    eventually(lambda: watched.page.locator("#timeline .t").count() == 700 + STEPS)


def test_a_run_changes_the_page_in_place(site, browser_page: OpenPage):
    watched = ready(browser_page(site[0]))
    page = watched.page
    names = ("#timeline .t", "#timeline .t:nth-child(300)", "#candidates tbody tr", "#rail .st", "#slope .main-svg")
    press(watched, "frames")
    eventually(lambda: page.locator("#timeline .t").count() > 705)
    page.evaluate("names => { window.marked = names.map((name) => document.querySelector(name)); }", names)
    eventually(lambda: page.locator("#timeline .t").count() == 700 + STEPS)
    assert page.evaluate(
        "names => window.marked.map((node, at) => node === document.querySelector(names[at]))", names
    ) == [True] * len(names)
    assert texts(watched, "#timeline .t[aria-current]") == [f"␣w{699 + STEPS}"]
    assert page.evaluate(LAST_IN_SIGHT)
    assert page.evaluate("window.scrollY") == 0


def test_a_strip_does_not_pull_back_who_scrolled_away(site, browser_page: OpenPage):
    watched = ready(browser_page(site[0]))
    press(watched, "frames")
    eventually(lambda: watched.page.locator("#timeline .t").count() > 705)
    watched.page.locator("#timeline .strip-box").evaluate("box => { box.scrollTop = 0; }")
    eventually(lambda: watched.page.locator("#timeline .t").count() == 700 + STEPS)
    assert watched.page.locator("#timeline .strip-box").evaluate("box => box.scrollTop") == 0


LAST_IN_SIGHT = """(() => {
  const last = [...document.querySelectorAll("#timeline .t")].at(-1);
  return last.getBoundingClientRect().bottom <= last.closest(".strip-box").getBoundingClientRect().bottom + 1;
})()"""


def test_a_strip_stands_still_while_one_of_its_tokens_is_pressed(site, browser_page: OpenPage):
    watched = ready(browser_page(site[0]))
    page = watched.page
    tokens, top = page.locator("#timeline .t"), "document.querySelector('#timeline .strip-box').scrollTop"
    tokens.last.hover()
    page.mouse.down()
    before = page.evaluate(top)
    press(watched, "frames")
    eventually(lambda: tokens.count() == 700 + STEPS)
    page.evaluate(DRAWN)
    assert page.evaluate(top) == before
    page.mouse.up()
    eventually(lambda: page.evaluate(LAST_IN_SIGHT), "the last token in sight")


def test_a_strip_follows_again_after_a_press_whose_end_is_not_told(site, browser_page: OpenPage):
    watched = ready(browser_page(site[0]))
    page = watched.page
    page.evaluate("document.body.dispatchEvent(new PointerEvent('pointerdown', { bubbles: true, button: 0 }))")
    page.mouse.move(10, 10)
    press(watched, "frames")
    eventually(lambda: page.locator("#timeline .t").count() == 700 + STEPS)
    eventually(lambda: page.evaluate(LAST_IN_SIGHT), "the last token in sight")


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


#: A chart above everything, drawn with the first of two values; the second waits to be drawn for `release()`.
LATE_CHART = """async ([older, newer]) => {
  const root = document.createElement("div");
  root.id = "late";
  document.body.prepend(root);
  window.picked = [];
  const chart = decodescope.views.chart_host(root, ({ key }) => picked.push(key), { label: "late" });
  const { take } = decodescope.charts;
  const held = [];
  decodescope.charts.take = (draw) => held.push(draw);
  chart.update(older);
  await held.shift()();
  chart.update(newer);
  window.release = () => {
    decodescope.charts.take = take;
    held.forEach(take);
  };
}"""


def test_a_click_on_a_chart_gives_the_key_of_the_point_that_is_seen(site, browser_page: OpenPage):
    page = ready(browser_page(site[0])).page

    def value(*keys: str) -> dict[str, Any]:
        figure = figures.base_figure(200).add_trace(figures.line([0, 1], [0, 1], width=6, customdata=keys))
        return chart_host.value(figures.plain(figure), label="late", height=200)

    def click() -> None:
        box = page.locator("#late .points path").first.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_timeout(400)  # two clicks, and not a double one
        page.mouse.down()
        page.mouse.up()

    page.evaluate(LATE_CHART, [value("older", "b"), value("newer", "b")])
    click()
    eventually(lambda: page.evaluate("picked") == ["older"], "the choice of what is seen")
    page.evaluate("release()")
    page.wait_for_selector("#late .plot:not([aria-busy])")
    click()
    eventually(lambda: page.evaluate("picked") == ["older", "newer"], "the choice of what is seen then")


def test_a_step_costs_few_bytes(site, browser_page: OpenPage):
    watched = ready(browser_page(site[0]))
    received: list[int] = []
    session = watched.page.context.new_cdp_session(watched.page)
    session.send("Network.enable")
    session.on("Network.dataReceived", lambda event: received.append(event["dataLength"]))
    press(watched, "frames")
    eventually(lambda: watched.page.locator("#timeline .t").count() == 700 + STEPS)
    assert sum(received) / STEPS < 12_000


def test_groups_that_come_and_go_are_placed_anew(site, browser_page: OpenPage):
    watched = ready(browser_page(site[0]))
    press(watched, "regroup")
    eventually(lambda: texts(watched, "#timeline .t") == ["(5,)"] * 5)
    assert watched.page.locator("#timeline .strip-group").count() == 1


def test_what_was_begun_before_what_is_shown_changes_nothing(site, browser_page: OpenPage):
    """Events of one visitor run side by side, so that an older value may come after a newer one."""
    watched = ready(browser_page(site[0]))
    shown = watched.page.evaluate(
        """(values) => {
          const mounted = (name, id) => {
            const element = document.body.appendChild(document.createElement("div"));
            element.appendChild(document.createElement("div"));
            const props = { value: null };
            let draw;
            const watch = (_, redraw) => { draw = redraw; };
            window.decodescope.mount(name, element, props, () => {}, watch, { id, label: "" });
            return [element, (value) => { props.value = value; draw(); }];
          };
          const [target] = mounted("rail", "order-target");
          const [, feed] = mounted("feed", "order-feed");
          return values.map((value) => { feed(value); return target.textContent; });
        }""",
        [
            host.feed_value(
                {"order-target": rail.value([Station("", text, "")])},
                {},
                hidden={},
                disabled={},
                language="en",
                began=began,
            )
            for text, began in (("first", 1), ("third", 3), ("second", 2), ("same time", 3), ("fourth", 4))
        ],
    )
    assert shown == ["first", "third", "third", "same time", "fourth"]
