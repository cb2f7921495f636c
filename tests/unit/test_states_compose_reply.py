"""ComposeReply at its edges: nothing retrieved, results missing or surplus, the run stopped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.assistant_example import governed
from turngate.adapters.memory.edges import FixedClock, MemoryQueue, SeededIds
from turngate.adapters.memory.model import ScriptedModelClient
from turngate.adapters.memory.store import MemoryConversationStore
from turngate.domain import keys
from turngate.domain.budget import stop
from turngate.domain.shapes import (
    AllowedRoute,
    Evidence,
    InputMessage,
    Part,
    PartResult,
    Refusal,
    TurnInput,
    TurnRef,
    Usage,
)
from turngate.domain.transaction import Transaction
from turngate.errors import BrokenInvariantError
from turngate.states import working_texts
from turngate.states.compose_reply import ComposeRequest, compose_reply
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
KB = Part(
    part_id="p1",
    question="How long?",
    route=AllowedRoute(intent_id="I", resource_name="kb", collections=("kb",)),
)
NO = Part(part_id="p2", question="Order?", route=Refusal(reason="not_connected", text="Not connected yet."))
PIECE = Evidence(
    ref="p1.E1",
    collection="kb",
    version=1,
    document_id="d",
    piece=0,
    title="Refunds",
    text="Three days.",
    score=1.0,
)
FOUND = PartResult(part_id="p1", status="found", evidence_refs=("p1.E1",))
SAID = {"parts": [{"part_id": "p1", "outcome": "answer", "text": "Three days.", "used": ["p1.E1"]}]}


class Desk:
    """A store with the evidence of p1, and a scripted model."""

    def __init__(self, *answers: Any) -> None:
        self.store = MemoryConversationStore()
        self.store.put_all("velo", [working_texts.evidence(TURN, "p1", (PIECE,))])
        self.model = ScriptedModelClient(answers)
        self.ports = Ports(
            store=self.store,
            model=self.model,
            clock=FixedClock(NOW),
            ids=SeededIds(1),
            events_to_push=MemoryQueue(),
        )

    def compose(self, parts: tuple[Part, ...], results: tuple[PartResult, ...], *, truncated: bool = False):
        spoken = TurnInput(
            messages=(InputMessage(message_seq=1, text="How long?"),), language="en", truncated=truncated
        )
        rulings = tuple({"part": p.part_id, "kind": "route_resolved", "data": {}} for p in parts)
        return compose_reply(
            ComposeRequest(
                turn=TURN,
                input=spoken,
                governance=governed(),
                parts=parts,
                results=results,
                events=rulings,
                trace={},
                usage=Usage(model_calls=1),
            ),
            self.ports,
        )

    def log(self) -> dict[str, Any]:
        partition = keys.run_partition("velo", "r1")
        items = self.store.snapshot().items()
        return {k.sk: json.loads(i["data"]) for k, i in items if k.pk == partition and k.sk.startswith("EV#")}


def test_without_any_result_the_part_could_not_be_looked_up_and_no_model_is_asked() -> None:
    desk = Desk()
    composed = desk.compose((KB,), ())
    assert (composed.draft.content, composed.draft.outcome) == ("Cannot look that up now.", "decline")
    assert composed.usage.model_calls == 1


def test_a_result_of_a_part_that_nobody_asked_for_adds_nothing() -> None:
    desk = Desk(SAID)
    stray = PartResult(part_id="p7", status="found", evidence_refs=("p7.E1",))
    assert desk.compose((KB,), (stray, FOUND)).draft.content == "Three days."


def test_a_result_for_what_governance_refused_changes_nothing() -> None:
    desk = Desk()
    smuggled = PartResult(part_id="p2", status="stated", delivery="verbatim", text="Your order is cancelled.")
    assert desk.compose((NO,), (smuggled,)).draft.content == "Not connected yet."


def test_evidence_that_vanished_is_an_outage_and_not_an_empty_answer() -> None:
    desk = Desk()
    lost = PartResult(part_id="p1", status="found", evidence_refs=("p1.E9",))
    composed = desk.compose((KB,), (lost,))
    assert (composed.draft.outcome, composed.draft.response_source) == ("decline", "stated_failure")


@pytest.mark.invariant("I16")
def test_a_repeated_state_writes_the_same_events_and_not_a_second_set() -> None:
    desk = Desk(SAID, SAID)
    desk.compose((KB, NO), (FOUND,))
    once = desk.log()
    desk.compose((KB, NO), (FOUND,))
    assert (
        set(desk.log())
        == set(once)
        == {
            "EV#p1#020#route_resolved",
            "EV#p2#020#route_resolved",
            "EV#-#080#model.finished",
        }
    )


def test_a_stopped_run_asks_nothing_and_says_why_in_its_log() -> None:
    desk = Desk()
    desk.store.write("velo", Transaction("stop", (stop("velo", "r1", "human_takeover", NOW),)))
    assert desk.compose((KB,), (FOUND,)).usage.model_calls == 1
    assert desk.log()["EV#-#080#model.finished"]["error"] == "stopped:human_takeover"


def test_messages_left_out_are_said_first_in_the_turns_language() -> None:
    desk = Desk(SAID)
    content = desk.compose((KB, NO), (FOUND,), truncated=True).draft.content
    assert content.startswith("Only the latest was read.\n\nThree days.\n\nAbout “Order?”")


def test_a_turn_without_parts_is_a_defect_and_not_an_empty_reply() -> None:
    with pytest.raises(BrokenInvariantError):
        Desk().compose((), ())
