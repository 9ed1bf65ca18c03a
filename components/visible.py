"""Token text that a person can see: spaces, line breaks, controls and half characters made visible.

The result is still plain text; it reaches the page as a text node.
"""

import unicodedata

MARKS = {" ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍"}


def visible(text: str) -> str:
    """White space as marks, invisible and direction-changing characters as ⟨U+XXXX⟩; everything else as it is."""
    return "".join(MARKS.get(char) or (char if _shows(char) else f"⟨U+{ord(char):04X}⟩") for char in text)


def running_text(text: str) -> str:
    """Text to be read: spaces stay, a line break is seen and breaks the line, whatever is invisible is named."""
    return "⏎\n".join(" ".join(map(visible, line.split(" "))) for line in text.split("\n"))


def visible_bytes(data: bytes) -> str:
    """The bytes as visible text; bytes that are no whole character appear as ⟨E2⟩, never as U+FFFD."""
    parts: list[str] = []
    rest = data
    while rest:
        try:
            parts.append(visible(rest.decode("utf-8")))
            break
        except UnicodeDecodeError as error:
            bad = rest[error.start : error.end]
            parts.append(visible(rest[: error.start].decode("utf-8")))
            parts.extend(f"⟨{byte:02X}⟩" for byte in bad)
            rest = rest[error.end :]
    return "".join(parts)


def _shows(char: str) -> bool:
    # Cc control, Cf format (joiners, direction marks), Cs surrogate, Co private, Cn unassigned, Z* separators.
    return unicodedata.category(char)[0] not in "CZ"
