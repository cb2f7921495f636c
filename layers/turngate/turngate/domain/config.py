"""An assistant's configuration: what it may do and what it says when it may not.

Config is data with a version. It is validated when it is saved (`domain/checking.py`) and immutable afterwards, so a
turn never meets a configuration that names a collection or an action nobody has. A turn carries only the governance
slice: what Understand, Govern and ComposeReply need, small enough to travel in a state machine's payload.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from turngate.domain.routing import Risk, Routing
from turngate.domain.shapes import Frozen, Ident, Language, Texts
from turngate.domain.standard_replies import MessageTypeReplies, StandardReplies

MAX_INTENTS = 200
MAX_EXAMPLES = 30
MAX_PRE_ROUTE_RULES = 12
"""F-047: pre-routing stays small; ordinary semantics belong to intent resolution."""
MAX_NAME_CHARS = 80
"""Of an intent's name, which customers are offered as an option."""
MAX_TEXT_BYTES = 8 * 1024
"""Bytes that a text takes in JSON, placeholders replaced by the longest ids; a whole reply holds no more."""
MAX_SLICE_BYTES = 64 * 1024
"""UTF-8 bytes of the governance slice as JSON; a Step Functions payload holds 256 KB in all."""
MAX_STORED_BYTES = 380 * 1024
"""UTF-8 bytes of the whole configuration as JSON; a DynamoDB item holds 400 KB with its keys and names."""

RuleKind = Literal["GREETING", "THANKS", "SYSTEM", "AUTH_CONTEXT"]


class Intent(Frozen):
    """One leaf of the catalogue, split by data source and handling rather than by wording (F-073)."""

    id: Ident
    domain: str
    name: Texts
    description: Texts
    examples: tuple[str, ...] = ()
    source: Literal["seed", "ours"] = "ours"
    enabled: bool = True


class ContractEntry(Frozen):
    """The one resource an intent stands for (F-111, F-112): a collection, a tool, a system action or a skill, and for
    whom: `client_types` (empty: all) and the `capabilities` a client must have declared (F-088, F-126).

    `lexical`: words of which a skill's middle band needs one (F-086)."""

    intent_id: Ident
    kind: Literal["KB", "MCP", "SYSTEM", "SKILL"]
    resource_name: Ident
    enabled: bool = True
    login_required: bool = False
    risk: Risk = "L0"
    client_types: tuple[str, ...] = ()
    capabilities: tuple[Ident, ...] = ()
    lexical: tuple[str, ...] = ()


class PreRouteRule(Frozen):
    """A certain question and its fixed answer (F-044). `owner` and `reason` say who wants it and why it is certain.

    `{customer}` and `{principal}` in a reply of AUTH_CONTEXT stand for the login context; `reply_guest` is for
    a speaker without a customer."""

    id: Ident
    owner: str
    reason: str
    kind: RuleKind
    match: Literal["full"] = "full"
    phrases: tuple[str, ...]
    reply: Texts
    reply_guest: Texts | None = None


class PreRouting(Frozen):
    rules: tuple[PreRouteRule, ...] = ()


class AssistantConfig(StandardReplies):
    """The whole configuration of one assistant, as it is stored in one version."""

    schema_version: Literal[1]
    account: Ident
    assistant: Ident
    languages: Annotated[tuple[Language, ...], msgspec.Meta(min_length=1)]
    default_language: Language
    routing: Routing
    intents: tuple[Intent, ...]
    contract: tuple[ContractEntry, ...]
    system_replies: dict[Ident, Texts]
    pre_routing: PreRouting
    message_type_replies: MessageTypeReplies


class OfferedIntent(Frozen):
    """What the model is shown of an intent: nothing of the contract (F-064, F-082)."""

    id: Ident
    name: Texts
    description: Texts
    examples: tuple[str, ...]


class GovernanceSlice(Frozen):
    """The part of a configuration that travels with a turn. Holds enabled intents only (F-075)."""

    default_language: Language
    routing: Routing
    intents: tuple[OfferedIntent, ...]
    contract: tuple[ContractEntry, ...]
    system_replies: dict[Ident, Texts]
    pre_routing: PreRouting
    replies: StandardReplies


def governance_slice(config: AssistantConfig) -> GovernanceSlice:
    """What a turn carries of the configuration it is pinned to."""
    offered = tuple(
        OfferedIntent(id=i.id, name=i.name, description=i.description, examples=i.examples)
        for i in config.intents
        if i.enabled
    )
    ids = {intent.id for intent in offered}
    return GovernanceSlice(
        default_language=config.default_language,
        routing=config.routing,
        intents=offered,
        contract=tuple(entry for entry in config.contract if entry.intent_id in ids),
        system_replies=config.system_replies,
        pre_routing=config.pre_routing,
        replies=StandardReplies(
            **{name: getattr(config, name) for name in StandardReplies.__struct_fields__}
        ),
    )
