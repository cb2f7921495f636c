"""States Understand and ComposeReply (one function, so that one warm pool serves both): read, or phrase."""

import logging
from typing import Any

from turngate import wiring
from turngate.domain import wire
from turngate.states.compose_reply import ComposedReply, ComposeRequest, compose_reply
from turngate.states.understand import UnderstandRequest, Understood, understand

logger = logging.getLogger()
ports = wiring.live("store", "events_to_push", "model", "embedder")

Input = UnderstandRequest | ComposeRequest


def handle(request: Input, ports: wiring.Ports) -> Understood | ComposedReply:
    if isinstance(request, UnderstandRequest):
        return understand(request, ports)
    return compose_reply(request, ports)


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    request: Input = wire.read(event, Input)
    output = handle(request, ports)
    logger.info(request.task, extra={"run": request.turn.run, "usage": wire.write(output.usage)})
    return wire.write(output)
