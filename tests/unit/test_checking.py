"""A configuration that is accepted never makes a turn fail or leak: what would is named, with what to change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.governance.table import CONFIGS
from tests.unit.assistant_example import COLLECTIONS, both, config_document, entry, intent, rule
from turngate.adapters.memory.store import MemoryConversationStore
from turngate.domain import keys, wire
from turngate.domain.checking import validate_config
from turngate.domain.config import MAX_TEXT_BYTES, AssistantConfig
from turngate.domain.finding import RESERVED
from turngate.errors import RefusedError
from turngate.protocol.configuring import load_config, put_config

Document = dict[str, Any]
CORRECTION: Document = {
    "id": "c1",
    "owner": "desk",
    "evidence": "seen",
    "from_intents": ["ORDER_QUERY"],
    "to_intent": "RETURN_POLICY",
    "all_of": [["退货"]],
}


def put(document: Document, path: str, value: object) -> Document:
    """A copy of the document with `value` at `path`; a list that is too short by one grows."""
    place: Any = (document := json.loads(json.dumps(document)))
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    for step in steps:
        place = place[step]
    if isinstance(place, list) and last == len(place):
        place.append(value)
    else:
        place[last] = value
    return document


def findings(document: Document) -> set[tuple[str, str]]:
    return {(f.code, f.path) for f in validate_config(wire.read(document, AssistantConfig), COLLECTIONS)}


def corrected(**change: object) -> Document:
    return put(config_document(), "routing/corrections", [CORRECTION | change])


def test_the_correction_that_is_broken_below_is_sound() -> None:
    assert findings(corrected()) == set()


SAME = both("退货规则", "Returns")
BAD = [
    # phrases: nothing left of them is found in everything
    ("contract/5/lexical", [""], "empty_phrase", "contract/5/lexical/0"),
    ("contract/5/lexical", ["调校", "。。"], "empty_phrase", "contract/5/lexical/1"),
    ("routing/action_phrases", ["\u200b"], "empty_phrase", "routing/action_phrases/0"),
    ("routing/consulting_phrases", ["怎" * 101], "phrase_too_long", "routing/consulting_phrases/0"),
    # rules
    ("pre_routing/rules/0/phrases", [], "no_phrases", "pre_routing/rules/0/phrases"),
    ("pre_routing/rules/0/owner", " ", "missing_owner", "pre_routing/rules/0/owner"),
    ("pre_routing/rules/0/reason", "", "missing_reason", "pre_routing/rules/0/reason"),
    # numbers
    ("routing/skills", {"mid": 0.9, "high": 0.8}, "thresholds_crossed", "routing/skills/mid"),
    # the fallback
    ("contract/0/login_required", True, "fallback_restricted", "routing/fallback_collections/0"),
    ("contract/0/risk", "L4", "fallback_restricted", "routing/fallback_collections/0"),
    ("contract/0/client_types", ["android"], "fallback_restricted", "routing/fallback_collections/0"),
    ("contract/0/capabilities", ["ui.show"], "fallback_restricted", "routing/fallback_collections/0"),
    ("contract/6/login_required", True, "fallback_restricted", "routing/fallback_collections/0"),
    ("routing/fallback_collections/2", "sales-kb", "duplicate_id", "routing/fallback_collections/2"),
    # names are offered as options
    ("intents/1/name", SAME, "duplicate_name", "intents/1/name"),
    ("intents/1/name", both("returns！", "Repairs"), "duplicate_name", "intents/1/name"),
    ("intents/1/name/en", "ORDER query", "duplicate_name", "intents/1/name"),
    ("intents/1/name/zh-CN", "取消", "name_is_a_reply", "intents/1/name"),
    ("intents/1/name/zh-CN", "第一个", "name_is_a_reply", "intents/1/name"),
    ("intents/1/name/zh-CN", "都不是", "name_is_a_reply", "intents/1/name"),
    ("intents/1/name/en", "Cancel", "name_is_a_reply", "intents/1/name"),
    ("intents/1/name/en", "2", "name_is_a_reply", "intents/1/name"),
    ("intents/1/name/en", "Repairs\nand more", "name_of_several_lines", "intents/1/name"),
    ("intents/1/name/en", "Repairs\u2028more", "name_of_several_lines", "intents/1/name"),
    ("intents/1/name/en", "r" * 81, "name_too_long", "intents/1/name"),
    ("intents/1/name/zh-CN", "。", "name_without_words", "intents/1/name"),
    # texts
    ("clarify_reply/en", "\u200b \u3164", "missing_text", "clarify_reply"),
    ("clarify_reply/en", "\ufe0f\u0301", "missing_text", "clarify_reply"),
    ("intents/0/name/en", "\u200b", "missing_text", "intents/0/name"),
    ("message_type_replies/form/en", "\x07", "missing_text", "message_type_replies/form"),
    ("clarify_reply/en", "Say\x07more", "control_character", "clarify_reply"),
    ("clarify_reply/en", "Hello {custmer}", "unknown_placeholder", "clarify_reply"),
    ("clarify_reply/en", "Hello {customer}", "unknown_placeholder", "clarify_reply"),
    ("system_replies/order_entry/en", "See { url }", "unknown_placeholder", "system_replies/order_entry"),
    ("pre_routing/rules/3/reply/en", "Id {custmer}", "unknown_placeholder", "pre_routing/rules/3/reply"),
    (
        "pre_routing/rules/3/reply_guest/en",
        "No {customer}",
        "unknown_placeholder",
        "pre_routing/rules/3/reply_guest",
    ),
    ("clarify_reply/en", "x" * (MAX_TEXT_BYTES + 1), "text_too_long", "clarify_reply"),
    ("clarify_reply/en", '"' * (MAX_TEXT_BYTES // 2 + 1), "text_too_long", "clarify_reply"),
    ("message_type_replies/form/zh-CN", "长" * 2731, "text_too_long", "message_type_replies/form"),
    ("pre_routing/rules/3/reply/en", "{customer}" * 65, "text_too_long", "pre_routing/rules/3/reply"),
    ("intents/0/description/en", "x" * (MAX_TEXT_BYTES + 1), "text_too_long", "intents/0/description"),
]


@pytest.mark.covers("F-044", "F-086", "F-123")
@pytest.mark.parametrize(("place", "value", "code", "path"), BAD)
def test_what_would_fail_or_leak_is_refused(place: str, value: object, code: str, path: str) -> None:
    assert findings(put(config_document(), place, value)) == {(code, path)}


@pytest.mark.parametrize(
    ("change", "code", "path"),
    [
        ({"to_intent": "OLD_SALE"}, "disabled_intent", "routing/corrections/0/to_intent"),
        ({"to_intent": "TRADE_IN"}, "disabled_intent", "routing/corrections/0/to_intent"),
        ({"from_intents": ["OLD_SALE"]}, "disabled_intent", "routing/corrections/0/from_intents"),
        ({"owner": " "}, "missing_owner", "routing/corrections/0/owner"),
        ({"evidence": "\n"}, "missing_evidence", "routing/corrections/0/evidence"),
        ({"all_of": [["退货"]] * 6}, "too_many_groups", "routing/corrections/0/all_of"),
    ],
)
def test_a_correction_that_can_have_no_effect_is_refused(change: Document, code: str, path: str) -> None:
    assert findings(corrected(**change)) == {(code, path)}


def test_one_disabled_intent_among_several_leaves_a_correction_its_effect() -> None:
    assert findings(corrected(from_intents=["OLD_SALE", "ORDER_QUERY"])) == set()


@pytest.mark.covers("F-076")
def test_a_threshold_of_nothing_is_refused() -> None:
    document = put(config_document(), "routing/intent_threshold", 0)
    document["routing"]["out_of_scope_below"] = 0
    assert findings(document) == {("threshold_zero", "routing/intent_threshold")}


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_names_of_the_products_own_are_no_intents(name: str) -> None:
    document = config_document()
    document["intents"].append(intent(name, "甲", "Alpha"))
    document["contract"].append(entry(name, "KB", "guide-kb"))
    assert findings(document) == {("reserved_id", "intents/8/id")}


def test_an_id_that_reads_as_an_answer_is_no_intent() -> None:
    document = config_document()
    document["intents"].append(intent("2", "甲", "Alpha"))
    document["contract"].append(entry("2", "KB", "guide-kb"))
    assert findings(document) == {("name_is_a_reply", "intents/8/id")}


def test_the_names_of_disabled_intents_are_offered_to_nobody() -> None:
    document = put(config_document(), "intents/7/name", SAME)
    assert findings(put(document, "intents/7/enabled", False)) == set()


@pytest.mark.parametrize(
    "text",
    ["x" * MAX_TEXT_BYTES, "收到\r\n谢谢\t{ }", "共 {3} 件", "🙂"],
    ids=["8 KB", "lines", "braces", "emoji"],
)
def test_unusual_texts_that_do_no_harm_are_accepted(text: str) -> None:
    assert findings(put(config_document(), "message_type_replies/form/zh-CN", text)) == set()


def test_the_collections_that_are_searched_together_are_few() -> None:
    names = [f"kb-{n}" for n in range(11)]
    document = put(config_document(), "routing/fallback_collections", names)
    found = validate_config(wire.read(document, AssistantConfig), COLLECTIONS | dict.fromkeys(names, True))
    assert [(f.code, f.path) for f in found] == [("too_many_collections", "routing/fallback_collections")]


def messages(document: Document) -> dict[str, str]:
    return {f.code: f.message for f in validate_config(wire.read(document, AssistantConfig), COLLECTIONS)}


def test_what_is_too_large_to_travel_says_what_to_shorten() -> None:
    document = config_document()
    for each in document["intents"][:3]:
        each["examples"] = ["例" * 250] * 30
    told = messages(document)
    assert set(told) == {"slice_too_large"}
    assert "KB; at most 64 KB: shorten the largest, intents/*/examples (66 KB), " in told["slice_too_large"]
    assert "the largest single one intents/0/examples (22.1 KB)" in told["slice_too_large"]


def test_what_cannot_be_stored_is_a_finding_and_says_what_to_shorten() -> None:
    document = put(config_document(), "intents/7/domain", "x" * 400_000)
    told = messages(document)
    assert set(told) == {"config_too_large"}
    assert "at most 380 KB: shorten the largest, intents/*/domain (391 KB), " in told["config_too_large"]


def test_a_turn_that_would_not_fit_says_what_to_shorten() -> None:
    document = put(config_document(), "system_replies/order_entry/en", "x" * 8000)
    assert findings(document) == set()
    for each in document["intents"]:
        each["examples"] = ["例" * 40] * 30
    told = messages(document)
    assert set(told) == {"turn_too_large"}
    assert "KB; at most 80 KB: " in told["turn_too_large"]
    assert "(system_replies/order_entry takes 7.8 KB), intents/*/examples (25 KB)" in told["turn_too_large"]


def test_both_limits_are_told_at_once() -> None:
    document = put(config_document(), "system_replies/order_entry/en", "x" * 8000)
    for each in document["intents"]:
        each["examples"] = ["例" * 120] * 30
    assert set(messages(document)) == {"slice_too_large", "turn_too_large"}


def test_two_hundred_small_intents_beside_the_malls_own_texts_are_told_what_takes_the_room() -> None:
    document = json.loads(CONFIGS["mall"].read_text(encoding="utf-8"))
    for number in range(176):
        document["intents"].append(intent(f"MORE_{number}", f"更多{number}", f"More {number}"))
        document["contract"].append(entry(f"MORE_{number}", "KB", "support-kb"))
    known = {each["resource_name"]: True for each in document["contract"] if each["kind"] == "KB"}
    (finding,) = validate_config(wire.read(document, AssistantConfig), known)
    assert finding.code == "slice_too_large"
    assert "contract/*/" in finding.message or "intents/*/" in finding.message


def test_a_refusal_names_every_finding_by_code_and_place() -> None:
    document = put(config_document(), "clarify_reply/en", "")
    document = put(document, "contract/0/resource_name", "no-kb")
    document = put(document, "routing/intent_threshold", 0)
    config, store = wire.read(document, AssistantConfig), MemoryConversationStore()
    with pytest.raises(RefusedError) as refused:
        put_config(store, config, 1, collections=COLLECTIONS)
    assert refused.value.code == "config_invalid"
    lines = refused.value.detail.strip().splitlines()
    assert len(lines) == len(validate_config(config, COLLECTIONS)) == 4
    assert lines[0].strip() == (
        "contract/0/resource_name: there is no collection no-kb: "
        "name one of guide-kb, repair-kb, sales-kb, staff-kb [unknown_collection]"
    )
    for place, code in [
        ("routing/intent_threshold", "threshold_zero"),
        ("routing/out_of_scope_below", "thresholds_crossed"),
        ("clarify_reply", "missing_text"),
    ]:
        assert any(line.strip().startswith(f"{place}: ") and line.endswith(f"[{code}]") for line in lines)
    assert store.get("velo", (keys.config_version("velo", 1),)) == {}


def test_a_version_that_was_saved_before_a_rule_is_still_loaded() -> None:
    document = put(config_document(), "intents/1/name", SAME)
    document["pre_routing"]["rules"].append(rule("silent", "SYSTEM", [], both("嗨", "Hi"), owner=""))
    config, store = wire.read(document, AssistantConfig), MemoryConversationStore()
    assert validate_config(config, COLLECTIONS) != []
    stored = {"entity": "config", "version": 1, "config": wire.write_json(config), "status": "READY"}
    store.put_all("velo", [(keys.config_version("velo", 1), stored)])
    assert load_config(store, "velo", 1) == config
