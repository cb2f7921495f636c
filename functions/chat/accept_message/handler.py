"""Route `$default`: one frame of a client. Is this message new, allowed, and now the latest?"""

import logging
from typing import Any

from turngate import wiring
from turngate.chat.answering import Caller, answer
from turngate.chat.identity import from_context

logger = logging.getLogger()
ports = wiring.live("store", "events_to_push", "turns")


def handle(event: dict[str, Any], ports: wiring.Ports) -> str:
    context = event["requestContext"]
    caller = Caller(
        tenant=from_context(context["authorizer"]),
        connection_id=context["connectionId"],
        connected_at=context["connectedAt"],
        request_id=context["requestId"],
    )
    return answer(
        event.get("body"), is_base64=event.get("isBase64Encoded", False), caller=caller, ports=ports
    )


def lambda_handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    became = handle(event, ports)
    logger.info("frame", extra={"became": became, "connection": event["requestContext"]["connectionId"]})
    return {"statusCode": 200}
