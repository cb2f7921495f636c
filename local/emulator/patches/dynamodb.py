"""DynamoDB: the condition key that fences kinds of items per role."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from local.emulator import stock
from local.emulator.patches.registry import PatchContext, patch

if TYPE_CHECKING:
    from local.emulator.stock import Foreign

_EQUALS = re.compile(r"^\s*\(?\s*([#\w]+)\s*=\s*(:\w+)")
Request = dict[str, Any]


class _FencedArn(str):
    """A table ARN of one transaction item that remembers the item's own partition key."""

    __slots__ = ("leading_keys",)
    leading_keys: list[str]


@patch("dynamodb-leading-keys")
def tell_policies_the_partition_keys_of_a_request(context: PatchContext) -> None:
    """`dynamodb:LeadingKeys` holds the partition keys a request touches, per item in a transaction.

    AWS fills it for every item operation. Stock never does: `ForAllValues` on the absent key allows everything,
    and with `Null: false` beside it everything is denied, so neither state tests the role.
    """
    actions = stock.module("core.iam_actions")
    evaluator = stock.module("core.iam_evaluator")
    stock_context, stock_checks = actions.dynamodb_service_context, actions.dynamodb_transaction_checks
    stock_enforce = evaluator.enforce

    def service_context(body: bytes) -> Request:
        described: Request = stock_context(body)
        keys = leading_keys(_parsed(body))
        return {**described, "dynamodb:LeadingKeys": keys} if keys else described

    def transaction_checks(action: str, body: bytes, region: str, account: str) -> list[tuple[str, str]]:
        checks: list[tuple[str, str]] = stock_checks(action, body, region, account)
        members = [
            member
            for item in _parsed(body).get("TransactItems") or []
            if isinstance(item, dict)
            for member in item.values()
            if isinstance(member, dict) and member.get("TableName")
        ]
        if len(members) != len(checks):
            return checks
        fenced: list[tuple[str, str]] = []
        for (item_action, arn), member in zip(checks, members, strict=True):
            marked = _FencedArn(arn)
            marked.leading_keys = leading_keys(member)
            fenced.append((item_action, marked))
        return fenced

    def enforce(*arguments: Foreign, **options: Foreign) -> Foreign:
        arn = options.get("resource_arn")
        if isinstance(arn, _FencedArn):
            keys = {"dynamodb:LeadingKeys": arn.leading_keys} if arn.leading_keys else {}
            options["service_context"] = {**(options.get("service_context") or {}), **keys}
        return stock_enforce(*arguments, **options)

    actions.dynamodb_service_context = service_context
    actions.dynamodb_transaction_checks = transaction_checks
    evaluator.enforce = enforce


def leading_keys(request: Request) -> list[str]:
    """The partition key values one request names: of `Key`, `Item`, a key condition, or a batch; none for a Scan."""
    table = request.get("TableName", "")
    if "Key" in request or "Item" in request:
        return _of_item(table, request.get("Key") or request.get("Item") or {})
    if "KeyConditionExpression" in request:
        return _of_condition(request)
    found: list[str] = []
    for name, entries in (request.get("RequestItems") or {}).items():
        keys = entries.get("Keys", []) if isinstance(entries, dict) else [_batch_item(e) for e in entries]
        for key in keys:
            found += _of_item(name, key)
    return found


def _batch_item(entry: Request) -> Request:
    request: Request = entry.get("PutRequest") or entry.get("DeleteRequest") or {}
    item: Request = request.get("Item") or request.get("Key") or {}
    return item


def _of_item(table: str, item: Request) -> list[str]:
    value = item.get(_hash_key(table) or "")
    return [_plain(value)] if isinstance(value, dict) else []


def _of_condition(request: Request) -> list[str]:
    names = request.get("ExpressionAttributeNames") or {}
    values = request.get("ExpressionAttributeValues") or {}
    wanted = _hash_key(request.get("TableName", ""), request.get("IndexName"))
    for clause in re.split(r"\s+[Aa][Nn][Dd]\s+", request["KeyConditionExpression"]):
        match = _EQUALS.match(clause)
        if match and names.get(match[1], match[1]) == wanted and isinstance(values.get(match[2]), dict):
            return [_plain(values[match[2]])]
    return []


def _hash_key(table: str, index: str | None = None) -> str | None:
    """The partition key's name, from the table's description; a table may be named by its ARN."""
    described = stock.module("services.dynamodb")._tables.get(table.rsplit("/", 1)[-1])
    if not described:
        return None
    schema = described.get("KeySchema", [])
    if index is not None:
        indexes = [*described.get("GlobalSecondaryIndexes", []), *described.get("LocalSecondaryIndexes", [])]
        schema = next((found["KeySchema"] for found in indexes if found["IndexName"] == index), [])
    return next((key["AttributeName"] for key in schema if key["KeyType"] == "HASH"), None)


def _plain(value: Request) -> str:
    return str(next(iter(value.values()), ""))


def _parsed(body: bytes) -> Request:
    try:
        request = json.loads(body or b"{}")
    except ValueError:
        return {}
    return request if isinstance(request, dict) else {}
