"""Who is on the line: one-time tickets, connection rows, and what `$connect` and `ping` keep true about them.

A ticket is 256 random bits, kept as its SHA-256 and consumed by a conditional delete, so a second use or a stolen
table row opens nothing (PROTOCOLS, rule 6)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from turngate.domain import keys, wire
from turngate.domain.fence import NO_ACCOUNT
from turngate.domain.shapes import TenantContext
from turngate.domain.transaction import Absent, AtLeast, Delete, Equals, Item, Put, Transaction
from turngate.errors import ConditionFailedError, RefusedError

if TYPE_CHECKING:
    from turngate.ports import Clock, ConversationStore, Ids

TICKET_TTL_MS = 60_000
CONNECTION_LIFE_MS = 2 * 3600 * 1000
"""API Gateway closes a WebSocket after two hours."""


def issue_ticket(store: ConversationStore, clock: Clock, ids: Ids, tenant: TenantContext) -> str:
    """A ticket for one connection of `tenant`, good for 60 seconds."""
    ticket = ids.token()
    now = clock.now_ms()
    item: Item = {
        "entity": "ticket",
        "tenant": tenant.known(),
        "expires_at": now + TICKET_TTL_MS,
        "ttl": (now + TICKET_TTL_MS) // 1000,
    }
    put = Put("ticket", keys.ticket(_sha256(ticket)), item, (Absent(),))
    store.write(NO_ACCOUNT, Transaction("issue_ticket", (put,)))
    return ticket


def redeem_ticket(store: ConversationStore, clock: Clock, ticket: str) -> TenantContext:
    """Consume a ticket. Raises RefusedError `ticket_invalid` for a forged, used or expired one, and for a guest's
    token, which is kept beside the tickets."""
    key = keys.ticket(_sha256(ticket))
    seen = store.get(NO_ACCOUNT, (key,)).get(key)
    if seen is None:
        raise RefusedError("ticket_invalid")
    unused = (Equals("entity", "ticket"), AtLeast("expires_at", clock.now_ms()))
    try:
        store.write(NO_ACCOUNT, Transaction("redeem_ticket", (Delete("ticket", key, unused),)))
    except ConditionFailedError as error:
        raise RefusedError("ticket_invalid") from error
    return wire.read(seen["tenant"], TenantContext)


def remember_connection(
    store: ConversationStore, clock: Clock, tenant: TenantContext, connection_id: str, connected_at: int
) -> None:
    """Write the connection's row, and the reverse row that finds it again when the socket closes."""
    expires_at = connected_at + CONNECTION_LIFE_MS
    row: Item = {
        "entity": "connection",
        "connection_id": connection_id,
        "principal": tenant.principal,
        "connected_at": connected_at,
        "seen_at": clock.now_ms(),
        "ttl": expires_at // 1000,
    }
    of_principal = keys.connection(tenant.account, tenant.principal, connection_id)
    store.put_all(tenant.account, [(of_principal, row)])
    reverse: Item = {**row, "entity": "reverse_connection", "account": tenant.account}
    store.put_all(NO_ACCOUNT, [(keys.reverse_connection(connection_id), reverse)])


def forget_connection(store: ConversationStore, account: str, principal: str, connection_id: str) -> None:
    """Remove both rows; missing ones are fine."""
    for owner, key in (
        (account, keys.connection(account, principal, connection_id)),
        (NO_ACCOUNT, keys.reverse_connection(connection_id)),
    ):
        store.write(owner, Transaction("forget_connection", (Delete("connection", key),)))


def forget_by_id(store: ConversationStore, connection_id: str) -> None:
    """What `$disconnect` knows is only the connection's id."""
    key = keys.reverse_connection(connection_id)
    row = store.get(NO_ACCOUNT, (key,)).get(key)
    if row is not None:
        forget_connection(store, row["account"], row["principal"], connection_id)


def _sha256(ticket: str) -> str:
    return hashlib.sha256(ticket.encode()).hexdigest()
