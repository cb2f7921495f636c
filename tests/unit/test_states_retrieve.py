"""Retrieve: the best pieces over several collections, at most five, and what is missing is said."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from turngate.adapters.memory.edges import FixedClock, SeededIds
from turngate.adapters.memory.store import MemoryConversationStore
from turngate.domain import keys
from turngate.domain.knowledge import Found
from turngate.domain.shapes import AllowedRoute, Evidence, FixedAnswer, Part, TurnRef
from turngate.errors import BrokenInvariantError, ModelUnavailableError
from turngate.states import working_texts
from turngate.states.retrieve import MAX_PIECES, VECTOR_MS, RetrieveRequest, retrieve
from turngate.wiring import Ports

NOW = 1_900_000_000_000
TURN = TurnRef(
    account="velo",
    conversation="c1",
    run="r1",
    execution="x",
    epoch=1,
    seq=1,
    config_version=1,
    knowledge_pins={"a-kb": 3, "b-kb": 4},
    deadline=NOW + 75_000,
)


def piece(collection: str, version: int, number: int, score: float) -> Evidence:
    return Evidence(
        ref=f"{collection}/d{number}/0",
        collection=collection,
        version=version,
        document_id=f"d{number}",
        piece=0,
        title=f"title {number}",
        text=f"text {number}",
        score=score,
    )


class Shelf:
    """Knowledge and embedder in one: what each collection holds, and which are broken."""

    model = "shelf"

    def __init__(self, broken: tuple[str, ...] = (), **best: float) -> None:
        self.broken = broken
        self.best = {"a-kb": 0.5, "b-kb": 0.45} | {f"{name}-kb": score for name, score in best.items()}
        self.timeouts: list[float | None] = []
        self.asked: list[tuple[str, dict[str, int], object, int]] = []

    def embed(self, texts: list[str], *, timeout_s: float | None = None) -> list[list[float]]:
        self.timeouts.append(timeout_s)
        if "vectors" in self.broken:
            raise ModelUnavailableError("timeout")
        return [[1.0] for _ in texts]

    def search(self, account, versions, query, vector, limit) -> Found:
        self.asked.append((account, dict(versions), vector, limit))
        readable = (
            {} if "empty" in self.broken else {c: v for c, v in versions.items() if c not in self.broken}
        )
        pieces = [
            piece(collection, version, n, self.best[collection] - n / 10)
            for collection, version in readable.items()
            for n in range(4)
        ]
        unreadable = tuple(c for c in versions if c in self.broken)
        return Found(sorted(pieces, key=lambda each: -each.score), unreadable)


def run(
    shelf: Shelf,
    *collections: str,
    pins: dict[str, int] | None = None,
    beyond: tuple[str, ...] = (),
    late_ms: int = 0,
):
    store = MemoryConversationStore()
    ports = Ports(
        store=store, knowledge=shelf, embedder=shelf, clock=FixedClock(NOW + late_ms), ids=SeededIds(1)
    )
    turn = TURN if pins is None else replace(TURN, knowledge_pins=pins)
    route = AllowedRoute(
        intent_id="I", resource_name="n", collections=collections, fallback_collections=beyond
    )
    part = Part(part_id="p2", question="why?", route=route)
    result = retrieve(RetrieveRequest(turn=turn, part=part), ports)
    items = store.snapshot()
    kept = working_texts.read_evidence(store, turn, ("p2",))
    logged = json.loads(items[keys.run_event("velo", "r1", "p2", 30, "retrieval.finished")]["data"])
    return result, kept, logged


@pytest.mark.covers("F-131", "F-143")
def test_the_best_five_of_all_collections_are_kept_in_order_under_refs_of_the_part() -> None:
    result, kept, logged = run(Shelf(), "a-kb", "b-kb")
    assert len(kept) == MAX_PIECES
    assert [e.score for e in kept] == sorted((e.score for e in kept), reverse=True)
    assert [(e.collection, e.document_id) for e in kept][:3] == [
        ("a-kb", "d0"),
        ("b-kb", "d0"),
        ("a-kb", "d1"),
    ]
    assert result.evidence_refs == ("p2.E1", "p2.E2", "p2.E3", "p2.E4", "p2.E5")
    assert logged["evidence"][0] == "a-kb/3/d0/0"
    assert logged["degraded"] == []


@pytest.mark.parametrize(
    ("late_ms", "timeouts", "degraded"),
    [
        (0, [VECTOR_MS / 1000], []),
        (62_000, [3.0], []),
        (65_000, [], ["vectors:deadline"]),
        (80_000, [], ["vectors:deadline"]),
    ],
)
def test_a_vector_is_waited_for_no_longer_than_the_turn_has_left(late_ms, timeouts, degraded) -> None:
    shelf = Shelf()
    result, _, logged = run(shelf, "a-kb", late_ms=late_ms)
    assert (shelf.timeouts, logged["degraded"], result.status) == (timeouts, degraded, "found")


@pytest.mark.invariant("I6", "I12")
def test_each_collection_is_searched_at_its_pinned_version_in_the_turns_account() -> None:
    shelf = Shelf()
    run(shelf, "a-kb", "b-kb")
    assert [each[:2] for each in shelf.asked] == [("velo", {"a-kb": 3, "b-kb": 4})]


@pytest.mark.parametrize(
    ("broken", "collections", "pins", "status", "degraded"),
    [
        (("vectors",), ("a-kb",), None, "found", ["vectors:timeout"]),
        (("a-kb",), ("a-kb", "b-kb"), None, "found", ["a-kb:unavailable"]),
        (("a-kb", "b-kb"), ("a-kb", "b-kb"), None, "unavailable", ["a-kb:unavailable", "b-kb:unavailable"]),
        ((), ("a-kb",), {}, "unavailable", ["a-kb:not_pinned"]),
        (("empty",), ("a-kb",), None, "nothing_found", []),
        (("empty", "b-kb"), ("a-kb", "b-kb"), None, "nothing_found", ["b-kb:unavailable"]),
    ],
)
def test_what_cannot_be_searched_is_said_and_never_made_up(
    broken, collections, pins, status, degraded
) -> None:
    result, kept, logged = run(Shelf(broken), *collections, pins=pins)
    assert (result.status, logged["degraded"]) == (status, degraded)
    assert bool(kept) == (status == "found")


@pytest.mark.covers("F-119")
def test_what_the_own_collection_holds_near_the_question_is_all_that_is_given() -> None:
    result, kept, logged = run(Shelf(c=0.65), "a-kb", beyond=("c-kb",), pins={"a-kb": 3, "c-kb": 1})
    assert {piece.collection for piece in kept} == {"a-kb"}
    assert (result.status, logged["collections"], logged["fallback_collections"]) == ("found", ["a-kb"], [])


@pytest.mark.covers("F-119")
def test_when_it_holds_nothing_near_the_public_collections_are_searched_with_it() -> None:
    _, kept, logged = run(Shelf(c=0.9), "a-kb", beyond=("c-kb",), pins={"a-kb": 3, "c-kb": 1})
    assert [piece.collection for piece in kept] == ["c-kb"] * 4 + ["a-kb"]
    assert (logged["collections"], logged["fallback_collections"]) == (["a-kb"], ["c-kb"])


@pytest.mark.invariant("I12")
def test_no_other_collection_answers_for_one_that_cannot_be_read() -> None:
    shelf = Shelf(("a-kb",), c=0.9)
    result, kept, logged = run(shelf, "a-kb", beyond=("c-kb",), pins={"a-kb": 3, "c-kb": 1})
    assert (result.status, kept, logged["degraded"]) == ("unavailable", (), ["a-kb:unavailable"])
    assert len(shelf.asked) == 1


def test_a_public_collection_that_cannot_be_read_is_only_missed_where_it_was_needed() -> None:
    pins = {"a-kb": 3, "c-kb": 1, "d-kb": 1}
    _, kept, logged = run(Shelf(("d-kb",), c=0.1), "a-kb", beyond=("c-kb", "d-kb"), pins=pins)
    assert {piece.collection for piece in kept} == {"a-kb"}
    assert logged["degraded"] == []
    _, kept, logged = run(Shelf(("d-kb",), c=0.9), "a-kb", beyond=("c-kb", "d-kb"), pins=pins)
    assert kept[0].collection == "c-kb"
    assert logged["degraded"] == ["d-kb:unavailable"]


def test_a_part_without_documents_is_not_for_retrieve() -> None:
    part = Part(part_id="p1", question="q", route=FixedAnswer(intent_id="I", resource_name="n", text="t"))
    with pytest.raises(BrokenInvariantError):
        retrieve(RetrieveRequest(turn=TURN, part=part), Ports())
