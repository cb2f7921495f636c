"""Retrieve: what do our documents say, in this scope and version? Filter first, then rank (F-144).

An intent's own collection answers. When it holds nothing near the question (none of its pieces is among the
three nearest of all that a customer may be shown) the public collections are searched with it (R-14)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from turngate.domain import run_log
from turngate.domain.shapes import AllowedRoute, Evidence, Frozen, Part, PartResult, RunEvent, TurnRef
from turngate.domain.texts import detect_language
from turngate.errors import BrokenInvariantError, ModelUnavailableError
from turngate.protocol.asking import RESERVE_MS
from turngate.states import working_texts

if TYPE_CHECKING:
    from turngate.domain.shapes import Language
    from turngate.wiring import Ports

MAX_PIECES = 5
"""F-143."""
NEAREST = 3
"""Chosen on the mall's 186 example questions: a question in its own collection is taken for a stray one in 2 %, a
question in another's collection in 76 % (docs/retrieval.md)."""
CONSIDERED = 10
VECTOR_MS = 10_000
"""At most this long is waited for the question's vector, and never past the reserve of the turn's deadline."""
NEAR = 0.5
"""Share of the best score from which a piece may come first for its language."""
_UNDECIDED: Language = "en"


class RetrieveRequest(Frozen):
    turn: TurnRef
    part: Part


def retrieve(request: RetrieveRequest, ports: Ports) -> PartResult:
    """Search the route's collections at the pinned versions. A collection that cannot be read, or an embedder that
    is down, degrades the result and is logged; it never falls to another version (I12)."""
    turn, part = request.turn, request.part
    route = part.route
    if not isinstance(route, AllowedRoute):
        raise BrokenInvariantError(f"{part.part_id}: Retrieve was given a {route.kind} route")
    started = ports.clock.now_ms()
    left_ms = min(VECTOR_MS, turn.deadline - RESERVE_MS - started)
    vector, degraded = _vector(ports, part.question, left_ms)
    sought = _search(ports, turn, part.question, vector, route.collections)
    strayed = False
    if route.fallback_collections and sought.readable:
        everywhere = (*route.collections, *route.fallback_collections)
        all_there_is = _search(ports, turn, part.question, vector, everywhere)
        nearest = all_there_is.pieces[:NEAREST]
        if strayed := not any(piece.collection in route.collections for piece in nearest):
            sought = all_there_is
    best = _in_their_language(sought.pieces, part.question)[:MAX_PIECES]
    pieces = tuple(
        replace(piece, ref=f"{part.part_id}.E{number}") for number, piece in enumerate(best, start=1)
    )
    event = RunEvent(
        part=part.part_id,
        step=run_log.STEP_RETRIEVED,
        kind="retrieval.finished",
        at=ports.clock.now_ms(),
        data={
            "started_at": started,
            "collections": list(route.collections),
            "fallback_collections": list(route.fallback_collections) if strayed else [],
            "fallback": route.fallback,
            "evidence": [f"{p.collection}/{p.version}/{p.document_id}/{p.piece}" for p in pieces],
            "scores_milli": [round(piece.score * 1000) for piece in pieces],
            "degraded": [*degraded, *sought.degraded],
        },
    )
    entry = run_log.entry(turn.account, turn.run, event)
    ports.store.put_all(turn.account, [working_texts.evidence(turn, part.part_id, pieces), entry])
    return PartResult(
        part_id=part.part_id,
        status="found" if pieces else "nothing_found" if sought.readable else "unavailable",
        evidence_refs=tuple(piece.ref for piece in pieces),
    )


def _in_their_language(found: list[Evidence], question: str) -> list[Evidence]:
    """Best first, but a piece in the question's language before one in another: where a document exists in both,
    their scores differ by a hair, and the customer must be able to read the quote. A piece far behind the best stays
    behind it: an answer in the other language beats none."""
    ranked = sorted(found, key=lambda piece: -piece.score)
    if not ranked:
        return []
    spoken = detect_language(question, _UNDECIDED)
    near = ranked[0].score * NEAR
    return sorted(
        ranked, key=lambda piece: piece.score < near or detect_language(piece.text, spoken) != spoken
    )


class _Sought(NamedTuple):
    """`readable`: whether any collection was. `degraded` says which were not, and why."""

    pieces: list[Evidence]
    readable: bool
    degraded: list[str]


def _search(
    ports: Ports, turn: TurnRef, question: str, vector: list[float] | None, collections: tuple[str, ...]
) -> _Sought:
    """Best pieces first, over all that can be read."""
    pinned = {name: turn.knowledge_pins[name] for name in collections if name in turn.knowledge_pins}
    found = ports.knowledge.search(turn.account, pinned, question, vector, CONSIDERED)
    degraded = [f"{name}:not_pinned" for name in collections if name not in pinned]
    degraded += [f"{name}:unavailable" for name in found.unreadable]
    return _Sought(found.pieces, len(pinned) > len(found.unreadable), degraded)


def _vector(ports: Ports, question: str, left_ms: int) -> tuple[list[float] | None, list[str]]:
    if left_ms <= 0:
        return None, ["vectors:deadline"]
    try:
        return ports.embedder.embed([question], timeout_s=left_ms / 1000)[0], []
    except ModelUnavailableError as error:
        return None, [f"vectors:{error.reason}"]
