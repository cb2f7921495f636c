"""Authorizer of both APIs: a one-time ticket opens `$connect`, a bearer token opens the HTTP routes."""

import logging
from typing import Any

from turngate import wiring
from turngate.chat.authorizing import decide

logger = logging.getLogger()
ports = wiring.live("store")


def handle(event: dict[str, Any], ports: wiring.Ports) -> dict[str, Any]:
    return decide(event, ports)


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return handle(event, ports)
