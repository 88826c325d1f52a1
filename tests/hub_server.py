"""A model hub on this machine: the hub's API, resolve addresses that lead to another host, and faults on demand."""

from __future__ import annotations

import hashlib
import json
import re
import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, quote, unquote, urlsplit

LARGE = 4096  # files from here on are stored apart, as the hub does with LFS: SHA-256 and a redirect
PIECE = 16 * 1024
Kind = Literal["drop", "stall", "status", "corrupt", "no range"]


@dataclass(frozen=True)
class Fault:
    """What happens to one answer: "drop" the connection or "stall" after ``after`` bytes, answer ``status`` with ``headers``,
    "corrupt" one byte, or ignore the Range header ("no range")."""

    kind: Kind
    after: int = 0
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """A request as it arrived. ``place``: "hub" or "store", the host that large files are redirected to."""

    place: str
    path: str
    range: str | None
    authorization: str | None


@dataclass
class Repository:
    files: dict[str, bytes]
    gated: bool = False
    tags: tuple[str, ...] = ()
    downloads: int = 10

    @property
    def commit(self) -> str:
        text = json.dumps({name: hashlib.sha1(data).hexdigest() for name, data in sorted(self.files.items())})
        return hashlib.sha1(text.encode()).hexdigest()


def git_digest(data: bytes) -> str:
    """The name git gives a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class HubServer:
    """``with HubServer() as hub``: ``hub.address`` is what HF_ENDPOINT takes.

    ``faults["org/name/file"]`` and ``api_faults`` hold faults for the next answers; None lets one pass. ``bytes_per_s`` slows each
    answer down; no more than the share ``held`` of a large file comes until it is None again, however long a test takes.
    ``tokens`` are valid; ``granted`` may read gated repositories. ``seen`` has every request.
    """

    def __init__(self, tls: ssl.SSLContext | None = None):
        self.repositories: dict[str, Repository] = {}
        self.faults: dict[str, deque[Fault | None]] = {}
        self.api_faults: deque[Fault | None] = deque()
        self.bytes_per_s: float | None = None
        self.held: float | None = None
        self.tokens: set[str] = {"hf_valid", "hf_granted"}
        self.granted: set[str] = {"hf_granted"}
        self.seen: list[Seen] = []
        self.sent_bytes = 0
        self.transfers = 0  # answers that are being sent now
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self._servers = [_Server(self, place, tls) for place in ("hub", "store")]
        scheme = "https" if tls else "http"
        # Two names of this machine, so that going from one to the other is a change of host.
        self.address = f"{scheme}://localhost:{self._servers[0].server_port}"
        self.store = f"{scheme}://127.0.0.1:{self._servers[1].server_port}"

    def __enter__(self) -> HubServer:
        for server in self._servers:
            server.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stopping.set()
        for server in self._servers:
            server.stop()

    def add(self, name: str, files: Mapping[str, bytes | str], **settings: Any) -> Repository:
        """Puts a repository on the hub."""
        contents = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}
        self.repositories[name] = Repository(contents, **settings)
        return self.repositories[name]

    def add_folder(self, name: str, folder: Path, **settings: Any) -> Repository:
        """Puts the files of ``folder`` on the hub."""
        return self.add(name, {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}, **settings)

    def fail(self, file: str, *faults: Fault | None) -> None:
        """The next requests for ``file`` ("org/name/file") meet ``faults``, one each."""
        self.faults.setdefault(file, deque()).extend(faults)

    def requests_for(self, part: str, place: str | None = None) -> list[Seen]:
        return [seen for seen in list(self.seen) if part in seen.path and place in (None, seen.place)]

    def next_fault(self, file: str) -> Fault | None:
        with self.lock:
            waiting = self.faults.get(file)
            return waiting.popleft() if waiting else None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, hub: HubServer, place: str, tls: ssl.SSLContext | None):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub, self.place = hub, place
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves in the middle is what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        hub = self.server.hub
        address = urlsplit(self.path)
        path, query = unquote(address.path), parse_qs(address.query)
        hub.seen.append(Seen(self.server.place, self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        if self.server.place == "store":
            repository, file = query["repository"][0], query["file"][0]
            self._content(repository, file)
        elif path.startswith("/api/"):
            self._api(path.removeprefix("/api/"), query)
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            self._resolve(*found.groups())
        else:
            self._answer(404, {})

    # The API

    def _api(self, path: str, query: dict[str, list[str]]) -> None:
        hub = self.server.hub
        fault = hub.api_faults.popleft() if hub.api_faults else None
        if fault is not None:
            self._fail_early(fault)
        elif path == "whoami-v2":
            known = self._token() in hub.tokens
            self._answer(200, {"name": "somebody"}) if known else self._bad_token()
        elif path == "models":
            self._search(query)
        elif found := re.fullmatch(r"models/([^/]+/[^/]+?)(?:/revision/(.+))?", path):
            name = found[1]
            if self._may_see(name, listing=True):
                self._answer(200, _info(name, hub.repositories[name], "blobs" in query))
        else:
            self._answer(404, {})

    def _search(self, query: dict[str, list[str]]) -> None:
        if not self._token_is_fine():
            return
        words = query.get("search", [""])[0].lower().split()
        found = [
            _info(name, repository, False)
            for name, repository in self.server.hub.repositories.items()
            if all(word in name.lower() for word in words)
        ]
        found.sort(key=lambda info: -info["downloads"])
        self._answer(200, found[: int(query.get("limit", ["1000"])[0])])

    def do_HEAD(self) -> None:
        """What the hub's own client asks before it fetches a file."""
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", unquote(urlsplit(self.path).path))
        if found is None or found[1] not in self.server.hub.repositories:
            self._answer(404, {})
            return
        repository = self.server.hub.repositories[found[1]]
        data = repository.files[found[3]]
        digest = hashlib.sha256(data).hexdigest() if len(data) >= LARGE else git_digest(data)
        self.send_response(200)
        self.send_header("X-Repo-Commit", repository.commit)
        self.send_header("ETag", f'"{digest}"')
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()

    def _resolve(self, name: str, revision: str, file: str) -> None:
        if not self._may_see(name):
            return
        repository = self.server.hub.repositories[name]
        if file not in repository.files or revision not in ("main", repository.commit):
            self._answer(404, {}, {"X-Error-Code": "EntryNotFound"})
        elif len(repository.files[file]) >= LARGE:
            target = f"{self.server.hub.store}/blob?repository={quote(name)}&file={quote(file)}&Signature=secret"
            self._answer(302, {}, {"Location": target})
        else:
            self._content(name, file)

    # Who may see what

    def _token(self) -> str | None:
        value = self.headers.get("Authorization")
        return value.removeprefix("Bearer ") if value else None

    def _token_is_fine(self) -> bool:
        if self._token() is None or self._token() in self.server.hub.tokens:
            return True
        self._bad_token()
        return False

    def _bad_token(self) -> None:
        self._answer(401, {}, {"X-Error-Message": "Invalid credentials in Authorization header"})

    def _may_see(self, name: str, listing: bool = False) -> bool:
        if not self._token_is_fine():
            return False
        repository = self.server.hub.repositories.get(name)
        if repository is None:
            self._answer(401 if self._token() is None else 404, {}, {"X-Error-Code": "RepoNotFound"})
            return False
        if repository.gated and not listing and self._token() not in self.server.hub.granted:
            code = 401 if self._token() is None else 403
            self._answer(code, {}, {"X-Error-Code": "GatedRepo", "X-Error-Message": f"Access to model {name} is restricted."})
            return False
        return True

    # Answers

    def _answer(self, status: int, content: Any, headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _fail_early(self, fault: Fault) -> None:
        if fault.kind == "status":
            self._answer(fault.status, {"error": "as asked"}, fault.headers)
        elif fault.kind == "stall":
            self.server.hub.stopping.wait(30)
        self.close_connection = True

    def _content(self, name: str, file: str) -> None:
        hub = self.server.hub
        data = hub.repositories[name].files[file]
        fault = hub.next_fault(f"{name}/{file}")
        if fault is not None and fault.kind == "status":
            self._answer(fault.status, {}, fault.headers)
            return
        if fault is not None and fault.kind == "corrupt":
            data = data[:-1] + bytes([data[-1] ^ 1])
        begin = 0
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if asked and not (fault is not None and fault.kind == "no range"):
            begin = int(asked[1])
        if begin >= len(data) > 0:
            self._answer(416, {}, {"Content-Range": f"bytes */{len(data)}"})
            return
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(data) - begin))
        self.send_header("ETag", f'"{hashlib.md5(data).hexdigest()}"')
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        self._send(data[begin:], fault)

    def _send(self, data: bytes, fault: Fault | None) -> None:
        hub = self.server.hub
        limit = fault.after if fault is not None and fault.kind in ("drop", "stall") else len(data)
        with hub.lock:
            hub.transfers += 1
        try:
            for at in range(0, limit, PIECE):
                if hub.stopping.is_set():
                    break
                while hub.held is not None and at > hub.held * len(data) and not hub.stopping.is_set():
                    if self._left():
                        return
                piece = data[at : min(at + PIECE, limit)]
                self.wfile.write(piece)
                with hub.lock:
                    hub.sent_bytes += len(piece)
                if hub.bytes_per_s is not None:
                    time.sleep(len(piece) / hub.bytes_per_s)
            if fault is not None and fault.kind == "stall":
                hub.stopping.wait(30)
        finally:
            self.close_connection = limit < len(data)
            with hub.lock:
                hub.transfers -= 1

    def _left(self) -> bool:
        """Waits a moment; whether the client is gone."""
        readable, _, _ = select.select([self.connection], [], [], 0.005)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)


def _info(name: str, repository: Repository, blobs: bool) -> dict[str, Any]:
    siblings = []
    for path, data in repository.files.items():
        sibling: dict[str, Any] = {"rfilename": path}
        if blobs:
            sibling |= {"size": len(data), "blobId": git_digest(data)}
            if len(data) >= LARGE:
                sibling["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
        siblings.append(sibling)
    info = {"id": name, "modelId": name, "sha": repository.commit, "gated": "manual" if repository.gated else False,
            "downloads": repository.downloads, "tags": list(repository.tags), "siblings": siblings, "private": False}  # fmt: skip
    if "config.json" in repository.files:
        config = json.loads(repository.files["config.json"])
        info["config"] = {key: config[key] for key in ("model_type", "architectures") if key in config}
    weights = sum(len(data) for path, data in repository.files.items() if path.endswith(".safetensors"))
    info["safetensors"] = {"parameters": {"BF16": weights // 2}, "total": weights // 2}
    return info
