"""A question that our documents answer."""

from __future__ import annotations

import json

import pytest

from tests.machines.grammar import grammar_violations
from tests.machines.paths import KNOWLEDGE, STATED
from tests.machines.scripts import phrases, reads
from tests.machines.tenant import ACCOUNT, DOCUMENTS, GUEST
from tests.protocol.world import START
from tools.trace import read_told, told_lines
from turngate.domain import keys, wire
from turngate.domain.knowledge import Document
from turngate.protocol.configuring import activate_knowledge


@pytest.mark.covers("F-061", "F-090", "F-129", "F-135", "F-353", "F-354", "F-355", "F-606")
@pytest.mark.invariant("I16")
@pytest.mark.parametrize(
    ("question", "answer", "ref", "document"),
    [
        ("退货需要几天?", "退款在 3 个工作日内退回。", "p1.E1", "returns-zh"),
        ("How long do refunds take?", "Refunds take 3 working days.", "p1.E1", "returns-en"),
    ],
)
def test_a_question_is_answered_in_its_language_with_its_source(
    story, question, answer, ref, document
) -> None:
    world = story(reads((question, {"RETURN_POLICY": 0.9})), phrases(("p1", answer, [ref])))
    world.say(question)
    done = world.turn()
    assert (done.status, done.path) == ("SUCCEEDED", KNOWLEDGE)
    assert (world.reply["text"], world.reply["outcome"]) == (answer, "answer")
    completed = next(f for f in world.received() if f["type"] == "message.completed")
    assert [source["document_id"] for source in completed["data"]["sources"]] == [document]
    assert [f["type"] for f in world.received()] == [
        "message.accepted",
        "run.started",
        "run.status",
        "message.completed",
        "run.completed",
    ]
    assert grammar_violations(world, world.runs()[0].run, question, answer) == []


@pytest.mark.covers("F-082", "F-064")
def test_the_model_is_shown_intents_and_evidence_and_never_the_contract(story) -> None:
    world = story(
        reads(("How long do refunds take?", {"RETURN_POLICY": 0.9})),
        phrases(("p1", "Refunds take 3 working days.", ["p1.E1"])),
    )
    world.say("How long do refunds take?")
    world.turn()
    understand, compose = world.model.calls
    assert "getOrder" not in understand.user + understand.system
    assert "sales-kb" not in understand.user + compose.user
    assert {e["ref"] for e in json.loads(compose.user)["parts"][0]["evidence"]} == {"p1.E1", "p1.E2"}


def test_what_was_said_before_is_shown_to_the_next_turn_and_not_answered_again(story) -> None:
    world = story(
        reads(("How long do refunds take?", {"RETURN_POLICY": 0.9})),
        phrases(("p1", "Refunds take 3 working days.", ["p1.E1"])),
        reads(("May I return a bike?", {"RETURN_POLICY": 0.9})),
        phrases(("p1", "You may return a bike within 7 days.", ["p1.E1"])),
    )
    for question in ("How long do refunds take?", "May I return a bike?"):
        world.say(question)
        world.turn()
    asked = json.loads(world.model.calls[2].user)
    assert [m["text"] for m in asked["input"]] == ["May I return a bike?"]
    assert [m["role"] for m in asked["history"]] == ["customer", "assistant"]
    assert len(world.replies) == 2


@pytest.mark.covers("F-138")
def test_an_answer_that_its_evidence_does_not_bear_out_is_replaced_by_the_evidence(story) -> None:
    world = story(
        reads(("How long do refunds take?", {"RETURN_POLICY": 0.9})),
        phrases(("p1", "Refunds take 14 working days.", ["p1.E1"])),
    )
    world.say("How long do refunds take?")
    world.turn()
    assert "14" not in world.reply["text"]
    assert "3 working days" in world.reply["text"]
    assert world.reply["response_source"] == "evidence"


@pytest.mark.covers("F-091", "F-119", "F-123", "F-131", "F-611")
def test_what_no_intent_claims_is_looked_for_in_the_public_collections_only(story) -> None:
    world = story(
        reads(("What does a new chain cost?", {"PARTS_SEARCH": 0.4})),
        phrases(("p1", "A new chain costs 25 euros.", ["p1.E1"])),
    )
    world.say("What does a new chain cost?")
    assert world.turn().path == KNOWLEDGE
    retrieved = next(
        data for _, _, kind, data in world.run_log(world.runs()[0].run) if kind == "retrieval.finished"
    )
    assert (retrieved["collections"], retrieved["fallback"]) == (["sales-kb", "repair-kb"], True)
    assert world.reply["outcome"] == "answer"


def test_a_model_that_finds_no_answer_in_the_evidence_says_so(story) -> None:
    world = story(reads(("Do you sell helmets?", {"RETURN_POLICY": 0.6})), phrases(("p1", "", [])))
    world.say("Do you sell helmets?")
    assert world.turn().path == KNOWLEDGE
    assert (world.reply["text"], world.reply["outcome"]) == ("Not in our documents.", "decline")


@pytest.mark.covers("F-605", "F-606", "F-607", "F-608", "F-609", "F-610")
def test_the_trace_of_a_ruling_is_kept_with_the_runs_working_texts(story) -> None:
    world = story(
        reads(("May I return it?", {"RETURN_POLICY": 0.9, "REPAIR_GUIDE": 0.2})),
        phrases(("p1", "You may return a bike within 7 days.", ["p1.E1"])),
    )
    world.say("May I return it?")
    world.turn()
    run = world.runs()[0].run
    trace = world.work(run, "-", "route")
    (part,) = trace["parts"]
    assert (trace["original"], part["question"]) == ("May I return it?", "May I return it?")
    assert part["candidates"] == [{"id": "RETURN_POLICY", "score": 0.9}, {"id": "REPAIR_GUIDE", "score": 0.2}]
    assert (part["resolution"], part["outcome"]) == ("RESOLVED", "ROUTED")
    assert (part["route_kind"], part["resource_name"]) == ("KB", "sales-kb")
    item = world.store.snapshot()[keys.working(ACCOUNT, run, "-", "route")]
    assert item["ttl"] > world.clock.now_ms() // 1000, "working texts expire"


@pytest.mark.covers("F-650")
def test_a_guest_gets_an_answer_to_a_public_question(story) -> None:
    world = story(
        reads(("May I return it?", {"RETURN_POLICY": 0.9})),
        phrases(("p1", "You may return a bike within 7 days.", ["p1.E1"])),
    )
    world.say("May I return it?", who=GUEST)
    assert world.turn().path == KNOWLEDGE
    assert world.reply["outcome"] == "answer"


@pytest.mark.covers("F-618")
def test_retrieval_and_model_are_timed_by_the_events_of_the_run(story) -> None:
    world = story(
        reads(("May I return it?", {"RETURN_POLICY": 0.9})),
        phrases(("p1", "You may return a bike within 7 days.", ["p1.E1"])),
    )
    world.before["Retrieve"] = lambda: world.clock.advance(700)
    world.before["ComposeReply"] = lambda: world.clock.advance(1300)
    world.say("May I return it?")
    world.turn()
    started = {
        step: data["started_at"] - START
        for _, step, _, data in world.run_log(world.runs()[0].run)
        if "started_at" in data
    }
    assert started == {10: 0, 30: 700, 80: 2000}
    completed = next(f for f in world.received() if f["type"] == "run.completed")
    assert completed["data"]["durations"] == {"total_ms": 2000}


@pytest.mark.covers("F-615")
def test_a_knowledge_turn_costs_what_the_budget_allows(story) -> None:
    """BUDGETS: at most 20 table requests with accept, 12 states, 6 Lambdas, 2 model calls."""
    world = story(
        reads(("May I return it?", {"RETURN_POLICY": 0.9})),
        phrases(("p1", "You may return a bike within 7 days.", ["p1.E1"])),
    )
    world.say("May I return it?")
    path = world.turn().path
    spent = {user: n for user, n in world.store.requests.items() if user not in ("setup", "connect", "push")}
    assert spent == {
        "accept": 2,
        "BeginTurn": 5,
        "Understand": 2,
        "Retrieve": 1,
        "ComposeReply": 3,
        "CommitTurn": 2,
    }
    assert len(path) == 12
    assert len(world.model.calls) == 2, "no call beside understanding and phrasing, and none for a trace"


def test_a_warm_function_does_not_read_its_configuration_again(story) -> None:
    world = story()
    for _ in range(2):
        world.say("你好")
        world.store.requests.clear()
        world.turn()
    assert world.store.requests["BeginTurn"] == 4


@pytest.mark.invariant("I12")
def test_a_turn_keeps_the_knowledge_it_was_pinned_to(story) -> None:
    world = story(
        reads(("May I return it?", {"RETURN_POLICY": 0.9})),
        phrases(("p1", "You may return a bike within 7 days.", ["p1.E1"])),
    )
    from turngate.protocol.configuring import activate_knowledge  # noqa: PLC0415 - reads beside its use

    world.before["Retrieve"] = lambda: activate_knowledge(world.store, ACCOUNT, {"sales-kb": 2})
    world.say("May I return it?")
    assert world.turn().path == KNOWLEDGE
    assert world.work(world.runs()[0].run, "p1", "evidence")[0]["version"] == 1


@pytest.mark.invariant("I11")
def test_a_turn_keeps_the_configuration_it_was_pinned_to(story) -> None:
    from tests.unit.assistant_example import both, config_document  # noqa: PLC0415
    from turngate.domain.config import AssistantConfig  # noqa: PLC0415
    from turngate.protocol.configuring import activate_config, put_config  # noqa: PLC0415

    other = config_document() | {"out_of_scope_reply": both("不行。", "No.")}
    world = story(reads(("Bake a cake", {})), reads(("Bake a cake", {})))
    put_config(world.store, wire.read(other, AssistantConfig), 2, collections=dict.fromkeys(DOCUMENTS, True))
    world.before["Understand"] = lambda: activate_config(world.store, ACCOUNT, 2)
    for _ in range(2):
        world.say("Bake a cake")
        assert world.turn().path == STATED
    assert [reply["text"] for reply in world.replies] == ["Out of scope.", "No."]


@pytest.mark.covers("F-119", "F-611")
@pytest.mark.invariant("I12")
def test_a_collection_with_nothing_near_is_helped_by_the_public_ones_and_the_trace_says_so(story) -> None:
    question = "What does a new chain cost?"
    said = phrases(("p1", "A new chain costs 25 euros.", ["p1.E1"]))
    world = story(reads((question, {"RETURN_POLICY": 0.9})), said)  # a wrong intent, a public answer
    prices = [
        Document(document_id=part, title="Repair prices", text=f"A new {part} costs {cost} euros.")
        for part, cost in (("chain", 25), ("tyre", 30), ("brake", 40), ("saddle", 50))
    ]
    world.knowledge.put_version(ACCOUNT, "repair-kb", 2, prices, world.embedder)
    activate_knowledge(world.store, ACCOUNT, {"repair-kb": 2})
    world.say(question)
    world.turn()
    assert world.reply["text"] == "A new chain costs 25 euros."
    completed = next(f for f in world.received() if f["type"] == "message.completed")
    assert [source["collection"] for source in completed["data"]["sources"]] == ["repair-kb"]
    told = read_told(world.store, ACCOUNT, world.runs()[0].run)
    assert list(told_lines(told))[-2:] == [
        "  5 resource   KB sales-kb; used: sales-kb; held nothing near, so also: repair-kb",
        "    quoted     repair-kb/2/chain/0",
    ]
