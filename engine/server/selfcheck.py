"""One question to a server of our own on a free port: whether everything that serving needs is there and works together."""

from __future__ import annotations

import threading

import httpx2

from engine.engine import Engine
from engine.errors import SlipstreamError
from engine.server.run import serve
from engine.server.settings import ServerSettings, address, bind

TIMEOUT_S = 60.0
QUESTION = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 4}


def check_server(engine: Engine) -> str:
    """Serves ``engine`` on the calling thread until one answer came; what came, in words. Raises ``SlipstreamError``."""
    stop, answers = threading.Event(), list[httpx2.Response | Exception]()
    with bind("127.0.0.1", 0) as bound:
        url = f"{address(bound)}/v1/chat/completions"

        def ask() -> None:
            try:
                answers.append(httpx2.post(url, json=QUESTION, timeout=TIMEOUT_S, trust_env=False))
            except Exception as error:
                answers.append(error)
            finally:
                stop.set()

        settings = ServerSettings(host="127.0.0.1", asked_model=engine.info.id, local_only=True)
        client = threading.Thread(target=ask)
        serve(engine, bound, settings, client.start, stop)
        client.join()
    answer = answers[0]
    if isinstance(answer, Exception):
        raise SlipstreamError(f"no answer: {answer}")
    if answer.status_code != 200 or answer.json()["usage"]["completion_tokens"] != QUESTION["max_tokens"]:
        raise SlipstreamError(f"answered {answer.status_code} {answer.text}")
    return f"status 200, {len(answer.content)} bytes"
