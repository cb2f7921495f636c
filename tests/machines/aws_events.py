"""Events as far as our handlers read them; whole ones are in events/."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.protocol.world import START
from turngate.chat.identity import as_context

if TYPE_CHECKING:
    from turngate.domain.shapes import TenantContext

CONNECTED_AT = START - 60_000
CONTEXT = SimpleNamespace(
    aws_request_id="c6af9ac6-7b61-11e6-9a41-93e8deadbeef", get_remaining_time_in_millis=lambda: 9_000
)
"""What the Lambda runtime hands to a handler, as far as ours look at it."""


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
