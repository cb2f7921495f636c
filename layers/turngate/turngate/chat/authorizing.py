"""The authorizer's answer, in the two forms API Gateway wants: an IAM policy (WebSocket), `isAuthorized` (HTTP)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from turngate.chat.identity import as_context, identify
from turngate.errors import RefusedError
from turngate.protocol.connecting import redeem_ticket

if TYPE_CHECKING:
    from turngate.wiring import Ports

logger = logging.getLogger(__name__)


def decide(event: dict[str, Any], ports: Ports) -> dict[str, Any]:
    """Allow with the TenantContext in the context, or deny. Why it was denied goes to the log, not to the caller."""
    if event.get("type") == "REQUEST" and event.get("methodArn"):
        return _connect(event, ports)
    return _route(event, ports)


def _connect(event: dict[str, Any], ports: Ports) -> dict[str, Any]:
    ticket = (event.get("queryStringParameters") or {}).get("ticket", "")
    try:
        tenant = redeem_ticket(ports.store, ports.clock, ticket)
    except RefusedError as refused:
        logger.info("connection denied", extra={"code": refused.code})
        return _policy("Deny", event["methodArn"], "nobody")
    return {**_policy("Allow", event["methodArn"], tenant.principal), "context": as_context(tenant)}


def _route(event: dict[str, Any], ports: Ports) -> dict[str, Any]:
    authorization = (event.get("headers") or {}).get("authorization", "")
    try:
        tenant = identify(authorization, ports)
    except RefusedError as refused:
        logger.info("request denied", extra={"code": refused.code, "route": event.get("routeKey")})
        return {"isAuthorized": False}
    return {"isAuthorized": True, "context": as_context(tenant)}


def _policy(effect: str, method_arn: str, principal: str) -> dict[str, Any]:
    statement = {"Action": "execute-api:Invoke", "Effect": effect, "Resource": method_arn}
    return {
        "principalId": principal,
        "policyDocument": {"Version": "2012-10-17", "Statement": [statement]},
    }
