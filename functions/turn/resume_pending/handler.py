"""State ResumePending: is this the next step of something we asked?"""

import logging
from typing import Any

from turngate import wiring
from turngate.domain import wire
from turngate.states.resume_pending import ResumedTurn, ResumeRequest, resume_pending

logger = logging.getLogger()
ports = wiring.live("store")


def handle(request: ResumeRequest, ports: wiring.Ports) -> ResumedTurn:
    return resume_pending(request, ports)


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    request = wire.read(event, ResumeRequest)
    output = handle(request, ports)
    logger.info("resume", extra={"run": request.turn.run, "kind": output.kind})
    return wire.write(output)
