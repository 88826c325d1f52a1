"""The connections of clients: only so many at a time, and none that says nothing for long."""

from __future__ import annotations

import asyncio
import resource
import time

from uvicorn.protocols.http.h11_impl import H11Protocol

CLOSE_S = 5  # for what is being sent when the server stops
MOST = 512
SHARE = 4  # of the files that this process may open, a quarter may be connections: chats and models need some, too


class Connection(H11Protocol):
    """Where too many are open the one that has been idle for longest makes room; where none is, the new one is turned away."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._idle_since = time.monotonic()
        self._await_request()
        if len(self.connections) > most_connections():
            idle = [each for each in self.connections if isinstance(each, Connection) and each is not self and each.asks_nothing]
            (min(idle, key=lambda each: each._idle_since) if idle else self).leave()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.asks_nothing and self.timeout_keep_alive_task is None:
            self._await_request()

    def on_response_complete(self) -> None:
        self._idle_since = time.monotonic()
        super().on_response_complete()

    def shutdown(self) -> None:
        """The server stops: a request that is not here as a whole gets no answer, and who does not take theirs in time is left."""
        if self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self.leave()
        else:
            super().shutdown()
            self.loop.call_later(CLOSE_S, self.leave)

    @property
    def asks_nothing(self) -> bool:
        """There is no request that is here as a whole and waits for its answer."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def leave(self) -> None:
        """Closes it now. The set of all is left at once, not when the system has closed it: others come in the meantime."""
        self.connections.discard(self)
        self.transport.abort()

    def _await_request(self) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.leave)


def most_connections() -> int:
    """How many may be open. Asked anew each time: MLX's loader sets the limit of open files for the whole process."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if files == resource.RLIM_INFINITY else max(1, min(MOST, files // SHARE))
