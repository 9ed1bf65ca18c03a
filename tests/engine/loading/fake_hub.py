"""A Hub of this machine for tests: the part of its HTTP API that a download uses, over folders of files."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "c0ffee" * 6 + "1234"


@dataclass
class Repo:
    """`answers` are (status, error code) instead of the repository's description, or of its files."""

    folder: Path
    commit: str = COMMIT
    branches: tuple[str, ...] = ("main",)
    description: tuple[int, str] | None = None
    files: tuple[int, str] | None = None
    tags: tuple[str, ...] = ("license:apache-2.0",)
    cuts: dict[str, list[int]] = field(default_factory=dict)  # bytes after which a file's next answers break off


@dataclass
class Hub:
    """`asked` are (method, path, range) of every request."""

    url: str = ""
    repos: dict[str, Repo] = field(default_factory=dict)
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    def got(self, name: str) -> list[str]:
        """Ranges of the GETs of a file, "" for a whole one."""
        return [part for method, path, part in self.asked if method == "GET" and path.endswith(f"/{name}")]


@contextmanager
def serving() -> Iterator[Hub]:
    """An empty Hub on a free port."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def log_message(self, *arguments: Any) -> None:
            pass

        def _answer(self) -> None:
            path = self.path.partition("?")[0]
            hub.asked.append((self.command, path, self.headers.get("Range", "")))
            if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/([^/]+))?", path):
                self._describe(found[1], found[2] or "main")
            elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
                self._file(found[1], found[2], found[3])
            else:
                self._refuse(404, "")

        def _describe(self, name: str, revision: str) -> None:
            repo = hub.repos.get(name)
            if repo is None or repo.description:
                self._refuse(*(repo.description if repo and repo.description else (404, "RepoNotFound")))
            elif revision not in (*repo.branches, repo.commit):
                self._refuse(404, "RevisionNotFound")
            else:
                files = [_sibling(path) for path in sorted(repo.folder.iterdir())]
                data = {"id": name, "sha": repo.commit, "siblings": files, "tags": list(repo.tags)}
                self._send(200, json.dumps(data).encode(), {"Content-Type": "application/json"})

        def _file(self, name: str, revision: str, file: str) -> None:
            repo = hub.repos[name]
            path = repo.folder / file
            if repo.files:
                self._refuse(*repo.files)
                return
            if not path.is_file() or revision not in (*repo.branches, repo.commit):
                self._refuse(404, "EntryNotFound")
                return
            body = path.read_bytes()
            told = {"ETag": f'"{hashlib.sha256(body).hexdigest()}"', "X-Repo-Commit": repo.commit}
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            if asked is None:
                self._send(200, body, told, repo.cuts.get(file))
                return
            first, last = int(asked[1]), min(int(asked[2] or len(body)), len(body) - 1)
            told["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
            self._send(206, body[first : last + 1], told, repo.cuts.get(file))

        def _refuse(self, status: int, code: str) -> None:
            self._send(status, b"", {"X-Error-Code": code} if code else {})

        def _send(self, status: int, body: bytes, headers: dict[str, str], cuts: list[int] | None = None) -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "HEAD":
                return
            if cuts:
                body = body[: cuts.pop(0)]
                self.close_connection = True
            self.wfile.write(body)
            if self.close_connection:
                self.wfile.flush()
                self.connection.close()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


def _sibling(path: Path) -> dict[str, Any]:
    """A file as the Hub describes it; weights with their SHA-256."""
    size = path.stat().st_size
    if path.suffix != ".safetensors":
        return {"rfilename": path.name, "size": size}
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"rfilename": path.name, "size": size, "lfs": {"size": size, "sha256": digest, "pointerSize": 134}}
