"""No frame of ours is larger than 24 KB of UTF-8, whatever customers, documents and models say (PROTOCOLS, rule 4)."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.assistant_example import GUEST, governed, patient
from turngate.domain.accept import Accept, Submission, decide_accept
from turngate.domain.client_events import ClientEvent, envelope, stored_frames
from turngate.domain.composing import MAX_CONTENT_BYTES, composed_parts, draft_of
from turngate.domain.finish import Ending, plan_finish
from turngate.domain.frames import MAX_FRAME_BYTES as MAX_INBOUND_BYTES
from turngate.domain.frames import MAX_TEXT_BYTES, parse_frame
from turngate.domain.problems import PROBLEMS, problem_document
from turngate.domain.rate import RateLimit
from turngate.domain.records import Head, Run
from turngate.domain.shapes import AllowedRoute, Evidence, Part, PartResult
from turngate.errors import RefusedError
from turngate.protocol.announcing import MAX_FRAME_BYTES, encoded

NOW = 1_900_000_000_000
LONGEST_ID = "x" * 128
ROUTE = AllowedRoute(intent_id="I", resource_name="kb", collections=("kb",))
NASTY = st.sampled_from(['"', "\\", "\n", "\x00", "\x1f", "\x7f", "中", "😀", "x"])

few = settings(patient, max_examples=30)
"""Nine thousand letters in each of thirty pieces take their time."""


def part(number: int, question: str) -> Part:
    return Part(part_id=f"p{number}", question=question, route=ROUTE)


def piece(number: int, index: int, letter: str, size: int) -> Evidence:
    return Evidence(
        ref=f"p{number}.E{index}",
        collection="k" * 128,
        version=9_999_999,
        document_id=f"{number}{index}" + "文" * 190,
        piece=0,
        title=letter * size,
        text=letter * size,
        score=1.0,
        source=letter * size,
    )


def frames_of(ending: Ending) -> list[bytes]:
    run = Run("r" * 32, "running", 1, 10**9, NOW, NOW, GUEST, execution="x")
    head = Head(owner=GUEST.principal, seq=10**9, customer_seq=1, evt=10**9, epoch=1, active_run=run.run)
    plan = plan_finish("velo", LONGEST_ID, head, run, ending, NOW)
    (log,) = (action.item for action in plan.transaction.actions if action.name == "events")
    return [encoded(frame) for frame in stored_frames(log)]


@few
@given(NASTY, st.integers(1, 6), st.integers(1, 5), st.sampled_from([1, 300, 1200, 9000]), st.booleans())
def test_a_reply_fits_whatever_its_evidence_and_its_model_say(letter, parts, pieces, size, phrased) -> None:
    asked = tuple(part(n, letter * size) for n in range(1, parts + 1))
    evidence = tuple(piece(n, i, letter, size) for n in range(1, parts + 1) for i in range(1, pieces + 1))
    results = tuple(
        PartResult(part_id=p.part_id, status="found", evidence_refs=tuple(e.ref for e in evidence))
        for p in asked
    )
    said = [
        {"part_id": p.part_id, "outcome": "answer", "text": letter * size, "used": [e.ref for e in evidence]}
        for p in asked
    ]
    answer = {"parts": said} if phrased else None
    composed = composed_parts(asked, results, evidence, answer, governed(), "zh-CN")
    draft = draft_of(composed, governed(), "zh-CN", truncated=True)
    assert len(draft.content.encode()) <= MAX_CONTENT_BYTES
    assert draft.sources or not any(c.outcome == "answer" for c in composed), "an answer names a source"
    for frame in frames_of(Ending("completed", "execution", "x", draft)):
        assert len(frame) <= MAX_FRAME_BYTES


@patient
@given(NASTY, st.integers(1, MAX_TEXT_BYTES), st.booleans())
def test_a_message_that_is_accepted_can_be_echoed(letter, count, ascii_only) -> None:
    body = json.dumps(
        {"type": "message.send", "client_message_id": LONGEST_ID, "text": "a" + letter * count},
        ensure_ascii=ascii_only,
    )
    try:
        frame = parse_frame(body)
    except RefusedError as refused:
        assert refused.code in ("text_too_long", "frame_too_large")
        return
    submission = Submission(
        GUEST, LONGEST_ID, True, LONGEST_ID, "0" * 64, frame.text, "user_chat", "zh-CN", "w"
    )
    decided = decide_accept(submission, head=None, idempotency=None, bucket=None, now=NOW, limit=RateLimit())
    assert isinstance(decided, Accept)
    (log,) = (action.item for action in decided.transaction.actions if action.name == "events")
    assert all(len(encoded(each)) <= MAX_FRAME_BYTES for each in stored_frames(log))


def test_the_largest_problem_fits() -> None:
    for code in PROBLEMS:
        document = problem_document(code, "zh-CN", detail="x" * 500, retry_after_ms=10**9)
        event = ClientEvent("error", {"problem": document, "client_message_id": LONGEST_ID})
        assert len(encoded(envelope(event, conversation=LONGEST_ID, seq=10**10, now=NOW))) < 2048


def test_what_a_client_may_send_fits_into_a_frame_of_api_gateway() -> None:
    assert MAX_INBOUND_BYTES <= 32 * 1024
    assert MAX_FRAME_BYTES <= 32 * 1024
