"""The border of what the assistant can do: which one resource an intent stands for, and whether it may be used.

Only an intent that the contract holds and enables becomes executable (F-116). The resource's name is the contract's;
nothing a model says is ever part of it (F-118).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.domain.routing import RISKS
from turngate.domain.shapes import AllowedRoute, FixedAnswer, Refusal
from turngate.domain.texts import say

if TYPE_CHECKING:
    from turngate.domain.config import ContractEntry, GovernanceSlice
    from turngate.domain.shapes import Language, TenantContext

FALLBACK = "GLOBAL_KB_FALLBACK"
"""Stands for the intent in the route of a question that no intent claims."""
ACTING = ("MCP", "SKILL")
"""Kinds that reach a customer's own data or do something; documents and fixed texts do not."""


def contract_entry(governed: GovernanceSlice, intent_id: str) -> ContractEntry | None:
    """The enabled entry of an intent."""
    return next((e for e in governed.contract if e.intent_id == intent_id and e.enabled), None)


def authorise(
    governed: GovernanceSlice, intent_id: str, tenant: TenantContext, language: Language
) -> AllowedRoute | FixedAnswer | Refusal:
    """The one thing that may be done for a trusted intent (F-115): use its resource, state its fixed text, or refuse.

    Who may not use a resource hears nothing more about it: login first (F-644), then client and risk (F-088, F-536)."""
    replies, default = governed.replies, governed.default_language
    entry = contract_entry(governed, intent_id)
    if entry is None:
        return Refusal(reason="disabled", text=say(replies.out_of_scope_reply, language, default))
    if entry.login_required and tenant.customer is None:
        return Refusal(reason="login_required", text=say(replies.login_required_reply, language, default))
    if not _client_fits(entry, tenant):
        return Refusal(reason="wrong_client", text=say(replies.wrong_client_reply, language, default))
    if RISKS.index(entry.risk) > RISKS.index(governed.routing.max_risk):
        return Refusal(reason="risk_blocked", text=say(replies.risk_blocked_reply, language, default))
    name = entry.resource_name
    if entry.kind == "KB":
        public = tuple(other for other in governed.routing.fallback_collections if other != name)
        return AllowedRoute(
            intent_id=intent_id,
            resource_name=name,
            collections=(name,),
            fallback_collections=public,
        )
    if entry.kind == "SYSTEM" and name in governed.system_replies:
        text = say(governed.system_replies[name], language, default)
        return FixedAnswer(intent_id=intent_id, resource_name=name, text=text)
    return Refusal(reason="not_connected", text=say(replies.not_connected_reply, language, default))


def _client_fits(entry: ContractEntry, tenant: TenantContext) -> bool:
    return (not entry.client_types or tenant.client_type in entry.client_types) and set(
        entry.capabilities
    ) <= set(tenant.capabilities)


def resource_key(
    governed: GovernanceSlice, intent_id: str, route: AllowedRoute | FixedAnswer | Refusal
) -> tuple[str, ...]:
    """What a customer gets by this intent: two intents with the same key end the same way, and need no question."""
    entry = contract_entry(governed, intent_id)
    if entry is None or (isinstance(route, Refusal) and route.reason != "not_connected"):
        return ("refused", route.reason if isinstance(route, Refusal) else "disabled")
    return (entry.kind, entry.resource_name)


def public_fallback(governed: GovernanceSlice) -> AllowedRoute | None:
    """One search of the public collections (F-119); never a tool, whatever the question resembles (F-123)."""
    collections = governed.routing.fallback_collections
    if not collections:
        return None
    return AllowedRoute(intent_id=FALLBACK, resource_name="public", collections=collections, fallback=True)
