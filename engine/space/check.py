"""Whether the Spacefile agrees with the rest: the README, the tested versions, the catalogue, what the Hub can run."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.specifiers import SpecifierSet

from engine.catalog import Catalog, UnknownModelError
from engine.space.readme import front_matter, split
from engine.space.requirements import exact_versions, torch_fits
from engine.space.spacefile import ROOT, SpaceError, Spacefile, carries, preloads

#: Python of ZeroGPU; any other Space takes what its image is built for.
ZERO_GPU_PYTHON = ("3.10", "3.12")


def problems(space: Spacefile, catalog: Catalog, root: Path = ROOT) -> list[str]:
    """Everything that is wrong, a sentence each; [] where all is well."""
    found = [*_versions(space, root), *_models(space, catalog), *_files(space, catalog, root)]
    return list(dict.fromkeys(found))


def _versions(space: Spacefile, root: Path) -> Iterator[str]:
    from huggingface_hub import SpaceHardware

    gradio = exact_versions(root).get("gradio")
    if space.sdk_version != gradio:
        yield f"sdk_version is {space.sdk_version}, the tests ran with gradio {gradio} (constraints.txt)"
    wanted = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    if space.python_version.count(".") == 1 and f"{space.python_version}.99" not in SpecifierSet(wanted):
        yield f"python_version is {space.python_version}, the app needs {wanted}"
    known = [hardware.value for hardware in SpaceHardware]
    if space.hardware not in known:
        yield f"hardware {space.hardware!r} is unknown; there is: {', '.join(known)}"
    if space.zero_gpu and not space.python_version.startswith(ZERO_GPU_PYTHON):
        yield f"ZeroGPU has Python {' and '.join(ZERO_GPU_PYTHON)}, not {space.python_version}"
    if space.zero_gpu and not torch_fits(root):
        yield "no torch that requirements.txt allows runs on ZeroGPU"


def _models(space: Spacefile, catalog: Catalog) -> Iterator[str]:
    try:
        start = space.start(catalog)
        preloads(space, catalog)
    except (UnknownModelError, SpaceError) as error:
        yield str(error)
        return
    if not start.loadable:
        yield f"the Space would start with {start.id}, of which only the shape is known"
    elif carries(space, catalog) is None and start.id not in space.preload:
        yield f"the Space starts with {start.id}, which `preload` does not name: each start would download it"
    for model, files in space.preload.items():
        if "config.json" not in files or not any(name.endswith(".safetensors") for name in files):
            yield f"preload of {model}: config.json and the weights (*.safetensors) are wanted among the files"


def _files(space: Spacefile, catalog: Catalog, root: Path) -> Iterator[str]:
    if not (root / space.app_file).is_file():
        yield f"app_file {space.app_file} is not there"
    try:
        block, _ = split((root / "README.md").read_text(encoding="utf-8"))
        agrees = block == front_matter(space, catalog)
    except (SpaceError, UnknownModelError) as error:
        yield str(error)
        return
    if not agrees:
        yield "README.md does not begin with the front matter of the Spacefile: run `python -m engine space readme`"
