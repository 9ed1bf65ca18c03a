"""What a running program allows: which models, where, and the limits of a public page.

Each field is a flag (`max_new_tokens` is `--max-new-tokens`) and an environment variable
(`DECODESCOPE_MAX_NEW_TOKENS`); the flag wins. Lists are parted by commas in a variable.
"""

import argparse
import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Self

PREFIX = "DECODESCOPE_"
PREFIX_CACHES = ("off", "visitor", "everyone")
QUANTIZED = ("none", "4bit")
#: How a model is loaded.
LOADING = ("device", "dtype", "quantize", "offload")
SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def _setting(default: Any, what: str) -> Any:
    return field(default=default, metadata={"help": what})


@dataclass(frozen=True)
class Settings:
    """Raises ValueError on a limit below 1, and on an unknown `prefix_cache` or `quantize`."""

    model: str | None = _setting(None, "id of the catalogue's model to load; without it the embedded one")
    models: tuple[str, ...] = _setting(
        (), "ids, parted by commas, that visitors may choose; without it the one that is loaded and those added"
    )
    add_model: tuple[str, ...] = _setting(
        (), "a folder with a model, or its Hub id, as [ID=]WHERE[@REVISION]; may be given more than once"
    )
    device: str = _setting("auto", "auto, cpu, cuda or mps")
    dtype: str = _setting("auto", "auto, float32, bfloat16 or float16")
    quantize: str = _setting("none", "none or 4bit; 4bit needs the package bitsandbytes and an NVIDIA GPU")
    offload: bool = _setting(False, "spread a model that the device cannot hold over GPUs, memory and disk; slower")
    max_new_tokens: int = _setting(2_048, "most new tokens that one answer may ask for")
    run_seconds: float = _setting(300.0, "a run is stopped after this many seconds")
    max_runs: int = _setting(32, "runs of a model that may be under way at once; more are refused, not queued")
    max_sessions: int = _setting(200, "sessions of a model; a new one takes the place of the least recently used")
    idle_seconds: float = _setting(900.0, "a session not used for this many seconds is given up")
    cache_bytes: int = _setting(1 << 30, "bytes of KV cache kept over all sessions of a model")
    prefix_cache: str = _setting(
        "visitor", "who is served by a system prompt computed before: off, visitor (who wrote it) or everyone"
    )

    def __post_init__(self) -> None:
        for name in _LIMITS:
            if not getattr(self, name) >= 1:  # so that NaN is refused too
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name, allowed in (("prefix_cache", PREFIX_CACHES), ("quantize", QUANTIZED)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")

    @staticmethod
    def add_flags(parser: argparse.ArgumentParser, *names: str) -> None:
        """Add the flags of these fields to a parser, of all fields where none is named."""
        for item in fields(Settings):
            if names and item.name not in names:
                continue
            default = f" (default: {item.default})" if item.default else ""
            parser.add_argument(
                f"--{item.name.replace('_', '-')}",
                default=argparse.SUPPRESS,  # what was not given is looked up in the environment
                help=item.metadata["help"] + default,
                **_reading(item),
            )

    @classmethod
    def from_flags(cls, flags: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> Self:
        """The settings that parsed flags give, else the environment, else the defaults.

        Raises ValueError, which names the variable that cannot be read.
        """
        given: dict[str, Any] = {}
        for item in fields(cls):
            variable = PREFIX + item.name.upper()
            if hasattr(flags, item.name):
                value = getattr(flags, item.name)
                given[item.name] = tuple(value) if isinstance(value, list) else value
            elif text := environment.get(variable, "").strip():
                given[item.name] = _from_text(item, variable, text)
        return cls(**given)


def _reading(item: Field[Any]) -> dict[str, Any]:
    """How argparse reads a field."""
    if isinstance(item.default, bool):
        return {"action": "store_true"}
    if isinstance(item.default, tuple):
        return {"action": "append"} if item.name == "add_model" else {"type": _names}
    return {"type": str if item.default is None else type(item.default)}


def _from_text(item: Field[Any], variable: str, text: str) -> Any:
    try:
        if isinstance(item.default, bool):
            return SWITCH[text.lower()]
        if isinstance(item.default, tuple):
            return _names(text)
        kind: Any = str if item.default is None else type(item.default)
        return kind(text)
    except (ValueError, KeyError):
        wanted = "1 or 0" if isinstance(item.default, bool) else f"a value like {item.default}"
        raise ValueError(f"{variable}: {wanted} is wanted, got {text[:60]!r}") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_LIMITS = ("max_new_tokens", "run_seconds", "max_runs", "max_sessions", "idle_seconds", "cache_bytes")
