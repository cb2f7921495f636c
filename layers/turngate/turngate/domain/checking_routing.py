"""What is wrong with phrases, corrections and numbers of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.domain.finding import Finding, repeated
from turngate.domain.routing import (
    MAX_CORRECTIONS,
    MAX_FALLBACK_COLLECTIONS,
    MAX_GROUPS,
    MAX_PHRASE_CHARS,
    Correction,
)
from turngate.domain.texts import normalised

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from turngate.domain.config import AssistantConfig


def routing_findings(config: AssistantConfig) -> Iterator[Finding]:
    """What is wrong with `routing`, but for the collections it names."""
    routing = config.routing
    if not routing.intent_threshold:
        message = "0 trusts every guess: choose a number above 0 (0.5 is usual)"
        yield Finding(code="threshold_zero", path="routing/intent_threshold", message=message)
    if routing.out_of_scope_below > routing.intent_threshold:
        message = f"must not be above intent_threshold ({routing.intent_threshold:g}): lower it"
        yield Finding(code="thresholds_crossed", path="routing/out_of_scope_below", message=message)
    if routing.skills.mid > routing.skills.high:
        message = f"mid must not be above high ({routing.skills.high:g}): lower it"
        yield Finding(code="thresholds_crossed", path="routing/skills/mid", message=message)
    if (most := len(routing.fallback_collections)) > MAX_FALLBACK_COLLECTIONS:
        message = f"{most} collections; at most {MAX_FALLBACK_COLLECTIONS} are searched together: name fewer"
        yield Finding(code="too_many_collections", path="routing/fallback_collections", message=message)
    for name in ("incomplete_expressions", "action_phrases", "consulting_phrases"):
        yield from unusable_phrases(f"routing/{name}", getattr(routing, name))
    yield from _correction_findings(config)
    if config.default_language not in config.languages:
        message = f"{config.default_language} is not among the languages: add it or choose another"
        yield Finding(code="unknown_language", path="default_language", message=message)


def _correction_findings(config: AssistantConfig) -> Iterator[Finding]:
    corrections, path = config.routing.corrections, "routing/corrections"
    if len(corrections) > MAX_CORRECTIONS:
        message = f"{len(corrections)} corrections; at most {MAX_CORRECTIONS} (F-101): keep the certain ones"
        yield Finding(code="too_many_corrections", path=path, message=message)
    yield from repeated(path, "/id", (correction.id for correction in corrections))
    for index, correction in enumerate(corrections):
        yield from _intents_of(f"{path}/{index}", correction, config)
        yield from _phrases_of(f"{path}/{index}", correction)


def _intents_of(path: str, correction: Correction, config: AssistantConfig) -> Iterator[Finding]:
    """A correction must be able to take effect: some intent it takes from is offered, the one it leads to is served."""
    there = {intent.id: intent.enabled for intent in config.intents}
    served = {entry.intent_id for entry in config.contract if entry.enabled}
    target, sources = correction.to_intent, correction.from_intents
    for name in (*sources, target):
        if name not in there:
            message = f"there is no intent {name}: correct the name or remove it"
            yield Finding(code="unknown_intent", path=path, message=message)
    if target in sources:
        message = f"corrects {target} to itself: take it out of from_intents"
        yield Finding(code="idle_correction", path=path, message=message)
    if target in there and not (there[target] and target in served):
        message = f"{target} or its contract entry is disabled: enable it or remove the correction"
        yield Finding(code="disabled_intent", path=f"{path}/to_intent", message=message)
    if all(there.get(name) is False for name in sources):
        message = f"{', '.join(sources)} disabled, so nothing is ever corrected: remove the correction"
        yield Finding(code="disabled_intent", path=f"{path}/from_intents", message=message)


def _phrases_of(path: str, correction: Correction) -> Iterator[Finding]:
    for name in ("owner", "evidence"):
        if not getattr(correction, name).strip():
            message = f"say the correction's {name} (F-101)"
            yield Finding(code=f"missing_{name}", path=f"{path}/{name}", message=message)
    if len(correction.all_of) > MAX_GROUPS:
        message = f"{len(correction.all_of)} groups; at most {MAX_GROUPS}: merge some"
        yield Finding(code="too_many_groups", path=f"{path}/all_of", message=message)
    for place, group in enumerate(correction.all_of):
        if not group:
            message = "a group without phrases never matches: add one or remove the group"
            yield Finding(code="empty_phrase", path=f"{path}/all_of/{place}", message=message)
        yield from unusable_phrases(f"{path}/all_of/{place}", group)
    yield from unusable_phrases(f"{path}/none_of", correction.none_of)


def unusable_phrases(path: str, phrases: Iterable[str]) -> Iterator[Finding]:
    """Phrases of which nothing is left to compare, so that they would be found in every text, and overlong ones."""
    for index, phrase in enumerate(phrases):
        if not normalised(phrase):
            message = "only spaces and punctuation, which would match anything: write a word or remove it"
            yield Finding(code="empty_phrase", path=f"{path}/{index}", message=message)
        elif len(phrase) > MAX_PHRASE_CHARS:
            message = f"{len(phrase)} characters; at most {MAX_PHRASE_CHARS}: name the words that decide"
            yield Finding(code="phrase_too_long", path=f"{path}/{index}", message=message)
