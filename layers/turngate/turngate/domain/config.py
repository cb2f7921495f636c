"""An assistant's configuration: what it may do and what it says when it may not.

Config is data with a version. It is validated when it is saved and immutable afterwards, so a turn never meets a
configuration that names a collection or an action nobody has. A turn carries only the governance slice: what
Understand, Govern and ComposeReply need, small enough to travel in a state machine's payload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from turngate.domain import wire
from turngate.domain.routing import Finding, Risk, Routing, routing_findings
from turngate.domain.shapes import Frozen, Ident, Language, Texts
from turngate.domain.standard_replies import MessageTypeReplies, StandardReplies
from turngate.domain.texts import normalised

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MAX_INTENTS = 200
MAX_EXAMPLES = 30
MAX_PRE_ROUTE_RULES = 12
"""F-047: pre-routing stays small; ordinary semantics belong to intent resolution."""
MAX_SLICE_BYTES = 64 * 1024
"""UTF-8 bytes of the governance slice as JSON; a Step Functions payload holds 256 KB in all."""

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


def validate_config(config: AssistantConfig, known_collections: Mapping[str, bool]) -> list[Finding]:
    """Everything that must be put right before this configuration may become a version; empty when it may.

    `known_collections` maps each collection of the account to whether it is public."""
    return [
        *_intent_findings(config),
        *_contract_findings(config, known_collections),
        *_routing_findings(config, known_collections),
        *_pre_routing_findings(config),
        *_text_findings(config),
        *_size_findings(config),
    ]


def _repeated(path: str, field: str, values: Iterable[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield Finding(
                code="duplicate_id", path=f"{path}/{index}/{field}", message=f"{value} appears twice"
            )
        seen.add(value)


def _intent_findings(config: AssistantConfig) -> Iterator[Finding]:
    yield from _repeated("intents", "id", (intent.id for intent in config.intents))
    bound = {entry.intent_id for entry in config.contract}
    if len(config.intents) > MAX_INTENTS:
        yield Finding(code="too_many_intents", path="intents", message=f"at most {MAX_INTENTS} intents")
    if not any(intent.enabled for intent in config.intents):
        yield Finding(code="no_intent", path="intents", message="no intent is enabled")
    for index, intent in enumerate(config.intents):
        if intent.id not in bound:
            message = f"{intent.id} has no contract entry"
            yield Finding(code="intent_without_contract", path=f"intents/{index}", message=message)
        if len(intent.examples) > MAX_EXAMPLES:
            path = f"intents/{index}/examples"
            yield Finding(code="too_many_examples", path=path, message=f"at most {MAX_EXAMPLES} examples")


def _contract_findings(config: AssistantConfig, known: Mapping[str, bool]) -> Iterator[Finding]:
    yield from _repeated("contract", "intent_id", (entry.intent_id for entry in config.contract))
    intents = {intent.id for intent in config.intents}
    for index, entry in enumerate(config.contract):
        path, name = f"contract/{index}", entry.resource_name
        if entry.intent_id not in intents:
            message = f"no intent {entry.intent_id}"
            yield Finding(code="unknown_intent", path=f"{path}/intent_id", message=message)
        if entry.kind == "KB" and name not in known:
            message = f"no collection {name}"
            yield Finding(code="unknown_collection", path=f"{path}/resource_name", message=message)
        if entry.kind == "SYSTEM" and name not in config.system_replies:
            message = f"no reply for the system action {name}"
            yield Finding(code="unknown_system_action", path=f"{path}/resource_name", message=message)


def _routing_findings(config: AssistantConfig, known: Mapping[str, bool]) -> Iterator[Finding]:
    routing = config.routing
    for index, name in enumerate(routing.fallback_collections):
        path = f"routing/fallback_collections/{index}"
        if name not in known:
            yield Finding(code="unknown_collection", path=path, message=f"no collection {name}")
        elif not known[name]:
            yield Finding(code="fallback_not_public", path=path, message=f"{name} is not public (F-123)")
    yield from routing_findings(routing, (intent.id for intent in config.intents))
    if config.default_language not in config.languages:
        message = f"{config.default_language} is not among the languages"
        yield Finding(code="unknown_language", path="default_language", message=message)


def _pre_routing_findings(config: AssistantConfig) -> Iterator[Finding]:
    rules = config.pre_routing.rules
    yield from _repeated("pre_routing/rules", "id", (rule.id for rule in rules))
    if len(rules) > MAX_PRE_ROUTE_RULES:
        message = f"at most {MAX_PRE_ROUTE_RULES} rules (F-047)"
        yield Finding(code="too_many_rules", path="pre_routing/rules", message=message)
    owner: dict[str, str] = {
        normalised(phrase): "routing" for phrase in config.routing.incomplete_expressions
    }
    for index, rule in enumerate(rules):
        if rule.kind == "AUTH_CONTEXT" and rule.reply_guest is None:
            message = "a guest has no customer id to be told: reply_guest is needed"
            yield Finding(code="missing_guest_reply", path=f"pre_routing/rules/{index}", message=message)
        for place, phrase in enumerate(rule.phrases):
            path, form = f"pre_routing/rules/{index}/phrases/{place}", normalised(phrase)
            if not form:
                yield Finding(
                    code="empty_phrase", path=path, message="nothing is left of this phrase to match"
                )
            elif owner.setdefault(form, rule.id) != rule.id:
                message = f"{phrase} already belongs to {owner[form]}"
                yield Finding(code="ambiguous_phrase", path=path, message=message)


def _text_findings(config: AssistantConfig) -> Iterator[Finding]:
    for path, texts in _all_texts(config):
        for language in config.languages:
            if not texts.get(language, "").strip():
                yield Finding(code="missing_text", path=path, message=f"no {language} text")


def _all_texts(config: AssistantConfig) -> Iterator[tuple[str, Texts]]:
    for name in StandardReplies.__struct_fields__:
        yield name, getattr(config, name)
    for name in MessageTypeReplies.__struct_fields__:
        yield f"message_type_replies/{name}", getattr(config.message_type_replies, name)
    for action, texts in config.system_replies.items():
        yield f"system_replies/{action}", texts
    for index, intent in enumerate(config.intents):
        yield f"intents/{index}/name", intent.name
        yield f"intents/{index}/description", intent.description
    for index, rule in enumerate(config.pre_routing.rules):
        yield f"pre_routing/rules/{index}/reply", rule.reply
        if rule.reply_guest is not None:
            yield f"pre_routing/rules/{index}/reply_guest", rule.reply_guest


def _size_findings(config: AssistantConfig) -> Iterator[Finding]:
    size = len(wire.write_json(governance_slice(config)).encode())
    if size > MAX_SLICE_BYTES:
        message = f"the governance slice takes {size} bytes; at most {MAX_SLICE_BYTES}"
        yield Finding(code="slice_too_large", path="", message=message)
