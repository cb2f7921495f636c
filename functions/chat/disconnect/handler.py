"""Route `$disconnect`: forget the connection. Best effort by nature; push and TTL find what it misses."""

from typing import Any

from turngate import wiring
from turngate.protocol.connecting import forget_by_id

ports = wiring.live("store")


def handle(event: dict[str, Any], ports: wiring.Ports) -> dict[str, Any]:
    forget_by_id(ports.store, event["requestContext"]["connectionId"])
    return {"statusCode": 200}


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    return handle(event, ports)
