"""Route `$connect`: remember who is on this connection. What was missed is sent when the client asks to resume."""

from typing import Any

from turngate import wiring
from turngate.chat.identity import from_context
from turngate.protocol.connecting import remember_connection

ports = wiring.live("store")


def handle(event: dict[str, Any], ports: wiring.Ports) -> dict[str, Any]:
    context = event["requestContext"]
    tenant = from_context(context["authorizer"])
    remember_connection(ports.store, ports.clock, tenant, context["connectionId"], context["connectedAt"])
    return {"statusCode": 200}


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return handle(event, ports)
