"""The Spacefile: refused where it is wrong, agreeing with the README and with what was tested, and never a secret."""

import shutil

import pytest
import yaml

from engine.__main__ import main
from engine.catalog import load_catalog
from engine.space import check, files, readme
from engine.space.requirements import requirements
from engine.space.spacefile import ROOT, SpaceError, load_spacefile, parse_spacefile, preloads

CATALOG = load_catalog()
DATA = yaml.safe_load((ROOT / "Spacefile").read_text("utf-8"))
QWEN = "qwen2.5-0.5b-instruct"
QWEN_FILES = ["config.json", "model.safetensors"]


def space(**changes):
    return parse_spacefile(DATA | changes)


def found(**changes) -> list[str]:
    return [line for line in check.problems(space(**changes), CATALOG) if "front matter" not in line]


def test_the_spacefile_agrees_with_everything():
    assert check.problems(load_spacefile(), CATALOG) == []
    assert main(["space", "check"]) == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"colour": "red"}, "colour: Extra inputs"),
        ({"colorFrom": "mauve"}, "colorFrom: "),
        ({"short_description": "x" * 61}, "short_description: "),
        ({"settings": {"max_runz": 3}}, "the app has no setting 'max_runz'"),
        ({"settings": {"max_runs": 0}}, "max_runs must be at least 1"),
        ({"variables": {"HF_TOKEN": "x"}}, "HF_TOKEN looks like a secret"),
        ({"variables": {"A": "hf_" + "a" * 30}}, "A looks like a secret"),
        ({"variables": {"DECODESCOPE_MAX_RUNS": "3"}}, "put it under `settings`"),
        ({"variables": {"lower": "x"}}, "variables.lower"),
        ({"secrets": {"HF_TOKEN": "value"}}, "secrets: "),
        ({"preload": {QWEN: []}}, "preload"),
        ({"sdk": "docker"}, "sdk: "),
        ({"sdk_version": "6"}, "sdk_version: "),
    ],
)
def test_what_is_wrong_in_itself_is_refused(changes, said):
    with pytest.raises(SpaceError, match=said):
        space(**changes)


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "\x00"])
def test_what_is_no_spacefile_is_refused(tmp_path, text):
    (tmp_path / "Spacefile").write_text(text)
    with pytest.raises(SpaceError):
        load_spacefile(tmp_path / "Spacefile")
    with pytest.raises(SpaceError, match="cannot be read"):
        load_spacefile(tmp_path / "none")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sdk_version": "6.30.0"}, "the tests ran with gradio 6.31.0"),
        ({"python_version": "3.10"}, "the app needs >=3.11"),
        ({"hardware": "toaster"}, "hardware 'toaster' is unknown; there is: cpu-basic"),
        ({"hardware": "zero-a10g", "python_version": "3.13"}, "ZeroGPU has Python 3.10 and 3.12, not 3.13"),
        ({"app_file": "main.py"}, "app_file main.py is not there"),
        ({"settings": {"model": "nobody"}}, "unknown model 'nobody'"),
        ({"settings": {"model": "llama-3-8b"}}, "only the shape is known"),
        ({"settings": {"model": QWEN}}, f"starts with {QWEN}, which `preload` does not name"),
        ({"preload": {"smollm2-135m-instruct": ["x"]}}, "does not come from the Hub"),
        ({"preload": {QWEN: ["config.json"]}}, r"the weights \(\*.safetensors\) are wanted"),
    ],
)
def test_what_does_not_agree_is_told(changes, said):
    import re

    lines = found(**changes)
    assert len(lines) == 1
    assert re.search(said, lines[0])


def test_a_space_may_start_with_a_model_that_is_preloaded():
    chosen = {"settings": {"model": QWEN}, "preload": {QWEN: QWEN_FILES}}
    assert found(**chosen) == []
    source = CATALOG.find(QWEN).source
    assert preloads(space(**chosen), CATALOG) == [f"{source.repo} config.json,model.safetensors {source.revision}"]
    assert not [item for item in files.uploads(space(**chosen), CATALOG) if item.path.startswith("weights/")]


def test_a_readme_that_was_changed_by_hand_is_told_and_mended(tmp_path):
    for name in ("README.md", "app.py", "pyproject.toml", "constraints.txt", "requirements.txt"):
        shutil.copy(ROOT / name, tmp_path)
    path = tmp_path / "README.md"
    path.write_text(path.read_text("utf-8").replace("emoji: 🔬", "emoji: 🧪"), "utf-8")
    (line,) = check.problems(load_spacefile(), CATALOG, tmp_path)
    assert "python -m engine space readme" in line
    assert readme.write(load_spacefile(), CATALOG, path)
    assert not readme.write(load_spacefile(), CATALOG, path)
    assert path.read_bytes() == (ROOT / "README.md").read_bytes()


def test_front_matter_is_put_before_a_document_without_one():
    made = readme.written("# Title\n", load_spacefile(), CATALOG)
    block, rest = readme.split(made)
    assert rest == "\n# Title\n"
    assert yaml.safe_load(block.strip("-\n"))["sdk_version"] == "6.31.0"
    with pytest.raises(SpaceError, match="does not end"):
        readme.split("---\ntitle: x\n")


def test_each_setting_becomes_one_variable():
    made = space(settings={"max_runs": 3, "run_seconds": 1.5, "prefix_cache": "off"}, variables={"A": "b"})
    assert made.environment == {
        "A": "b", "DECODESCOPE_MAX_RUNS": "3", "DECODESCOPE_RUN_SECONDS": "1.5", "DECODESCOPE_PREFIX_CACHE": "off",
    }  # fmt: skip


def test_the_space_installs_the_tested_versions_and_on_zero_gpu_a_torch_that_runs_there():
    lines = requirements(space()).splitlines()
    assert "torch==2.13.0" in lines
    assert "gradio==6.31.0" in lines
    assert len(lines) == len([line for line in (ROOT / "requirements.txt").read_text().splitlines() if line[0] != "#"])
    (torch,) = (line for line in requirements(space(hardware="zero-a10g")).splitlines() if line.startswith("torch"))
    assert set(torch.removeprefix("torch").split(",")) == {">=2.8", "<3", "<2.12"}


@pytest.fixture
def copy(tmp_path):
    """A working copy in small."""
    for name in ("app.py", "README.md", "LICENSE", "requirements.txt", "constraints.txt", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path)
    for folder in ("engine/__pycache__", "components", "assets/.cache", "tests", ".venv", "docs"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "some.txt").write_text("x")
    (tmp_path / "engine" / "a.py").write_text("x = 1\n")
    (tmp_path / "engine" / "a.pyc").write_text("")
    (tmp_path / ".env").write_text("HF_TOKEN=x")
    return tmp_path


def paths(root) -> list[str]:
    return [item.path for item in files.uploads(load_spacefile(), CATALOG, root)]


def test_only_what_the_space_needs_goes_up(copy):
    (copy / "components" / "link").symlink_to(copy / ".env")
    assert paths(copy) == [
        "LICENSE", "README.md", "app.py", "components/some.txt", "engine/a.py", "requirements.txt",
        "weights/SmolLM2-135M-Instruct.Q4_1.gguf",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "gone"), [("some.txt", True), ("/components", True), ("components/", True), ("/some.txt", False)]
)
def test_gitignore_is_respected(copy, pattern, gone):
    (copy / ".gitignore").write_text(f"# a comment\n__pycache__/\n*.pyc\n{pattern}\n")
    assert ("components/some.txt" not in paths(copy)) == gone


@pytest.mark.parametrize("pattern", ["!keep", "a/b", "**/x"])
def test_a_pattern_that_is_not_understood_is_refused(copy, pattern):
    (copy / ".gitignore").write_text(pattern)
    with pytest.raises(SpaceError, match="is not understood here"):
        paths(copy)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("my.pem", "x"),
        ("production.env", "x"),
        ("notes.md", "the token is hf_" + "a" * 34),
        ("notes.md", "-----BEGIN RSA PRIVATE KEY-----"),
    ],
)
def test_a_secret_stops_the_upload(copy, name, content):
    (copy / "assets" / name).write_text(content)
    with pytest.raises(SpaceError, match=f"assets/{name}"):
        paths(copy)
