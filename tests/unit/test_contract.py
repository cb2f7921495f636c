"""The contract names one resource for an intent, or says why there is none."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.unit.assistant_example import CUSTOMER, GUEST, config, governed
from turngate.domain.contract import authorise, public_fallback
from turngate.domain.shapes import AllowedRoute, FixedAnswer, Refusal


@pytest.mark.covers("F-113", "F-115")
def test_a_document_intent_may_read_its_own_collection_and_beyond_it_the_public_ones_alone() -> None:
    assert authorise(governed(), "RETURN_POLICY", GUEST, "zh-CN") == AllowedRoute(
        intent_id="RETURN_POLICY",
        resource_name="sales-kb",
        collections=("sales-kb",),
        fallback_collections=("repair-kb",),
    )


@pytest.mark.covers("F-122")
def test_a_system_action_states_its_fixed_text_and_calls_nothing() -> None:
    assert authorise(governed(), "ORDER_CHANGE", GUEST, "en") == FixedAnswer(
        intent_id="ORDER_CHANGE", resource_name="order_entry", text="Please use the order page."
    )


@pytest.mark.covers("F-111")
@pytest.mark.parametrize("intent_id", ["PARTS_SEARCH", "TUNE_UP"])
def test_tools_and_skills_are_said_to_be_not_connected(intent_id: str) -> None:
    refusal = Refusal(reason="not_connected", text="还没有接通。")
    assert authorise(governed(), intent_id, GUEST, "zh-CN") == refusal


@pytest.mark.covers("F-644")
def test_a_guest_is_asked_to_sign_in_before_anything_is_said_about_private_data() -> None:
    assert authorise(governed(), "ORDER_QUERY", GUEST, "zh-CN") == Refusal(
        reason="login_required", text="请先登录。"
    )
    refused = authorise(governed(), "ORDER_QUERY", CUSTOMER, "zh-CN")
    assert refused == Refusal(reason="not_connected", text="还没有接通。")


@pytest.mark.covers("F-116")
@pytest.mark.parametrize("intent_id", ["TRADE_IN", "OLD_SALE", "NEVER_HEARD_OF"])
def test_what_the_contract_does_not_enable_is_refused(intent_id: str) -> None:
    refusal = Refusal(reason="disabled", text="超出范围。")
    assert authorise(governed(), intent_id, CUSTOMER, "zh-CN") == refusal


@pytest.mark.covers("F-119", "F-123")
def test_the_fallback_is_the_list_of_public_collections_and_no_tool() -> None:
    fallback = public_fallback(governed())
    assert fallback is not None
    assert (fallback.kind, fallback.fallback, fallback.collections) == ("KB", True, ("sales-kb", "repair-kb"))


def test_without_public_collections_there_is_no_fallback() -> None:
    routing = replace(config().routing, fallback_collections=())
    assert public_fallback(replace(governed(), routing=routing)) is None
