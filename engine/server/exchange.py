"""One answer over HTTP: whole or as server-sent events, given up as soon as the client is gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from engine import Finished, PrefillProgress
from engine.server.desk import Desk, Failed, Item, Job
from engine.server.errors import ApiError
from engine.server.journal import ITS_TURN, LATE_STATUS, STATISTICS
from engine.server.metrics import Metrics
from engine.server.replies import Reply

KEEP_ALIVE_S = 3.0  # silence after which a comment tells client and proxies that there is still somebody
STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # nginx would collect the events
]
GONE = None  # in the queue of items: the client has left


class Exchange(Response):
    """Submits the job when called by the server. The status line waits for the first event or the first keep-alive, so that what
    is refused soon is refused with its own status; later an error is an event of the stream."""

    def __init__(self, desk: Desk, metrics: Metrics, reply: Reply):
        self.background = None
        self._desk, self._metrics, self._reply = desk, metrics, reply
        self._items: asyncio.Queue[Item | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._job = Job(reply.ask.request, self._deliver)
        self._opened = self._begun = False
        self._progress = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        watch = asyncio.create_task(self._watch(receive))
        try:
            self._desk.submit(self._job)
            await (self._stream(send) if self._reply.ask.stream else self._whole(scope, receive, send))
        except ApiError as error:
            await self._refuse(error, scope, receive, send)
        finally:
            self._job.cancel.set()  # without effect on an answer that is complete
            watch.cancel()

    def _deliver(self, item: Item) -> None:
        """Called by the engine's thread."""
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody is there to be told
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._items.put_nowait(GONE)

    async def _whole(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (item := await self._items.get()) is not GONE:
            self._take(item)
            if isinstance(item, Finished):
                await JSONResponse(self._reply.whole())(scope, receive, send)
                return

    async def _stream(self, send: Send) -> None:
        spoke = self._loop.time()
        while True:
            try:
                item = await asyncio.wait_for(self._items.get(), spoke + KEEP_ALIVE_S - self._loop.time())
            except TimeoutError:
                spoke = self._loop.time()
                await self._say(send, f": {self._state()}\n\n")
                continue
            if item is GONE:
                return
            chunks = self._take(item)
            if chunks:
                spoke = self._loop.time()
                await self._say(send, "".join(_event(chunk) for chunk in chunks))
            if isinstance(item, Finished):
                await self._say(send, "data: [DONE]\n\n", more=False)
                return

    def _take(self, item: Item) -> list[dict[str, Any]]:
        """The chunks of an item. Raises ``ApiError`` where it is a failure."""
        if isinstance(item, Failed):
            raise item.error
        if not self._begun:
            self._begun = True
            self._scope[ITS_TURN]()
        if isinstance(item, PrefillProgress):
            self._progress = f"{item.done} of {item.total} prompt tokens read"
        if isinstance(item, Finished):
            self._scope[STATISTICS] = item.statistics
        chunks = self._reply.take(item)
        if self._reply.reader.enough:
            self._job.cancel.set()
        return chunks

    def _state(self) -> str:
        ahead = self._desk.ahead(self._job)
        return f"{ahead} ahead in the queue" if ahead else self._progress or "preparing"

    async def _say(self, send: Send, text: str, more: bool = True) -> None:
        if not self._opened:
            self._opened = True
            await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
        await send({"type": "http.response.body", "body": text.encode(), "more_body": more})

    async def _refuse(self, error: ApiError, scope: Scope, receive: Receive, send: Send) -> None:
        self._metrics.refused(error.status)
        if self._opened:
            scope[LATE_STATUS] = error.status
            await self._say(send, _event(error.body()), more=False)
        else:
            await JSONResponse(error.body(), error.status, error.headers)(scope, receive, send)


def _event(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content, ensure_ascii=False, separators=(',', ':'))}\n\n"
