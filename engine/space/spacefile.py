"""The Spacefile: every setting of a Hugging Face Space of this app, in one validated value.

The Hub does not read it. From it come the front matter of the README (`engine.space.readme`), the requirements of the
Space (`engine.space.requirements`) and the calls that make one (`engine.space.deploy`).
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, field_validator

from engine.catalog import Catalog, EmbeddedSource, Entry, HubSource
from engine.settings import Settings
from engine.space.secrecy import holds_secret, is_secret_variable
from engine.values import Value

ROOT = Path(__file__).resolve().parents[2]

Colour = Literal["red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"]
Name = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$")]
Scalar = bool | int | float | str

#: Before the name of each field of `Settings` that the environment sets.
PREFIX = "DECODESCOPE_"


class SpaceError(RuntimeError):
    """A Space cannot be described or made so. The message says why and what to do."""


class Spacefile(Value):
    """The file's keys. Unknown ones are refused."""

    title: Annotated[str, Field(min_length=1, max_length=60)]
    emoji: Annotated[str, Field(min_length=1, max_length=8)]
    colorFrom: Colour  # the Hub's own spelling
    colorTo: Colour
    short_description: Annotated[str, Field(max_length=60)]
    license: str
    tags: tuple[str, ...] = ()
    models: tuple[Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")], ...] = ()
    sdk: Literal["gradio"]
    sdk_version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")]
    python_version: Annotated[str, Field(pattern=r"^3\.\d+(\.\d+)?$")]
    app_file: str
    hardware: str
    preload: dict[str, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(default={})
    settings: dict[str, Scalar] = Field(default={})
    variables: dict[Name, str] = Field(default={})
    secrets: tuple[Name, ...] = ()

    @field_validator("settings")
    @classmethod
    def _they_are_the_app_s(cls, settings: dict[str, Scalar]) -> dict[str, Scalar]:
        known = {item.name for item in fields(Settings)}
        for name in settings:
            if name not in known:
                raise ValueError(f"the app has no setting {name!r}; there are: {', '.join(sorted(known))}")
        Settings(**settings)  # type: ignore[arg-type]  # its own limits
        return settings

    @field_validator("variables")
    @classmethod
    def _they_are_public(cls, variables: dict[str, str]) -> dict[str, str]:
        for name, value in variables.items():
            if is_secret_variable(name) or holds_secret(value.encode()):
                raise ValueError(f"{name} looks like a secret: variables are public; name it under `secrets`")
            if name.startswith(PREFIX) and name.removeprefix(PREFIX).lower() in {f.name for f in fields(Settings)}:
                raise ValueError(f"{name} is a setting of the app: put it under `settings`")
        return variables

    @property
    def zero_gpu(self) -> bool:
        """True where a GPU is lent for seconds at a time."""
        return self.hardware.startswith("zero-")

    @property
    def environment(self) -> dict[str, str]:
        """All variables of the Space: those named, and one for each setting."""
        return dict(self.variables) | {PREFIX + name.upper(): _text(value) for name, value in self.settings.items()}

    def start(self, catalog: Catalog) -> Entry:
        """The model that the Space starts with. Raises `UnknownModelError`."""
        return catalog.find(str(self.settings.get("model") or catalog.default))


def load_spacefile(path: Path = ROOT / "Spacefile") -> Spacefile:
    """Read and validate the file. Raises `SpaceError` with the first thing that is wrong."""
    try:
        return parse_spacefile(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SpaceError(f"{path.name} cannot be read: {' '.join(str(error).split())}") from error


def parse_spacefile(data: Any) -> Spacefile:
    """The file's content. Raises `SpaceError`."""
    if not isinstance(data, Mapping):
        raise SpaceError("the Spacefile must be a mapping of keys to values")
    try:
        return Spacefile.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise SpaceError(f"Spacefile: {where}: {first['msg'].removeprefix('Value error, ')}") from None


def preloads(space: Spacefile, catalog: Catalog) -> list[str]:
    """What the Hub is to put into the Space's cache while it builds: repository, files, commit.

    Raises `SpaceError` for a model that does not come from the Hub.
    """
    lines = []
    for model, files in space.preload.items():
        source = catalog.find(model).source
        if not isinstance(source, HubSource):
            raise SpaceError(f"Spacefile: preload: {model} does not come from the Hub")
        lines.append(f"{source.repo} {','.join(files)} {source.revision}")
    return lines


def carries(space: Spacefile, catalog: Catalog) -> EmbeddedSource | None:
    """The model file that goes up with the Space: that of a start model which comes out of a Python package.

    The Hub installs packages with what they depend on, and this one's dependencies would compile an engine.
    """
    source = space.start(catalog).source
    return source if isinstance(source, EmbeddedSource) else None


def _text(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
