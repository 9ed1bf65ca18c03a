"""What goes wrong with the Hub, in a sentence that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from engine.space.spacefile import SpaceError

BY_STATUS = {
    401: "the Hub does not know this token: log in with `hf auth login`, or set HF_TOKEN to a token that may write",
    402: "this hardware has to be paid for: add a payment method or choose cpu-basic",
    403: "this account may not do that to {repo}: the owner's name must be yours or an organisation's in which you "
    "may write, the token must be allowed to write, and a Space of this kind may need a subscription",
    404: "the Hub has no {repo}, or this account may not see it",
    409: "{repo} exists already: choose another name, or add --update to put this version in its place",
    413: "the Hub refuses an upload of this size",
    429: "the Hub asks to wait: too many requests in a short time; try again in some minutes",
}


@contextmanager
def told(repo: str) -> Iterator[None]:
    """Turn the errors of huggingface_hub inside into `SpaceError`."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    try:
        yield
    except LocalTokenNotFoundError as error:
        raise SpaceError("there is no token: log in with `hf auth login`, or set HF_TOKEN") from error
    except HfHubHTTPError as error:
        raise SpaceError(_of_status(error.response.status_code, str(error.server_message or ""), repo)) from error
    except OfflineModeIsEnabled as error:
        raise SpaceError("HF_HUB_OFFLINE is set: nothing can be deployed without the network") from error
    except (httpx2.HTTPError, ConnectionError) as error:
        raise SpaceError(f"the Hub cannot be reached ({type(error).__name__}): is there a network?") from error


def _of_status(status: int, message: str, repo: str) -> str:
    said = BY_STATUS.get(status)
    if said is None:
        said = "the Hub has trouble; try again later" if status >= 500 else "the Hub refuses this"
    return f"{said.format(repo=repo)} (HTTP {status}{': ' + ' '.join(message.split())[:200] if message else ''})"
