"""Models that an operator adds by `--add-model [ID=]WHERE[@REVISION]`: a folder here, or an id of the Hub.

`./my-model`, `tiny=/data/tiny-llama`, `org/name` and `small=org/name@v1.0` are such.
"""

import re
import sys
from pathlib import Path

from engine.catalog import Catalog, Entry, FolderSource, HubSource, ModelError
from engine.loading.config_files import read_json, takes_tools
from engine.loading.shape import entry_of, headers
from engine.loading.weight_files import INDEX, WEIGHTS, weight_files

ID = re.compile(r"[a-z0-9][a-z0-9.-]*")
REPO = re.compile(r"[\w.-]+/[\w.-]+")
MAX_NAME = 60


def with_added(catalog: Catalog, specs: tuple[str, ...]) -> Catalog:
    """The catalogue with the models of these specs. Raises `ModelError`."""
    return catalog.with_added([added(spec) for spec in specs]) if specs else catalog


def added(spec: str) -> Entry:
    """The entry of one spec. Raises `ModelError`, which says what is wrong with it."""
    named, _, rest = spec.rpartition("=")
    if rest and Path(rest).expanduser().is_dir():
        return _of_folder(Path(rest).expanduser().resolve(), named)
    if rest.startswith((".", "/", "~")):
        raise ModelError(f"--add-model {spec!r:.120}: there is no such folder")
    repo, _, revision = rest.partition("@")
    if not REPO.fullmatch(repo):
        raise ModelError(f"--add-model {spec!r:.120}: neither a folder that is there nor an id like org/name")
    return _of_hub(repo, revision or None, named)


def _of_folder(folder: Path, named: str) -> Entry:
    model_id, title = _names(named, folder.name)
    if not weight_files(folder):
        raise ModelError(
            f"{title} cannot be added: {folder} has no {WEIGHTS} and no {INDEX} that names its parts; "
            "nothing else is loaded"
        )
    return _entry(model_id, title, FolderSource(kind="folder", folder=folder), folder, licence="not stated")


def _of_hub(repo: str, revision: str | None, named: str) -> Entry:
    """Resolved to its commit, which is told; where the Hub is out of reach, a copy in the Hub's cache will do."""
    # huggingface_hub takes half a second to import: only who adds a model of the Hub waits for it.
    from engine.loading import hub_entry

    model_id, title = _names(named, repo.partition("/")[2])
    source, facts = hub_entry.resolved(repo, revision, title)
    print(f"{title}: {repo} at commit {source.revision}", file=sys.stderr)
    if isinstance(facts, Path):
        return _entry(model_id, title, source, facts, licence="not stated")
    return entry_of(model_id, title, source, **facts)


def _entry(model_id: str, title: str, source: HubSource | FolderSource, folder: Path, *, licence: str) -> Entry:
    return entry_of(
        model_id,
        title,
        source,
        config=read_json(folder / "config.json", title),
        tensors=headers(folder),
        weight_bytes=sum(path.stat().st_size for path in weight_files(folder)),
        licence=licence,
        tools=takes_tools(folder),
    )


def _names(named: str, last: str) -> tuple[str, str]:
    """Id and title: as given, else from the last part of folder or repository."""
    title = "".join(char for char in (named or last) if char.isprintable())[:MAX_NAME]
    model_id = named or re.sub(r"[^a-z0-9.]+", "-", last.lower()).strip("-.")[:MAX_NAME]
    if not ID.fullmatch(model_id) or len(model_id) > MAX_NAME:
        raise ModelError(
            f"--add-model: {model_id!r:.80} is no id; small letters, digits, '.' and '-' are: --add-model ID=WHERE"
        )
    return model_id, title
