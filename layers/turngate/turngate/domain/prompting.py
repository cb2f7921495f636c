"""One request to a chat model that answers a JSON document: the shape Understand and ComposeReply share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class ModelRequest(NamedTuple):
    """Arguments of `ModelClient.complete_json`, apart from its timeout."""

    system: str
    user: str
    schema_name: str
    schema: dict[str, Any]

    def is_answered_by(self, document: Mapping[str, Any]) -> bool:
        """Whether it has the lists that were asked for, empty or not. An answer that was cut off before they began can
        be mended into an object, and says nothing."""
        lists = [name for name, kind in self.schema["properties"].items() if kind["type"] == "array"]
        return all(isinstance(document.get(name), list) for name in lists)


def as_user_message(document: Mapping[str, Any]) -> str:
    """The data of a request as one JSON document: what customers and documents say stays inside JSON strings, apart
    from the instructions."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def strict_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema of an object with exactly these properties, as strict structured output demands."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def array_of(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}
