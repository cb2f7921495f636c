"""Retrieve: what do our documents say, in this scope and version? Filter first, then rank (F-144)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turngate.domain import run_log
from turngate.domain.shapes import AllowedRoute, Evidence, Frozen, Part, PartResult, RunEvent, TurnRef
from turngate.domain.texts import detect_language
from turngate.errors import BrokenInvariantError, KnowledgeUnavailableError, ModelUnavailableError
from turngate.states import working_texts

if TYPE_CHECKING:
    from turngate.domain.shapes import Language
    from turngate.wiring import Ports

MAX_PIECES = 5
"""F-143."""
CONSIDERED = 10
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
    if not isinstance(part.route, AllowedRoute) or part.route.kind != "KB":
        raise BrokenInvariantError(f"{part.part_id}: Retrieve was given a {part.route.kind} route")
    started = ports.clock.now_ms()
    degraded: list[str] = []
    vector = _vector(ports, part.question, degraded)
    found, readable = _search(ports, turn, part.route.collections, part.question, vector, degraded)
    best = _in_their_language(found, part.question)[:MAX_PIECES]
    pieces = tuple(
        piece.model_copy(update={"ref": f"{part.part_id}.E{number}"})
        for number, piece in enumerate(best, start=1)
    )
    event = RunEvent(
        part=part.part_id,
        step=run_log.STEP_RETRIEVED,
        kind="retrieval.finished",
        at=ports.clock.now_ms(),
        data=_summary(started, part.route, pieces, degraded),
    )
    entry = run_log.entry(turn.account, turn.run, event)
    ports.store.put_all(turn.account, [working_texts.evidence(turn, part.part_id, pieces), entry])
    status = "found" if pieces else "nothing_found" if readable else "unavailable"
    return PartResult.model_validate(
        {
            "part_id": part.part_id,
            "status": status,
            "evidence_refs": tuple(piece.ref for piece in pieces),
        }
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


def _vector(ports: Ports, question: str, degraded: list[str]) -> list[float] | None:
    try:
        return ports.embedder.embed([question])[0]
    except ModelUnavailableError as error:
        degraded.append(f"vectors:{error.reason}")
        return None


def _search(
    ports: Ports,
    turn: TurnRef,
    collections: tuple[str, ...],
    question: str,
    vector: list[float] | None,
    degraded: list[str],
) -> tuple[list[Evidence], int]:
    found: list[Evidence] = []
    readable = 0
    for collection in collections:
        version = turn.knowledge_pins.get(collection)
        if version is None:
            degraded.append(f"{collection}:not_pinned")
            continue
        try:
            found += ports.knowledge.search(turn.account, collection, version, question, vector, CONSIDERED)
        except KnowledgeUnavailableError:
            degraded.append(f"{collection}:unavailable")
        else:
            readable += 1
    return found, readable


def _summary(
    started: int, route: AllowedRoute, pieces: tuple[Evidence, ...], degraded: list[str]
) -> dict[str, Any]:
    return {
        "started_at": started,
        "collections": list(route.collections),
        "fallback": route.fallback,
        "evidence": [f"{p.collection}/{p.version}/{p.document_id}/{p.piece}" for p in pieces],
        "scores_milli": [round(piece.score * 1000) for piece in pieces],
        "degraded": degraded,
    }
