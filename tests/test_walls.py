"""The walls of the program: who may import whom, what stays empty, and what no file of it may hold."""

import ast
import graphlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Of the engine: numpy, pydantic and YAML only.
LIGHT = {
    *("answers", "claims", "claims_on_record", "dialogue", "exact_json", "experiment", "facts", "lesson_paths"),
    *("lesson_text", "lessons", "limits", "link", "numerics", "plain_json", "playback", "probe_json", "questions"),
    *("record", "record_check", "refusals", "said", "trace", "trace_check", "trace_json", "truncated"),
    *("typed_json", "values", "wording"),
}
SOURCES = sorted(
    path for folder in ("engine", "components", "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")
)


LIGHT_FILES = [ROOT / "engine" / f"{part}.py" for part in sorted(LIGHT - {"answers"})]
LIGHT_FILES += sorted((ROOT / "engine" / "answers").glob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Full names of all that a file imports when it runs: inside functions too, but not what only the types need."""
    for node in _run_nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _run_nodes(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from _run_nodes(child)


def roots(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)}


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", files("engine"), ids=name)
def test_the_engine_knows_no_page(path: Path) -> None:
    assert not roots(path) & {"gradio", "plotly", "components", "app"}


@pytest.mark.parametrize("path", files("components"), ids=name)
def test_components_know_no_model(path: Path) -> None:
    assert not roots(path) & {"torch", "transformers", "tokenizers", "safetensors", "app"}
    parts = {imported.split(".")[1] for imported in imports(path) if imported.startswith("engine.")}
    assert parts <= LIGHT


@pytest.mark.parametrize("path", LIGHT_FILES, ids=name)
def test_values_know_nothing(path: Path) -> None:
    assert roots(path) <= {"numpy", "pydantic", "yaml", "engine"} | sys.stdlib_module_names
    inside = {imported.split(".")[1] for imported in imports(path) if imported.startswith("engine.")}
    assert inside <= LIGHT


@pytest.mark.parametrize("path", files("engine"), ids=name)
def test_float64_is_made_on_the_cpu(path: Path) -> None:
    """MPS has none."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in {"double", "float64"}:
            assert ast.unparse(node).endswith(".cpu().double")


@pytest.mark.parametrize("path", files("engine/stages"), ids=name)
def test_stages_know_values_and_no_loop(path: Path) -> None:
    parts = {imported.split(".")[1] for imported in imports(path) if imported.startswith("engine.")}
    assert not parts & {"decode", "conversation", "runs", "worker", "sessions", "runtime", "settings", "probes"}


def test_no_import_runs_in_a_circle() -> None:
    """Not even among what only the types need: of two files that name each other, neither can be read first."""
    modules = {
        name(path).removesuffix(".py").replace("/", "."): path
        for path in [*SOURCES, *ROOT.glob("*.py")]
        if path.name != "__init__.py"
    }
    graph = {
        module: {target for target in _named(path) if target in modules and target != module}
        for module, path in modules.items()
    }
    assert sum(map(len, graph.values())) > 1000
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the files


def _named(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name == "__init__.py"], ids=name)
def test_init_files_are_empty(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == ""


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_file_is_one_idea(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 300


def test_components_can_be_imported_where_torch_is_not_installed() -> None:
    """Panels show a recorded trace without the model's libraries: importing them all must not ask for torch."""
    code = (
        "import importlib, sys\n"
        "sys.modules.update(dict.fromkeys(('torch', 'transformers', 'tokenizers', 'safetensors')))\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
    )
    modules = [
        name(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in files("components")
    ]
    assert modules
    answer = subprocess.run(
        [sys.executable, "-c", code, *modules], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr


def tracked_texts() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    binary = {".png", ".webp", ".jpg", ".ico", ".woff2", ".gz"}
    paths = [ROOT / part for part in listed.split("\0") if part]
    return [path for path in paths if path.suffix not in binary and path.is_file()]


#: Home folders, workplaces and package stores of one machine.
PRIVATE = re.compile(r"(?<![\w.~])/(?:home|Users|work|farm|root|opt)/\w")


def test_no_file_names_one_machine() -> None:
    paths = tracked_texts()
    assert len(paths) > 20
    found = [
        f"{name(path)}:{number}: {line.strip()[:80]}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PRIVATE.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.txt")), ids=name)
def test_packages_come_by_name_and_version_from_the_user_s_own_index(path: Path) -> None:
    lines = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    kept = [line for line in lines if line]
    exact = path.name == "constraints.txt"
    pattern = r"[A-Za-z0-9._-]+==[0-9][\w.]*" if exact else r"[A-Za-z0-9._-]+>=[0-9.]+(,<[0-9.]+)?"
    assert kept
    assert [line for line in kept if not re.fullmatch(pattern, line)] == []
