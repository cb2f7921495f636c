"""The HTTP routes beside the socket: guests, tickets and the event log. Errors are problem documents (RFC 9457)."""

from __future__ import annotations

import base64
import json
import logging
from typing import TYPE_CHECKING, Any

from turngate.chat.answering import own_head
from turngate.chat.identity import from_context, welcome_guest
from turngate.domain import wire
from turngate.domain.problems import problem_document
from turngate.domain.shapes import Ident
from turngate.errors import MalformedError, RefusedError, TransientError
from turngate.protocol.announcing import read_log
from turngate.protocol.connecting import TICKET_TTL_MS, issue_ticket

if TYPE_CHECKING:
    from collections.abc import Callable

    from turngate.domain.shapes import Language
    from turngate.wiring import Ports

logger = logging.getLogger(__name__)

MAX_BODY_BYTES = 16 * 1024
MAX_PAGE = 100
MAX_SEQ = 9_999_999_999
Event = dict[str, Any]
Response = dict[str, Any]


def post_guest(event: Event, ports: Ports) -> Response:
    """POST /v1/chat/guests {account} → {token, principal, expires_at}."""
    try:
        account: str = wire.read(_body(event).get("account"), Ident)
    except MalformedError as error:
        raise RefusedError("body_invalid", "account") from error
    token, tenant, expires_at = welcome_guest(ports.store, ports.clock, ports.ids, account=account)
    return _json(201, {"token": token, "principal": tenant.principal, "expires_at": expires_at})


def post_ticket(event: Event, ports: Ports) -> Response:
    """POST /v1/chat/tickets → {ticket, expires_in_s}."""
    tenant = from_context(event["requestContext"]["authorizer"])
    ticket = issue_ticket(ports.store, ports.clock, ports.ids, tenant)
    return _json(201, {"ticket": ticket, "expires_in_s": TICKET_TTL_MS // 1000})


def get_events(event: Event, ports: Ports) -> Response:
    """GET /v1/conversations/{id}/events?after=&limit= → {events, next_after, last_seq}; next_after null at the end."""
    tenant = from_context(event["requestContext"]["authorizer"])
    conversation = _conversation_id(event)
    query = event.get("queryStringParameters") or {}
    after, limit = _number(query, "after", 0, MAX_SEQ), _number(query, "limit", MAX_PAGE, MAX_PAGE)
    head = own_head(tenant, conversation, ports)
    events = read_log(ports.store, tenant.account, conversation, after, max(1, limit))
    last = events[-1]["seq"] if events else after
    more = last < head.evt and bool(events)
    return _json(200, {"events": events, "next_after": last if more else None, "last_seq": head.evt})


_ROUTES: dict[str, Callable[[Event, Ports], Response]] = {
    "POST /v1/chat/guests": post_guest,
    "POST /v1/chat/tickets": post_ticket,
    "GET /v1/conversations/{id}/events": get_events,
}


def respond(event: Event, ports: Ports) -> Response:
    """Answer one HTTP API event (payload 2.0)."""
    language = _language(event)
    try:
        return _ROUTES[event["routeKey"]](event, ports)
    except RefusedError as refused:
        return _problem(refused.code, language, refused.detail, refused.retry_after_ms)
    except TransientError:
        return _problem("busy", language, "", 1000)
    except Exception:
        logger.exception("request cannot be handled")
        return _problem("internal", language, "", None)


def _problem(code: str, language: Language, detail: str, retry_after_ms: int | None) -> Response:
    document = problem_document(code, language, detail=detail, retry_after_ms=retry_after_ms)
    headers = {"content-type": "application/problem+json; charset=utf-8"}
    if retry_after_ms is not None:
        headers["retry-after"] = str(-(-retry_after_ms // 1000))
    return {
        "statusCode": document["status"],
        "headers": headers,
        "body": json.dumps(document, ensure_ascii=False),
    }


def _json(status: int, document: dict[str, Any]) -> Response:
    headers = {"content-type": "application/json; charset=utf-8", "cache-control": "no-store"}
    return {"statusCode": status, "headers": headers, "body": json.dumps(document, ensure_ascii=False)}


def _body(event: Event) -> dict[str, Any]:
    raw = event.get("body") or "{}"
    try:
        text = base64.b64decode(raw).decode() if event.get("isBase64Encoded") else raw
        if len(text.encode()) > MAX_BODY_BYTES:
            raise RefusedError("body_invalid", f"more than {MAX_BODY_BYTES} bytes")
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RefusedError("body_invalid", "not JSON") from error
    if not isinstance(document, dict):
        raise RefusedError("body_invalid", "not a JSON object")
    return document


def _conversation_id(event: Event) -> str:
    """What cannot be an id names no conversation."""
    try:
        conversation: str = wire.read((event.get("pathParameters") or {}).get("id"), Ident)
    except MalformedError as error:
        raise RefusedError("conversation_not_found") from error
    return conversation


def _number(query: dict[str, str], name: str, default: int, most: int) -> int:
    text = query.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > len(str(most)):
        raise RefusedError("body_invalid", name)
    return min(int(text), most)


def _language(event: Event) -> Language:
    accepted = (event.get("headers") or {}).get("accept-language", "")
    return "zh-CN" if accepted.lower().startswith("zh") else "en"
