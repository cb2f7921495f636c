"""Queue `runs-to-start`: start the turn machine for a run that owes its start."""

from collections.abc import Callable
from functools import partial
from typing import Any

from turngate import wiring
from turngate.domain import wire
from turngate.protocol.orders import StartOrder
from turngate.sqs_batch import RESERVE_MS, each_record

ports = wiring.live("turns")


def start(body: str, ports: wiring.Ports) -> None:
    order = wire.read_json(body, StartOrder)
    name = f"{order.run}-{ports.ids.token()[:8]}"
    ports.turns.start(name=name, payload=wire.write(order))


def handle(event: dict[str, Any], ports: wiring.Ports, has_time: Callable[[], bool]) -> dict[str, Any]:
    return each_record(event, partial(start, ports=ports), has_time=has_time)


def lambda_handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401 - LambdaContext is untyped
    return handle(event, ports, lambda: context.get_remaining_time_in_millis() > RESERVE_MS)
