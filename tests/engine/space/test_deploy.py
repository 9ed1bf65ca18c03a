"""Deploying to a fake of the Hub with the real client: what arrives there, and what is said when it fails."""

import os
import subprocess
import sys

import huggingface_hub
import pytest

from engine.catalog import load_catalog
from engine.space.deploy import deploy, plan
from engine.space.files import Upload
from engine.space.spacefile import ROOT, SpaceError, load_spacefile
from tests.engine.space.fake_hub import LARGE, TOKEN, FakeHub

REPO = "ada/scope"
FILES = [
    Upload("README.md", b"---\ntitle: x\n---\n"),
    Upload("app.py", b"print()\n"),
    Upload("weights/model.gguf", b"\x00\x01" * LARGE),
]


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with FakeHub() as hub:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.endpoint)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub


def go(*, said=None, timeout=20.0, grace=20.0, files=FILES, **options) -> str:
    calls = plan(load_spacefile(), REPO, files, **options)
    say = (lambda line: None) if said is None else said.append
    return deploy(calls, REPO, say=say, timeout=timeout, poll=0.01, grace=grace)


def test_a_space_is_made_with_all_that_it_needs_before_its_first_build(hub):
    said = []
    assert go(said=said, private=True) == f"{hub.endpoint}/spaces/{REPO}"
    space = hub.space(REPO)
    assert space["created"] | {"visibility": "private"} == {
        "name": "scope", "organization": "ada", "type": "space", "sdk": "gradio", "visibility": "private",
    }  # fmt: skip
    assert space["files"] == {upload.path: upload.content for upload in FILES}
    assert {key: value["value"] for key, value in space["variables"].items()} == load_spacefile().environment
    assert space["hardware"] == "cpu-basic"
    ways = [path.removeprefix(f"/api/spaces/{REPO}/") for _, path in hub.requests]
    assert ways.index("hardware") < ways.index("commit/main") < ways.index("runtime")
    assert [line.split()[0] for line in said if "after" in line] == [
        "NO_APP_FILE",
        "BUILDING",
        "APP_STARTING",
        "RUNNING",
    ]


def test_an_update_puts_the_version_there_and_takes_away_what_is_not_in_it(hub):
    go()
    hub.stages = ["RUNNING", "RUNNING_BUILDING", "RUNNING"]
    hub.space(REPO)["files"] |= {"engine/old.py": b"", ".gitattributes": b""}
    go(update=True, files=FILES[:2])
    assert set(hub.space(REPO)["files"]) == {"README.md", "app.py", ".gitattributes"}
    assert hub.stages == ["RUNNING"]  # that of the old version was not taken for the end


def test_without_a_token_nothing_is_sent(hub, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(SpaceError, match="there is no token: log in"):
        go()
    assert hub.spaces == {}


@pytest.mark.parametrize(
    ("part", "status", "said"),
    [
        ("whoami", 401, "does not know this token"),
        ("repos/create", 402, "has to be paid for"),
        ("repos/create", 403, "may not do that to ada/scope"),
        ("commit", 403, "may not do that to ada/scope"),
        ("hardware", 402, "has to be paid for"),
        ("variables", 404, "the Hub has no ada/scope"),
        ("repos/create", 429, "asks to wait"),
        ("repos/create", 418, "the Hub refuses this"),
        ("hardware", 503, "the Hub has trouble"),
    ],
)
def test_what_the_hub_refuses_is_said_with_what_to_do(hub, part, status, said):
    hub.fail[part] = (status, "told by\nthe Hub")
    with pytest.raises(SpaceError, match=said) as refused:
        go()
    assert f"HTTP {status}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_space_that_exists_is_left_as_it_is(hub):
    go()
    before = dict(hub.space(REPO)["files"])
    with pytest.raises(SpaceError, match="exists already: choose another name, or add --update"):
        go(files=FILES[:1])
    assert hub.space(REPO)["files"] == before


def test_without_a_network_it_says_so(hub, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(SpaceError, match="the Hub cannot be reached"):
        go()


@pytest.mark.parametrize(
    ("stage", "log", "said"),
    [
        ("BUILD_ERROR", "build", "the Space could not be built (stage BUILD_ERROR)"),
        ("RUNTIME_ERROR", "run", "the Space was built, but the app ended (stage RUNTIME_ERROR)"),
    ],
)
def test_a_space_that_fails_shows_the_end_of_its_log(hub, stage, log, said):
    hub.stages, hub.error_message = ["BUILDING", stage], "Exit code: 1"
    with pytest.raises(SpaceError) as failed:
        go()
    lines = str(failed.value).splitlines()
    assert lines[:2] == [said, "Exit code: 1"]
    assert lines[2:] == [f"line {number}" for number in range(10, 30)]
    assert hub.space(REPO)["logs"] == log


def test_a_log_that_cannot_be_read_does_not_hide_the_error(hub):
    hub.stages, hub.fail["logs"] = ["BUILDING", "BUILD_ERROR"], (403, "no")
    with pytest.raises(SpaceError, match=r"could not be built \(stage BUILD_ERROR\)\n\(its log cannot be read\)"):
        go()


def test_a_space_that_never_runs_is_given_up(hub):
    hub.stages = ["BUILDING"]
    with pytest.raises(SpaceError, match="still in stage BUILDING after 0 s"):
        go(timeout=0.05)


def test_a_space_that_stays_empty_is_told(hub):
    hub.stages = ["NO_APP_FILE"]
    with pytest.raises(SpaceError, match="finds no app file"):
        go(grace=0.05)


def command(hub, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = os.environ | {"HF_ENDPOINT": hub.endpoint, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_XET": "1"} | environment
    return subprocess.run(
        [sys.executable, "-m", "engine", "space", *arguments], cwd=ROOT, env=given, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_a_dry_run_lists_every_call_and_makes_none(hub):
    done = command(hub, "deploy", "--repo", REPO, "--dry-run", "--update")
    assert done.returncode == 0, done.stderr
    assert hub.requests == []
    names = [line.partition("(")[0] for line in done.stdout.splitlines() if "(" in line and line[0] != " "]
    variables = len(load_spacefile().environment)
    assert names == [
        "whoami", "create_repo", *["add_space_variable"] * variables, "request_space_hardware", "list_repo_files",
        "create_commit", "get_space_runtime",
    ]  # fmt: skip
    assert "weights/SmolLM2-135M-Instruct.Q4_1.gguf" in done.stdout
    assert "key='DECODESCOPE_MAX_RUNS', value='8'" in done.stdout


def test_the_command_deploys_this_very_program(hub):
    hub.stages = ["BUILDING", "RUNNING"]
    done = command(hub, "deploy", "--repo", REPO)
    assert (done.returncode, done.stdout) == (0, f"{hub.endpoint}/spaces/{REPO}\n"), done.stderr
    files = hub.space(REPO)["files"]
    assert files["app.py"] == (ROOT / "app.py").read_bytes()
    source = load_catalog().find("smollm2-135m-instruct").source
    assert {path for path in files if path.endswith(".gguf")} == {f"weights/{source.file.partition('/')[2]}"}
    assert files["requirements.txt"].startswith(b"torch==")
    assert not [path for path in files if path.startswith(("tests/", "docs/", ".")) or "__pycache__" in path]


@pytest.mark.parametrize("repo", ["scope", "a/b/c", "a b/c", "../x"])
def test_a_name_that_is_none_is_refused_before_anything_is_sent(hub, repo):
    done = command(hub, "deploy", "--repo", repo)
    assert done.returncode == 2
    assert "OWNER/NAME is wanted" in done.stderr
    assert hub.requests == []


def test_a_failure_is_told_in_lines_and_no_traceback(hub):
    hub.fail["repos/create"] = (403, "You don't have the rights to create a space under the namespace \x1b[31mada")
    done = command(hub, "deploy", "--repo", REPO)
    assert done.returncode == 1
    assert "error: this account may not do that to ada/scope" in done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr
