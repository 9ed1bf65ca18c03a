"""One HTML file: a policy that lets nothing in or out, styles, scripts, and the packed data.

No text of a run stands in the markup but the model's title, escaped. All else lies deflated, in signs that are no
markup, and reaches the page as text nodes.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from html import escape

from components.export.pieces import BITS, Packed, deflated
from components.widgets.host import ASSETS, PLOTLY, WIDGETS

SHEETS = ("tokens", "widgets", "edges", "pad", "record_page")
SCRIPTS = (*WIDGETS, "record_data", "record_parts", "record_page")


def document(*, language: str, title: str, data: Packed, sentences: Mapping[str, str]) -> str:
    """The whole file. `data` is packed already; the sentences are for when it cannot be read (yet).

    Charts are drawn by plotly, which is part of the file and allowed by its hash, as the page's own script is.
    """
    style, script, library = _joined("css", SHEETS, "style"), _joined("js", SCRIPTS, "script"), _library()
    said = {name: escape(sentence) for name, sentence in sentences.items()}
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hash(script)} {_hash(_source())}",
            "style-src 'unsafe-inline'",  # plotly sets styles of its own
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="{escape(language)}">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            f'<body data-no-inflate="{said["no_inflate"]}" data-damaged="{said["damaged"]}">',
            f'<p id="wait" role="status">{said["loading"]}</p>',
            f"<noscript><p>{said['no_script']}</p></noscript>",
            _block("data", data),
            _block("plotly", library),
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def room(limit: int, sentences: Mapping[str, str]) -> float:
    """Deflated bytes of data that a file of at most `limit` bytes holds."""
    bare = document(language="", title="", data=Packed("", 0), sentences=sentences).encode("utf-8")
    return (limit - len(bare)) * BITS / 16


@cache
def _source() -> str:
    return PLOTLY.read_text("utf-8")


@cache
def _library() -> Packed:
    return deflated(_source().encode("utf-8"))


def _block(name: str, packed: Packed) -> str:
    return f'<script type="application/octet-stream" id="{name}" data-size="{packed.size}">{packed.text}</script>'


def _joined(folder: str, names: tuple[str, ...], tag: str) -> str:
    suffix = "css" if folder == "css" else "js"
    text = "\n".join((ASSETS / folder / f"{name}.{suffix}").read_text("utf-8") for name in names)
    if re.search(f"</{tag}|<!--", text, re.IGNORECASE):
        raise ValueError(f"an asset would break out of its <{tag}> element")
    return text


def _hash(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
