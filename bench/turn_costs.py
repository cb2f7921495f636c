"""What one turn costs, counted from a real run on the emulator and never timed: states, Lambdas, DynamoDB requests and
write units by step, model calls, pushes, and dollars by published prices.
`tests/stack/test_turn_costs.py` runs the turns, holds them against BUDGETS and prints the tables of docs/measured.md.

Write units: 1 per 1 KB of the larger of the item before and after, twice that inside a transaction (AWS developer
guide, "Read and write operations", "Managing capacity for transactions"). An index entry that appears or goes costs
1, one whose key moves 2; propagation to an index is counted once also inside a transaction. Read units: 1 per 4 KB,
strong.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Record = dict[str, Any]
Attributes = dict[str, Any]
TableKey = tuple[str, str]

WRITE_KB = 1024
READ_KB = 4096
INDEX_KEYS = ("PK", "SK", "GSI1PK", "GSI1SK")
END_STATES = 1
"""A Succeed state is entered too; the recorder sees only states that do something."""
STEPS = (
    "AcceptMessage",
    "BeginTurn",
    "Understand",
    "Govern",
    "Retrieve",
    "ComposeReply",
    "CommitTurn",
    "PushEvents",
)
NOT_ON_THE_PATH = ("AcceptMessage", "PushEvents")
MEMORY_GB = {"AcceptMessage": 1.0, "Understand": 1.0, "ComposeReply": 1.0, "Retrieve": 1.0}
DEFAULT_GB = 0.5
PRICES = {
    "state machine start": 1e-6,
    "state machine GB-second": 16.67e-6,
    "Lambda request": 0.2e-6,
    "Lambda GB-second (arm64)": 13.3334e-6,
    "write unit": 0.625e-6,
    "read unit": 0.125e-6,
    "WebSocket message": 1e-6,
    "WebSocket minute": 0.25e-6,
    "SQS request": 0.4e-6,
    "log GB": 0.5,
}
"""us-east-1, public list prices, 2026-11."""


def attribute_size(value: Attributes) -> int:
    """Bytes of one typed value (AWS developer guide, "Item sizes and formats")."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "N":
            return (len(str(content).lstrip("-").replace(".", "")) + 1) // 2 + 1
        case "BOOL" | "NULL":
            return 1
        case "L":
            return 3 + sum(1 + attribute_size(each) for each in content)
        case "M":
            return 3 + sum(1 + len(name.encode()) + attribute_size(each) for name, each in content.items())
    return len(content)


def item_size(item: Attributes | None) -> int:
    return sum(len(name.encode()) + attribute_size(value) for name, value in (item or {}).items())


class Table:
    """The items as they were before the turn, changed by each recorded write in its order."""

    def __init__(self, items: Iterable[Attributes]) -> None:
        self._items = {key_of(item): item for item in items}
        self.written: list[tuple[str, int, int]] = []
        """Sort key, bytes and units of each write, in order."""

    def units_of_write(self, kind: str, request: Attributes, *, in_transaction: bool) -> int:
        """Units of one write, which is then applied."""
        key = key_of(request["Item"] if kind == "Put" else request["Key"])
        before = self._items.get(key)
        after = self._after(kind, request, before)
        if after is None:
            self._items.pop(key, None)
        else:
            self._items[key] = after
        size = max(item_size(before), item_size(after), 1)
        units = math.ceil(size / WRITE_KB) * (2 if in_transaction else 1) + index_units(before, after)
        self.written.append((key[1], size, units))
        return units

    def units_of_get(self, key: Attributes) -> int:
        return max(1, math.ceil(item_size(self._items.get(key_of(key))) / READ_KB))

    def units_of_query(self, request: Attributes) -> int:
        values = {name: value["S"] for name, value in request["ExpressionAttributeValues"].items()}
        found = sorted(
            key
            for key in self._items
            if key[0] == values[":pk"] and values[":first"] <= key[1] <= values[":last"]
        )
        if not request.get("ScanIndexForward", True):
            found.reverse()
        read = sum(item_size(self._items[key]) for key in found[: request["Limit"]])
        return max(1, math.ceil(read / READ_KB))

    def _after(self, kind: str, request: Attributes, before: Attributes | None) -> Attributes | None:
        match kind:
            case "Put":
                return dict(request["Item"])
            case "Delete":
                return None
            case "ConditionCheck":
                return before
        names = request.get("ExpressionAttributeNames", {})
        values = request.get("ExpressionAttributeValues", {})
        changed = {**(before or {}), **request["Key"]}
        setting, _, removing = request["UpdateExpression"].partition("REMOVE")
        for pair in filter(None, setting.replace("SET", "", 1).split(",")):
            name, _, value = (part.strip() for part in pair.partition("="))
            changed[names[name]] = values[value]
        for name in filter(None, (part.strip() for part in removing.split(","))):
            changed.pop(names[name], None)
        return changed


def key_of(item: Attributes) -> TableKey:
    return item["PK"]["S"], item["SK"]["S"]


def index_units(before: Attributes | None, after: Attributes | None) -> int:
    old, new = index_entry(before), index_entry(after)
    if old == new:
        return 0
    return sum(math.ceil(item_size(entry) / WRITE_KB) for entry in (old, new) if entry is not None)


def index_entry(item: Attributes | None) -> Attributes | None:
    if item is None or "GSI1PK" not in item:
        return None
    return {name: item[name] for name in INDEX_KEYS}


@dataclass
class StepCost:
    requests: int = 0
    writes: int = 0
    reads: int = 0
    lambdas: int = 0


@dataclass
class TurnCosts:
    """Counts of one turn. `steps` are in the order of a message; `states` include the one that ends the machine."""

    steps: dict[str, StepCost] = field(default_factory=lambda: defaultdict(StepCost))
    states: int = 0
    model_calls: int = 0
    pushes: int = 0
    orders: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    written: list[tuple[str, int, int]] = field(default_factory=list)

    def total(self, name: str, without: tuple[str, ...] = ()) -> int:
        return sum(getattr(cost, name) for step, cost in self.steps.items() if step not in without)

    @property
    def path_lambdas(self) -> int:
        return self.total("lambdas", NOT_ON_THE_PATH)

    def as_counts(self) -> dict[str, Any]:
        """Everything that must be equal at every length of a conversation: not how many orders SQS hands to one
        PushEvents at a time."""
        return {
            "states": self.states,
            "model_calls": self.model_calls,
            "pushes": self.pushes,
            "orders": self.orders,
            "steps": {
                step: {**vars(cost), "lambdas": cost.lambdas if step != "PushEvents" else None}
                for step, cost in sorted(self.steps.items())
            },
        }


def count(records: Iterable[Record], before: Iterable[Attributes], functions: Mapping[str, str]) -> TurnCosts:
    """Count what was recorded between two quiet moments. `before` are the items of the partitions it touches;
    `functions` gives the logical name of each deployed function."""
    costs, table, composing = TurnCosts(), Table(before), False
    for record in records:
        match record["kind"]:
            case "state":
                costs.states += 1
                composing = composing or record["name"] == "ComposeReply"
            case "lambda" if (step := _step(functions.get(record["function"], ""), composing)) in STEPS:
                costs.steps[step].lambdas += 1
            case "aws" if (step := _step(functions.get(record["caller"], ""), composing)) in STEPS:
                _count_call(costs, table, record, step)
    costs.states += END_STATES
    costs.written = table.written
    return costs


def _step(function: str, composing: bool) -> str:
    if function != "Model":
        return function
    return "ComposeReply" if composing else "Understand"


def _count_call(costs: TurnCosts, table: Table, record: Record, step: str) -> None:
    operation, cost = record["operation"], costs.steps[step]
    costs.operations[f"{step} {operation}"] += 1
    if operation == "PostToConnection":
        costs.pushes += 1
    if record["service"] == "sqs":
        costs.orders += operation == "SendMessage"
    if record["service"] == "dynamodb":
        cost.requests += 1
        cost.writes += sum(
            table.units_of_write(kind, write, in_transaction=operation == "TransactWriteItems")
            for kind, write in _writes(operation, record["request"])
        )
        cost.reads += _reads(table, operation, record["request"])


def _writes(operation: str, request: Attributes) -> list[tuple[str, Attributes]]:
    match operation:
        case "TransactWriteItems":
            return [next(iter(action.items())) for action in request["TransactItems"]]
        case "BatchWriteItem":
            return [("Put", put["PutRequest"]) for puts in request["RequestItems"].values() for put in puts]
        case "PutItem" | "UpdateItem" | "DeleteItem":
            return [(operation.removesuffix("Item"), request)]
    return []


def _reads(table: Table, operation: str, request: Attributes) -> int:
    match operation:
        case "GetItem":
            return table.units_of_get(request["Key"])
        case "BatchGetItem":
            wanted = [key for keys in request["RequestItems"].values() for key in keys["Keys"]]
            return sum(table.units_of_get(key) for key in wanted)
        case "Query":
            return table.units_of_query(request)
    return 0


def dollars_per_1000(
    costs: TurnCosts, *, model_seconds: float, short_seconds: float = 0.03
) -> dict[str, float]:
    """AWS's bill for 1,000 such turns, the model's tokens apart. Each Lambda works `short_seconds`; the model's
    answers are waited for `model_seconds` in all. Durations are assumptions, counts are not."""
    waiting = model_seconds / max(1, costs.model_calls)
    compute = 0.0
    for step, cost in costs.steps.items():
        seconds = short_seconds + (
            waiting if step in ("Understand", "ComposeReply") and costs.model_calls else 0
        )
        gigabytes = MEMORY_GB.get(step, DEFAULT_GB)
        compute += cost.lambdas * seconds * gigabytes * PRICES["Lambda GB-second (arm64)"]
    machine_s = math.ceil((model_seconds + costs.path_lambdas * short_seconds) * 10) / 10
    sends = costs.orders + 1  # AnnounceReply sends without a Lambda
    bill = {
        "Step Functions": PRICES["state machine start"]
        + machine_s * 0.0625 * PRICES["state machine GB-second"],
        "Lambda": costs.total("lambdas") * PRICES["Lambda request"] + compute,
        "DynamoDB": costs.total("writes") * PRICES["write unit"] + costs.total("reads") * PRICES["read unit"],
        "WebSocket": (1 + costs.pushes) * PRICES["WebSocket message"] + 2 * PRICES["WebSocket minute"],
        "SQS": 3 * sends * PRICES["SQS request"],  # send, receive, delete
        "logs": 6 * 2**-20 * PRICES["log GB"],  # 6 KB
    }
    priced = {name: round(1000 * each, 4) for name, each in bill.items()}
    return {**priced, "total": round(sum(priced.values()), 4)}


def table_of(turns: Mapping[str, TurnCosts]) -> str:
    """Markdown: one row a step, one column group a turn."""
    head = "| step | " + " | ".join(f"{name}: requests · WRU · RRU · Lambdas" for name in turns) + " |"
    lines = [head, "|---|" + "---|" * len(turns)]
    for step in STEPS:
        cells = [
            f"{c.requests} · {c.writes} · {c.reads} · {c.lambdas}"
            for c in (costs.steps.get(step, StepCost()) for costs in turns.values())
        ]
        lines.append(f"| {step} | " + " | ".join(cells) + " |")
    rows: dict[str, Callable[[TurnCosts], str]] = {
        "**without push**": lambda c: (
            f"**{c.total('requests', ('PushEvents',))} · {c.total('writes', ('PushEvents',))}"
            f" · {c.total('reads', ('PushEvents',))} · {c.total('lambdas', ('PushEvents',))}**"
        ),
        "**with push**": lambda c: (
            f"**{c.total('requests')} · {c.total('writes')} · {c.total('reads')} · {c.total('lambdas')}**"
        ),
        "states entered": lambda c: str(c.states),
        "Lambdas on the path": lambda c: str(c.path_lambdas),
        "model calls": lambda c: str(c.model_calls),
        "pushes": lambda c: str(c.pushes),
    }
    lines += [
        f"| {name} | " + " | ".join(show(c) for c in turns.values()) + " |" for name, show in rows.items()
    ]
    return "\n".join(lines)
