"""From a bearer token or a ticket to a TenantContext: the only way identity enters (F-643, F-645, rule 8)."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from turngate.domain import keys, wire
from turngate.domain.fence import NO_ACCOUNT
from turngate.domain.shapes import TenantContext
from turngate.domain.transaction import Absent, Item, Put, Transaction
from turngate.errors import MalformedError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turngate.ports import Clock, ConversationStore, Ids
    from turngate.settings import Settings
    from turngate.wiring import Ports

GUEST_TTL_MS = 24 * 3600 * 1000
_STAFF = ("agent", "operator")
_GUEST_PREFIX = "guest."


def welcome_guest(
    store: ConversationStore, clock: Clock, ids: Ids, *, account: str
) -> tuple[str, TenantContext, int]:
    """A guest's token (kept as its hash), identity and expiry (epoch ms). Raises RefusedError `account_not_found`."""
    active = keys.config_active(account)
    if not store.get(account, (active,)):
        raise RefusedError("account_not_found")
    token = f"{_GUEST_PREFIX}{ids.token()}"
    principal = f"guest:{hashlib.sha256(ids.token().encode()).hexdigest()[:24]}"
    tenant = TenantContext(account=account, principal=principal)
    expires_at = clock.now_ms() + GUEST_TTL_MS
    item: Item = {
        "entity": "guest",
        "tenant": tenant.known(),
        "expires_at": expires_at,
        "ttl": expires_at // 1000,
    }
    put = Put("guest", keys.ticket(_sha256(token)), item, (Absent(),))
    store.write(NO_ACCOUNT, Transaction("welcome_guest", (put,)))
    return token, tenant, expires_at


def identify(authorization: str, ports: Ports) -> TenantContext:
    """Whose bearer token this is. Raises RefusedError `unauthorized`."""
    scheme, _, token = authorization.strip().partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise RefusedError("unauthorized")
    if token.startswith(_GUEST_PREFIX):
        return _guest(ports.store, ports.clock, token)
    return tenant_of_claims(ports.tokens.claims(token), ports.settings)


def tenant_of_claims(claims: Mapping[str, Any], settings: Settings) -> TenantContext:
    """Claims of a verified JWT as our own words. Groups other than `agent` and `operator` mean nothing here, and
    neither does a text that merely holds these words."""
    groups = claims.get("cognito:groups") or claims.get("groups")
    staff = tuple(role for role in _STAFF if isinstance(groups, list) and role in groups)
    try:
        return wire.read(
            {
                "account": claims.get(settings.account_claim),
                "principal": f"user:{claims.get('sub', '')}",
                "customer": claims.get(settings.customer_claim) or (None if staff else claims.get("sub")),
                "roles": staff or ("customer",),
            },
            TenantContext,
        )
    except MalformedError as error:
        raise RefusedError("unauthorized") from error


def as_context(tenant: TenantContext) -> dict[str, str]:
    """The authorizer context: API Gateway passes strings on to the integration."""
    return {"tenant": json.dumps(tenant.known(), ensure_ascii=False)}


def from_context(authorizer: Mapping[str, Any]) -> TenantContext:
    """What the authorizer said, whichever API passed it on. Raises RefusedError `unauthorized`."""
    context = authorizer.get("lambda", authorizer)
    try:
        return wire.read_json(context.get("tenant", ""), TenantContext)
    except MalformedError as error:
        raise RefusedError("unauthorized") from error


def _guest(store: ConversationStore, clock: Clock, token: str) -> TenantContext:
    key = keys.ticket(_sha256(token))
    seen = store.get(NO_ACCOUNT, (key,)).get(key)
    if seen is None or seen["entity"] != "guest" or seen["expires_at"] < clock.now_ms():
        raise RefusedError("unauthorized")
    return wire.read(seen["tenant"], TenantContext)


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
