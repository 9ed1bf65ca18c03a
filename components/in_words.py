"""What the engine refuses, in the language that is spoken: its own sentence, or the page's words for the same."""

from components.copy import DEFAULT, spoken, words
from engine.experiment import ExperimentError
from engine.refusals import Refused
from engine.said import Said


def in_words(error: ExperimentError | Refused) -> str:
    """Why it was refused; of an experiment with the field that is meant."""
    if not isinstance(error, ExperimentError):
        return translated(error.args[0]) if error.args else ""
    message = translated(error.message)
    return f"{error.path}: {message}" if error.path else message


def translated(text: str) -> str:
    """A sentence of the engine in the language that is spoken; of a text that is none nothing is known but itself."""
    if not isinstance(text, Said) or spoken() == DEFAULT:
        return text
    say = words("refusals")
    values = {name: translated(value) if isinstance(value, str) else value for name, value in text.values.items()}
    return say.text(text.key, **values)
