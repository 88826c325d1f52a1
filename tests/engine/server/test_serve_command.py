"""``slipstream serve`` as a command: keys, web pages, names, ports, and how it ends."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from engine import cli
from tests.engine.server.conftest import PATIENCE_S, Served

PAGE = "http://localhost:3000"
ASK = {"messages": [{"role": "user", "content": "Explain how rainbows form."}]}
KEY = {"Authorization": "Bearer clé 虹".encode().decode("latin-1")}


@pytest.fixture(scope="module")
def guarded(home: Path) -> Iterator[Served]:
    """A server for the network, with a key."""
    options = ("--host", "0.0.0.0", "--allow-origin", f"{PAGE}/", "--served-name", "pet/one", "--max-queue", "1")
    running = Served(home, "--model", "starter", *options, SLIPSTREAM_API_KEY="clé 虹")
    running.http.headers.update({name: value.encode("latin-1") for name, value in KEY.items()})
    yield running
    if running.process.poll() is None:
        running.stop()


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """Exit code and output of a ``serve`` that does not come to loading its model."""
    monkeypatch.setattr(cli, "_load", lambda *_: pytest.fail("the model was loaded"))

    def serve(*options: str) -> tuple[int, str]:
        try:
            code = cli.main(("serve", "--model", "starter", *options))
        except SystemExit as leaving:  # argparse's way out
            assert isinstance(leaving.code, int)
            code = leaving.code
        return code, "".join(capsys.readouterr())

    return serve


@pytest.mark.parametrize("given", [None, "Bearer", "Bearer wrong", "Basic clé 虹", "Bearer clé 虹x"])
def test_without_the_right_key_only_health_answers(guarded: Served, given: str | None) -> None:
    headers = {} if given is None else {"Authorization": given.encode()}
    with httpx2.Client(base_url=guarded.url, trust_env=False) as client:
        for method, path in (("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("GET", "/metrics"), ("GET", "/nowhere")):
            answer = client.request(method, path, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
            assert answer.headers["www-authenticate"] == "Bearer"
        assert client.get("/health").status_code == 200
    assert guarded.http.get("/v1/models").status_code == 200


def test_a_page_that_is_allowed_gets_its_headers_on_answers_and_errors_alike(guarded: Served) -> None:
    asked = {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    before = httpx2.options(f"{guarded.url}/v1/chat/completions", headers=asked, trust_env=False)
    assert before.status_code == 200 and "authorization" in before.headers["access-control-allow-headers"]
    answers = [
        guarded.http.post("/v1/chat/completions", json=ASK | {"max_tokens": 1}, headers={"Origin": PAGE}),
        guarded.http.post("/v1/chat/completions", content="x", headers={"Origin": PAGE}),
        httpx2.get(f"{guarded.url}/v1/models", headers={"Origin": PAGE}, trust_env=False),
    ]
    assert [answer.status_code for answer in answers] == [200, 400, 401]
    assert {answer.headers["access-control-allow-origin"] for answer in [before, *answers]} == {PAGE}
    assert guarded.http.get("/v1/models", headers={"Origin": "http://localhost:3001"}).status_code == 403


def test_any_host_name_is_taken_where_the_network_may_ask(guarded: Served) -> None:
    assert guarded.http.get("/v1/models", headers={"Host": "den.example:8000"}).status_code == 200


def test_the_served_name_is_what_clients_see_and_the_pair_s_id_still_counts(guarded: Served) -> None:
    assert guarded.http.get("/v1/models").json()["data"][0]["id"] == "pet/one"
    for name in ("pet/one", "starter"):
        assert guarded.post(**(ASK | {"model": name, "max_tokens": 1})).json()["model"] == "pet/one"
    assert guarded.http.get("/v1/models/pet/one").status_code == 200
    assert "'pet/one'" in guarded.post(**(ASK | {"model": "pet"})).json()["error"]["message"]


def test_sigterm_ends_the_open_answer_cleanly_tells_who_waits_and_exits_with_0(guarded: Served) -> None:
    """The last test of this server."""
    lines: list[str] = []
    begun = threading.Event()
    waited: list[httpx2.Response] = []

    def read() -> None:
        body = ASK | {"max_tokens": 4000, "stream": True}
        with guarded.http.stream("POST", "/v1/chat/completions", json=body) as answer:
            for line in answer.iter_lines():
                lines.append(line)
                begun.set()

    threads = [threading.Thread(target=read), threading.Thread(target=lambda: waited.append(guarded.post(**ASK)))]
    threads[0].start()
    assert begun.wait(PATIENCE_S)
    threads[1].start()
    while not guarded.http.get("/health").json()["waiting"]:
        time.sleep(0.02)
    refused = guarded.post(**ASK)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "queue_full"), "--max-queue 1 lets one wait"
    guarded.process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert guarded.leave() == 0
    data = [line[6:] for line in lines if line.startswith("data: ")]
    last = json.loads(data[-2])
    assert data[-1] == "[DONE]" and last["choices"][0]["finish_reason"] == "length"
    assert last["slipstream"]["finish_reason"] == "cancelled"
    assert [(answer.status_code, answer.json()["error"]["code"]) for answer in waited] == [(503, "stopping")]
    assert not [line for line in guarded.lines if "Traceback" in line or "anyone" in line]
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{guarded.url}/health", trust_env=False)


def test_a_taken_port_is_said_in_one_line_before_anything_is_loaded(refused: Callable[..., tuple[int, str]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, output = refused("--port", str(port))
    words = "is in use: stop the other program, or choose another port with --port."
    assert (code, output) == (1, f"slipstream: Port {port} on 127.0.0.1 {words}\n")


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--host", "no.such.host.invalid"], 1, "is unknown: choose another with --host"),
        (["--host", "203.0.113.7", "--port", "0"], 1, "is no address of this computer"),
        (["--port", "65536"], 2, "is no port"),
        (["--max-queue", "-1"], 2, "max-queue"),
        (["--api-key", ""], 2, "must not be empty"),
        (["--served-name", ""], 2, "must not be empty"),
        (["--allow-origin", "localhost:3000"], 2, "is no page's address"),
    ],
)
def test_a_wrong_option_is_one_line(refused: Callable[..., tuple[int, str]], options: list[str], code: int, words: str) -> None:
    ended, output = refused(*options)
    assert ended == code and words in output and output.count("\n") == 1
