"""State CommitTurn: does this reply still count?"""

import logging
from typing import Any

from turngate import wiring
from turngate.domain import wire
from turngate.states.commit_turn import CommitRequest, Ended, commit_turn

logger = logging.getLogger()
ports = wiring.live("store", "runs_to_start")


def handle(request: CommitRequest, ports: wiring.Ports) -> Ended:
    return commit_turn(request, ports)


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    request = wire.read(event, CommitRequest)
    output = handle(request, ports)
    logger.info("commit", extra={"run": request.turn.run, "kind": output.kind, "state": output.state})
    return wire.write(output)
