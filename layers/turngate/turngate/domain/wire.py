"""Where a value becomes a document and a document a value again: payloads, queue orders, stored items.

A document that lacks its shape is refused with the place and the kind of the problem. The refusal repeats nothing of
the document: it may hold what a customer wrote, and refusals are logged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar, overload

import msgspec
from msgspec import inspect

from turngate.errors import MalformedError

if TYPE_CHECKING:
    from turngate.domain.shapes import Frozen

_T = TypeVar("_T")
_UNREADABLE = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)
_PLACED = (
    r"(?s)(?P<reason>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>(?:\.\w{1,64}|\[(?:\d+|\.\.\.)\])*)`)?\Z"
)
_NAME = r"[A-Za-z_]\w{0,63}"
_MISSING = rf"Object missing required field `(?P<name>{_NAME})`"
_INT_AS_FLOAT = r"Expected `(?:[^`]*\| )?int(?: \|[^`]*)?`, got `float`"
_SILENT = (
    "Expected ",
    "JSON is malformed",
    "Input data was truncated",
    "Invalid RFC3339",
    "Number out of range",
    "Integer value out of range",
)
"""How msgspec begins messages that name our types and never a value."""


@overload
def read(document: object, shape: type[_T], *, strictly: bool = False) -> _T: ...
@overload
def read(document: object, shape: Any, *, strictly: bool = False) -> Any: ...  # noqa: ANN401 - a union or an annotated type is no `type`
def read(document: object, shape: Any, *, strictly: bool = False) -> Any:
    """The document (of dicts, lists, strings, numbers) as `shape`. Nothing is coerced, except that an integer may be
    written 5.0: JSONata has no other numbers. A field that the shape does not have is passed over, because a newer
    release may have written it; `strictly` refuses it, for what people write. Raises MalformedError."""
    value, problem = _converted(document, shape)
    if problem is not None and re.match(_INT_AS_FLOAT, str(problem)):
        value, problem = _converted(document, shape, whole_numbers=True)
    if problem is not None:
        raise _refusal(problem, shape)
    if strictly and (unknown := _unknown(document, msgspec.to_builtins(value))):
        raise MalformedError(unknown, "unknown field")
    return value


@overload
def read_json(text: str | bytes, shape: type[_T], *, strictly: bool = False) -> _T: ...
@overload
def read_json(text: str | bytes, shape: Any, *, strictly: bool = False) -> Any: ...  # noqa: ANN401 - as above
def read_json(text: str | bytes, shape: Any, *, strictly: bool = False) -> Any:
    """JSON text as `shape`, like `read`. Raises MalformedError."""
    try:
        document, problem = msgspec.json.decode(text), None
    except _UNREADABLE as error:
        document, problem = None, error
    if problem is not None:
        raise _refusal(problem)
    return read(document, shape, strictly=strictly)


def fits(document: object, shape: Any) -> bool:  # noqa: ANN401 - as above
    """Whether the document has the shape just as it is, 5.0 being no integer."""
    return _converted(document, shape)[1] is None


def write(value: Frozen) -> dict[str, Any]:
    """The value as a document: every field, defaults too, in the order of the class."""
    document: dict[str, Any] = msgspec.to_builtins(value)
    return document


def write_json(value: Frozen) -> str:
    """The value as compact JSON text, characters unescaped."""
    return msgspec.json.encode(value).decode()


def _converted(
    document: object,
    shape: Any,  # noqa: ANN401 - see read
    *,
    whole_numbers: bool = False,
) -> tuple[Any, Exception | None]:
    """The value, or what was wrong. The refusal is raised outside of the `except`: an exception raised within would
    carry msgspec's own, whose text may hold a piece of the document."""
    try:
        return msgspec.convert(_with_whole_numbers(document) if whole_numbers else document, shape), None
    except _UNREADABLE as error:
        return None, error


def _unknown(given: object, kept: object, path: str = "") -> str:
    """Where the first field stands that was given and not kept; empty when there is none. Its name is left out where
    it is no name of a field: it could be anything."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for name, value in given.items():
            if name not in kept:
                return f"{path}.{name if re.fullmatch(_NAME, str(name)) else '...'}"
            if found := _unknown(value, kept[name], f"{path}.{name}"):
                return found
    if isinstance(given, list | tuple) and isinstance(kept, list | tuple):
        for place, (value, read_as) in enumerate(zip(given, kept, strict=True)):
            if found := _unknown(value, read_as, f"{path}[{place}]"):
                return found
    return ""


def _with_whole_numbers(document: object) -> object:
    if isinstance(document, float) and document.is_integer():
        return int(document)
    if isinstance(document, dict):
        return {name: _with_whole_numbers(value) for name, value in document.items()}
    if isinstance(document, list | tuple):
        return [_with_whole_numbers(value) for value in document]
    return document


def _refusal(problem: Exception, shape: Any = None) -> MalformedError:  # noqa: ANN401 - see read
    if isinstance(problem, UnicodeEncodeError):
        return MalformedError("", "a lone surrogate is no text")
    if isinstance(problem, RecursionError):
        return MalformedError("", "nested too deeply")
    placed = re.match(_PLACED, str(problem))
    reason, path = (placed["reason"], placed["path"] or "") if placed else ("", "")
    if field := re.fullmatch(_MISSING, reason):
        return MalformedError(f"{path}.{field['name']}", "missing")
    if reason.startswith(_SILENT):
        return MalformedError(path, reason.replace("`", ""))
    steps = re.findall(r"\w+|\.{3}", path)
    allowed = _words(inspect.type_info(shape), [*steps, "key"] if placed and placed["key"] else steps)
    return MalformedError(path, f"not one of {', '.join(allowed)}" if allowed else "not an allowed value")


def _words(kind: inspect.Type, steps: list[str]) -> list[str]:
    """The words of ours among which the place takes one; `steps` lead there from `kind`."""
    match kind, steps:
        case inspect.UnionType(types=types), _:
            return [word for each in types for word in _words(each, steps)]
        case inspect.LiteralType(values=values), []:
            return [str(value) for value in values]
        case inspect.StructType(tag_field=str(step), tag=tag), [last] if step == last:
            return [str(tag)]
        case inspect.StructType(fields=fields), [step, *rest]:
            return [word for each in fields if each.name == step for word in _words(each.type, rest)]
        case inspect.DictType(key_type=inner), ["key"]:
            return _words(inner, [])
        case (
            (
                inspect.DictType(value_type=inner)
                | inspect.ListType(item_type=inner)
                | inspect.VarTupleType(item_type=inner)
            ),
            [_, *rest],
        ):
            return _words(inner, rest)
    return []
