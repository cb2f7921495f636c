"""State FailTurn: state the failure, if this run is still ours to end."""

import logging
from typing import Any

from turngate import wiring
from turngate.domain import wire
from turngate.domain.shapes import Frozen
from turngate.protocol.orders import StartOrder
from turngate.states.commit_turn import Ended, fail_turn

logger = logging.getLogger()
ports = wiring.live("store", "runs_to_start")


class Input(Frozen):
    order: StartOrder
    execution: str
    error: dict[str, Any]


def handle(request: Input, ports: wiring.Ports) -> Ended:
    return fail_turn(request.order, request.execution, ports)


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    request = wire.read(event, Input)
    output = handle(request, ports)
    # not the Cause: the function that failed has logged it, and it may hold what somebody wrote
    extra = {"run": request.order.run, "error": request.error.get("Error"), "became": output.kind}
    logger.error("turn failed", extra=extra)
    return wire.write(output)
