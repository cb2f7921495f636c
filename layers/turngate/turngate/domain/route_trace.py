"""Why a question went where it went, so that a wrong route can be found by reading (F-605 … F-613).

One trace a turn, a working text of the run; one `PartRuling` a sub-question. Its fields stand in the order in which a
wrong tool is looked for: what was asked, what the model proposed, what was corrected, what governance decided, what
the contract says, what came out.
"""

from __future__ import annotations

from typing import Any, Literal

from turngate.domain import wire
from turngate.domain.shapes import Candidate, Frozen

RouteOutcome = Literal["ROUTED", "GLOBAL_KB_FALLBACK", "OUT_OF_SCOPE", "NEED_CLARIFICATION", "ROUTING_ERROR"]
"""F-090 … F-094. ROUTED with a refusal means: we know what is asked, and the contract says why not now."""
Resolution = Literal["RESOLVED", "NO_TRUSTED", "ERROR"]
"""F-078 … F-080."""
Arbitration = Literal[
    "",
    "knowledge_preferred",
    "knowledge_over_mid_skill",
    "skill_not_admitted",
    "too_close",
    "unclassified_search",
    "unclassified_ask",
    "hopeless",
]
"""What was decided between candidates, and why; empty when the best one simply stood."""


class AppliedCorrection(Frozen):
    """A correction of the configuration that took effect; `phrases` are the configured words that were found."""

    id: str
    from_intent: str
    to_intent: str
    phrases: tuple[str, ...]


class ResumedFrom(Frozen):
    """The open question that this part answers."""

    pending_id: str
    kind: str
    how: str
    by: str
    option_id: str = ""
    field: str = ""
    reason: str = ""
    text: str = ""
    value: str = ""


class ContractView(Frozen):
    """The contract entry as it was when the ruling was made."""

    intent_id: str
    kind: str
    resource_name: str
    login_required: bool
    risk: str


class PartRuling(Frozen):
    """Why one part goes where it goes, with the texts an operator needs to judge it."""

    part_id: str
    question: str
    resumed: ResumedFrom | None = None
    candidates: tuple[Candidate, ...] = ()
    resolution: Resolution
    correction: AppliedCorrection | None = None
    arbitration: Arbitration = ""
    guidance: tuple[str, ...] = ()
    outcome: RouteOutcome
    contract: ContractView | None = None
    route_kind: str
    fallback: bool = False
    reason: str = ""
    intent_id: str = ""
    resource_name: str = ""


class RouteTrace(Frozen):
    """The operator's view of one ruling. Holds what the customer wrote: a working text of the run, never a log line.

    `discarded` and `drift` say what of the model's answer was not believed; `error` why there was no usable one;
    `refused_reply` why its reading of the message as an answer to an open question was not taken; `offered` the
    shortlist it chose from, empty when it saw the whole catalogue."""

    original: str
    rewritten: str
    error: str = ""
    drift: tuple[str, ...] = ()
    discarded: tuple[str, ...] = ()
    refused_reply: str = ""
    offered: tuple[str, ...] = ()
    parts: tuple[PartRuling, ...]


class RulingEvent(Frozen):
    """What a state with a table right writes as a RunEvent: codes, ids and scores, no text (F-355)."""

    part: str
    kind: Literal["route_resolved"] = "route_resolved"
    data: dict[str, Any]


def certain_trace(original: str, rules: tuple[str, ...]) -> RouteTrace:
    """The trace of a turn that a rule answered before anything was understood: `rule:<id>`, or the message's type."""
    part = PartRuling(
        part_id="p0",
        question=original,
        resolution="RESOLVED",
        outcome="ROUTED",
        route_kind="FIXED",
        reason="pre_routed",
        resource_name=",".join(rules),
    )
    return RouteTrace(original=original, rewritten="", parts=(part,))


def event_of(ruling: PartRuling) -> RulingEvent:
    """The ruling without anything the customer wrote."""
    data = wire.write(ruling)
    del data["part_id"], data["question"]
    if data["resumed"] is not None:
        del data["resumed"]["text"], data["resumed"]["value"]
    return RulingEvent(part=ruling.part_id, data=data)
