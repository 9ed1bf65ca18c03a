"""How a turn ended, in the few words that every panel has for it."""

from components.copy import words
from engine.trace import StopReason


def end_text(reason: StopReason) -> str:
    return words("page").text(f"end_{reason}")
