"""Find a Chromium for the browser tests, or install one: `python -m tests.e2e.chromium`."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def find_chromium() -> Path | None:
    """The first Chromium that starts: one on the PATH, else Playwright's own; None where there is none."""
    return next((path for path in _candidates() if _starts(path)), None)


def _candidates() -> Iterator[Path]:
    yield from (Path(path) for name in NAMES if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
    if own.exists():
        yield own


def _starts(path: Path) -> bool:
    """True where the program answers; a package manager's placeholder does not."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


def _installers() -> Iterator[list[list[str]]]:
    """Command lists to try, the system's package manager first where it may be used."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if is_root and shutil.which("apt-get"):
        yield [
            ["apt-get", "update", "-qq"],
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"],
        ]
    yield [[sys.executable, "-m", "playwright", "install", "chromium"]]


def _run_all(commands: list[list[str]]) -> None:
    for command in commands:
        print("Chromium for the browser tests:", " ".join(command), flush=True)
        if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode != 0:
            return


def main() -> int:
    """Exit code 0 once a Chromium starts, else 1 and what to do."""
    for commands in _installers():
        if find_chromium():
            return 0
        _run_all(commands)
    if find_chromium():
        return 0
    print("No Chromium, and none could be installed: install 'chromium' by hand, then run again.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
