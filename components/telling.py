"""What goes wrong inside an intent becomes the visit's notice, and the session lives on."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Protocol

from components.copy import speak, words
from components.in_words import in_words
from components.visit import Visit
from engine.experiment import ExperimentError
from engine.refusals import ModelPutAway, Refused, SessionGaveWay, SessionGone, SessionIdle
from engine.wording import Words

log = logging.getLogger(__name__)

#: The page's words for why a session is gone.
GONE: dict[type[SessionGone], str] = {
    SessionGone: "session_gone",
    SessionIdle: "session_idle",
    SessionGaveWay: "session_gave_way",
    ModelPutAway: "model_put_away",
}


class Reopens(Protocol):
    """Who opens a visit's session anew, once it was put away."""

    def reopen(self, visit: Visit) -> None: ...


def told(intent: Callable[..., None]) -> Callable[..., None]:
    """An intent whose refusal becomes the visit's notice: the page shows it, and the session lives on."""
    tell = taken(intent)

    @wraps(intent)
    def do(desk: Reopens, visit: Visit, *arguments: Any, **named: Any) -> None:
        tell(desk, visit, *arguments, **named)

    return do


def taken(intent: Callable[..., None]) -> Callable[..., bool]:
    """The same, and True where nothing was refused: the notice cannot tell, another event may have changed it."""

    @wraps(intent)
    def tell(desk: Reopens, visit: Visit, *arguments: Any, **named: Any) -> bool:
        through = False
        with telling(desk, visit):
            intent(desk, visit, *arguments, **named)
            through = True
        return through  # noqa: RET504 - what was refused ends the block above, not this function

    return tell


@contextmanager
def telling(desk: Reopens, visit: Visit) -> Iterator[None]:
    """Turn what goes wrong inside into the visit's notice; a session that was put away is opened anew."""
    visit.notice = visit.said = ""
    speak(visit.language)
    try:
        yield
    except SessionGone as gone:
        visit.notice = say_to(visit).text(GONE[type(gone)])
        try:
            desk.reopen(visit)
        except Refused as refused:  # no place is free, or the page has closed meanwhile
            visit.notice = in_words(refused)
    except (ExperimentError, Refused) as refused:
        speak(visit.language)
        visit.notice = in_words(refused)
    except Exception as error:  # the person must be told, whatever it was; the log has the rest
        log.exception("an intent failed")
        visit.notice = say_to(visit).text("crashed", kind=type(error).__name__)


def say_to(visit: Visit, station: str = "page") -> Words:
    """Words for the visit. Between two steps of a generator the context may have become another."""
    speak(visit.language)
    return words(station)
