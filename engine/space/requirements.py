"""What the Space installs: of everything in requirements.txt the very version that was tested."""

from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from engine.space.spacefile import ROOT, SpaceError, Spacefile

#: Of torch, what ZeroGPU runs.
ZERO_GPU_TORCH = SpecifierSet(">=2.8,<2.12")
ZERO_GPU_MINORS = ("2.8.0", "2.9.0", "2.10.0", "2.11.0")


def lines_of(path: Path) -> list[str]:
    """The requirements of a file, without comments."""
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def exact_versions(root: Path = ROOT) -> dict[str, str]:
    """The exact versions of constraints.txt by the name in small letters, "-" for "_"."""
    pairs = (line.split("==") for line in lines_of(root / "constraints.txt"))
    return {_plain(name): version for name, version in pairs}


def requirements(space: Spacefile, root: Path = ROOT) -> str:
    """The Space's requirements.txt. Raises `SpaceError` for a package that was not tested."""
    versions, lines = exact_versions(root), []
    for requirement in map(Requirement, lines_of(root / "requirements.txt")):
        version = versions.get(_plain(requirement.name))
        if version is None:
            raise SpaceError(f"constraints.txt has no version of {requirement.name}")
        if space.zero_gpu and requirement.name == "torch":
            lines.append(f"torch{requirement.specifier & ZERO_GPU_TORCH}")
        else:
            lines.append(f"{requirement.name}=={version}")
    return "".join(f"{line}\n" for line in lines)


def torch_fits(root: Path = ROOT) -> bool:
    """True where a torch that requirements.txt allows runs on ZeroGPU."""
    (torch,) = (each for each in map(Requirement, lines_of(root / "requirements.txt")) if each.name == "torch")
    return any(version in torch.specifier for version in ZERO_GPU_MINORS)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
