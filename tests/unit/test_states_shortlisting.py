"""The shortlist never fails and never keeps a turn waiting: where vectors fail, words choose, and it is said why."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.assistant_example import asks, config_document, entry, intent
from turngate.adapters.memory.edges import FixedClock
from turngate.adapters.memory.embedder import HashingEmbedder
from turngate.domain import wire
from turngate.domain.config import AssistantConfig, GovernanceSlice, governance_slice
from turngate.domain.shapes import HistoryMessage, TurnRef
from turngate.errors import ModelUnavailableError
from turngate.protocol.asking import MIN_CALL_MS, RESERVE_MS
from turngate.states.shortlisting import BATCH, MOST_MS, PAUSE_MS, Offer, shortlist
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
    deadline=NOW + 75_000,
)
HISTORY = (HistoryMessage(role="customer", text="部门 3 号在哪"),)
QUESTION = "退货规则是什么"


def large(intents: int) -> GovernanceSlice:
    document = config_document()
    document["routing"]["shortlist"] = 10
    document["intents"] += [
        intent(f"DEPARTMENT_{n}", f"部门{n}号", f"Department {n}") for n in range(intents)
    ]
    document["contract"] += [entry(f"DEPARTMENT_{n}", "KB", "guide-kb") for n in range(intents)]
    return governance_slice(wire.read(document, AssistantConfig))


SLICE = large(30)
TEXTS = len(SLICE.intents)


class TimedEmbedder:
    """Takes `batch_ms` for a batch of the catalogue and `question_ms` for the questions; a bound ends it as a timeout.
    `spoil` makes its vectors unsound."""

    model = "timed"

    def __init__(self, clock: FixedClock, batch_ms: int = 0, question_ms: int = 0, spoil: Any = None) -> None:
        self.clock = clock
        self.batch_ms, self.question_ms, self.spoil = batch_ms, question_ms, spoil
        self.down = ""
        self.calls: list[int] = []

    def embed(self, texts, *, timeout_s=None):
        self.calls.append(len(texts))
        assert timeout_s is not None and timeout_s > 0
        needed = self.question_ms if QUESTION in texts else self.batch_ms
        self.clock.advance(min(needed, timeout_s * 1000))
        if needed > timeout_s * 1000:
            raise ModelUnavailableError("timeout")
        if self.down:
            raise ModelUnavailableError(self.down)
        vectors = HashingEmbedder(16).embed(texts)
        return self.spoil(vectors) if self.spoil else vectors


def offer(embedder: TimedEmbedder, turn: TurnRef = TURN, governed: GovernanceSlice = SLICE) -> Offer:
    ports = Ports(embedder=embedder, clock=embedder.clock)
    return shortlist(ports, turn, asks(QUESTION), HISTORY, governed)


def by_words() -> tuple[str, ...]:
    down = TimedEmbedder(FixedClock(NOW))
    down.down = "connection"
    return offer(down).ids


@pytest.mark.covers("F-624")
@pytest.mark.parametrize(
    ("spoil", "degraded"),
    [
        (lambda vectors: vectors[:-1], "empty"),
        (lambda _: [], "empty"),
        (lambda vectors: [*vectors, vectors[0]], "empty"),
        (lambda vectors: [[*vectors[0], 0.0], *vectors[1:]], "empty"),
        (lambda vectors: [*vectors[:-1], []], "empty"),
        (lambda vectors: [*vectors[:-1], [float("nan")] * 16], "empty"),
        (lambda vectors: [[float("inf"), float("-inf"), *vectors[0][2:]], *vectors[1:]], "empty"),
        (lambda vectors: vectors if len(vectors) > 2 else [[*v, 0.0] for v in vectors], "other_length"),
        (lambda vectors: vectors if len(vectors) > 2 else [], "empty"),
    ],
)
def test_unsound_vectors_leave_the_choice_to_words_and_say_why(spoil, degraded) -> None:
    found = offer(TimedEmbedder(FixedClock(NOW), spoil=spoil))
    assert (found.by, found.degraded, found.ids) == ("words", degraded, by_words())
    assert "RETURN_POLICY" in found.ids


def test_sound_vectors_take_part() -> None:
    embedder = TimedEmbedder(FixedClock(NOW))
    assert (offer(embedder).by, offer(embedder).degraded) == ("words_and_vectors", "")
    assert embedder.calls == [TEXTS, 2, 2]


@pytest.mark.parametrize(("batch_ms", "question_ms"), [(60_000, 0), (0, 60_000), (3_000, 3_000)])
def test_vectors_are_waited_for_a_few_seconds_and_then_not_for_a_minute(batch_ms, question_ms) -> None:
    clock = FixedClock(NOW)
    embedder = TimedEmbedder(clock, batch_ms, question_ms)
    assert (offer(embedder).degraded, clock.now_ms() - NOW) == ("timeout", MOST_MS)
    asked = len(embedder.calls)
    later = replace(TURN, deadline=NOW + 10 * PAUSE_MS)
    for _ in range(5):
        clock.advance(PAUSE_MS / 5 - 1)
        before = clock.now_ms()
        assert (offer(embedder, later).degraded, clock.now_ms()) == ("paused", before)
    assert len(embedder.calls) == asked
    clock.advance(5)
    embedder.batch_ms = embedder.question_ms = 100
    assert offer(embedder, later).by == "words_and_vectors"


def test_a_catalogue_that_could_not_be_embedded_is_not_tried_in_every_turn() -> None:
    clock = FixedClock(NOW)
    embedder = TimedEmbedder(clock)
    embedder.down = "rate_limited"
    assert [offer(embedder).degraded for _ in range(3)] == ["rate_limited", "paused", "paused"]
    embedder.down = ""
    clock.advance(PAUSE_MS)
    assert offer(embedder, replace(TURN, deadline=NOW + 2 * PAUSE_MS)).by == "words_and_vectors"
    embedder.down = "rate_limited"
    late = replace(TURN, deadline=NOW + 2 * PAUSE_MS)
    assert [offer(embedder, late).degraded for _ in range(2)] == ["rate_limited"] * 2, "a question is cheap"


def test_what_was_embedded_of_a_large_catalogue_is_kept_for_the_next_turn() -> None:
    governed = large(150)
    clock = FixedClock(NOW)
    embedder = TimedEmbedder(clock, batch_ms=3_000)
    turns = []
    for _ in range(4):
        turn = replace(TURN, deadline=clock.now_ms() + 75_000)
        turns.append(offer(embedder, turn, governed).degraded)
        clock.advance(PAUSE_MS)
    assert turns == ["timeout", "timeout", "", ""]
    assert sum(embedder.calls[:-2]) < 2 * len(governed.intents)
    assert max(embedder.calls) == BATCH


@pytest.mark.parametrize("left_ms", [-1, 0, 1, 1_500, 3_999])
def test_the_time_the_model_needs_is_never_waited_away(left_ms) -> None:
    clock = FixedClock(NOW)
    embedder = TimedEmbedder(clock, batch_ms=60_000)
    turn = replace(TURN, deadline=NOW + RESERVE_MS + MIN_CALL_MS + left_ms)
    found = offer(embedder, turn)
    assert (found.by, found.degraded) == ("words", "timeout" if left_ms > 0 else "deadline")
    assert clock.now_ms() - NOW == max(left_ms, 0)
    assert bool(embedder.calls) == (left_ms > 0)
    if left_ms <= 0:
        assert offer(embedder, replace(turn, deadline=NOW + 75_000)).degraded == "timeout", (
            "it was not paused"
        )


def test_batches_of_a_turn_share_its_time() -> None:
    clock = FixedClock(NOW)
    embedder = TimedEmbedder(clock, batch_ms=1_400)
    governed = large(150)
    batches = -(-len(governed.intents) // BATCH)
    assert batches * 1_400 > MOST_MS
    assert offer(embedder, governed=governed).degraded == "timeout"
    assert clock.now_ms() - NOW == MOST_MS
    assert all(before >= after for before, after in pairwise(embedder.calls))
