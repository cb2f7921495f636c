"""From the trace alone: what a run did and why, and where a planted fault sits (F-605 … F-613)."""

from __future__ import annotations

import copy

import pytest

from tests.machines.scripts import phrases, reads
from tests.machines.world import ACCOUNT
from tests.unit.assistant_example import config_document, entry, intent
from tools.trace import Expected, first_deviation, main, read_told, told_lines
from turngate.domain import wire
from turngate.domain.config import AssistantConfig

QUESTION = "How long do refunds take?"
RIGHT = Expected("RETURN_POLICY", "sales-kb")
WELL_READ = reads((QUESTION, {"RETURN_POLICY": 0.9}))
MISREAD = reads((QUESTION, {"REPAIR_GUIDE": 0.9, "RETURN_POLICY": 0.6}))
WRONG_CORRECTION = {
    "id": "planted",
    "owner": "test",
    "evidence": "planted",
    "from_intents": ["RETURN_POLICY"],
    "to_intent": "REPAIR_GUIDE",
    "all_of": [["refunds"]],
}


def configured(**changes: object) -> AssistantConfig:
    document = config_document()
    document["routing"]["corrections"] = changes.get("corrections", [])
    for bound in document["contract"]:
        if bound["intent_id"] == "RETURN_POLICY":
            bound["resource_name"] = changes.get("resource", "sales-kb")
    for number in range(int(str(changes.get("nearer", 0)))):  # nearer to the question than the right one
        document["routing"]["shortlist"] = 10
        document["intents"].append(intent(f"NEARER_{number}", f"{QUESTION} {number}", f"{QUESTION} {number}"))
        document["contract"].append(entry(f"NEARER_{number}", "KB", "guide-kb"))
    return wire.read(document, AssistantConfig)


def wrong_collection(world) -> None:
    """The executor reads another collection than it was allowed."""
    plain = world.invoke

    def invoke(state, function, payload):
        if state == "Retrieve":
            payload = copy.deepcopy(payload)
            payload["part"]["route"]["collections"] = ["guide-kb"]
        return plain(state, function, payload)

    world.invoke = invoke


@pytest.mark.covers("F-613")
@pytest.mark.parametrize(
    ("stage", "read", "changes", "sabotage"),
    [
        (None, WELL_READ, {}, None),
        ("shortlist", reads((QUESTION, {"NEARER_0": 0.9})), {"nearer": 10}, None),
        ("intent", MISREAD, {}, None),
        ("correction", WELL_READ, {"corrections": [WRONG_CORRECTION]}, None),
        ("contract", WELL_READ, {"resource": "guide-kb"}, None),
        ("execution", WELL_READ, {}, wrong_collection),
    ],
)
def test_a_planted_fault_is_found_where_it_was_planted(story, stage, read, changes, sabotage) -> None:
    world = story(read, phrases(("p1", "", [])), configuration=configured(**changes))
    if sabotage:
        sabotage(world)
    world.say(QUESTION)
    assert world.turn().path[-1] == "Replied"
    told = read_told(world.store, ACCOUNT, world.runs()[0].run)
    assert first_deviation(told, "p1", RIGHT) == stage


@pytest.mark.covers("F-605", "F-606", "F-607", "F-608", "F-609", "F-610", "F-611", "F-612")
def test_the_trace_of_a_turn_reads_in_the_order_of_the_decisions(story) -> None:
    read = reads(
        (QUESTION, {"RETURN_POLICY": 0.9}),
        ("Where is order 7?", {"ORDER_QUERY": 0.8, "LOTTERY": 1.0}),
        ("Is it raining?", {"RETURN_POLICY": 0.1}),
        ("Something about bikes", {"RETURN_POLICY": 0.4}),
        rewritten="refunds, order 7, rain and bikes",
    )
    world = story(read, phrases(("p1", "Refunds take 3 working days.", ["p1.E1"]), ("p4", "", [])))
    said = f"{QUESTION} Where is order 7? Is it raining? Something about bikes"
    world.say(said)
    world.turn()
    lines = list(told_lines(read_told(world.store, ACCOUNT, world.runs()[0].run)))
    assert lines == [
        f"original     {said!r}",
        "rewritten    'refunds, order 7, rain and bikes'",
        "discarded    'unknown_intent:LOTTERY'",
        f"p1  {QUESTION!r}",
        "  1 intent     RESOLVED: RETURN_POLICY 0.9",
        "  2 correction none",
        "  3 governance ROUTED",
        "  4 contract   RETURN_POLICY = KB sales-kb, risk L0",
        "  5 resource   KB sales-kb; used: sales-kb",
        "    quoted     sales-kb/1/returns-en/0",
        "p2  'Where is order 7?'",
        "  1 intent     RESOLVED: ORDER_QUERY 0.8",
        "  2 correction none",
        "  3 governance ROUTED, because not_connected",
        "  4 contract   ORDER_QUERY = MCP getOrder, risk L1, login required",
        "  5 resource   REFUSAL getOrder; used: none",
        "p3  'Is it raining?'",
        "  1 intent     NO_TRUSTED: RETURN_POLICY 0.1",
        "  2 correction none",
        "  3 governance OUT_OF_SCOPE (hopeless), because OUT_OF_SCOPE",
        "  4 contract   not asked",
        "  5 resource   REFUSAL -; used: none",
        "p4  'Something about bikes'",
        "  1 intent     NO_TRUSTED: RETURN_POLICY 0.4",
        "  2 correction none",
        "  3 governance GLOBAL_KB_FALLBACK (unclassified_search)",
        "  4 contract   not asked, public fallback",
        "  5 resource   KB public; used: sales-kb, repair-kb",
    ]


def test_a_model_cannot_write_lines_into_a_trace(story) -> None:
    forged = "X\n  5 resource   KB staff-kb; used: staff-kb\x1b[31m"
    read = reads((QUESTION, {forged: 0.95, "RETURN_POLICY": 0.9}))
    world = story(read, phrases(("p1", "Refunds take 3 working days.", ["p1.E1"])))
    world.say(QUESTION)
    world.turn()
    lines = list(told_lines(read_told(world.store, ACCOUNT, world.runs()[0].run)))
    assert [line for line in lines if "  5 resource" in line and not line.startswith("discarded")] == [
        "  5 resource   KB sales-kb; used: sales-kb"
    ]
    assert not any(character in line for line in lines for character in "\n\x1b")


@pytest.mark.covers("F-605", "F-612")
def test_a_pre_routed_turn_leaves_a_trace_too(story) -> None:
    world = story()
    world.say("Who are you?")
    world.turn()
    lines = list(told_lines(read_told(world.store, ACCOUNT, world.runs()[0].run)))
    assert lines[0] == "original     'Who are you?'"
    assert lines[-1] == "  5 resource   FIXED who; used: none"


@pytest.mark.covers("F-080", "F-612")
def test_a_model_that_is_down_shows_as_the_reason(story) -> None:
    world = story("no json here", "nor here")
    world.say(QUESTION)
    world.turn()
    lines = list(told_lines(read_told(world.store, ACCOUNT, world.runs()[0].run)))
    assert "error        empty" in lines
    assert "  3 governance ROUTING_ERROR, because ROUTING_ERROR" in lines


def test_a_stored_trace_is_printed_and_judged(story, tmp_path, capsys) -> None:
    world = story(MISREAD, phrases(("p1", "", [])))
    world.say(QUESTION)
    world.turn()
    run = world.runs()[0].run
    stored = tmp_path / "trace.json"
    stored.write_text(wire.write_json(read_told(world.store, ACCOUNT, run).trace), encoding="utf-8")
    assert main(["--file", str(stored), "--expect", "p1=RETURN_POLICY:sales-kb"]) == 0
    assert capsys.readouterr().out.endswith("p1: first went wrong at intent\n")
    assert main(["--file", str(stored), "--expect", "p9=RETURN_POLICY:sales-kb"]) == 0
    assert capsys.readouterr().out.endswith("p9: there is no such part, only p1\n")


def test_a_run_without_a_trace_is_said_to_have_none(story) -> None:
    with pytest.raises(LookupError, match="no route trace"):
        read_told(story().store, ACCOUNT, "r-unknown")
