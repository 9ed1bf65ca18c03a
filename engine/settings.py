"""What a running program allows: which model, where, and the limits of a public page. Flags in, one value out."""

import argparse
from dataclasses import dataclass, field, fields
from typing import Any, Self

PREFIX_CACHES = ("off", "visitor", "everyone")


def _setting(default: Any, what: str) -> Any:
    return field(default=default, metadata={"help": what})


@dataclass(frozen=True)
class Settings:
    """Each field is also a flag (`max_new_tokens` is `--max-new-tokens`). Raises ValueError on a limit below 1
    and on an unknown `prefix_cache`.
    """

    model: str | None = _setting(None, "id of the catalogue's model to load; without it the embedded one")
    device: str = _setting("auto", "auto, cpu, cuda or mps")
    dtype: str = _setting("auto", "auto, float32, bfloat16 or float16")
    max_new_tokens: int = _setting(2_048, "most new tokens that one answer may ask for")
    run_seconds: float = _setting(300.0, "a run is stopped after this many seconds")
    max_runs: int = _setting(32, "runs that may be under way at once; more are refused, not queued")
    max_sessions: int = _setting(200, "sessions kept; a new one takes the place of the least recently used")
    idle_seconds: float = _setting(900.0, "a session not used for this many seconds is given up")
    cache_bytes: int = _setting(1 << 30, "bytes of KV cache kept over all sessions")
    prefix_cache: str = _setting(
        "visitor", "who is served by a system prompt computed before: off, visitor (who wrote it) or everyone"
    )

    def __post_init__(self) -> None:
        for name in _LIMITS:
            if not getattr(self, name) >= 1:  # so that NaN is refused too
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.prefix_cache not in PREFIX_CACHES:
            allowed = ", ".join(PREFIX_CACHES)
            raise ValueError(f"prefix_cache must be one of {allowed}, got {self.prefix_cache!r}")

    @staticmethod
    def add_flags(parser: argparse.ArgumentParser, *names: str) -> None:
        """Add the flags of these fields to a parser, of all fields where none is named."""
        for item in fields(Settings):
            if names and item.name not in names:
                continue
            default = "" if item.default is None else f" (default: {item.default})"
            parser.add_argument(
                f"--{item.name.replace('_', '-')}",
                type=str if item.default is None else type(item.default),
                default=item.default,
                help=item.metadata["help"] + default,
            )

    @classmethod
    def from_flags(cls, flags: argparse.Namespace) -> Self:
        """The settings that parsed flags give; a field without a flag keeps its default."""
        return cls(**{item.name: getattr(flags, item.name) for item in fields(cls) if hasattr(flags, item.name)})


_LIMITS = ("max_new_tokens", "run_seconds", "max_runs", "max_sessions", "idle_seconds", "cache_bytes")
