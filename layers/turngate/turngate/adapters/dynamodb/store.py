"""`ConversationStore` on DynamoDB: strong reads, one TransactWriteItems per transition, no retries of its own.

Failed conditions come back with the item as DynamoDB saw it (ReturnValuesOnConditionCheckFailure), so that a writer
can tell its own lost response from a lost race without another read."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from turngate.adapters.dynamodb.marshal import Expression, from_attributes, to_attributes, to_value
from turngate.domain import keys
from turngate.domain.fence import require_account
from turngate.domain.transaction import Check, Delete, Key, Put, Update
from turngate.errors import BrokenInvariantError, ConditionFailedError, ContentionError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from turngate.domain.transaction import Action, Item, Transaction

_MAX_BATCH = 25
_SERVER_ERROR = 500
_CONTENTION = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "RequestLimitExceeded",
        "TransactionConflictException",
        "TransactionInProgressException",
        "LimitExceededException",
    }
)
_CONTENDED_REASONS = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
_UNKNOWN_OUTCOME = frozenset({"InternalServerError", "ServiceUnavailable", "InternalFailure"})


class DynamoDBConversationStore:
    """`client` is a botocore DynamoDB client with retries off: the protocol owns the retries."""

    def __init__(self, client: Any, table: str) -> None:  # noqa: ANN401 - botocore clients have no static type
        self._client = client
        self._table = table

    def get(self, account: str, wanted: Sequence[Key]) -> dict[Key, Item]:
        require_account(account, (key.pk for key in wanted))
        if len(wanted) == 1:
            answer = self._call(
                self._client.get_item, TableName=self._table, Key=_key(wanted[0]), ConsistentRead=True
            )
            found = [answer["Item"]] if "Item" in answer else []
        else:
            request = {self._table: {"Keys": [_key(key) for key in wanted], "ConsistentRead": True}}
            answer = self._call(self._client.batch_get_item, RequestItems=request)
            if answer.get("UnprocessedKeys"):
                raise ContentionError("BatchGetItem left keys unread")
            found = answer["Responses"].get(self._table, [])
        return {Key(item["PK"]["S"], item["SK"]["S"]): from_attributes(item) for item in found}

    def query(
        self, account: str, pk: str, *, first: str, last: str, limit: int, newest_first: bool = False
    ) -> list[Item]:
        require_account(account, (pk,))
        if first > last:  # BETWEEN refuses what is only an empty range
            return []
        answer = self._call(
            self._client.query,
            TableName=self._table,
            KeyConditionExpression="PK = :pk AND SK BETWEEN :first AND :last",
            ExpressionAttributeValues={
                ":pk": to_value(pk),
                ":first": to_value(first),
                ":last": to_value(last),
            },
            ConsistentRead=True,
            Limit=limit,
            ScanIndexForward=not newest_first,
        )
        return [{**from_attributes(item), "sk": item["SK"]["S"]} for item in answer["Items"]]

    def write(self, account: str, transaction: Transaction) -> None:
        require_account(account, (action.key.pk for action in transaction.actions))
        if len(transaction.actions) == 1 and not isinstance(transaction.actions[0], Check):
            self._write_one(transaction.name, transaction.actions[0])
        else:
            self._write_together(transaction)

    def _write_one(self, transaction: str, action: Put | Update | Delete) -> None:
        client = self._client
        operation = {Put: client.put_item, Update: client.update_item, Delete: client.delete_item}[
            type(action)
        ]
        try:
            self._call(
                operation,
                **self._request(action),
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            response: dict[str, Any] = dict(error.response)
            seen = response.get("Item")
            failed = {action.name: from_attributes(seen) if seen else None}
            raise ConditionFailedError(transaction, failed) from error

    def _write_together(self, transaction: Transaction) -> None:
        items = [
            {
                _OPERATION[type(action)]: {
                    **self._request(action),
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
            }
            for action in transaction.actions
        ]
        try:
            self._call(
                self._client.transact_write_items, TransactItems=items, ClientRequestToken=_token(items)
            )
        except ClientError as error:
            raise _cancelled(transaction, error) from error

    def put_all(self, account: str, items: Iterable[tuple[Key, Item]]) -> None:
        batch = list(items)
        require_account(account, (key.pk for key, _ in batch))
        if len(batch) > _MAX_BATCH:
            raise BrokenInvariantError(f"put_all takes at most {_MAX_BATCH} items, got {len(batch)}")
        if not batch:
            return
        puts = [{"PutRequest": {"Item": {**_key(key), **to_attributes(item)}}} for key, item in batch]
        answer = self._call(self._client.batch_write_item, RequestItems={self._table: puts})
        if answer.get("UnprocessedItems"):
            raise ContentionError("BatchWriteItem left items unwritten")

    def due(self, shard: int, until: int, limit: int) -> list[Key]:
        answer = self._call(
            self._client.query,
            TableName=self._table,
            IndexName="GSI1",
            KeyConditionExpression="GSI1PK = :shard AND GSI1SK < :until",
            ExpressionAttributeValues={
                ":shard": to_value(keys.due_partition(shard)),
                ":until": to_value(f"{until + 1:013d}"),
            },
            Limit=limit,
        )
        return [Key(item["PK"]["S"], item["SK"]["S"]) for item in answer["Items"]]

    def _request(self, action: Action) -> dict[str, Any]:
        expression = Expression()
        request: dict[str, Any] = {"TableName": self._table}
        if isinstance(action, Put):
            request["Item"] = {**_key(action.key), **to_attributes(action.item)}
        else:
            request["Key"] = _key(action.key)
        if isinstance(action, Update):
            request["UpdateExpression"] = expression.update(action.set, action.remove)
        if action.condition:
            request["ConditionExpression"] = expression.condition(action.condition)
        if expression.names:
            request["ExpressionAttributeNames"] = expression.names
        if expression.values:
            request["ExpressionAttributeValues"] = expression.values
        return request

    def _call(self, operation: Callable[..., Any], **request: Any) -> Any:  # noqa: ANN401 - botocore's shapes
        """One request; conditions pass through as ClientError, everything else in our own error families."""
        try:
            return operation(**request)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in {"ConditionalCheckFailedException", "TransactionCanceledException"}:
                raise
            if code in _CONTENTION:
                raise ContentionError(code) from error
            if code in _UNKNOWN_OUTCOME or _is_server_error(error):
                raise TransientError(code) from error
            raise BrokenInvariantError(f"{code}: {error.response['Error'].get('Message', '')}") from error
        except ParamValidationError as error:  # never sent
            raise BrokenInvariantError(str(error)) from error
        except BotoCoreError as error:  # timeouts and broken connections: the write may have happened
            raise TransientError(type(error).__name__) from error


def _is_server_error(error: ClientError) -> bool:
    """A proxy or load balancer in between answers without DynamoDB's codes."""
    metadata: dict[str, Any] = dict(error.response.get("ResponseMetadata", {}))
    return int(metadata.get("HTTPStatusCode", 0)) >= _SERVER_ERROR


_OPERATION = {Put: "Put", Update: "Update", Delete: "Delete", Check: "ConditionCheck"}


def _key(key: Key) -> dict[str, dict[str, str]]:
    return {"PK": {"S": key.pk}, "SK": {"S": key.sk}}


def _token(items: list[dict[str, Any]]) -> str:
    """Hash of the whole request, so a token can never stand for another one (INVARIANTS, fact 4)."""
    text = json.dumps(items, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:36]


def _cancelled(transaction: Transaction, error: ClientError) -> Exception:
    response: dict[str, Any] = dict(error.response)
    reasons: list[dict[str, Any]] = response.get("CancellationReasons", [])
    failed = {
        action.name: from_attributes(reason["Item"]) if reason.get("Item") else None
        for action, reason in zip(transaction.actions, reasons, strict=False)
        if reason.get("Code") == "ConditionalCheckFailed"
    }
    if failed:
        return ConditionFailedError(transaction.name, failed)
    codes = {str(reason.get("Code")) for reason in reasons} - {"None"}
    if codes and codes <= _CONTENDED_REASONS:
        return ContentionError(f"{transaction.name}: {', '.join(sorted(codes))}")
    return BrokenInvariantError(
        f"{transaction.name}: cancelled by {', '.join(sorted(codes)) or 'nothing named'}"
    )
