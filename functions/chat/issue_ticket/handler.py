"""Routes POST /v1/chat/guests, POST /v1/chat/tickets and GET /v1/conversations/{id}/events of the HTTP API."""

import logging
from typing import Any

from turngate import wiring
from turngate.chat.http import respond

logger = logging.getLogger()
ports = wiring.live("store")


def handle(event: dict[str, Any], ports: wiring.Ports) -> dict[str, Any]:
    return respond(event, ports)


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    response = handle(event, ports)
    logger.info("http", extra={"route": event["routeKey"], "status": response["statusCode"]})
    return response
