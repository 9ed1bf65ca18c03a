"""The versions that a trace depends on."""

import functools
import importlib.metadata
import platform

_LIBRARIES = ("torch", "transformers", "tokenizers", "llguidance", "numpy", "simpleeval", "jsonschema")


def versions() -> dict[str, str]:
    """The versions that a trace depends on."""
    return dict(_installed())


@functools.cache
def _installed() -> dict[str, str]:
    """Read once: looking them up takes longer than several decode steps of a small model."""
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in _LIBRARIES}
