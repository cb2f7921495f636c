"""A strict reader of chat completion requests.

Hosted endpoints refuse what lenient doubles let pass: null content, orphan tool messages, unknown arguments, a
strict schema that is not strict. This server is also the tests' request checker, so it refuses them too.
Source: OpenAI API reference, "Create chat completion".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from local.demo_model import tokens
from local.demo_model.fields import JsonObject, as_choice, as_list, as_object, as_text, as_whole_number
from local.demo_model.problems import RefusedRequestError
from local.demo_model.strict_schema import check_response_format

MAX_MESSAGES = 200
MAX_MESSAGE_BYTES = 256 * 1024
_ROLES = ("system", "developer", "user", "assistant", "tool")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ARGUMENT = re.compile(
    r"model|messages|response_format|temperature|top_p|n|stream|stream_options|max_tokens|"
    r"max_completion_tokens|seed|stop|presence_penalty|frequency_penalty|user|metadata|store|"
    r"tools|tool_choice|parallel_tool_calls|reasoning_effort|logit_bias|logprobs|top_logprobs|"
    r"service_tier|safety_identifier|prompt_cache_key"
)
_RANGES = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "presence_penalty": (-2.0, 2.0),
    "frequency_penalty": (-2.0, 2.0),
}


@dataclass(frozen=True)
class ChatRequest:
    """What this server needs of a checked request; ``document`` is the last user message's whole content."""

    schema_name: str
    document: str
    prompt_tokens: int
    stream: bool
    include_usage: bool
    max_tokens: int | None


def read_chat_request(body: JsonObject) -> ChatRequest:
    """Check every rule and return the request, or raise ``RefusedRequestError`` naming the first broken one."""
    for name in body:
        if not _ARGUMENT.fullmatch(name):
            message = f"Unrecognized request argument supplied: {name}"
            raise RefusedRequestError(message, "unknown_argument", name)
    as_text(body.get("model"), "model")
    _check_numbers(body)
    _check_tools(body.get("tools"))
    contents = _read_messages(body.get("messages"))
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    stream = _flag(body.get("stream"), "stream")
    options = body.get("stream_options")
    if options is not None and not stream:
        raise RefusedRequestError("stream_options needs stream", "invalid_value", "stream_options")
    wants_usage = options is not None and as_object(options, "stream_options").get("include_usage") is True
    return ChatRequest(
        schema_name=check_response_format(body.get("response_format")),
        document=contents[-1],
        prompt_tokens=sum(tokens.count(content) for content in contents),
        stream=stream,
        include_usage=wants_usage,
        max_tokens=None if limit is None else as_whole_number(limit, "max_tokens", least=1),
    )


def _check_numbers(body: JsonObject) -> None:
    for name, (least, most) in _RANGES.items():
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise RefusedRequestError(
                f"{name} must be a number from {least} to {most}", "invalid_value", name
            )
    if body.get("n") not in (None, 1):
        raise RefusedRequestError("n must be 1", "invalid_value", "n")


def _flag(value: object, place: str) -> bool:
    if value is not None and not isinstance(value, bool):
        raise RefusedRequestError(f"{place} must be true or false", "invalid_type", place)
    return value is True


def _check_tools(value: object) -> None:
    if value is None:
        return
    for index, tool in enumerate(as_list(value, "tools", least=1, most=128)):
        place = f"tools[{index}].function"
        name = as_text(as_object(as_object(tool, place).get("function"), place).get("name"), f"{place}.name")
        _check_tool_name(name, f"{place}.name")


def _check_tool_name(name: str, place: str) -> None:
    if not _TOOL_NAME.fullmatch(name):
        raise RefusedRequestError(f"{place} must be 1 to 64 letters, digits, _ or -", "invalid_value", place)


def _read_messages(value: object) -> list[str]:
    contents: list[str] = []
    unanswered: set[str] = set()
    role = ""
    for index, item in enumerate(as_list(value, "messages", least=1, most=MAX_MESSAGES)):
        place = f"messages[{index}]"
        message = as_object(item, place)
        role = as_choice(message.get("role"), f"{place}.role", _ROLES)
        if role == "tool":
            call = as_text(message.get("tool_call_id"), f"{place}.tool_call_id")
            if call not in unanswered:
                raise RefusedRequestError(f"{place} answers no tool call", "orphan_tool_message", place)
            unanswered.remove(call)
        elif unanswered:
            raise RefusedRequestError(f"{place}: a tool call was not answered", "unanswered_tool_call", place)
        if "tool_calls" in message:
            unanswered = _read_tool_calls(message, role, place)
        contents.append(_content(message.get("content"), f"{place}.content"))
    if role != "user":
        raise RefusedRequestError("the last message must be the user's", "invalid_value", "messages")
    return contents


def _read_tool_calls(message: JsonObject, role: str, place: str) -> set[str]:
    if role != "assistant":
        raise RefusedRequestError(f"{place}: only the assistant calls tools", "invalid_value", place)
    found: set[str] = set()
    for index, item in enumerate(as_list(message["tool_calls"], f"{place}.tool_calls", least=1, most=128)):
        where = f"{place}.tool_calls[{index}]"
        call = as_object(item, where)
        function = as_object(call.get("function"), f"{where}.function")
        _check_tool_name(as_text(function.get("name"), f"{where}.function.name"), f"{where}.function.name")
        as_text(function.get("arguments"), f"{where}.function.arguments")
        found.add(as_text(call.get("id"), f"{where}.id"))
    return found


def _content(value: object, place: str) -> str:
    """A string, or a list of text parts joined; blank content is refused, as several hosted models do."""
    if isinstance(value, list):
        texts: list[str] = []
        for index, item in enumerate(as_list(value, place, least=1, most=64)):
            part = as_object(item, f"{place}[{index}]")
            as_choice(part.get("type"), f"{place}[{index}].type", ("text",))
            texts.append(as_text(part.get("text"), f"{place}[{index}].text"))
        content = "".join(texts)
    else:
        content = as_text(value, place)
    size = len(content.encode())
    if size > MAX_MESSAGE_BYTES:
        message = f"{place} has {size} bytes, the most is {MAX_MESSAGE_BYTES}"
        raise RefusedRequestError(message, "context_length_exceeded", place)
    return content
