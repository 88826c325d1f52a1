"""A proxy on this machine that passes plain requests on, and may ask for a user name first."""

from __future__ import annotations

import base64
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class ProxyServer:
    """``with ProxyServer() as proxy``: ``proxy.address`` is what HTTP_PROXY takes; ``passed`` is asked through it."""

    def __init__(self, login: str | None = None):
        self.passed: list[str] = []
        self.login = login
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> ProxyServer:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    proxy: ProxyServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        proxy, address = self.server.proxy, urlsplit(self.path)
        wanted = None if proxy.login is None else "Basic " + base64.b64encode(proxy.login.encode()).decode()
        if self.headers.get("Proxy-Authorization") != wanted:
            self.send_response(407)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        proxy.passed.append(self.path)
        onward = HTTPConnection(address.hostname or "", address.port or 80)
        headers = {key: value for key, value in self.headers.items() if not key.lower().startswith("proxy-")}
        onward.request("GET", f"{address.path}?{address.query}", headers=headers)
        answer = onward.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for key, value in answer.getheaders():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)
        onward.close()
