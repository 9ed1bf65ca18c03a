"""A sentence for a person that can be said in other languages too: English text that knows what it was made of.

The engine speaks English, to the command line and the endpoint; the page has the same sentence in its own words, by
the key and the values.
"""

from collections.abc import Mapping
from typing import Any


class Said(str):
    """The English sentence. A value may be `Said` itself."""

    key: str
    values: Mapping[str, Any]


def said(key: str, template: str, /, **values: Any) -> Said:
    """The template with its {places} filled."""
    return told(key, template.format(**values), values)


def told(key: str, text: str, values: Mapping[str, Any]) -> Said:
    """A sentence that was already made of `values`."""
    sentence = Said(text)
    sentence.key, sentence.values = key, dict(values)
    return sentence
