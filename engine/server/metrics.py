"""What the server counts, in the text form that Prometheus reads."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from engine import Finished
from engine.server.desk import Desk, Seen

FIRST_TOKEN_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
TOKENS_A_SECOND = (1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640)


class Metrics:
    """Of one server, since it started."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._answers = self._counter("answers", "Answers by their end and decoding mode", "finish_reason", "mode")
        self._refused = self._counter("refused_requests", "Requests that got an error, by HTTP status", "status")
        self._tokens = {
            name: self._counter(f"{name}_tokens", f"{name.capitalize()} tokens")
            for name in ("prompt", "cached", "completion", "proposed", "accepted")
        }
        self._cycles = self._counter("cycles", "Verify passes")
        self._fallbacks = self._counter("fallbacks", "Answers that were decoded in another way than was asked for")
        self._first = Histogram(
            "slipstream_time_to_first_token_seconds", "Without waiting", buckets=FIRST_TOKEN_S, registry=self._registry
        )
        self._rate = Histogram(
            "slipstream_decode_tokens_per_second", "After the first token", buckets=TOKENS_A_SECOND, registry=self._registry
        )

    def watch(self, desk: Desk) -> None:
        """Shows how long the queue is."""
        waiting = Gauge("slipstream_waiting_requests", "Requests in the queue", registry=self._registry)
        waiting.set_function(lambda: desk.waiting)
        running = Gauge("slipstream_running_requests", "Requests being answered", registry=self._registry)
        running.set_function(lambda: desk.running)

    def see(self, seen: Seen) -> None:
        """Counts every answer that comes to its end, whether somebody still wants it or not."""
        if isinstance(seen, Finished):
            self._count(seen)

    def _count(self, finished: Finished) -> None:
        numbers = finished.statistics
        self._answers.labels(finished.reason, numbers.mode).inc()
        self._tokens["prompt"].inc(numbers.prompt_tokens)
        self._tokens["cached"].inc(numbers.cached_tokens)
        self._tokens["completion"].inc(numbers.completion_tokens)
        self._tokens["proposed"].inc(numbers.proposed)
        self._tokens["accepted"].inc(numbers.accepted)
        self._cycles.inc(numbers.cycles)
        self._fallbacks.inc(numbers.fallback is not None)
        if numbers.completion_tokens:
            self._first.observe(numbers.ttft_s)
        if numbers.decode_tok_s:
            self._rate.observe(numbers.decode_tok_s)

    def refused(self, status: int) -> None:
        """Counts one error."""
        self._refused.labels(status).inc()

    def text(self) -> bytes:
        """All of it, now."""
        return generate_latest(self._registry)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"slipstream_{name}", meaning, labels, registry=self._registry)
