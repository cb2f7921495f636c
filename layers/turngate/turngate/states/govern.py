"""Govern: what is allowed? Pure: no table, no network, no model, no clock. What it found out travels upward."""

from __future__ import annotations

from typing import Any

from turngate.domain.config import GovernanceSlice
from turngate.domain.governance import govern
from turngate.domain.shapes import Frozen, Part, TenantContext, TurnInput, Understanding


class GovernRequest(Frozen):
    input: TurnInput
    tenant: TenantContext
    understanding: Understanding
    governance: GovernanceSlice


class Governed(Frozen):
    """`events` (codes) and `trace` (texts) are written by ComposeReply, which has a right to the run's partition."""

    parts: tuple[Part, ...]
    events: tuple[dict[str, Any], ...]
    trace: dict[str, Any]


def rule(request: GovernRequest) -> Governed:
    ruling = govern(request.input, request.understanding, request.governance, request.tenant)
    return Governed(
        parts=ruling.parts,
        events=tuple(event.model_dump(mode="json") for event in ruling.events),
        trace=ruling.trace.model_dump(mode="json"),
    )
