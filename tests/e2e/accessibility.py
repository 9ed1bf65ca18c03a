"""axe-core, as the package axe-playwright-python brings it, over what is in sight; and what of it is gradio's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

#: Violations that the stock components bring along: rule, selector and why, each.
BASELINE = Path(__file__).with_name("stock_violations.yaml")

#: What a chart is drawn with is left out: to a reader the chart is one picture with a name.
RUN = """async ([within, rules, known]) => {
  const context = { include: within.map((part) => [part]), exclude: [["svg.main-svg"]] };
  const only = rules.length ? { runOnly: { type: "rule", values: rules } } : {};
  const options = { resultTypes: ["violations"], preload: false, iframes: false, ...only };
  const { violations } = await axe.run(context, options);
  const all = violations.flatMap(({ id, help, nodes }) => nodes.map((node) => ({ id, help, ...node })));
  const stock = ({ id, target }) =>
    known.some(({ rule, selector }) => rule === id && document.querySelector(target.at(-1))?.matches(selector));
  const told = ({ id, help, target, failureSummary }) => `${id}: ${target} (${help}; ${failureSummary})`;
  return all.filter((one) => !stock(one)).map(told);
}"""


def violations(page: Page, *within: str, rules: Sequence[str] = ()) -> list[str]:
    """What axe finds in the parts of the page that `within` selects, by all its rules or these, less the baseline."""
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(f"{Axe().axe_script}; true")
    found: list[str] = page.evaluate(RUN, [within or ["body"], list(rules), stock()])
    return found


def stock() -> list[dict[str, Any]]:
    """The baseline. A violation belongs to it where the rule is the same and its element matches the selector."""
    known: list[dict[str, Any]] = yaml.safe_load(BASELINE.read_text("utf-8"))
    assert all(set(one) == {"rule", "selector", "why"} and one["why"] for one in known)
    return known
