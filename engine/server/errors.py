"""Errors as the OpenAI API words them: one object with a message, a type, the parameter at fault and a code."""

from __future__ import annotations

import re
from typing import Any

from engine.errors import ContextOverflow, RequestError, SlipstreamError
from engine.request import GenerationRequest

_NAMED = re.compile(r"^(\w+)\b")
# Parameters that ask for a form of the answer: the engine's refusals begin with the one that was sent.
FORMS = frozenset({"response_format", "structured_outputs", "json_schema", "grammar", "guided_json", "guided_regex",
                   "guided_choice", "guided_grammar"})  # fmt: skip


class ApiError(Exception):
    """What a client is told instead of an answer. ``retry_after``: seconds after which the same request may work."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, param: str | None = None, retry_after: int | None = None
    ):
        super().__init__(message)
        self.status, self.message, self.code, self.param, self.retry_after = status, message, code, param, retry_after

    @property
    def headers(self) -> dict[str, str]:
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return headers | ({"WWW-Authenticate": "Bearer"} if self.status == 401 else {})

    def body(self) -> dict[str, Any]:
        """The JSON object of the answer."""
        kind = {401: "authentication_error", 429: "rate_limit_error"}.get(self.status, "invalid_request_error")
        if self.status >= 500:
            kind = "server_error"
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


# Why nothing can be answered now. An error is made for each request: a raised one grows with every raise.


def stopping() -> ApiError:
    return ApiError(503, "The server is stopping: send the request again once it runs.", code="stopping", retry_after=5)


def loading() -> ApiError:
    return ApiError(503, "A model is being loaded: try again in a few seconds.", code="model_loading", retry_after=5)


def no_model() -> ApiError:
    return ApiError(503, "No model is loaded: load one, then send the request again.", code="no_model")


def as_api_error(error: Exception, refused: bool, place: str = "messages") -> ApiError:
    """What a client is told of ``error``. ``refused``: nothing of the request was begun; ``place``: the prompt's parameter."""
    if isinstance(error, ApiError):
        return error
    text = " ".join(str(error).split())
    if isinstance(error, ContextOverflow):
        # Clients that shorten a chat by themselves look for the first words.
        text = f"This model's maximum context length is {error.context_length:,} tokens and the prompt has {error.prompt_tokens:,}"
        return ApiError(400, f"{text}: shorten it or start a new chat.", code="context_length_exceeded", param=place)
    if isinstance(error, RequestError) or (refused and isinstance(error, SlipstreamError)):
        named = _NAMED.match(text)
        fields = FORMS.union(GenerationRequest.__dataclass_fields__)
        return ApiError(400, text, code="invalid_value", param=named[1] if named and named[1] in fields else place)
    if isinstance(error, SlipstreamError):
        return ApiError(500, text, code="model_error")
    return ApiError(500, f"The server met an error of its own ({type(error).__name__}): see its output.", code="internal_error")
