"""What the five custom views share: one gr.HTML each, drawn by assets/js, fed with plain JSON.

The template holds no data: gradio runs `{{…}}` and `${…}` in it as code. A script builds the DOM from `props.value`
with text nodes only and redraws in place whenever the value changes.

Lists travel as blocks: one string holds up to BLOCK items as JSON, one a line. Gradio then compares, sends and wraps a
few strings instead of thousands of values, a token more is an edit that appends to the last one, and its differ, which
shifts the indices of nested deletes twice, meets no list inside a list. `read` gives the items back as values.
"""

import json
import re
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import gradio as gr
import plotly

from components.copy import LANGUAGES

ASSETS = Path(__file__).resolve().parents[2] / "assets"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
WIDGETS = ("host", "follow", "sight", "rail", "token_strip", "table", "chart_host", "pad", "heatmap")
SCRIPTS = (*WIDGETS, "stream", "lesson", "page", "language", "sharing", "reach")
_EPOCH = time.time_ns() - time.monotonic_ns()
BLOCK = 32  # also in assets/js/host.js
COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
SHEETS = ("tokens", "page", "controls", "widgets", "edges", "pad", "sharing", "lesson", "reach")


def widget(
    name: str,
    elem_id: str,
    label: str,
    value: dict[str, Any] | None = None,
    **options: Any,
) -> gr.HTML:
    """A gr.HTML that assets/js/<name>.js draws.

    Args:
        name: the view, one of the scripts.
        label: what a screen reader calls it.
        options: further plain values, fixed for good, that the script reads. They stand in the script's call, for the
            props of a component in a tab that was not yet shown arrive without them.

    Its `select` event carries a dict in `gr.EventData._data`.
    """
    settings = json.dumps({"label": label, "id": elem_id, **options})
    return gr.HTML(
        value=value,
        label=label,
        elem_id=elem_id,
        elem_classes=["ds-widget", f"ds-{name.replace('_', '-')}"],
        html_template="<div></div>",
        js_on_load=f"window.decodescope.mount({json.dumps(name)}, element, props, trigger, watch, {settings})",
        apply_default_css=False,
    )


def mounted(part: gr.HTML) -> tuple[str, dict[str, Any]]:
    """The view that draws a widget, and its fixed values: what `widget` was given."""
    name, _, options = str(part.js_on_load).removeprefix("window.decodescope.mount(").partition(", ")
    return json.loads(name), json.loads(options.partition("watch, ")[2].removesuffix(")"))


def feed(elem_id: str, label: str, *, hidden: Iterable[str] = (), disabled: Iterable[str] = ()) -> gr.HTML:
    """One output that carries the values of many widgets: Gradio rebuilds every output of an event at every token.

    Of other elements, by id, `hidden` and `disabled` are those that are so until the first value that names them.
    """
    return widget("feed", elem_id, label, hidden=dict.fromkeys(hidden, True), disabled=dict.fromkeys(disabled, True))


def moment() -> int:
    """Nanoseconds on a clock that only goes on, also from one start of the program to the next."""
    return _EPOCH + time.monotonic_ns()


def feed_value(
    first: Mapping[str, Any],
    soon: Mapping[str, Any],
    *,
    hidden: Mapping[str, bool],
    disabled: Mapping[str, bool],
    language: str,
    began: int,
) -> dict[str, Any]:
    """Values by the widget's element id: those to be seen first, and those that may come a moment later.

    `began` is the `moment` when the making of this value began: events of one visitor run side by
    side, and a value that was begun before the one on the page has nothing to say any more.

    A value that goes ahead of a whole one names in `only` the widgets that it is about; the rest stays as it is shown.

    Of other elements, by id, it says whether they are hidden, or disabled buttons. Where `language` is not that of the
    page's labels, the feed fires `select` with {"language": language}.
    """
    return {
        "first": dict(first),
        "soon": dict(soon),
        "hidden": dict(hidden),
        "disabled": dict(disabled),
        "language": language,
        "began": began,
        "only": {},
    }


def item(value: Any) -> str:
    """One list item as compact JSON. A lone surrogate becomes its escape, which JSON can carry and UTF-8 cannot.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    text = COMPACT.encode(value)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def items(values: Iterable[Any]) -> list[str]:
    """A list of items as it travels, in blocks."""
    lines = [item(value) for value in values]
    return ["\n".join(lines[first : first + BLOCK]) for first in range(0, len(lines), BLOCK)]


def read(value: dict[str, Any]) -> dict[str, Any]:
    """The value of any widget with its items decoded, as tests want to look at it."""
    return {name: _read(part) for name, part in value.items()}


def _read(part: Any) -> Any:
    if isinstance(part, dict):
        return read(part)
    if isinstance(part, list) and part and all(isinstance(one, dict) for one in part):
        return [read(one) for one in part]
    if isinstance(part, list) and all(isinstance(block, str) for block in part):
        return [json.loads(line) for block in part for line in block.split("\n")]
    return part


@cache
def head() -> str:
    """The style sheet and the scripts of all widgets, for `launch(head=…)`. Nothing in it comes from another host."""
    gr.set_static_paths([PLOTLY])
    css = "\n".join((ASSETS / "css" / f"{name}.css").read_text("utf-8") for name in SHEETS)
    scripts = "\n".join((ASSETS / "js" / f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    given = {"plotly": f"gradio_api/file={quote(PLOTLY.as_posix())}", "languages": list(LANGUAGES)}
    for text, tag in ((css, "style"), (scripts, "script")):
        if re.search(f"</{tag}", text, re.IGNORECASE):
            raise ValueError(f"an asset would close its own <{tag}> element")
    return f"<style>{css}</style><script>{scripts}\nObject.assign(decodescope, {json.dumps(given)});</script>"
