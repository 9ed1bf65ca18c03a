"""The versions that a trace depends on."""

import importlib.metadata
import platform

_LIBRARIES = ("torch", "transformers", "tokenizers", "llguidance", "numpy", "simpleeval", "jsonschema")


def versions() -> dict[str, str]:
    """The versions that a trace depends on."""
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in _LIBRARIES}
