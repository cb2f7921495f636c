"""One decision about one sub-question, on its way to a part."""

from __future__ import annotations

import msgspec

from turngate.domain.route_trace import AppliedCorrection, Arbitration, Resolution, ResumedFrom, RouteOutcome
from turngate.domain.shapes import Frozen, Route, SubQuestion


class Decision(Frozen):
    """`intent_id` is set when the contract was asked about an intent, whatever it answered. `keeps_open`: the
    clarification repeats a question that is open already."""

    sub_question: SubQuestion
    resolution: Resolution
    outcome: RouteOutcome
    route: Route
    intent_id: str = ""
    given: dict[str, str] = msgspec.field(default_factory=dict)
    resumed: ResumedFrom | None = None
    correction: AppliedCorrection | None = None
    arbitration: Arbitration = ""
    guidance: tuple[str, ...] = ()
    keeps_open: bool = False
