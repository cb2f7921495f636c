"""State Govern: what is allowed? One authorised resource per part, or a question back, or a refusal."""

from typing import Any

from turngate.domain import wire
from turngate.states.govern import Governed, GovernRequest, rule


def handle(request: GovernRequest) -> Governed:
    return rule(request)


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return wire.write(handle(wire.read(event, GovernRequest)))
