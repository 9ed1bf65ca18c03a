"""What tests marked `hub` ask first: can the Hugging Face Hub be reached?"""

from functools import cache

import httpx
import pytest
from huggingface_hub import constants


@cache
def _obstacle() -> str | None:
    try:
        httpx.head(constants.ENDPOINT, timeout=5, follow_redirects=True).raise_for_status()
    except httpx.HTTPError as error:
        return f"{type(error).__name__}: {error}"
    return None


def require_hub() -> None:
    """Skip the test, with the reason, where the Hub is out of reach; asked once a session."""
    if obstacle := _obstacle():
        pytest.skip(f"the Hugging Face Hub is out of reach ({obstacle})")
