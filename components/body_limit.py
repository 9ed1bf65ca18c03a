"""A limit on what a request may send, before anything reads it."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The largest experiment is a megabyte of JSON; what a page sends beside it is small.
MAX_BODY_BYTES = 4_000_000

#: A recorded run is uploaded as a form; that it is no larger than a record may be is checked after.
UPLOAD, MAX_UPLOAD_BYTES = "/upload", 9_000_000

TOO_LARGE = b"the request is too large"


class BodyLimit:
    """ASGI middleware: a request of more than `MAX_BODY_BYTES` is answered with 413, whatever length it claims."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = MAX_UPLOAD_BYTES if scope["path"].endswith(UPLOAD) else MAX_BODY_BYTES
        claimed = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not claimed.isdigit() or int(claimed) > limit:
            await _refuse(send)
            return
        left = limit

        async def limited() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            # A body without a length, or longer than it claimed: the client is taken to have gone.
            return message if left >= 0 else {"type": "http.disconnect"}

        await self.app(scope, limited, send)


async def _refuse(send: Send) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": TOO_LARGE})
