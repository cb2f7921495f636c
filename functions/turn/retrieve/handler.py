"""State Retrieve: what do our documents say, in this scope and version?"""

import logging
from typing import Any

from turngate import wiring
from turngate.domain import wire
from turngate.domain.shapes import PartResult
from turngate.states.retrieve import RetrieveRequest, retrieve

logger = logging.getLogger()
ports = wiring.live("store", "knowledge", "embedder")


def handle(request: RetrieveRequest, ports: wiring.Ports) -> PartResult:
    return retrieve(request, ports)


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    request = wire.read(event, RetrieveRequest)
    output = handle(request, ports)
    logger.info("retrieve", extra={"run": request.turn.run, "part": output.part_id, "status": output.status})
    return wire.write(output)
