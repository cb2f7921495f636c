"""One deployed stack under attack: rules aimed at one conversation, what the table holds, and the scenarios to play."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from local.deploy import EmulatorSettings
from local.stack import run_stack
from tests.faults.customer import ACCOUNT, Customer
from tests.faults.model_proxy import ModelFault, ModelProxy, serving
from tests.faults.sites import fill
from turngate.adapters.dynamodb.marshal import from_attributes
from turngate.domain import keys
from turngate.domain.transaction import Key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from local.stack import Stack
    from turngate.domain.transaction import Item

SWEEP_S = 10.0
WORKERS = 56
"""Room for four of each function: the stock limit would make every other invocation a cold start here."""
QUESTION = "How long do refunds take for order {pad}?"


@dataclass
class Bench:
    """The stack, the model in front of which faults stand, and whose turn it is to work it hard."""

    stack: Stack
    proxy: ModelProxy
    busy: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(4))
    _sweeping: threading.Lock = field(default_factory=threading.Lock)
    _swept: float = 0.0

    @cached_property
    def functions(self) -> dict[str, str]:
        """Deployed name of each function by its logical name without `Function`."""
        found = self.stack.emulator.client("lambda").get_paginator("list_functions").paginate()
        return {
            each["FunctionName"].split("-")[1].removesuffix("Function"): each["FunctionName"]
            for page in found
            for each in page["Functions"]
        }

    @cached_property
    def _dynamodb(self) -> Any:
        return self.stack.emulator.client("dynamodb")

    @cached_property
    def _lambda(self) -> Any:
        return self.stack.emulator.client("lambda")

    def conversation(self, conversation: str) -> dict[Key, Item]:
        """Every item of a conversation and of its runs."""
        items = self._partition(keys.conversation(ACCOUNT, conversation))
        for run in [key.sk.removeprefix("RUN#") for key in items if key.sk.startswith("RUN#")]:
            items |= self._partition(keys.run_partition(ACCOUNT, run))
        return items

    def _partition(self, pk: str) -> dict[Key, Item]:
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self.stack.outputs["TableName"],
            KeyConditionExpression="PK = :pk",
            ExpressionAttributeValues={":pk": {"S": pk}},
            ConsistentRead=True,
        )
        return {
            Key(item["PK"]["S"], item["SK"]["S"]): from_attributes(item)
            for page in pages
            for item in page["Items"]
        }

    def sweep(self) -> None:
        """What the schedule does each minute, now, unless it was asked for a moment ago: an invocation lasts half a
        minute, because its second pass comes 30 s after the first."""
        with self._sweeping:
            if time.monotonic() - self._swept < SWEEP_S:
                return
            self._swept = time.monotonic()
        self._lambda.invoke(
            FunctionName=self.functions["SweepDueItems"], InvocationType="Event", Payload=b"{}"
        )

    def age(self, conversation: str, seconds: int) -> None:
        """Let time pass for the open runs of a conversation: deadline and due time move into the past together, as
        the clock would move past them. Root rights; the fast cut cannot wait for 75 s."""
        for key, item in self._partition(keys.conversation(ACCOUNT, conversation)).items():
            if key.sk.startswith("RUN#") and item["state"] in ("queued", "running"):
                deadline = item["deadline"] - seconds * 1000
                due = keys.due(key, deadline)
                with contextlib.suppress(self._dynamodb.exceptions.ConditionalCheckFailedException):
                    self._dynamodb.update_item(
                        TableName=self.stack.outputs["TableName"],
                        Key={"PK": {"S": key.pk}, "SK": {"S": key.sk}},
                        UpdateExpression="SET deadline = :d, GSI1PK = :p, GSI1SK = :s",
                        ConditionExpression="deadline = :was",
                        ExpressionAttributeValues={
                            ":d": {"N": str(deadline)},
                            ":was": {"N": str(item["deadline"])},
                            ":p": {"S": due["GSI1PK"]},
                            ":s": {"S": due["GSI1SK"]},
                        },
                    )

    def forget_workers(self, *functions: str) -> None:
        """The next invocation of these functions is a cold start, as after a deployment."""
        for name in functions:
            deployed = self.functions[name]
            variables = self._lambda.get_function_configuration(FunctionName=deployed)["Environment"][
                "Variables"
            ]
            self._lambda.update_function_configuration(
                FunctionName=deployed,
                Environment={"Variables": {**variables, "DEPLOYED_AT": f"{time.monotonic()}"}},
            )


class Aim:
    """Rules that wait for their markers: each is put in force as soon as what it names is known, and aimed anew when
    a marker changes (a second ticket)."""

    def __init__(
        self, bench: Bench, rules: list[dict[str, Any]], model: list[ModelFault] | None = None
    ) -> None:
        self._bench = bench
        self._rules = rules
        self._armed: dict[int, tuple[str, dict[str, Any]]] = {}
        self._spent: dict[int, int] = {}
        self._model = model or []
        self._lock = threading.Lock()
        self.markers: dict[str, str] = {}
        self.matched: dict[int, int] = {}

    def know(self, name: str, value: str) -> None:
        with self._lock:
            self.markers[name] = value
            if name == "conversation":
                shard = keys.due(Key(keys.conversation(ACCOUNT, value), ""), 0)["GSI1PK"]
                self.markers["due"] = f'"{shard}"'
            for number in range(len(self._rules)):
                self._arm(number)
            for fault in self._model:
                if name == "pad":
                    fault.marker = value
                    self._bench.proxy.add(fault)

    def injected(self, number: int) -> int:
        """How often the rule struck so far."""
        with self._lock:
            return self._spent.get(number, 0) + self._report(number).get("injected", 0)

    def lower(self) -> None:
        """Take all rules out of force."""
        with self._lock:
            for number in list(self._armed):
                self._disarm(number)
            for fault in self._model:
                if fault.marker:
                    self._bench.proxy.remove(fault)
                    fault.marker = ""

    def _arm(self, number: int) -> None:
        rule = self._rules[number]
        filled = {
            name: [fill(text, self.markers) for text in rule.get(name, ())] for name in ("contains", "during")
        }
        if any(text is None for texts in filled.values() for text in texts):
            return
        wanted = {**rule, **filled}
        if number in self._armed:
            if self._armed[number][1] == wanted:
                return
            self._disarm(number)
        spent = self._spent.get(number, 0)
        left = None if rule.get("limit") is None else rule["limit"] - spent
        if left is None or left > 0:
            given = {name: value for name, value in {**wanted, "limit": left}.items() if value is not None}
            if spent:
                given.pop("nth", None)
            self._armed[number] = (self._bench.stack.emulator.add_fault(**given), wanted)

    def _disarm(self, number: int) -> None:
        identity, _ = self._armed.pop(number)
        report = self._bench.stack.emulator.drop_fault(identity)
        self._spent[number] = self._spent.get(number, 0) + report["injected"]

    def _report(self, number: int) -> dict[str, Any]:
        if number not in self._armed:
            return {}
        return self._bench.stack.emulator.faults().get(self._armed[number][0], {})


@contextlib.contextmanager
def bench(work_dir: Path, say: Any = lambda _line: None) -> Iterator[Bench]:
    """The stack with the fault proxy before its model."""
    proxy = ModelProxy()
    with serving(proxy) as url:
        endpoints = {"ModelBaseUrl": url, "EmbeddingBaseUrl": url}
        settings = EmulatorSettings(workers_in_all=WORKERS)
        with run_stack(
            observe=True, parameters=endpoints, settings=settings, work_dir=work_dir, say=say
        ) as stack:
            proxy.target = stack.model.base_url
            yield Bench(stack, proxy)


def newcomer(bench: Bench, aim: Aim) -> Customer:
    return Customer(bench.stack.http_url, bench.stack.socket_url, aim.know)
