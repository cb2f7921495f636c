"""What must be put right before a configuration may become a version, all of it at once.

A configuration that is accepted never makes a turn fail or say what it must not; one that is refused names each
finding by code, place and what to change. Only saving asks this: versions that were saved are loaded as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.domain.checking_routing import routing_findings, unusable_phrases
from turngate.domain.checking_sizes import size_findings
from turngate.domain.checking_texts import name_findings, text_findings
from turngate.domain.config import MAX_EXAMPLES, MAX_INTENTS, MAX_PRE_ROUTE_RULES
from turngate.domain.finding import RESERVED, Finding, repeated
from turngate.domain.routing import RISKS
from turngate.domain.texts import normalised

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from turngate.domain.config import AssistantConfig, ContractEntry, PreRouteRule


def validate_config(config: AssistantConfig, known_collections: Mapping[str, bool]) -> list[Finding]:
    """Everything that must be put right before this configuration may become a version; empty when it may.

    `known_collections` maps each collection of the account to whether it is public."""
    return [
        *_intent_findings(config),
        *name_findings(config.intents),
        *_contract_findings(config, known_collections),
        *_fallback_findings(config, known_collections),
        *routing_findings(config),
        *_pre_routing_findings(config),
        *text_findings(config),
        *size_findings(config),
    ]


def _intent_findings(config: AssistantConfig) -> Iterator[Finding]:
    yield from repeated("intents", "/id", (intent.id for intent in config.intents))
    bound = {entry.intent_id for entry in config.contract}
    if len(config.intents) > MAX_INTENTS:
        message = f"{len(config.intents)} intents; at most {MAX_INTENTS}: merge or remove some"
        yield Finding(code="too_many_intents", path="intents", message=message)
    if not any(intent.enabled for intent in config.intents):
        yield Finding(code="no_intent", path="intents", message="no intent is enabled: enable one")
    for index, intent in enumerate(config.intents):
        if intent.id in RESERVED:
            message = f"{intent.id} is a name of the product's own: choose another id"
            yield Finding(code="reserved_id", path=f"intents/{index}/id", message=message)
        if intent.id not in bound:
            message = f"{intent.id} has no contract entry: add the one that says what it may use"
            yield Finding(code="intent_without_contract", path=f"intents/{index}", message=message)
        if len(intent.examples) > MAX_EXAMPLES:
            path = f"intents/{index}/examples"
            message = f"{len(intent.examples)} examples; at most {MAX_EXAMPLES}: keep the most different ones"
            yield Finding(code="too_many_examples", path=path, message=message)


def _contract_findings(config: AssistantConfig, known: Mapping[str, bool]) -> Iterator[Finding]:
    yield from repeated("contract", "/intent_id", (entry.intent_id for entry in config.contract))
    intents = {intent.id for intent in config.intents}
    for index, entry in enumerate(config.contract):
        path, name = f"contract/{index}", entry.resource_name
        if entry.intent_id not in intents:
            message = f"there is no intent {entry.intent_id}: remove the entry or correct its intent_id"
            yield Finding(code="unknown_intent", path=f"{path}/intent_id", message=message)
        if entry.kind == "KB" and name not in known:
            yield _unknown_collection(f"{path}/resource_name", name, known)
        if entry.kind == "SYSTEM" and name not in config.system_replies:
            message = f"there is no text system_replies/{name}: add it or name another"
            yield Finding(code="unknown_system_action", path=f"{path}/resource_name", message=message)
        yield from unusable_phrases(f"{path}/lexical", entry.lexical)


def _unknown_collection(path: str, name: str, known: Mapping[str, bool]) -> Finding:
    message = f"there is no collection {name}: name one of {', '.join(sorted(known)) or 'none so far'}"
    return Finding(code="unknown_collection", path=path, message=message)


def _fallback_findings(config: AssistantConfig, known: Mapping[str, bool]) -> Iterator[Finding]:
    """What everybody may search must be nobody's alone: neither private nor behind an entry's conditions."""
    fallback = config.routing.fallback_collections
    yield from repeated("routing/fallback_collections", "", fallback)
    for index, name in enumerate(fallback):
        path = f"routing/fallback_collections/{index}"
        if name not in known:
            yield _unknown_collection(path, name, known)
        elif not known[name]:
            message = f"{name} is not public, and the fallback searches for everybody (F-123): take it out"
            yield Finding(code="fallback_not_public", path=path, message=message)
        narrow = [
            f"contract/{place} ({', '.join(conditions)})"
            for place, entry in enumerate(config.contract)
            if entry.kind == "KB" and entry.resource_name == name
            if (conditions := _conditions(entry, config))
        ]
        if narrow:
            message = (
                f"{name} is searched for everybody, but {' and '.join(narrow)} keeps it from some: "
                "take it out of fallback_collections, or the condition out of the entry"
            )
            yield Finding(code="fallback_restricted", path=path, message=message)


def _conditions(entry: ContractEntry, config: AssistantConfig) -> list[str]:
    """What stands between a speaker and the entry's resource. A disabled entry keeps its conditions: it says for whom
    the documents are."""
    found = [name for name in ("login_required", "client_types", "capabilities") if getattr(entry, name)]
    above = RISKS.index(entry.risk) > RISKS.index(config.routing.max_risk)
    return [*found, f"risk {entry.risk}"] if above else found


def _pre_routing_findings(config: AssistantConfig) -> Iterator[Finding]:
    rules = config.pre_routing.rules
    yield from repeated("pre_routing/rules", "/id", (rule.id for rule in rules))
    if len(rules) > MAX_PRE_ROUTE_RULES:
        message = (
            f"{len(rules)} rules; at most {MAX_PRE_ROUTE_RULES} (F-047): ordinary meaning belongs to intents"
        )
        yield Finding(code="too_many_rules", path="pre_routing/rules", message=message)
    owner: dict[str, str] = {
        normalised(phrase): "routing/incomplete_expressions"
        for phrase in config.routing.incomplete_expressions
    }
    for index, rule in enumerate(rules):
        yield from _rule_findings(f"pre_routing/rules/{index}", rule, owner)


def _rule_findings(path: str, rule: PreRouteRule, owner: dict[str, str]) -> Iterator[Finding]:
    """`owner` maps each phrase that is taken to who has it, and takes in the rule's own."""
    for name in ("owner", "reason"):
        if not getattr(rule, name).strip():
            message = f"say the rule's {name}: who wants it and why it is certain (F-044)"
            yield Finding(code=f"missing_{name}", path=f"{path}/{name}", message=message)
    if not rule.phrases:
        message = "a rule without phrases never answers: add one or remove the rule"
        yield Finding(code="no_phrases", path=f"{path}/phrases", message=message)
    if rule.kind == "AUTH_CONTEXT" and rule.reply_guest is None:
        message = "a guest has no customer id to be told: add reply_guest"
        yield Finding(code="missing_guest_reply", path=path, message=message)
    yield from unusable_phrases(f"{path}/phrases", rule.phrases)
    for place, phrase in enumerate(rule.phrases):
        form = normalised(phrase)
        if form and owner.setdefault(form, rule.id) != rule.id:
            message = f"{phrase} already belongs to {owner[form]}: keep it in one place"
            yield Finding(code="ambiguous_phrase", path=f"{path}/phrases/{place}", message=message)
