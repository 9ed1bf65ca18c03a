"""The widgets in a real browser: hostile texts, choices that reach Python, keys, themes, a phone."""

import pytest
from playwright.sync_api import Page

from tests.e2e.conftest import OpenPage
from tests.e2e.widget_site import HOSTILE, press, ready, texts
from tests.patience import eventually


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
    page.locator("#slope .numbers > summary").click()
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


def texts_of(page: Page, selector: str) -> list[str]:
    return page.locator(selector).all_text_contents()


#: The views that still say what they were called at first once they are called something else.
KEPT_NAMES = """() => Object.keys(decodescope.views).flatMap((name) => ["", "status"].flatMap((variant) => {
  const root = document.createElement("div");
  const view = decodescope.views[name](root, () => {}, { id: "one", label: "at first", variant });
  view.rename?.("later");
  return root.outerHTML.includes("at first") ? [name] : [];
}))"""


def test_every_view_can_be_called_something_else(site, browser_page: OpenPage):
    page = ready(browser_page(site[0])).page
    assert page.evaluate(KEPT_NAMES) == []


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


def test_a_box_shows_at_which_edges_there_is_more(site, browser_page: OpenPage):
    page = ready(browser_page(site[0], width=390, height=844)).page
    edges = """(name) => {
      const style = getComputedStyle(document.querySelector(`#${name} .edged`), "::after");
      return ["left", "right", "above", "below"].map((edge) => Number(style.getPropertyValue(`--more-${edge}`)));
    }"""
    scroll = "([box, x, y]) => document.querySelector(box).scrollTo(x, y)"
    boxes = {"rail": ".rail-line", "candidates": ".table-box", "slope": ".plot", "attention": ".heat-scroll"}
    for name, box in boxes.items():
        page.evaluate(scroll, [f"#{name} {box}", 0, 0])
        eventually(lambda name=name: page.evaluate(edges, name)[:2] == [0, 1])
        # A wide font leaves more beyond the edge than a narrow one.
        more: int = page.eval_on_selector(f"#{name} {box}", "box => box.scrollWidth - box.clientWidth")
        page.evaluate(scroll, [f"#{name} {box}", more / 2, 0])
        eventually(lambda name=name: page.evaluate(edges, name)[:2] == [1, 1])
        page.evaluate(scroll, [f"#{name} {box}", 9999, 0])
        eventually(lambda name=name: page.evaluate(edges, name)[:2] == [1, 0])
    page.evaluate('document.querySelector("#timeline .strip-box").style.maxHeight = "60px"')
    for down, expected in ((0, [0, 0, 0, 1]), (9999, [0, 0, 1, 0])):
        page.evaluate(scroll, ["#timeline .strip-box", 0, down])
        eventually(lambda expected=expected: page.evaluate(edges, "timeline") == expected)
    page.set_viewport_size({"width": 1280, "height": 800})
    for name in ("rail", "candidates", "slope"):
        eventually(lambda name=name: page.evaluate(edges, name)[:2] == [0, 0])


def test_fingers_go_from_cell_to_cell_of_a_matrix(site, browser_page: OpenPage):
    page = ready(browser_page(site[0], width=390, height=844)).page
    keys = page.locator("#attention .pad-key")
    assert [key.get_attribute("aria-label") for key in keys.all()[:4]] == [
        "One cell to the left",
        "One cell up",
        "One cell down",
        "One cell to the right",
    ]
    assert all(min(key.bounding_box()["width"], key.bounding_box()["height"]) >= 32 for key in keys.all()[:4])
    assert keys.nth(4).is_hidden()  # nothing follows from a choice in this matrix
    said = page.locator("#attention output")
    labels = texts_of(page, "#timeline .t")
    out = '#attention .pad-key[aria-disabled="true"]'
    assert said.inner_text().startswith(f"{labels[48]} × {labels[0]}: ")
    assert texts_of(page, out) == ["←", "↓"]  # it stands in the corner
    keys.nth(3).click()
    assert said.inner_text().startswith(f"{labels[48]} × {labels[1]}: ")
    keys.nth(1).click()
    assert said.inner_text().startswith(f"{labels[47]} × {labels[1]}: ")
    assert texts_of(page, out) == []
    keys.nth(3).hover()
    page.mouse.down()
    eventually(lambda: texts_of(page, out) == ["→"])  # held, it goes on to the end
    page.mouse.up()
    assert said.inner_text().startswith(f"{labels[47]} × {labels[48]}: ")
    inner = page.locator("#attention .heat-over").bounding_box()
    outer = page.locator("#attention .heat-scroll").bounding_box()
    assert outer["x"] <= inner["x"] and inner["x"] + inner["width"] <= outer["x"] + outer["width"]
    assert page.evaluate("document.querySelector('#attention .heat-scroll').scrollLeft") > 100
    page.locator("#attention canvas.heat-cells").focus()
    page.keyboard.press("ArrowLeft")
    assert said.inner_text().startswith(f"{labels[47]} × {labels[47]}: ")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.wait_for_selector("#attention .pad", state="hidden")  # a pointer meets the cells


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_never_scrolls_sideways(site, browser_page: OpenPage, width: int, height: int, dark: bool):
    watched = ready(browser_page(site[0], width=width, height=height, dark=dark))
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    press(watched, "hostile")
    eventually(lambda: len(texts(watched, "#timeline .t")) == len(HOSTILE))
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
