"""What keeps a model from coming from the Hugging Face Hub, in one line for the person who runs the program."""

import errno

from huggingface_hub import constants
from huggingface_hub.errors import (
    DisabledRepoError,
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.errors import HTTPError as ClientError  # type: ignore[attr-defined]  # of its HTTP library

from engine.embedded import cache_root

#: All that a call of huggingface_hub may raise.
ERRORS = (ClientError, OSError, FileMetadataError, ValueError)


def obstacle(error: BaseException, repo: str, revision: str) -> str:
    """Why it failed and what to do."""
    if isinstance(error, LocalEntryNotFoundError) and error.__cause__ is not None:
        return obstacle(error.__cause__, repo, revision)
    hub = constants.ENDPOINT
    match error:
        case OfflineModeIsEnabled():
            folders = f"{cache_root()} nor in {constants.HF_HUB_CACHE}"
            return f"HF_HUB_OFFLINE is set and {repo} is neither in {folders}; unset it to download"
        case GatedRepoError():
            return f"{repo} is gated: accept its terms at {hub}/{repo}, then set HF_TOKEN to a token of that account"
        case DisabledRepoError():
            return f"{hub} has disabled {repo}"
        case RevisionNotFoundError():
            return f"{repo} has no revision {revision}"
        case RepositoryNotFoundError():
            return f"there is no {repo} on {hub}, or it is private: check the id; for a private one set HF_TOKEN"
        case HfHubHTTPError() if error.response.status_code in (401, 403):
            return (
                f"{hub} does not give {repo} to you: it is private or gated; set HF_TOKEN to a token that may read it"
            )
        case HfHubHTTPError():
            return f"{hub} answered {error.response.status_code} {error.response.reason_phrase}; try again later"
        case ClientError():
            return (
                f"{hub} cannot be reached ({_first_line(error)}); check the connection, or take a model that is "
                "here already: python -m engine models"
            )
        case OSError(errno=errno.ENOSPC):
            return f"the disk is full; free some of it, or set DECODESCOPE_CACHE to another folder than {cache_root()}"
        case OSError(errno=errno.EACCES | errno.EROFS):
            return f"{cache_root()} cannot be written; set DECODESCOPE_CACHE to a folder that can"
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
