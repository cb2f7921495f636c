"""A configuration is refused as a whole list of findings, so that a turn never meets a broken one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.tenants import MALL, private_collections
from tests.unit.assistant_example import COLLECTIONS, both, config, config_document, entry, intent, rule
from turngate.domain import wire
from turngate.domain.checking import validate_config
from turngate.domain.config import AssistantConfig, governance_slice
from turngate.errors import MalformedError


def findings(document: dict[str, Any]) -> set[tuple[str, str]]:
    return {(f.code, f.path) for f in validate_config(wire.read(document, AssistantConfig), COLLECTIONS)}


def test_a_sound_configuration_has_no_findings() -> None:
    assert validate_config(config(), COLLECTIONS) == []


def test_the_mall_example_is_sound_and_fits_into_a_payload() -> None:
    mall = wire.read_json((MALL / "config.json").read_text(encoding="utf-8"), AssistantConfig)
    private = private_collections(MALL)
    collections = {folder.name: folder.name not in private for folder in (MALL / "documents").iterdir()}
    assert private and private < set(collections)
    assert validate_config(mall, collections) == []


def test_the_bank_example_is_sound() -> None:
    bank = wire.read_json((MALL.parent / "bank" / "config.json").read_bytes(), AssistantConfig)
    assert validate_config(bank, {"bank-kb": True}) == []


def break_contract(field: str, value: Any) -> dict[str, Any]:
    document = config_document()
    document["contract"][0][field] = value
    return document


@pytest.mark.covers("F-111", "F-112", "F-116")
def test_a_contract_may_name_only_what_exists() -> None:
    assert ("unknown_collection", "contract/0/resource_name") in findings(
        break_contract("resource_name", "no-kb")
    )
    assert ("unknown_intent", "contract/0/intent_id") in findings(break_contract("intent_id", "NOBODY"))
    document = config_document()
    document["contract"][4]["resource_name"] = "no_such_action"
    assert findings(document) == {("unknown_system_action", "contract/4/resource_name")}


@pytest.mark.covers("F-116")
def test_an_intent_without_a_contract_is_found() -> None:
    document = config_document()
    del document["contract"][5]
    assert findings(document) == {("intent_without_contract", "intents/5")}


@pytest.mark.covers("F-119", "F-123")
def test_the_fallback_may_reach_public_collections_only() -> None:
    document = config_document()
    document["routing"]["fallback_collections"] = ["sales-kb", "staff-kb", "no-kb"]
    assert findings(document) == {
        ("fallback_not_public", "routing/fallback_collections/1"),
        ("unknown_collection", "routing/fallback_collections/2"),
    }


def test_ids_are_unique() -> None:
    document = config_document()
    document["intents"].append(intent("RETURN_POLICY", "又一个", "Another"))
    document["contract"].append(entry("RETURN_POLICY", "KB", "guide-kb"))
    document["pre_routing"]["rules"].append(rule("hello", "GREETING", ["嗨"], both("嗨", "Hi")))
    assert findings(document) == {
        ("duplicate_id", "intents/8/id"),
        ("duplicate_id", "contract/8/intent_id"),
        ("duplicate_id", "pre_routing/rules/4/id"),
    }


@pytest.mark.covers("F-047")
def test_pre_routing_stays_small_and_unambiguous() -> None:
    document = config_document()
    rules = document["pre_routing"]["rules"]
    rules.append(rule("again", "SYSTEM", ["ＨＥＬＬＯ!", "？！"], both("嗨", "Hi")))
    rules.append(rule("vague", "SYSTEM", ["查一下。"], both("嗨", "Hi")))
    assert findings(document) == {
        ("ambiguous_phrase", "pre_routing/rules/4/phrases/0"),
        ("empty_phrase", "pre_routing/rules/4/phrases/1"),
        ("ambiguous_phrase", "pre_routing/rules/5/phrases/0"),
    }
    rules[4:] = [rule(f"r{n}", "SYSTEM", [f"phrase {n}"], both("嗨", "Hi")) for n in range(9)]
    assert findings(document) == {("too_many_rules", "pre_routing/rules")}


@pytest.mark.covers("F-045")
def test_a_rule_about_the_login_needs_words_for_guests() -> None:
    document = config_document()
    del document["pre_routing"]["rules"][3]["reply_guest"]
    assert findings(document) == {("missing_guest_reply", "pre_routing/rules/3")}


def test_every_text_exists_in_every_language() -> None:
    document = config_document()
    del document["clarify_reply"]["en"]
    document["system_replies"]["order_entry"]["zh-CN"] = "  "
    assert findings(document) == {
        ("missing_text", "clarify_reply"),
        ("missing_text", "system_replies/order_entry"),
    }


def test_thresholds_keep_their_order_and_are_finite() -> None:
    document = config_document()
    document["routing"]["out_of_scope_below"] = 0.6
    assert findings(document) == {("thresholds_crossed", "routing/out_of_scope_below")}
    document["routing"]["out_of_scope_below"] = float("nan")
    with pytest.raises(MalformedError):
        wire.read(document, AssistantConfig)


def test_what_travels_with_a_turn_is_bounded() -> None:
    document = config_document()
    document["intents"][0]["examples"] = ["长" * 300] * 30
    document["intents"][1]["examples"] = ["长" * 2000] * 31
    assert findings(document) == {("too_many_examples", "intents/1/examples"), ("slice_too_large", "")}


def test_the_number_of_intents_is_bounded() -> None:
    document = config_document()
    for number in range(193):
        document["intents"].append(intent(f"I{number}", "甲", "A", examples=[]))
        document["contract"].append(entry(f"I{number}", "KB", "sales-kb"))
    assert ("too_many_intents", "intents") in findings(document)


def test_a_field_nobody_knows_is_refused() -> None:
    with pytest.raises(MalformedError):
        wire.read({**config_document(), "let_the_model_decide": True}, AssistantConfig, strictly=True)


@pytest.mark.covers("F-075", "F-116")
def test_the_slice_holds_no_disabled_intent_and_survives_its_journey() -> None:
    carried = governance_slice(config())
    assert "OLD_SALE" not in {i.id for i in carried.intents} | {e.intent_id for e in carried.contract}
    assert wire.read(json.loads(wire.write_json(carried)), type(carried)) == carried
