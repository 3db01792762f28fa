"""A small server on loopback that speaks as much of the Hugging Face Hub's protocol as agents need."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = hashlib.sha1(b"the only commit").hexdigest()
TOKEN = "hf_secretOfTheTests"


class Hub(ThreadingHTTPServer):
    """Repositories in memory: the files of each by name."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        """Method, path and authorisation of every request."""
        self.garbage: bytes | None = None
        """If given, the answer to everything."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self._note()
        path = self.path.partition("?")[0].strip("/")
        owner, name, *rest = [*path.removeprefix("api/models/").split("/"), "", ""]
        files = self.server.repositories.get(f"{owner}/{name}")
        if self.server.garbage is not None:
            self._answer(200, self.server.garbage)
        elif files is None:
            self._answer(404, b"", {"X-Error-Code": "RepoNotFound"})
        elif path.startswith("api/"):
            tree = [{"type": "file", "path": file, "size": len(content), "oid": "0"} for file, content in files.items()]
            siblings = [{"rfilename": file} for file in files]
            about = {"id": f"{owner}/{name}", "sha": COMMIT, "siblings": siblings}
            self._json(tree if "tree" in rest else about)
        elif rest[1] not in ("main", COMMIT):
            self._answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
        elif rest[2] not in files:
            self._answer(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT})
        else:
            content = files[rest[2]]
            self._answer(200, content, {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": COMMIT})

    def do_POST(self) -> None:
        self._note()
        body = self._body()
        path = self.path.partition("?")[0].strip("/")
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            self._answer(401, b'{"error": "Invalid username or password."}')
        elif path == "api/repos/create":
            about = json.loads(body)
            name = f"{about.get('organization') or 'me'}/{about['name']}"
            self.server.repositories.setdefault(name, {})
            self._json({"url": f"{self.server.url}/{name}", "name": name})
        elif "/preupload/" in path:
            paths = [file["path"] for file in json.loads(body)["files"]]
            self._json({"files": [{"path": file, "uploadMode": "regular", "shouldIgnore": False} for file in paths]})
        elif "/commit/" in path:
            owner, name = path.split("/")[2:4]
            self._commit(f"{owner}/{name}", body)
            self._json({"commitUrl": f"{self.server.url}/{owner}/{name}/commit/{COMMIT}", "commitOid": COMMIT})
        else:
            self._json({})

    def _commit(self, name: str, body: bytes) -> None:
        files = self.server.repositories[name]
        for operation in map(json.loads, body.splitlines()):
            value = operation["value"]
            if operation["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif operation["key"] == "deletedFile":
                del files[value["path"]]

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _note(self) -> None:
        self.server.requests.append((self.command, self.path, self.headers.get("authorization")))

    def _json(self, value: Any) -> None:
        self._answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _answer(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@contextmanager
def running_hub() -> Iterator[Hub]:
    """Run a hub without repositories."""
    with Hub() as hub:
        thread = threading.Thread(target=hub.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
