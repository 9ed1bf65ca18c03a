"""One file of the Hub into a folder, gone on with where it was left; and the bytes of all files added up."""

from pathlib import Path
from typing import Any

from huggingface_hub import constants, hf_hub_url
from huggingface_hub.file_download import http_get
from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]
from tqdm import tqdm

from engine.catalog import HubSource
from engine.loading.progress import Progress, Report


class Meter:
    """Adds up the bytes of all files; a file that was here already counts when it is passed."""

    def __init__(self, total: int, report: Report) -> None:
        self._total, self._report = total, report
        self._before = 0  # of the files that are whole
        self._now = 0
        self._tell()

    def add(self, count: int) -> None:
        """Bytes of the file that is coming; fewer where it begins anew."""
        self._now += count
        self._tell()

    def finish(self, size: int) -> None:
        """The file is whole."""
        self._before, self._now = self._before + size, 0
        self._tell()

    def _tell(self) -> None:
        self._report(Progress("downloading", min(self._before + self._now, self._total), self._total))


def fetch(source: HubSource, name: str, size: int, folder: Path, meter: Meter) -> None:
    """The file, under its name once it is whole. Raises what huggingface_hub raises; what has come is kept."""
    target, partial = folder / name, folder / f"{name}.partial"
    if target.is_file():
        return
    with partial.open("ab") as file:
        if file.tell() > size:
            file.truncate(0)
        http_get(
            hf_hub_url(source.repo, name, revision=source.revision, endpoint=constants.ENDPOINT),
            file,
            resume_size=file.seek(0, 2),
            headers=build_hf_headers(),
            expected_size=size,
            tqdm_class=_bar(meter),
        )
    partial.replace(target)


def _bar(meter: Meter) -> Any:
    """A bar that shows nothing and counts for the meter."""

    class Bar(tqdm):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options | {"disable": True})
            meter.add(int(options.get("initial") or 0))

        def update(self, n: float | None = 1) -> bool | None:
            meter.add(int(n or 0))
            return None

    return Bar
