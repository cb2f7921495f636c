"""Whether a configuration can be stored, and whether the largest turn it allows still fits a payload.

Neither limit can be met at run time: an item that is too large is not written, and States.DataLimitExceeded cannot be
caught, so the customer would wait for the sweeper. The message names what takes the room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from turngate.domain import wire
from turngate.domain.checking_texts import SaidText, every_text
from turngate.domain.config import (
    MAX_SLICE_BYTES,
    MAX_STORED_BYTES,
    AssistantConfig,
    GovernanceSlice,
    governance_slice,
)
from turngate.domain.contract import public_fallback
from turngate.domain.finding import RESERVED, Finding
from turngate.domain.pending import RESUME_ORDER, Opening
from turngate.domain.route_trace import AppliedCorrection, ContractView, PartRuling, event_of
from turngate.domain.shapes import AllowedRoute, Candidate, Clarification, FixedAnswer, Option, Part
from turngate.domain.understanding import MAX_SUB_QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turngate.domain.shapes import Frozen, Route

COMPOSE_ROOM = 80 * 1024
"""Of the 256 KB that ComposeReply is given: what the slice and six parts may take. The rest is the longest input (16
KB, doubled by escapes) twice, and the longest answer of a model (64 KB), which is in the parts and in the trace."""
GOVERN_ROOM = 56 * 1024
"""Of the 256 KB that Govern may give: what six parts that ask back may take, and what they leave open. It repeats their
questions; without it Govern gives less than ComposeReply is given."""
_NAMED = 3
_KB = 1024


def size_findings(config: AssistantConfig) -> Iterator[Finding]:
    """The whole configuration, its slice, and the largest turn within their limits."""
    stored = _bytes(config)
    if stored > MAX_STORED_BYTES:
        message = _too_large("the whole configuration", stored, MAX_STORED_BYTES, wire.write(config))
        yield Finding(code="config_too_large", path="", message=message)
    governed = governance_slice(config)
    size = _bytes(governed)
    if size > MAX_SLICE_BYTES:
        message = _too_large("what travels with a turn", size, MAX_SLICE_BYTES, wire.write(governed))
        yield Finding(code="slice_too_large", path="", message=message)
        size = MAX_SLICE_BYTES  # what it will have at most, once that is put right
    part, asked = largest_part(config, governed)
    compose, governing = size + MAX_SUB_QUESTIONS * part, MAX_SUB_QUESTIONS * asked
    if compose > COMPOSE_ROOM or governing > GOVERN_ROOM:
        longest = max(_said_of_parts(config), key=lambda said: len(_json(said.longest)))
        message = (
            f"a turn of {MAX_SUB_QUESTIONS} questions can take {compose / _KB:.0f} KB; at most "
            f"{COMPOSE_ROOM // _KB} KB: {size / _KB:.1f} KB that travel with every turn and {MAX_SUB_QUESTIONS} times "
            f"{part / _KB:.1f} KB; what it asks back can take {governing / _KB:.0f} KB; at most "
            f"{GOVERN_ROOM // _KB} KB. Shorten the longest text ({longest.path} takes "
            f"{len(_json(longest.longest)) / _KB:.1f} KB), {_largest(wire.write(governed))}, or lower max_candidates"
        )
        yield Finding(code="turn_too_large", path="", message=message)


def largest_part(config: AssistantConfig, governed: GovernanceSlice) -> tuple[int, int]:
    """Bytes that the configuration can put into one part with its ruling and event, as ComposeReply is given it, and
    into one that asks back, as Govern gives it with what it leaves open. What the customer and the model wrote is not
    in it."""
    routing = governed.routing
    names = sorted(
        (_option(intent.id, tuple(intent.name.values())) for intent in governed.intents),
        key=_bytes,
        reverse=True,
    )
    options = tuple(names[: routing.max_candidates])
    listed = "".join(f"\n{number:02}. {option.name}" for number, option in enumerate(options))
    said = max((each.longest for each in _said_of_parts(config)), key=lambda t: len(_json(t)), default="")
    leads = (
        *governed.replies.guidance_reply.values(),
        *governed.replies.no_such_option_reply.values(),
    )
    asking = Clarification(
        reason="intent_guidance",
        text=max(leads, key=lambda t: len(_json(t)), default="") + listed,
        candidates=options,
    )
    longest_id = max((*RESERVED, *(intent.id for intent in governed.intents)), key=len)
    resource = _longest_resource(governed)
    routes: list[Route] = [asking, FixedAnswer(intent_id=longest_id, resource_name=resource, text=said)]
    if (public := public_fallback(governed)) is not None:
        everywhere = (*public.collections, resource)
        routes.append(
            AllowedRoute(
                intent_id=longest_id,
                resource_name=resource,
                collections=everywhere,
                fallback_collections=everywhere,
            )
        )
    ruling = _largest_ruling(governed, options)
    told = _bytes(ruling) + _bytes(event_of(ruling))
    sizes = [_bytes(Part(part_id="p1", question="", route=route)) for route in routes]
    opened = _bytes(Opening(part_id="p1", question="", clarification=asking))
    return max(sizes) + told, sizes[0] + opened + told


def _said_of_parts(config: AssistantConfig) -> Iterator[SaidText]:
    """What can be the text of a part: no name, no description, and nothing that is said instead of a turn."""
    return (
        each for each in every_text(config) if not each.path.startswith(("intents/", "message_type_replies/"))
    )


def _longest_resource(governed: GovernanceSlice) -> str:
    bound = (entry.resource_name for entry in governed.contract)
    return max((*RESUME_ORDER, *bound, *(rule.id for rule in governed.pre_routing.rules)), key=len)


def _option(identity: str, names: tuple[str, ...]) -> Option:
    return Option(id=identity, name=max(names, key=lambda n: len(_json(n)), default=""), also=names)


def _largest_ruling(governed: GovernanceSlice, options: tuple[Option, ...]) -> PartRuling:
    corrections = [
        AppliedCorrection(
            id=each.id,
            from_intent=max(each.from_intents, key=len),
            to_intent=each.to_intent,
            phrases=tuple(max(group, key=lambda p: len(_json(p)), default="") for group in each.all_of),
        )
        for each in governed.routing.corrections
    ]
    entry = max(governed.contract, key=_bytes, default=None)
    view = (
        ContractView(**{name: getattr(entry, name) for name in ContractView.__struct_fields__})
        if entry
        else None
    )
    return PartRuling(
        part_id="p1",
        question="",
        candidates=tuple(Candidate(id=option.id, score=0.123456789012345678) for option in options),
        resolution="NO_TRUSTED",
        correction=max(corrections, key=_bytes, default=None),
        arbitration="knowledge_over_mid_skill",
        guidance=tuple(option.id for option in options),
        outcome="GLOBAL_KB_FALLBACK",
        contract=view,
        route_kind="CLARIFICATION",
        reason="intent_guidance",
        intent_id=max((option.id for option in options), key=len, default=""),
        resource_name=_longest_resource(governed),
    )


def _too_large(what: str, size: int, limit: int, document: dict[str, Any]) -> str:
    kilobytes = f"{what} takes {size / _KB:.1f} KB; at most {limit // _KB} KB"
    return f"{kilobytes}: shorten the largest, {_largest(document)}"


def _largest(document: dict[str, Any]) -> str:
    """What takes the most room, as kinds of things (`intents/*/examples`) and as one of them."""
    groups: dict[str, int] = {}
    single: dict[str, int] = {}
    for name, value in document.items():
        if name in ("intents", "contract"):
            for place, each in enumerate(value):
                for field, inner in each.items():
                    weight = len(_json(inner))
                    groups[f"{name}/*/{field}"] = groups.get(f"{name}/*/{field}", 0) + weight
                    single[f"{name}/{place}/{field}"] = weight
        elif isinstance(value, dict):
            for field, inner in value.items():
                groups[f"{name}/{field}"] = single[f"{name}/{field}"] = len(_json(inner))
        else:
            groups[name] = single[name] = len(_json(value))
    largest = sorted(groups.items(), key=lambda item: -item[1])[:_NAMED]
    most = ", ".join(f"{path} ({weight / _KB:.0f} KB)" for path, weight in largest)
    path, weight = max(single.items(), key=lambda item: item[1])
    return f"{most}, the largest single one {path} ({weight / _KB:.1f} KB)"


def _bytes(value: Frozen) -> int:
    return len(msgspec.json.encode(value))


def _json(value: object) -> bytes:
    return msgspec.json.encode(value)
