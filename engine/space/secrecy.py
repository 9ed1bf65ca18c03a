"""What looks like a secret: a Space is public, so nothing of it is uploaded or set as a variable."""

import fnmatch
import re

_FILES = ("*.pem", "*.key", "*.p12", "*.pfx", "id_rsa*", "*token*.txt", "credentials*", "*.env")
_VARIABLE = re.compile(r"TOKEN|SECRET|PASSWORD|_KEY|^KEY")
_CONTENT = re.compile(rb"hf_[A-Za-z0-9]{20,}|-----BEGIN [A-Z ]*PRIVATE KEY-----")


def is_secret_file(name: str) -> bool:
    """True for the name of a file in which tokens and keys are kept."""
    return any(fnmatch.fnmatchcase(name.lower(), pattern) for pattern in _FILES)


def is_secret_variable(name: str) -> bool:
    """True for the name of a variable that holds a token, a password or a key."""
    return _VARIABLE.search(name) is not None


def holds_secret(content: bytes) -> bool:
    """True for a text with a token of the Hub or a private key in it."""
    return _CONTENT.search(content) is not None
