"""What goes up: the program with its assets, and nothing of what lies about in a working copy."""

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engine.catalog import Catalog
from engine.embedded import CARRIED, find_gguf
from engine.space.requirements import requirements
from engine.space.secrecy import holds_secret, is_secret_file
from engine.space.spacefile import ROOT, SpaceError, Spacefile, carries

#: Files and folders that the app needs; the front matter is in the README.
NEEDED = ("app.py", "README.md", "LICENSE", "engine", "components", "assets")

Content = Path | bytes


@dataclass(frozen=True)
class Upload:
    """One file of the Space: its path there, and where its bytes are."""

    path: str
    content: Content

    @property
    def size(self) -> int:
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size


def uploads(space: Spacefile, catalog: Catalog, root: Path = ROOT) -> list[Upload]:
    """All files of the Space, by path. Raises `SpaceError` where one looks like a secret, `ModelError` where the
    model's package is not installed.
    """
    found = [Upload(path.relative_to(root).as_posix(), path) for path in sorted(_kept(root))]
    for upload in found:
        _check(upload)
    found.append(Upload("requirements.txt", requirements(space, root).encode()))
    source = carries(space, catalog)
    if source is not None:
        path = find_gguf(source)
        found.append(Upload(f"{CARRIED.name}/{path.name}", path))
    return sorted(found, key=lambda upload: upload.path)


def _kept(root: Path) -> Iterator[Path]:
    patterns = ignored(root)
    for name in NEEDED:
        top = root / name
        for path in top.rglob("*") if top.is_dir() else (top,):
            parts = path.relative_to(root).parts
            hidden = any(part.startswith(".") for part in parts)
            if path.is_file() and not path.is_symlink() and not hidden and not _matches(parts, patterns):
                yield path


def ignored(root: Path) -> list[str]:
    """The patterns of .gitignore. Raises `SpaceError` for a kind that is not understood here."""
    path = root / ".gitignore"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    for pattern in patterns:
        if pattern.startswith("!") or "**" in pattern or "/" in pattern.strip("/"):
            raise SpaceError(f".gitignore: {pattern!r} is not understood here; a name or /name is")
    return patterns


def _matches(parts: tuple[str, ...], patterns: list[str]) -> bool:
    for pattern in patterns:
        named = parts[:1] if pattern.startswith("/") else parts
        named = named[: len(parts) - 1] if pattern.endswith("/") else named  # a folder, not the file itself
        if any(fnmatch.fnmatchcase(part, pattern.strip("/")) for part in named):
            return True
    return False


def _check(upload: Upload) -> None:
    assert isinstance(upload.content, Path)
    if is_secret_file(PurePosixPath(upload.path).name):
        raise SpaceError(
            f"{upload.path} looks like a secret by its name; it is not uploaded: take it out of the folder"
        )
    if holds_secret(upload.content.read_bytes()):
        raise SpaceError(f"{upload.path} holds what looks like a token or a private key; nothing was uploaded")
