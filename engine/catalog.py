"""Which models may be named, where their weights come from, and their sizes: `assets/models.yaml` as frozen values.

Nothing here loads a model or needs torch, so the sizes can be shown, and a cache priced, for any of them.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, model_validator

from engine.facts import kv_bytes_per_token
from engine.values import Value

CATALOG_FILE = Path(__file__).parent.parent / "assets" / "models.yaml"

Size = Annotated[int, Field(gt=0)]


class ModelError(RuntimeError):
    """A model cannot be had. The message says why and what to do, for the person who runs the program."""


class UnknownModelError(ModelError):
    """The name is not in the catalogue."""


class NoRoomError(ModelError):
    """Too little memory is free just now; it may fit where other models go that hold the `missing` bytes."""

    def __init__(self, message: str, *, missing: int) -> None:
        super().__init__(message)
        self.missing = missing


class EmbeddedSource(Value):
    """A GGUF file inside a Python package of the package index, told by its SHA-256 (hexadecimal)."""

    kind: Literal["embedded"]
    package: str
    version: str
    file: str  # path inside the package's installation
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class HubSource(Value):
    """A model repository of the Hugging Face Hub at one commit."""

    kind: Literal["hub"]
    repo: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class FolderSource(Value):
    """A folder of this machine that the operator named."""

    kind: Literal["folder"]
    folder: Path


class RanksSource(Value):
    """Byte-pair ranks inside a Python package that may be installed: a line "base64 rank" for each token.

    They cut plain text as the model's own tokenizer does, which splits it by `pattern` first.
    """

    package: str
    file: str  # path inside the package's installation
    pattern: str


class Entry(Value):
    """One model: its name, its licence, whether its template takes tools, and the sizes of `ModelFacts`."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    title: str
    licence: str
    tools: bool
    source: Annotated[EmbeddedSource | HubSource | FolderSource, Field(discriminator="kind")] | None = None
    weight_bytes: Size | None = None  # of the weight files as they are stored, where it is known
    ranks: RanksSource | None = None
    layers: Size
    kv_layers: int | None = None  # those that keep keys and values, where not all do
    hidden_size: Size
    heads: Size
    kv_heads: Size
    head_dim: Size
    ffn_size: Size
    vocab_rows: Size
    context: Size
    tied_embeddings: bool
    parameters: Size

    @property
    def loadable(self) -> bool:
        """False where only the shape is known."""
        return self.source is not None

    def kv_bytes_per_token(self, itemsize: int) -> int:
        """Bytes one position takes in this model's cache, at `itemsize` bytes a number (4: fp32, 2: bf16)."""
        layers = self.layers if self.kv_layers is None else self.kv_layers
        return kv_bytes_per_token(layers, self.kv_heads, self.head_dim, itemsize)


class Catalog(Value):
    """All entries in the order of the file, and the id of the one that is taken where none is asked for."""

    default: str
    models: Annotated[tuple[Entry, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _ids_are_unique_and_the_default_is_loadable(self) -> "Catalog":
        twice = [name for name, count in Counter(entry.id for entry in self.models).items() if count > 1]
        if twice:
            raise ValueError(f"{twice[0]!r} is there twice")
        if self.default not in self.loadable_ids:
            raise ValueError(f"the default {self.default!r} is not a model that can be loaded")
        return self

    def with_added(self, entries: Sequence["Entry"]) -> "Catalog":
        """The catalogue with an operator's own models at its end. Raises `ModelError` for an id that is taken."""
        known = {entry.id for entry in self.models}
        for entry in entries:
            if entry.id in known:
                raise ModelError(f"the id {entry.id!r} is taken already; give another: --add-model NEW-ID=WHERE")
            known.add(entry.id)
        return self.model_copy(update={"models": (*self.models, *entries)})

    @property
    def loadable_ids(self) -> tuple[str, ...]:
        """Ids an experiment may name."""
        return tuple(entry.id for entry in self.models if entry.loadable)

    def find(self, model_id: str) -> Entry:
        """The entry of that id, shape-only ones included. Raises `UnknownModelError`."""
        for entry in self.models:
            if entry.id == model_id:
                return entry
        raise UnknownModelError(f"unknown model {model_id!r}; the catalogue has: {', '.join(self.loadable_ids)}")


@cache
def load_catalog(path: Path = CATALOG_FILE) -> Catalog:
    """Read and validate the catalogue; the same value for every call. Raises pydantic's `ValidationError`."""
    return Catalog.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
