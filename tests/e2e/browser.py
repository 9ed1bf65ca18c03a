"""A real browser that keeps account: what the console said against the page, and who was asked for something."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Request, sync_playwright

from tests.e2e.chromium import find_chromium

#: Once what changed has been drawn.
DRAWN = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"

#: What Playwright itself switches off, as a second list replaces the first; and, last, the search box of the address
#: field, whose two unseen pages cost each window a second of a core.
FEATURES_OFF = (
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "TcpPortRandomizationWin",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
)
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    f"--disable-features={','.join(FEATURES_OFF)}",
)


@dataclass
class Watched:
    """An open page with all that went wrong in it: `errors` of the console, `strangers` = addresses on other hosts.

    `streams` are gradio's open streams of messages.
    """

    page: Page
    host: str
    errors: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    streams: set[Request] = field(default_factory=set)

    def check(self) -> None:
        """No error, no request to another host."""
        assert self.errors == []
        assert self.strangers == []


@contextmanager
def started() -> Iterator[Browser]:
    """A headless browser, closed at the end. Where none is found Playwright's error says how to get its own."""
    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Browser, url: str, *, width: int, height: int, dark: bool, locale: str = "en-US"
) -> Iterator[Watched]:
    """A fresh visitor's page of that size at `url`, once gradio has mounted it; the browser prefers `locale`."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        locale=locale,
    )
    watched = Watched(context.new_page(), urlsplit(url).netloc)
    watched.page.on("console", lambda message: watched.errors.append(message.text) if message.type == "error" else None)
    watched.page.on("pageerror", lambda error: watched.errors.append(str(error)))
    watched.page.on("request", lambda request: _note(watched, request))
    for end in ("requestfinished", "requestfailed"):
        watched.page.on(end, lambda request: watched.streams.discard(request))
    watched.page.goto(url)
    watched.page.wait_for_selector(".gradio-container .contain")
    yield watched
    context.close()


def _note(watched: Watched, request: Request) -> None:
    parts = urlsplit(request.url)
    if parts.path.endswith("/queue/data"):
        watched.streams.add(request)
    if parts.scheme not in ("data", "blob") and parts.netloc != watched.host:
        watched.strangers.append(request.url)
