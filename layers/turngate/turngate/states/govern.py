"""Govern: what is allowed? Pure: no table, no network, no model, no clock. What it found out travels upward."""

from __future__ import annotations

from typing import Any

from turngate.domain import wire
from turngate.domain.config import GovernanceSlice
from turngate.domain.governance import govern
from turngate.domain.pending import PendingChanges
from turngate.domain.resuming import Resumption
from turngate.domain.shapes import Frozen, Part, TenantContext, TurnInput, Understanding


class GovernRequest(Frozen):
    """`understanding` is None when the whole message answered open questions of ours."""

    input: TurnInput
    tenant: TenantContext
    understanding: Understanding | None = None
    governance: GovernanceSlice
    resumption: Resumption = Resumption()


class Governed(Frozen):
    """`events` (codes) and `trace` (texts) are written by ComposeReply, which has a right to the run's partition;
    `pending` by the commit."""

    parts: tuple[Part, ...]
    events: tuple[dict[str, Any], ...]
    trace: dict[str, Any]
    pending: PendingChanges


def rule(request: GovernRequest) -> Governed:
    ruling = govern(
        request.input, request.understanding, request.governance, request.tenant, request.resumption
    )
    return Governed(
        parts=ruling.parts,
        events=tuple(wire.write(event) for event in ruling.events),
        trace=wire.write(ruling.trace),
        pending=ruling.pending,
    )
