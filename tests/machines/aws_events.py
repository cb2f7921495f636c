"""Events as far as our handlers read them; whole ones are in events/."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.protocol.world import START
from turngate.chat.identity import as_context

if TYPE_CHECKING:
    from turngate.domain.shapes import TenantContext

CONNECTED_AT = START - 60_000


def socket_event(
    body: str | None, who: TenantContext, socket: str, route: str, request: str = "req"
) -> dict[str, Any]:
    """A WebSocket event as API Gateway sends it, as far as it is read."""
    return {
        "requestContext": {
            "routeKey": route,
            "authorizer": {**as_context(who), "principalId": who.principal},
            "connectionId": socket,
            "connectedAt": CONNECTED_AT,
            "requestId": request,
        },
        "isBase64Encoded": False,
        **({"body": body} if body is not None else {}),
    }


def sqs_event(bodies: list[str]) -> dict[str, Any]:
    return {"Records": [{"messageId": f"message-{n}", "body": body} for n, body in enumerate(bodies)]}
