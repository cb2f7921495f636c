"""Every write and external call of the spine, found in the record of conversations nobody disturbed.

Calls of one place that look alike (same operation, same kind of items) are one site; the first of them is struck."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tests.faults.places import PLACES, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WRITES = frozenset({"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"})
SENDS = frozenset({"SendMessage", "StartExecution", "PostToConnection", "sqs:sendMessage"})
_ID = re.compile(r"[0-9a-f]{16,}|\d{4,}")
Kind = Literal["write", "send", "read", "model", "lambda", "task"]


@dataclass(frozen=True, slots=True)
class Site:
    """One call of a place, as a fault rule finds it again. `nth`: how many matching calls come up to it."""

    place: str
    kind: Kind
    service: str
    operation: str
    shape: str
    function: str
    contains: tuple[str, ...] = ()
    during: tuple[str, ...] = ()
    nth: int = 1
    scenario: str = "turn"
    markers: tuple[str, ...] = field(default=())

    @property
    def signature(self) -> tuple[str, str, str, str]:
        return self.place, self.service, self.operation, self.shape

    @property
    def label(self) -> str:
        what = f"{self.service}:{self.operation}" if self.service else self.operation
        return f"{self.place} · {what}{f' [{self.shape}]' if self.shape else ''}"


def shape(request: Mapping[str, Any] | None) -> str:
    """What kind of items a DynamoDB request is about: its keys with the ids taken out, in order."""
    if not request:
        return ""
    if items := request.get("TransactItems"):
        return "+".join(_sk(next(iter(each.values()))) for each in items)
    if tables := request.get("RequestItems"):
        ((_, asked),) = tables.items()
        rows = asked["Keys"] if isinstance(asked, dict) else [each["PutRequest"]["Item"] for each in asked]
        return "+".join(_of(row) for row in rows)
    if "KeyConditionExpression" in request:
        values = request["ExpressionAttributeValues"]
        if request.get("IndexName"):
            return "due index"
        return f"{_kind(values[':pk']['S'])} {_ID.sub('*', values[':first']['S']).rstrip('*')}"
    return _sk(request)


def _sk(request: Mapping[str, Any]) -> str:
    return _of(request.get("Key") or request["Item"])


def _of(row: Mapping[str, Any]) -> str:
    pk, sk = row["PK"]["S"], row["SK"]["S"]
    return _kind(pk) if sk == "-" else f"{_kind(pk)}/{_ID.sub('*', sk).split('#')[0]}"


def _kind(pk: str) -> str:
    parts = pk.split("#")
    return parts[2] if parts[0] == "T" else parts[0]


def discover(
    records: Iterable[dict[str, Any]],
    markers: Mapping[str, str],
    functions: Mapping[str, str],
    scenario: str,
) -> list[Site]:
    """The sites of one conversation."""
    kept = list(records)
    events = {
        each["request_id"]: json.dumps(each["event"], ensure_ascii=False)
        for each in kept
        if each["kind"] == "lambda" and "event" in each
    }
    found: dict[tuple[str, str, str, str], Site] = {}
    called: set[str] = set()
    for each in kept:
        # an invocation that still runs has no record of its own yet: the sweeper takes half a minute
        caller, invocation = (
            each.get("function") or each.get("caller"),
            each.get("request_id") or each.get("invocation"),
        )
        place = _place(caller, events.get(invocation, ""), markers, functions) if invocation else None
        if place is not None:
            made = _site(place, each, kept, events, markers, scenario) if each["kind"] == "aws" else None
            if made is not None:
                found.setdefault(made.signature, made)
            if place.name not in called and (made is not None or each["kind"] == "lambda"):
                called.add(place.name)
                site = _lambda_site(place, functions, scenario)
                found[site.signature] = site
        if each["kind"] == "state" and each["resource"] and "sqs:sendMessage" in each["resource"]:
            site = Site(
                each["name"],
                "task",
                "states-task",
                "sqs:sendMessage",
                "",
                "*",
                contains=("{conversation}",),
                scenario=scenario,
            )
            found.setdefault(site.signature, site)
    return list(found.values())


def _place(
    caller: object, event: str, markers: Mapping[str, str], functions: Mapping[str, str]
) -> Place | None:
    """The most particular place of this function that the event belongs to: the last one listed."""
    best = None
    for place in PLACES:
        if functions.get(place.function) != caller:
            continue
        wanted = [fill(text, markers) for text in place.during]
        if all(text is not None and text in event for text in wanted):
            best = place
    return best


def fill(text: str, markers: Mapping[str, str]) -> str | None:
    """A template with its markers filled in; None when one is not known."""
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        missing = missing or match[1] not in markers
        return markers.get(match[1], "")

    done = re.sub(r"\{([a-z0-9]+)\}", value, text)
    return None if missing else done


def _lambda_site(place: Place, functions: Mapping[str, str], scenario: str) -> Site:
    return Site(
        place.name,
        "lambda",
        "lambda",
        "Invoke",
        "",
        functions[place.function],
        contains=place.during,
        scenario=scenario,
    )


def _kind_of(operation: str) -> Kind:
    return "write" if operation in WRITES else "send" if operation in SENDS else "read"


def _site(
    place: Place,
    record: dict[str, Any],
    kept: list[dict[str, Any]],
    events: Mapping[str, str],
    markers: Mapping[str, str],
    scenario: str,
) -> Site | None:
    contains: tuple[str, ...] = ()
    during = place.during
    if place.by_request:
        told = _told_by(record, markers)
        if told is None:
            return None  # about another conversation
        contains, during = (told,), ()
    same = [
        each
        for each in kept
        if each["kind"] == "aws"
        and (each["caller"], each["service"], each["operation"])
        == (record["caller"], record["service"], record["operation"])
        and all((fill(text, markers) or "\0") in events.get(each["invocation"], "") for text in during)
        and all((fill(text, markers) or "\0") in each["body"] for text in contains)
    ]
    return Site(
        place.name,
        _kind_of(record["operation"]),
        record["service"],
        record["operation"],
        shape(record.get("request")),
        record["caller"],
        contains=contains,
        during=during,
        nth=1 if contains == ("{due}",) else same.index(record) + 1,  # every pass asks every shard
        scenario=scenario,
    )


def _told_by(record: dict[str, Any], markers: Mapping[str, str]) -> str | None:
    """The marker in a request of a function that serves many conversations."""
    for name in ("conversation", "due", "principal"):
        if name in markers and markers[name] in record["body"]:
            return f"{{{name}}}"
    return None
