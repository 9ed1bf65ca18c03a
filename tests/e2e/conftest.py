"""One browser for all end-to-end tests; each page is a fresh visitor and must end without errors or strangers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser

from tests.e2e import browser as harness
from tests.e2e.browser import Watched
from tests.e2e.widget_site import Site, served

OpenPage = Callable[..., Watched]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser. A machine without one fails here with Playwright's own words on how to install it."""
    with harness.started() as browser:
        yield browser


@pytest.fixture
def browser_page(chromium: Browser) -> Iterator[OpenPage]:
    """`browser_page(url, width=1280, height=800, dark=False)` opens a watched page; at the end it must be clean."""
    pages: list[Watched] = []
    with ExitStack() as stack:

        def open_page(url: str, width: int = 1280, height: int = 800, dark: bool = False) -> Watched:
            opened = harness.opened(chromium, url, width=width, height=height, dark=dark)
            pages.append(stack.enter_context(opened))
            return pages[-1]

        yield open_page
        for watched in pages:
            watched.check()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """The address of the widget gallery, and the choices made there that reached Python."""
    with served() as (address, chosen):
        yield address, chosen
