"""The routes: what each address of the server answers."""

from __future__ import annotations

import os
import time
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engine import PairInfo, __version__
from engine.server.answers import AnswerReader
from engine.server.desk import Desk
from engine.server.errors import ApiError, as_api_error
from engine.server.exchange import Exchange
from engine.server.guard import Door, KeyCheck
from engine.server.journal import Journal, JournalKeeper
from engine.server.loaded import Loaded
from engine.server.metrics import Metrics
from engine.server.replies import ChatReply, CompletionReply, Reply
from engine.server.schema import ChatBody, CompletionBody, parse
from engine.server.settings import ServerSettings
from engine.server.translate import Ask, chat_ask, completion_ask
from engine.text.tool_calls import ToolCallSplitter

# Bytes of a body: no text of so many a token fits, and counting the tokens of a longer one would keep others from their answers.
BYTES_A_TOKEN = 64
LEAST_BODY, MOST_BODY = 2**20, 16 * 2**20


class Api:
    """The server's answers. Everything here runs on the thread of HTTP."""

    def __init__(self, desk: Desk, metrics: Metrics, settings: ServerSettings, journal: Journal):
        self._desk, self._metrics, self._settings, self._journal = desk, metrics, settings, journal
        self._started = int(time.time())

    def application(self) -> Starlette:
        """The ASGI application."""
        settings = self._settings
        door = Middleware(Door, settings, self._metrics.refused)
        guards = [Middleware(JournalKeeper, self._journal), door]
        if settings.origins:
            allowed: dict[str, Any] = {"allow_origins": settings.origins, "allow_methods": ["*"], "allow_headers": ["*"]}
            guards.append(Middleware(CORSMiddleware, **allowed, allow_private_network=True, expose_headers=["Retry-After"]))
        if settings.api_key:
            guards.append(Middleware(KeyCheck, settings.api_key, self._metrics.refused))
        routes = [
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/completions", self._completion, methods=["POST"]),
            Route("/v1/models", self._models, methods=["GET"]),
            Route("/v1/models/{name:path}", self._model, methods=["GET"]),
            Route("/health", self._health, methods=["GET"]),
            Route("/metrics", self._prometheus, methods=["GET"]),
        ]
        handlers: Any = {ApiError: self._error, HTTPException: self._http_error, Exception: self._fault}
        return Starlette(routes=routes, middleware=guards, exception_handlers=handlers)

    async def _chat(self, request: Request) -> Response:
        body = parse(ChatBody, await self._read(request))
        loaded = self._desk.loaded
        self._check_model(body.model, loaded.info)
        ask = chat_ask(body, loaded.info, self._settings.exact)
        syntax, tools = loaded.syntax, ask.request.tools
        splitter = ToolCallSplitter(syntax, tools) if syntax is not None and tools else None
        reader = AnswerReader(True, splitter, loaded.stop_ids, ask.one_call)
        return self._exchange(ChatReply, ask, reader, loaded)

    async def _completion(self, request: Request) -> Response:
        body = parse(CompletionBody, await self._read(request))
        loaded = self._desk.loaded
        self._check_model(body.model, loaded.info)
        ask = completion_ask(body, loaded.info, self._settings.exact)
        return self._exchange(CompletionReply, ask, AnswerReader(False, None, loaded.stop_ids), loaded)

    def _exchange(self, kind: type[Reply], ask: Ask, reader: AnswerReader, loaded: Loaded) -> Exchange:
        return Exchange(self._desk, self._metrics, kind(ask, self._name(loaded.info), reader, loaded.vocabulary))

    async def _read(self, request: Request) -> bytes:
        """The body. Raises ``ApiError`` where it is too long, as soon as that is known."""
        parts, size = [], 0
        packed = request.headers.get("content-encoding", "identity").lower()
        if packed != "identity":
            raise ApiError(415, f"The body is packed ({packed[:20]}): send it as plain JSON.", code="unsupported_encoding")
        declared = request.headers.get("content-length", "")
        context = self._desk.loaded.info.context_length
        limit = min(MOST_BODY, max(LEAST_BODY, BYTES_A_TOKEN * context))
        message = f"The body is longer than {limit // 2**20} MiB, the context holds {context:,} tokens: shorten the request."
        too_long = ApiError(413, message, code="request_too_large")
        if declared.isdecimal() and int(declared) > limit:
            raise too_long
        try:
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise too_long
                parts.append(part)
        except ClientDisconnect:
            raise ApiError(400, "The body was not sent to its end.", code="incomplete_body") from None
        return b"".join(parts)

    async def _models(self, _: Request) -> Response:
        try:
            cards = [self._card(self._desk.loaded)]
        except ApiError:
            cards = []  # there is none now, which is no error here
        return JSONResponse({"object": "list", "data": cards})

    async def _model(self, request: Request) -> Response:
        loaded = self._desk.loaded
        self._check_model(request.path_params["name"], loaded.info)
        return JSONResponse(self._card(loaded))

    async def _health(self, _: Request) -> Response:
        desk = self._desk
        state: dict[str, Any] = {"running": desk.running, "waiting": desk.waiting, "version": __version__}
        try:
            info = desk.loaded.info
        except ApiError as error:  # a watchdog asks whether the server lives: it does
            return JSONResponse({"status": error.code, "model": None} | state | {"notices": []})
        return JSONResponse({"status": "ok", "model": self._name(info)} | state | {"notices": list(info.notices)})

    async def _prometheus(self, _: Request) -> Response:
        return Response(self._metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    def _name(self, info: PairInfo) -> str:
        return self._settings.name or public_name(info)

    def _check_model(self, asked: str | None, info: PairInfo) -> None:
        name = self._name(info)
        if asked is not None and asked not in (name, info.id, info.name, self._settings.asked_model):
            message = f"The model {asked!r} is not served here: use {name!r}, or leave model out."
            raise ApiError(404, message, code="model_not_found", param="model")

    def _card(self, loaded: Loaded) -> dict[str, Any]:
        info = loaded.info
        card = {"id": self._name(info), "object": "model", "created": self._started, "owned_by": "slipstream"}
        pair = {"name": info.name, "draft": info.draft_name, "no_draft_reason": info.no_draft_reason}
        able = {"tools": loaded.syntax is not None, "thinking_switch": info.thinking_switch}
        return card | {"max_model_len": info.context_length, "slipstream": pair | able}

    async def _error(self, _: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        self._metrics.refused(error.status)
        return JSONResponse(error.body(), error.status, error.headers)

    async def _http_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        place = f"{request.method} {request.url.path}"
        if error.status_code == 405:
            problem = ApiError(405, f"{place} is not possible: use {(error.headers or {})['Allow']}.", code="method_not_allowed")
        else:
            offered = "/v1/chat/completions and /v1/completions" if request.url.path.startswith("/v1/") else "addresses under /v1"
            message = f"{place} is not offered here: use {offered}."
            problem = ApiError(error.status_code, message, code="unknown_url")
        self._metrics.refused(problem.status)
        return JSONResponse(problem.body(), problem.status, error.headers)

    async def _fault(self, _: Request, error: Exception) -> Response:
        problem = as_api_error(error, refused=False)
        self._metrics.refused(problem.status)
        return JSONResponse(problem.body(), problem.status)


def public_name(info: PairInfo) -> str:
    """The pair's id, but for one given by its folders only the last one's name: where they lie is nobody's business."""
    target = info.id.partition("+")[0]
    return info.name if os.sep in target and os.path.isdir(target) else info.id
