"""The bodies of requests: what they may hold, and in which types. What is allowed to have no effect here is named here too."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.events import Mode
from engine.server.errors import ApiError

# Without influence on the text of one answer, so there is nothing to honour: OpenAI's, then those of other servers.
WITHOUT_EFFECT = frozenset(
    {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "prediction",
     "cache_prompt", "id_slot", "timings_per_token", "return_progress", "ttl", "keep_alive", "draft_model", "priority",
     "request_id"}
)  # fmt: skip
# Ways of choosing tokens that other servers have, with the values that turn each off.
OTHER_SAMPLERS: dict[str, tuple[Any, ...]] = {
    "typical_p": (1,), "tfs_z": (1,), "top_a": (0,), "mirostat": (0,), "mirostat_mode": (0,), "dynatemp_range": (0,),
    "dry_multiplier": (0,), "xtc_probability": (0,), "top_n_sigma": (-1, 0), "use_beam_search": (False,),
}  # fmt: skip
# What would change the answer and cannot be honoured: the values that ask for nothing, and what to do instead.
REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "n": ((1,), "one answer a request can be given: leave n out and send the request again for another one"),
    "best_of": ((1,), "one answer a request can be given: leave it out"),
    "modalities": ((["text"],), "only text can be given: leave it out"),
    "audio": ((), "only text can be given: leave it out"),
    "functions": (([],), "it is out of use: send tools instead"),
    "function_call": ((), "it is out of use: send tool_choice instead"),
    "web_search_options": ((), "there is no search here: leave it out"),
    "verbosity": ((), "it cannot be honoured: leave it out and say in the prompt how long the answer should be"),
    "echo": ((False,), "the prompt is not repeated: leave it out"),
    "suffix": (("",), "text cannot be written between two others: leave it out"),
    "ignore_eos": ((False,), "the end of an answer cannot be ignored: leave it out"),
    "min_tokens": ((0,), "it cannot be honoured: leave it out"),
    "stop_token_ids": (([],), "stops are texts here: use stop"),
    "n_predict": ((-1,), "it has another name here: use max_tokens"),
    "enable_thinking": ((), "it belongs inside chat_template_kwargs"),
    "continue_final_message": ((False,), "an answer always begins a new message: leave it out"),
    "add_generation_prompt": ((True,), "an answer always begins a new message: leave it out"),
    "include_stop_str_in_output": ((False,), "a stop text is no part of the answer: leave it out"),
    "prompt_logprobs": ((), "only the answer has log probabilities: leave it out"),
    **{name: (neutral, "tokens cannot be chosen in this way: leave it out") for name, neutral in OTHER_SAMPLERS.items()},
}
Finite = Annotated[float, Field(allow_inf_nan=False)]
Body = TypeVar("Body", bound=BaseModel)


class Strict(BaseModel):
    """No number in a string, no boolean for a number."""

    model_config = ConfigDict(strict=True, extra="ignore")


class StreamOptions(Strict):
    include_usage: bool | None = None


class Part(Strict):
    """One part of a message's content."""

    type: str
    text: str | None = None


class CalledFunction(Strict):
    name: str
    arguments: str


class Call(Strict):
    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class Turn(Strict):
    """One message. What an assistant's message holds beside (refusal, annotations ...) comes back from clients and says nothing."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    name: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None


class Function(Strict):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Strict):
    type: Literal["function"]
    function: Function


class ToolName(Strict):
    name: str


class NamedTool(Strict):
    """The one tool that is to be called."""

    type: Literal["function"]
    function: ToolName


class TemplateSwitches(Strict):
    """The switch of a chat template under the name that other servers give it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    enable_thinking: bool | None = None


class NamedSchema(Strict):
    """``name``, ``description`` and ``strict`` change nothing: every schema is held to."""

    name: str | None = None
    described: Annotated[dict[str, Any], Field(alias="schema")]


class ResponseFormat(Strict):
    """The form of an answer as OpenAI has it, or with llama.cpp's ``schema`` beside the type."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: NamedSchema | None = None
    described: Annotated[dict[str, Any] | None, Field(alias="schema")] = None


class StructuredOutputs(Strict):
    """The form of an answer as vLLM has it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    schema_: Annotated[dict[str, Any] | str | None, Field(alias="json")] = None
    json_object: bool | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None


class Common(Strict):
    """What both kinds of request have. None and absent are the same."""

    model_config = ConfigDict(strict=True, extra="allow")

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    temperature: Finite | None = None
    top_p: Finite | None = None
    top_k: int | None = None
    min_p: Finite | None = None
    repetition_penalty: Finite | None = None
    repeat_penalty: Finite | None = None  # llama.cpp's, LM Studio's and Ollama's name for the same
    presence_penalty: Finite | None = None
    frequency_penalty: Finite | None = None
    logit_bias: dict[str, Finite] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    mode: Mode | None = None
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    json_schema: dict[str, Any] | None = None  # llama.cpp's
    grammar: str | None = None
    guided_json: dict[str, Any] | str | None = None  # vLLM's, before it had structured_outputs
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None


class ChatBody(Common):
    messages: Annotated[list[Turn], Field(min_length=1)]
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: str | None = None
    chat_template_kwargs: TemplateSwitches | None = None


class CompletionBody(Common):
    prompt: str | list[Any]
    logprobs: int | None = None


def parse(kind: type[Body], raw: bytes) -> Body:
    """The body of a request. Raises ``ApiError`` that names what is wrong with it."""
    try:
        body = kind.model_validate_json(raw)
    except ValidationError as error:
        raise _refusal(error) from None
    for name, value in (body.model_extra or {}).items():
        nothing, why = REFUSED.get(name, ((value,), ""))
        if value is not None and value not in nothing:
            raise ApiError(400, f"{name} cannot be used: {why}.", code="unsupported_parameter", param=name)
    return body


def unknown_names(body: BaseModel) -> list[str]:
    """What a request holds that means nothing here: every other server lets it pass, so it is no error, but it is told."""
    given = (name for name, value in (body.model_extra or {}).items() if value is not None)
    return [name for name in given if name not in WITHOUT_EFFECT and name not in REFUSED]


def _refusal(error: ValidationError) -> ApiError:
    """The first of pydantic's errors, of a union the one that got furthest."""
    found = error.errors(include_url=False, include_context=False)
    first = max((item for item in found if item["loc"][:1] == found[0]["loc"][:1]), key=lambda item: _depth(item["loc"]))
    if first["type"] == "json_invalid":
        return ApiError(400, f"The body is not JSON ({first['msg']}): send one JSON object.", code="invalid_json")
    place = ".".join(str(step) for step in first["loc"] if not _is_branch(step)) or None
    if first["type"] == "missing":
        return ApiError(400, f"{place} is missing: send it.", code="missing_required_parameter", param=place)
    if place is None:
        return ApiError(400, "The body is not a JSON object: send one.", code="invalid_type")
    codes = {"extra_forbidden": "unknown_parameter"}
    code = codes.get(first["type"], "invalid_type" if first["type"].endswith("_type") else "invalid_value")
    return ApiError(400, f"{place} cannot be used: {first['msg'][:1].lower()}{first['msg'][1:]}.", code=code, param=place)


def _depth(place: tuple[int | str, ...]) -> int:
    return sum(not _is_branch(step) for step in place)


def _is_branch(step: int | str) -> bool:
    """Pydantic names the branch of a union as a step of the place: str, list[Part], literal[...], NamedTool."""
    return isinstance(step, str) and (step in ("str", NamedTool.__name__) or "[" in step)
