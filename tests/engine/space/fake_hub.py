"""The part of the Hub's HTTP API that a deploy uses, on this computer; huggingface_hub's own client talks to it."""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

TOKEN = "hf_" + "t" * 20

#: From this size on a file goes to the large file storage.
LARGE = 1_000_000


class FakeHub:
    """Spaces by their id, as they came to be; `stages` are told one after the other, the last one for ever."""

    def __init__(self) -> None:
        self.spaces: dict[str, dict[str, Any]] = {}
        self.stages = ["NO_APP_FILE", "BUILDING", "APP_STARTING", "RUNNING"]
        self.log = [f"line {number}\n" for number in range(30)]
        self.error_message: str | None = None
        self.fail: dict[str, tuple[int, str]] = {}  # part of a path: status and message
        self.requests: list[tuple[str, str]] = []
        self.blobs: dict[str, bytes] = {}
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def space(self, repo: str) -> dict[str, Any]:
        return self.spaces[repo]


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        self._serve(self.rfile.read(int(self.headers.get("Content-Length") or 0)) if not self._chunked else self._all())

    do_PUT = do_POST

    @property
    def _chunked(self) -> bool:
        return self.headers.get("Transfer-Encoding") == "chunked"

    def _all(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _serve(self, body: bytes) -> None:
        path = urlsplit(self.path).path
        self.hub.requests.append((self.command, path))
        failing = next((answer for part, answer in self.hub.fail.items() if part in path), None)
        if failing:
            return self._send(failing[0], {"error": failing[1]})
        if not path.startswith("/store/") and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._send(401, {"error": "Invalid username or password."})
        return self._route(path, body)

    def _route(self, path: str, body: bytes) -> None:
        hub = self.hub
        if path == "/api/whoami-v2":
            return self._send(200, {"name": "ada", "type": "user", "auth": {"accessToken": {"role": "write"}}})
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path == "/api/validate-yaml":
            return self._send(200, {"errors": [], "warnings": []})
        if path.startswith("/store/"):
            hub.blobs[path.removeprefix("/store/")] = body
            return self._send(200, {})
        if path.endswith(".git/info/lfs/objects/batch"):
            return self._batch(json.loads(body))
        repo = "/".join(path.split("/")[3:5])
        if repo not in hub.spaces:
            return self._send(404, {"error": "Repository not found"})
        return self._of_space(hub.spaces[repo], path.split("/")[5:], body)

    def _create(self, asked: dict[str, Any]) -> None:
        repo = f"{asked['organization']}/{asked['name']}"
        if repo in self.hub.spaces:
            url = f"{self.hub.endpoint}/spaces/{repo}"
            return self._send(409, {"error": "You already created this space repo", "url": url})
        self.hub.spaces[repo] = {"created": asked, "files": {}, "variables": {}, "hardware": None, "commits": []}
        return self._send(200, {"url": f"{self.hub.endpoint}/spaces/{repo}", "name": repo})

    def _of_space(self, space: dict[str, Any], what: list[str], body: bytes) -> None:
        hub = self.hub
        match what:
            case ["preupload", "main"]:
                files = json.loads(body)["files"]
                modes = [("lfs" if file["size"] >= LARGE else "regular") for file in files]
                found = [
                    {"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": None}
                    for file, mode in zip(files, modes, strict=True)
                ]
                return self._send(200, {"files": found})
            case ["commit", "main"]:
                return self._commit(space, [json.loads(line) for line in body.splitlines()])
            case ["variables"]:
                asked = json.loads(body)
                space["variables"][asked["key"]] = {"value": asked["value"]}
                return self._send(200, space["variables"])
            case ["hardware"]:
                space["hardware"] = json.loads(body)["flavor"]
                return self._send(200, self._runtime(space, "BUILDING"))
            case ["runtime"]:
                stage = hub.stages.pop(0) if len(hub.stages) > 1 else hub.stages[0]
                return self._send(200, self._runtime(space, stage))
            case ["tree", "main", *_]:
                return self._send(200, [{"type": "file", "path": p, "size": 1, "oid": "0"} for p in space["files"]])
            case ["logs", kind]:
                space["logs"] = kind
                lines = [f"data: {json.dumps({'data': line, 'timestamp': ''})}\n\n" for line in hub.log]
                return self._send(200, "".join(lines).encode(), "text/event-stream")
        return self._send(404, {"error": f"no such route: {what}"})

    def _runtime(self, space: dict[str, Any], stage: str) -> dict[str, Any]:
        told = {"stage": stage, "hardware": {"current": space["hardware"], "requested": space["hardware"]}}
        return told | ({"errorMessage": self.hub.error_message} if self.hub.error_message else {})

    def _batch(self, asked: dict[str, Any]) -> None:
        objects = [
            wanted | {"actions": {"upload": {"href": f"{self.hub.endpoint}/store/{wanted['oid']}", "header": {}}}}
            for wanted in asked["objects"]
        ]
        self._send(200, {"transfer": "basic", "objects": objects})

    def _commit(self, space: dict[str, Any], lines: list[dict[str, Any]]) -> None:
        for line in lines:
            value = line["value"]
            match line["key"]:
                case "header":
                    space["commits"].append(value["summary"])
                case "file":
                    space["files"][value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    blob = self.hub.blobs[value["oid"]]
                    assert hashlib.sha256(blob).hexdigest() == value["oid"]
                    space["files"][value["path"]] = blob
                case "deletedFile":
                    del space["files"][value["path"]]
        created = space["created"]
        page = f"{self.hub.endpoint}/spaces/{created['organization']}/{created['name']}"
        self._send(200, {"success": True, "commitOid": "c" * 40, "commitUrl": f"{page}/commit/{'c' * 40}"})

    def _send(self, status: int, answer: Any, kind: str = "application/json") -> None:
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if status >= 400:
            self.send_header("X-Error-Message", answer["error"].replace("\n", " "))
        self.end_headers()
        self.wfile.write(data)
