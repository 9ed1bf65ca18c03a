"""One browser and one app for all end-to-end tests; each page is a fresh visitor without errors or strangers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from gradio_client import Client
from playwright.sync_api import Browser

from tests.e2e import app_server
from tests.e2e import browser as harness
from tests.e2e.browser import Watched
from tests.e2e.experiments import default_experiment
from tests.e2e.visitor import Visitor
from tests.e2e.widget_site import Site, served

OpenPage = Callable[..., Watched]
OpenApp = Callable[..., Visitor]
RunTrace = Callable[[dict[str, Any]], dict[str, Any]]
AskProbe = Callable[[dict[str, Any], str, Any], dict[str, Any]]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser. A machine without one fails here with Playwright's own words on how to install it."""
    with harness.started() as browser:
        yield browser


@pytest.fixture
def browser_page(chromium: Browser) -> Iterator[OpenPage]:
    """`browser_page(url, width=1280, height=800, dark=False, locale="en-US")` opens a watched page.

    At the end it must be clean.
    """
    pages: list[Watched] = []
    with ExitStack() as stack:

        def open_page(
            url: str, width: int = 1280, height: int = 800, dark: bool = False, locale: str = "en-US"
        ) -> Watched:
            opened = harness.opened(chromium, url, width=width, height=height, dark=dark, locale=locale)
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


@pytest.fixture(scope="session")
def app() -> Iterator[str]:
    """The address of the real app on its default model."""
    with app_server.started() as address:
        yield address


@pytest.fixture
def visit(app: str, browser_page: OpenPage) -> OpenApp:
    """`visit(width=1280, height=800, dark=False, locale="en-US")`: a new visitor, at the default experiment."""

    def open_app(**options: Any) -> Visitor:
        return Visitor(browser_page(app, **options))

    return open_app


@pytest.fixture(scope="session")
def run_trace(app: str) -> RunTrace:
    """The app's endpoint /trace: an experiment in, its trace out, both as JSON."""
    client = Client(app, verbose=False)

    def call(experiment: dict[str, Any]) -> dict[str, Any]:
        trace: dict[str, Any] = client.predict(experiment, api_name="/trace")
        return trace

    return call


@pytest.fixture(scope="session")
def ask_probe(app: str) -> AskProbe:
    """The app's endpoint /probe: an experiment or a trace, a name and arguments in, the answer out, all as JSON."""
    client = Client(app, verbose=False)

    def call(source: dict[str, Any], name: str, arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = client.predict(source, name, arguments, api_name="/probe")
        return answer

    return call


@pytest.fixture(scope="session")
def paris(run_trace: RunTrace) -> dict[str, Any]:
    """The trace of the experiment that the page opens with."""
    return run_trace(default_experiment())
