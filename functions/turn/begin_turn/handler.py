"""State BeginTurn: is this execution the run's only one, and the run open? What is pinned, what answers already?"""

import logging
from typing import Any

from turngate import wiring
from turngate.domain import wire
from turngate.domain.shapes import Frozen
from turngate.protocol.orders import StartOrder
from turngate.states.begin_turn import TurnStart, begin_turn

logger = logging.getLogger()
ports = wiring.live("store", "events_to_push")


class Input(Frozen):
    order: StartOrder
    execution: str


def handle(request: Input, ports: wiring.Ports) -> TurnStart:
    return begin_turn(request.order, request.execution, ports)


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    request = wire.read(event, Input)
    output = handle(request, ports)
    logger.info("begin", extra={"run": request.order.run, "kind": output.kind})
    return wire.write(output)
