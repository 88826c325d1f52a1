"""Benchmark: what answering over HTTP costs, against the same engine called directly.

    python -m tests.perf.server [ROUNDS]

The two take turns, streamed by the ``openai`` client from a server of its own and read from ``Engine.generate`` here; each round
gives one ratio of decoding rates, each seen by its reader: tokens after the first over the time after the first. Above 1: HTTP
is faster. The other delay printed is that of a request refused at once, so of HTTP and queue alone.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from typing import Any

import openai

from engine import GenerationRequest, TextDelta, load
from engine.engine import Engine

PROMPT = "Explain how rainbows form."
TOKENS = 96


def direct(engine: Engine) -> float:
    """Tokens per second as the caller of the engine sees them."""
    request = GenerationRequest.of(PROMPT, mode="baseline", max_tokens=TOKENS, use_cache=False)
    arrivals = [time.perf_counter() for event in engine.generate(request) if isinstance(event, TextDelta)]
    return (TOKENS - 1) / (arrivals[-1] - arrivals[0])


def over_http(client: openai.OpenAI) -> float:
    """Tokens per second as a client sees them."""
    messages: Any = [{"role": "user", "content": PROMPT}]
    mode = {"mode": "baseline"}
    stream = client.chat.completions.create(model="starter", messages=messages, max_tokens=TOKENS, stream=True, extra_body=mode)
    arrivals = [time.perf_counter() for chunk in stream if chunk.choices[0].delta.content]
    return (TOKENS - 1) / (arrivals[-1] - arrivals[0])


def refusal_s(client: openai.OpenAI) -> float:
    """Seconds until a request without messages is refused."""
    start = time.perf_counter()
    try:
        client.chat.completions.create(model="starter", messages=[])
    except openai.BadRequestError:
        return time.perf_counter() - start
    raise AssertionError("a request without messages was answered")


def main(rounds: int) -> None:
    """Prints one JSON object."""
    command = [sys.executable, "-m", "engine.cli", "serve", "--model", "starter", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split(" at ")[1].split()[0]
        engine, client = load("starter"), openai.OpenAI(base_url=url, api_key="any", max_retries=0)
        direct(engine), over_http(client), time.sleep(2.0)
        pairs = []
        for number in range(rounds):
            called = direct(engine) if number % 2 else None
            http = over_http(client)
            time.sleep(2.0)  # the idle server prepares the chat's next turn
            pairs.append((http, called or direct(engine)))
        refused = statistics.median(refusal_s(client) for _ in range(50))
        server.terminate()
    ratios = sorted(http / called for http, called in pairs)
    result = {"ratio_median": statistics.median(ratios), "ratio_min": ratios[0], "ratio_max": ratios[-1]}
    result |= {"http_tok_s": statistics.median(p[0] for p in pairs), "direct_tok_s": statistics.median(p[1] for p in pairs)}
    print(json.dumps(result | {"refusal_ms": 1000 * refused, "rounds": rounds}, indent=1))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
