"""The JSON objects of the OpenAI API for an answer: whole, or chunk by chunk, for chats and for plain completions."""

from __future__ import annotations

import codecs
import secrets
import time
from typing import Any

from engine import Event, Finished, Started, TokenLogprob, __version__
from engine.report import answer_record
from engine.server.answers import AnswerReader, Piece, Vocabulary
from engine.server.errors import ApiError
from engine.server.translate import Ask

LOWEST = -9999.0  # the OpenAI API's stand-in for minus infinity, which JSON cannot say
PRIVATE = ("token_ids", "logprobs")  # of the engine's record: too long to be repeated here


class Reply:
    """One answer on its way out: ``take`` an event and get the chunks it makes; ``whole`` once it is finished."""

    prefix, kind, chunk_kind = "", "", ""

    def __init__(self, ask: Ask, model: str, reader: AnswerReader, vocabulary: Vocabulary):
        self.ask, self.reader, self._vocabulary = ask, reader, vocabulary
        self._head = {"id": f"{self.prefix}-{secrets.token_hex(12)}", "created": int(time.time()), "model": model}

    def take(self, event: Event) -> list[dict[str, Any]]:
        """The chunks of a stream that ``event`` makes, the last ones with ``Finished``. Raises ``ApiError`` where the answer does
        not hold the call that was asked for."""
        piece = self.reader.read(event)
        if isinstance(event, Finished) and self.ask.must_call and not set(self.reader.called) & set(self.ask.must_call):
            raise self._uncalled()
        self.keep(piece)
        chunks = [self._chunk(choice) for choice in self.choices(event, piece)]
        if isinstance(event, Finished):
            last = self._chunk(self.choice(None, None, self.reader.finish_reason))
            chunks.append(last | {"slipstream": self._figures(event)})
            if self.ask.include_usage:
                chunks.append(self._chunk(None) | {"usage": usage(event)})
        return chunks

    def whole(self) -> dict[str, Any]:
        """The answer in one object. Call after ``take`` got ``Finished``."""
        finished = self.reader.finished
        assert finished is not None
        head = self._head | {"object": self.kind, "system_fingerprint": f"slipstream-{__version__}"}
        return head | {"choices": [self.whole_choice()], "usage": usage(finished), "slipstream": self._figures(finished)}

    def keep(self, piece: Piece) -> None:
        """Takes a piece into the whole answer."""
        raise NotImplementedError

    def choices(self, event: Event, piece: Piece) -> list[dict[str, Any]]:
        """What ``event`` puts into the stream."""
        raise NotImplementedError

    def choice(self, content: Any, logprobs: Any, reason: str | None) -> dict[str, Any]:
        """One element of ``choices``; ``content`` None: the last, which is empty."""
        raise NotImplementedError

    def whole_choice(self) -> dict[str, Any]:
        """The only element of ``choices`` of a whole answer."""
        raise NotImplementedError

    def _chunk(self, choice: dict[str, Any] | None) -> dict[str, Any]:
        head = self._head | {"object": self.chunk_kind, "system_fingerprint": f"slipstream-{__version__}"}
        chunk = head | {"choices": [] if choice is None else [choice]}
        return chunk | {"usage": None} if self.ask.include_usage else chunk

    def _uncalled(self) -> ApiError:
        """The request could be honoured only by a model that does it by itself, and this one did not."""
        ended = "reached its token limit before it called" if self.reader.finish_reason == "length" else "called none of"
        message = f"The answer {ended} {' or '.join(self.ask.must_call)}, as tool_choice asks for: ask for it in the prompt too."
        return ApiError(422, message, code="tool_not_called", param="tool_choice")

    def _figures(self, finished: Finished) -> dict[str, Any]:
        record = {name: value for name, value in answer_record(finished, with_text=False).items() if name not in PRIVATE}
        return record | {"seed": self.ask.request.seed, "notices": [*self.ask.notices, *self.reader.notices]}


class ChatReply(Reply):
    """For /v1/chat/completions."""

    prefix, kind, chunk_kind = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def __init__(self, ask: Ask, model: str, reader: AnswerReader, vocabulary: Vocabulary):
        super().__init__(ask, model, reader, vocabulary)
        self._text = self._thinking = ""
        self._calls: list[dict[str, Any]] = []
        self._logprobs: list[dict[str, Any]] = []

    def keep(self, piece: Piece) -> None:
        if piece.moved:
            self._thinking, self._text = self._thinking + self._text, ""
        self._text += piece.text
        self._thinking += piece.thinking
        self._logprobs += self._entries(piece)

    def choices(self, event: Event, piece: Piece) -> list[dict[str, Any]]:
        if isinstance(event, Started):
            return [self.choice({"role": "assistant", "content": ""}, None, None)]
        calls = [
            {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for index, call in enumerate(piece.calls, len(self._calls))
        ]
        self._calls += calls
        deltas: list[dict[str, Any]] = []
        if piece.thinking:
            deltas.append({"reasoning_content": piece.thinking})
        if piece.text or (piece.logprobs and not piece.thinking):
            deltas.append({"content": piece.text})
        if calls:
            deltas.append({"tool_calls": calls})
        entries = {"content": self._entries(piece), "refusal": None} if piece.logprobs else None
        return [self.choice(delta, None if index else entries, None) for index, delta in enumerate(deltas)]

    def choice(self, content: Any, logprobs: Any, reason: str | None) -> dict[str, Any]:
        return {"index": 0, "delta": content or {}, "logprobs": logprobs, "finish_reason": reason}

    def whole_choice(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self._text, "refusal": None}
        if self._thinking:
            message["reasoning_content"] = self._thinking
        if self._calls:
            message["content"] = self._text or None
            message["tool_calls"] = [{key: value for key, value in call.items() if key != "index"} for call in self._calls]
        wanted = self.ask.request.logprobs is not None
        logprobs = {"content": self._logprobs, "refusal": None} if wanted else None
        return {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": self.reader.finish_reason}

    def _entries(self, piece: Piece) -> list[dict[str, Any]]:
        return [self._entry(entry) for entry in piece.logprobs]

    def _entry(self, entry: TokenLogprob) -> dict[str, Any]:
        top = [self._spelled(token, value) for token, value in entry.top]
        return self._spelled(entry.token_id, entry.logprob) | {"top_logprobs": top}

    def _spelled(self, token: int, logprob: float) -> dict[str, Any]:
        spelled = list(self._vocabulary.spell(token))
        return {"token": self._vocabulary.text(token), "logprob": max(logprob, LOWEST), "bytes": spelled}


class CompletionReply(Reply):
    """For /v1/completions."""

    prefix, kind, chunk_kind = "cmpl", "text_completion", "text_completion"

    def __init__(self, ask: Ask, model: str, reader: AnswerReader, vocabulary: Vocabulary):
        super().__init__(ask, model, reader, vocabulary)
        self._text = ""
        self._parts: list[dict[str, Any]] = []
        self._offset, self._decoder = 0, codecs.getincrementaldecoder("utf-8")("replace")

    def keep(self, piece: Piece) -> None:
        self._text += piece.text
        if piece.logprobs:
            self._parts.append(self._columns(piece))

    def choices(self, event: Event, piece: Piece) -> list[dict[str, Any]]:
        if not piece:
            return []
        return [self.choice(piece.text, self._parts[-1] if piece.logprobs else None, None)]

    def choice(self, content: Any, logprobs: Any, reason: str | None) -> dict[str, Any]:
        return {"index": 0, "text": content or "", "logprobs": logprobs, "finish_reason": reason}

    def whole_choice(self) -> dict[str, Any]:
        logprobs: dict[str, Any] | None = None
        if self.ask.request.logprobs is not None:
            names = ("tokens", "token_logprobs", "top_logprobs", "text_offset")
            logprobs = {name: [value for part in self._parts for value in part[name]] for name in names}
        return self.choice(self._text, logprobs, self.reader.finish_reason)

    def _columns(self, piece: Piece) -> dict[str, Any]:
        texts = [self._vocabulary.text(entry.token_id) for entry in piece.logprobs]
        tops = [{self._vocabulary.text(token): max(value, LOWEST) for token, value in entry.top} for entry in piece.logprobs]
        offsets = []
        for entry in piece.logprobs:
            offsets.append(self._offset)
            spelled = self._vocabulary.spell(entry.token_id)
            self._offset += len(self._decoder.decode(spelled))  # a character in several tokens counts with the last
        return {
            "tokens": texts,
            "token_logprobs": [max(entry.logprob, LOWEST) for entry in piece.logprobs],
            "top_logprobs": tops,
            "text_offset": offsets,
        }


def usage(finished: Finished) -> dict[str, Any]:
    """Tokens read and written, and how many of the first came out of the prefix cache."""
    numbers = finished.statistics
    return {
        "prompt_tokens": numbers.prompt_tokens,
        "completion_tokens": numbers.completion_tokens,
        "total_tokens": numbers.prompt_tokens + numbers.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": numbers.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": numbers.thinking_tokens},
    }
