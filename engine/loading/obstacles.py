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
from engine.said import Sentence, said

#: All that a call of huggingface_hub may raise.
ERRORS = (ClientError, OSError, FileMetadataError, ValueError)


def obstacle(error: BaseException, repo: str, revision: str) -> Sentence:
    """Why it failed and what to do."""
    if isinstance(error, LocalEntryNotFoundError) and error.__cause__ is not None:
        return obstacle(error.__cause__, repo, revision)
    hub = constants.ENDPOINT
    match error:
        case OfflineModeIsEnabled():
            return said("hub_offline", repo=repo, ours=cache_root(), theirs=constants.HF_HUB_CACHE)
        case GatedRepoError():
            return said("hub_gated", repo=repo, hub=hub)
        case DisabledRepoError():
            return said("hub_disabled", repo=repo, hub=hub)
        case RevisionNotFoundError():
            return said("hub_no_revision", repo=repo, revision=revision)
        case RepositoryNotFoundError():
            return said("hub_no_repo", repo=repo, hub=hub)
        case HfHubHTTPError() if error.response.status_code in (401, 403):
            return said("hub_forbids", repo=repo, hub=hub)
        case HfHubHTTPError():
            status, phrase = error.response.status_code, error.response.reason_phrase
            return said("hub_answered", hub=hub, status=status, phrase=phrase)
        case ClientError():
            return said("hub_unreachable", hub=hub, error=_first_line(error))
        case OSError(errno=errno.ENOSPC):
            return said("disk_full", folder=cache_root())
        case OSError(errno=errno.EACCES | errno.EROFS):
            return said("cache_read_only", folder=cache_root())
    return _first_line(error)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
