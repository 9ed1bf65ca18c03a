"""What is too large is refused before it is read."""

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from components.body_limit import MAX_BODY_BYTES, MAX_UPLOAD_BYTES, BodyLimit
from engine.record import MAX_FILE_BYTES


async def length(request: Request) -> PlainTextResponse:
    try:
        return PlainTextResponse(str(len(await request.body())))
    except ClientDisconnect:
        return PlainTextResponse("gone", status_code=400)


@pytest.fixture
def client() -> Iterator[TestClient]:
    routes = [Route(path, length, methods=["POST"]) for path in ("/", "/gradio_api/upload")]
    app = Starlette(routes=routes, middleware=[Middleware(BodyLimit)])
    with TestClient(app) as client:
        yield client


def test_what_fits_passes_whole(client: TestClient) -> None:
    answer = client.post("/", content=b"x" * MAX_BODY_BYTES)
    assert (answer.status_code, answer.text) == (200, str(MAX_BODY_BYTES))


def test_one_byte_more_is_refused(client: TestClient) -> None:
    assert client.post("/", content=b"x" * (MAX_BODY_BYTES + 1)).status_code == 413


def test_a_body_without_a_length_is_cut_off(client: TestClient) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(9):
            yield b"x" * 1_000_000

    assert client.post("/", content=pieces()).status_code == 400


def test_a_length_that_is_no_number_is_refused(client: TestClient) -> None:
    assert client.post("/", content=b"x", headers={"content-length": "many"}).status_code == 413


def test_an_upload_may_be_as_large_as_a_record_and_no_larger(client: TestClient) -> None:
    assert MAX_UPLOAD_BYTES > MAX_FILE_BYTES
    answer = client.post("/gradio_api/upload", content=b"x" * MAX_FILE_BYTES)
    assert (answer.status_code, answer.text) == (200, str(MAX_FILE_BYTES))
    assert client.post("/gradio_api/upload", content=b"x" * (MAX_UPLOAD_BYTES + 1)).status_code == 413
