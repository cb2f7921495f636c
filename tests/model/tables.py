"""The tables that an exploration has seen, each stored once, with every new one and every new move judged once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from turngate.domain.transaction import Check, Key, Transaction, applied, holds
from turngate.errors import ConditionFailedError

if TYPE_CHECKING:
    from tests.model.stepping import Scenario
    from turngate.domain.transaction import Item

ABSENT = 0
"""The id of no item."""


class FoundError(Exception):
    """Raised inside the exploration when a judge objects."""


@dataclass(slots=True)
class Table:
    items: dict[Key, int]
    evt: int


class Tables:
    """Tables by number. Items are interned, so that two tables are equal when their item numbers are."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.items: list[Item | None] = [None]
        self.item_ids: dict[str, int] = {}
        self.tables: list[Table] = []
        self.table_ids: dict[tuple[tuple[Key, int], ...], int] = {}
        self.judged_moves: set[tuple[int, int]] = set()
        self._viewed: tuple[int, dict[Key, Item]] = (-1, {})

    def __len__(self) -> int:
        return len(self.tables)

    def __getitem__(self, table: int) -> Table:
        return self.tables[table]

    def item_id(self, item: Item | None) -> int:
        if item is None:
            return ABSENT
        text = json.dumps(item, sort_keys=True, ensure_ascii=False, default=repr)
        known = self.item_ids.get(text)
        if known is None:
            known = self.item_ids[text] = len(self.items)
            self.items.append(item)
        return known

    def table_id(self, items: dict[Key, int], evt: int) -> int:
        canonical = tuple(sorted(items.items()))
        known = self.table_ids.get(canonical)
        if known is None:
            known = self.table_ids[canonical] = len(self.tables)
            self.tables.append(Table(items, evt))
            view = self.view(known)
            if problems := [*self.scenario.judge(view), *self.scenario.recover(view)]:
                raise FoundError(*problems)
        return known

    def view(self, table: int) -> dict[Key, Item]:
        """The table as items; the last one is kept."""
        if self._viewed[0] != table:
            shown = {key: self.items[item] for key, item in self.tables[table].items.items()}
            self._viewed = (table, shown)  # type: ignore[assignment]  # a table holds no absent item
        return self._viewed[1]

    def apply(self, table: int, transaction: Transaction) -> int | ConditionFailedError:
        """The table after the transaction, or why not."""
        items = self.tables[table].items
        seen = {action.name: self.items[items.get(action.key, ABSENT)] for action in transaction.actions}
        failed = {
            action.name: seen[action.name]
            for action in transaction.actions
            if not holds(action.condition, seen[action.name])
        }
        if failed:
            return ConditionFailedError(transaction.name, failed)
        after, evt = dict(items), self.tables[table].evt
        for action in transaction.actions:
            if isinstance(action, Check):
                continue
            new = applied(action, seen[action.name])
            if new is None:
                after.pop(action.key, None)
            else:
                after[action.key] = self.item_id(new)
                if action.key.sk == "HEAD":
                    evt = new["evt"]
        result = self.table_id(after, evt)
        if (table, result) not in self.judged_moves:
            self.judged_moves.add((table, result))
            if problems := self.scenario.judge_move(self.view(table), self.view(result)):
                raise FoundError(*problems)
        return result
