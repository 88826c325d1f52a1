"""From the body of a request to what the engine is asked for. Whatever cannot be honoured is refused by name."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine import GenerationRequest, Message, PairInfo, RequestError
from engine.request import ToolCall
from engine.server.errors import ApiError, as_api_error
from engine.server.forms import constraint_of
from engine.server.schema import ChatBody, Common, CompletionBody, NamedTool, Part, Tool, Turn, unknown_names

MAX_STOPS = 64  # editors send a dozen; every one costs time at every token
COMPLETION_TOKENS = 16  # the OpenAI API's default for /v1/completions
NO_LIMIT = -1  # other servers' way to say so, of max_tokens and top_k
LONGEST_NAME, MOST_NAMES = 40, 10  # of unknown fields, in the notice of them
SAME_NAMES = ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "mode")


@dataclass(frozen=True, slots=True)
class Ask:
    """A request and how its answer is to be given. ``one_call``: the answer ends with its first call of a tool. ``must_call``: it
    is an error where it calls none of these tools. ``notices``: what the client asked for and cannot count on."""

    request: GenerationRequest
    stream: bool
    include_usage: bool
    chat: bool
    one_call: bool = False
    must_call: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def chat_ask(body: ChatBody, info: PairInfo, exact: bool = False) -> Ask:
    """Raises ``ApiError``."""
    limit = _one_of(body, "max_tokens", "max_completion_tokens")
    if body.top_logprobs and not body.logprobs:
        raise _wrong("top_logprobs", "top_logprobs needs logprobs: true.")
    tools, must_call = _tools(body)
    settings = _settings(body) | {
        "messages": tuple(_message(turn, f"messages.{index}") for index, turn in enumerate(body.messages)),
        "max_tokens": info.context_length if limit in (None, NO_LIMIT) else limit,
        "logprobs": (body.top_logprobs or 0) if body.logprobs else None,
        "tools": tuple(map(_tool, tools)),
        "thinking": _thinking(body, info),
        "exact": exact,
    }
    one_call = bool(tools) and (body.parallel_tool_calls is False or isinstance(body.tool_choice, NamedTool))
    ask = _ask(body, settings, chat=True, one_call=one_call)
    return replace(ask, must_call=must_call, notices=_unenforced(tools) + ask.notices)


def completion_ask(body: CompletionBody, info: PairInfo, exact: bool = False) -> Ask:
    """Raises ``ApiError``."""
    prompt = body.prompt
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise _wrong("prompt", "prompt must be one text: send several in requests of their own, and token ids as their text.")
    limit = COMPLETION_TOKENS if body.max_tokens is None else body.max_tokens
    settings = _settings(body) | {
        "messages": (Message("user", prompt),),
        "max_tokens": info.context_length if limit == NO_LIMIT else limit,
        "logprobs": body.logprobs,
        "raw": True,
        "exact": exact,
    }
    return _ask(body, settings, chat=False)


def _ask(body: Common, settings: dict[str, Any], chat: bool, one_call: bool = False) -> Ask:
    try:
        request = GenerationRequest(**settings)
    except RequestError as error:
        if chat and str(error).startswith("logprobs "):  # the number has another name in chats
            raise _wrong("top_logprobs", f"top_{error}") from None
        raise as_api_error(error, True, "messages" if chat else "prompt") from None
    usage = body.stream_options is not None and bool(body.stream_options.include_usage)
    return Ask(request, bool(body.stream), usage, chat, one_call, notices=_unknown(body))


def _settings(body: Common) -> dict[str, Any]:
    """The engine's fields that are in both kinds of body. Without a seed every request draws anew."""
    settings = {name: value for name in SAME_NAMES if (value := getattr(body, name)) is not None}
    if body.top_k is not None:
        settings["top_k"] = 0 if body.top_k == NO_LIMIT else body.top_k
    if (penalty := _one_of(body, "repetition_penalty", "repeat_penalty")) is not None:
        settings["repetition_penalty"] = penalty
    stops = [body.stop] if isinstance(body.stop, str) else body.stop or []
    if len(stops) > MAX_STOPS or "" in stops:
        raise _wrong("stop", f"stop may hold up to {MAX_STOPS} texts, none of them empty.")
    settings["stop"] = tuple(stops)
    settings["constraint"] = constraint_of(body)
    settings["seed"] = secrets.randbits(31) if body.seed is None else body.seed
    try:
        settings["logit_bias"] = {int(token): value for token, value in (body.logit_bias or {}).items()}
    except ValueError:
        raise _wrong("logit_bias", "logit_bias maps token ids to numbers, such as {\"42\": -100}.") from None
    return settings


def _one_of(body: Common, name: str, other: str) -> Any:
    """The value of a field that goes by two names, None where neither is there."""
    given = [value for value in (getattr(body, name), getattr(body, other)) if value is not None]
    if len(given) == 2 and given[0] != given[1]:
        raise _wrong(name, f"{name} and {other} differ: send one of them.")
    return given[0] if given else None


def _unknown(body: Common) -> tuple[str, ...]:
    names = [name[:LONGEST_NAME] for name in unknown_names(body)]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return (f"Not known here and without effect: {', '.join(names[:MOST_NAMES])}{more}.",) if names else ()


def _message(turn: Turn, place: str) -> Message:
    content = _content(turn.content, f"{place}.content")
    if turn.role == "assistant" and turn.reasoning_content:
        content = f"<think>\n{turn.reasoning_content}\n</think>\n\n{content}"  # the engine tells them apart again for the template
    if turn.role == "tool" and not turn.tool_call_id:
        raise _wrong(f"{place}.tool_call_id", f"{place} has the role tool: name the call it answers in tool_call_id.")
    if turn.role != "assistant" and turn.tool_calls:
        raise _wrong(f"{place}.tool_calls", f"{place} has the role {turn.role}: only an assistant's message can hold tool_calls.")
    if turn.content is None and turn.role != "assistant":  # one that said nothing comes back from clients so
        raise _wrong(f"{place}.content", f"{place}.content is missing: send a text.")
    calls = tuple(ToolCall(call.function.name, call.function.arguments, call.id) for call in turn.tool_calls or ())
    role = "system" if turn.role == "developer" else turn.role
    return Message(role, content, turn.name or "", calls, turn.tool_call_id or "")


def _content(content: str | list[Part] | None, place: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    for index, part in enumerate(content):
        if part.type == "text" and part.text is None:
            raise _wrong(f"{place}.{index}.text", f"{place}.{index}.text is missing: send a text.")
        if part.text is None or part.type != "text":
            raise _wrong(f"{place}.{index}", f"{place}.{index} has the type {part.type}: this server reads text parts only.")
    return "".join(part.text or "" for part in content)


def _tools(body: ChatBody) -> tuple[list[Tool], tuple[str, ...]]:
    """The tools that the model is shown, and of which it has to call one; it cannot be made to, so that is seen from its answer."""
    choice, tools = body.tool_choice, body.tools or []
    if choice == "none":
        return [], ()
    if isinstance(choice, NamedTool):
        tools = [tool for tool in tools if tool.function.name == choice.function.name]
        if not tools:
            raise _wrong("tool_choice", f"tool_choice names {choice.function.name}, which is none of the tools: name one of them.")
    elif choice == "required" and not tools:
        raise _wrong("tool_choice", "tool_choice required needs tools: send some.")
    return tools, tuple(tool.function.name for tool in tools) if choice not in (None, "auto") else ()


def _tool(tool: Tool) -> str:
    return json.dumps(tool.model_dump(exclude_none=True, exclude={"function": {"strict"}}), ensure_ascii=False)


def _unenforced(tools: Sequence[Tool]) -> tuple[str, ...]:
    """The openai package's helpers send ``strict`` always and cannot leave it out: so it is no error, but never passed over."""
    names = [tool.function.name for tool in tools if tool.function.strict]
    return (f"strict is not enforced: check the arguments of calls of {', '.join(names)}.",) if names else ()


def _thinking(body: ChatBody, info: PairInfo) -> bool | None:
    wanted = body.chat_template_kwargs.enable_thinking if body.chat_template_kwargs else None
    place = "chat_template_kwargs.enable_thinking"
    if body.reasoning_effort is not None:
        place = "reasoning_effort"
        if body.reasoning_effort != "none":
            text = "reasoning_effort can be none: for thinking without levels use chat_template_kwargs with enable_thinking."
            raise _wrong(place, text)
        if wanted:
            raise _wrong(place, "reasoning_effort none and enable_thinking true contradict each other: send one of them.")
        wanted = False
    if wanted is not None and not info.thinking_switch:
        raise _wrong(place, f"{place} cannot be used: this model's thinking has no switch, so leave it out.")
    return wanted


def _wrong(place: str, message: str) -> ApiError:
    return ApiError(400, message, code="invalid_value", param=place)
