"""The one table in memory: linearizable by one lock, conditions evaluated by the domain's own `holds`."""

from __future__ import annotations

import copy
import threading
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from turngate.domain import keys
from turngate.domain.fence import require_account
from turngate.domain.transaction import Check, Key, applied, holds
from turngate.errors import BrokenInvariantError, ConditionFailedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from turngate.domain.transaction import Item, Transaction

_MAX_BATCH = 25
_MAX_ACTIONS = 100


class MemoryConversationStore:
    """A `ConversationStore` over a dict. The due index never lags here."""

    def __init__(self) -> None:
        self._items: dict[Key, Item] = {}
        self._sort_keys: defaultdict[str, list[str]] = defaultdict(list)
        """Of each partition, in order: a query costs what it returns, however much the table holds."""
        self._lock = threading.Lock()

    def get(self, account: str, wanted: Sequence[Key]) -> dict[Key, Item]:
        require_account(account, (key.pk for key in wanted))
        with self._lock:
            return {key: _stored(self._items[key]) for key in wanted if key in self._items}

    def query(
        self, account: str, pk: str, *, first: str, last: str, limit: int, newest_first: bool = False
    ) -> list[Item]:
        require_account(account, (pk,))
        with self._lock:
            ordered = self._sort_keys.get(pk, [])
            start, end = bisect_left(ordered, first), bisect_right(ordered, last)
            found = ordered[max(start, end - limit) : end] if newest_first else ordered[start:end][:limit]
            if newest_first:
                found.reverse()
            return [{**_stored(self._items[Key(pk, sk)]), "sk": sk} for sk in found]

    def write(self, account: str, transaction: Transaction) -> None:
        actions = transaction.actions
        require_account(account, (action.key.pk for action in actions))
        if not 0 < len(actions) <= _MAX_ACTIONS or len({action.key for action in actions}) != len(actions):
            raise BrokenInvariantError(
                f"{transaction.name}: a transaction has 1 to 100 actions on distinct items"
            )
        with self._lock:
            failed = {
                action.name: _stored(self._items.get(action.key))
                for action in actions
                if not holds(action.condition, self._items.get(action.key))
            }
            if failed:
                raise ConditionFailedError(transaction.name, failed)
            after = {
                action.key: _stored(applied(action, self._items.get(action.key)))
                for action in actions
                if not isinstance(action, Check)
            }
            for key, item in after.items():
                self._keep(key, item)

    def put_all(self, account: str, items: Iterable[tuple[Key, Item]]) -> None:
        batch = list(items)
        require_account(account, (key.pk for key, _ in batch))
        if len(batch) > _MAX_BATCH:
            raise BrokenInvariantError(f"put_all takes at most {_MAX_BATCH} items, got {len(batch)}")
        stored = {key: _stored(item) for key, item in batch}
        with self._lock:
            for key, item in stored.items():
                self._keep(key, item)

    def _keep(self, key: Key, item: Item | None) -> None:
        """Store the item, or none any more; under the lock."""
        if item is None:
            if self._items.pop(key, None) is not None:
                ordered = self._sort_keys[key.pk]
                del ordered[bisect_left(ordered, key.sk)]
            return
        if key not in self._items:
            insort(self._sort_keys[key.pk], key.sk)
        self._items[key] = item

    def due(self, shard: int, until: int, limit: int) -> list[Key]:
        partition = keys.due_partition(shard)
        with self._lock:
            owing = sorted(
                (item["GSI1SK"], key)
                for key, item in self._items.items()
                if item.get("GSI1PK") == partition and item["GSI1SK"] < f"{until + 1:013d}"
            )
        return [key for _, key in owing[:limit]]

    def snapshot(self) -> dict[Key, Item]:
        """All items, for tests that compare states."""
        with self._lock:
            return copy.deepcopy(self._items)


def _stored(value: Any) -> Any:  # noqa: ANN401 - item values are open by nature
    """A copy as DynamoDB would give it back; refuses what DynamoDB cannot hold, so that no test learns it too late."""
    match value:
        case None | bool() | int() | str() | bytes():
            return value
        case list() | tuple():
            return [_stored(each) for each in value]
        case dict():
            return {name: _stored(each) for name, each in value.items()}
    raise BrokenInvariantError(f"no DynamoDB type for {type(value).__name__}")
