"""What governance stands for beside a single ruling: classes of routes, policies, and who decides what."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from tests.governance.table import governed as governed_tenant
from tests.governance.table import said
from tests.unit.assistant_example import CUSTOMER, GUEST, asks, governed, looks_like
from turngate.domain import wire
from turngate.domain.contract import authorise, contract_entry
from turngate.domain.governance import govern
from turngate.domain.shapes import Clarification, Refusal, TenantContext, Understanding
from turngate.domain.understanding import understanding_request
from turngate.errors import MalformedError

if TYPE_CHECKING:
    from turngate.domain.config import GovernanceSlice

TILL = TenantContext(
    account="cashier", principal="t", customer="C-1", client_type="android", capabilities=("ui.show_guide",)
)


def changed(slice_: GovernanceSlice, **routing: object) -> GovernanceSlice:
    return replace(slice_, routing=replace(slice_.routing, **routing))


@pytest.mark.covers("F-083", "F-084")
def test_every_class_of_route_has_its_own_end() -> None:
    """S2's four classes (R-12): general conversation, knowledge, skill, clarification."""
    till = governed_tenant("cashier")

    def end(text: str, scores: dict[str, float], slice_: GovernanceSlice) -> tuple[str, str]:
        (part,) = govern(said(text), looks_like((text, scores)), slice_, TILL).trace.parts
        return part.outcome, part.contract.kind if part.contract else part.route_kind

    assert end("你好", {}, governed()) == ("ROUTED", "FIXED")
    assert end("规格怎么选", {"PRODUCT_OPTIONS": 0.9}, till) == ("ROUTED", "KB")
    assert end("演示如何下单", {"ORDERING_GUIDE": 0.9}, till) == ("ROUTED", "SKILL")
    assert end("检查一下", {"PRINTER_CHECK": 0.9}, till) == ("NEED_CLARIFICATION", "CLARIFICATION")


@pytest.mark.covers("F-107")
def test_what_nobody_claims_is_searched_for_or_asked_back_as_configured() -> None:
    unclear = looks_like(("那件事怎么说", {"ORDER_QUERY": 0.4}))
    searched = govern(asks("那件事怎么说"), unclear, governed(), CUSTOMER).trace.parts[0]
    assert (searched.outcome, searched.arbitration) == ("GLOBAL_KB_FALLBACK", "unclassified_search")
    asked = govern(asks("那件事怎么说"), unclear, changed(governed(), unclassified="ask"), CUSTOMER)
    assert asked.trace.parts[0].arbitration == "unclassified_ask"
    assert isinstance(asked.parts[0].route, Clarification)
    assert asked.pending.opened == ()
    hopeless = looks_like(("天气", {"ORDER_QUERY": 0.2}))
    refused = govern(asks("天气"), hopeless, changed(governed(), unclassified="ask"), CUSTOMER)
    assert refused.trace.parts[0].outcome == "OUT_OF_SCOPE"


@pytest.mark.covers("F-118", "F-116")
@pytest.mark.parametrize(
    "lookalike",
    [
        "order_query",
        "ORDER_QUERY ",
        " ORDER_QUERY",
        "ORDER-QUERY",
        "ORDER_QUERY\u200b",
        "ОRDER_QUERY",
        "getOrder",
        "",
        "*",
    ],
)
def test_an_intent_is_looked_up_exactly_and_the_tool_is_the_contracts(lookalike: str) -> None:
    assert contract_entry(governed(), lookalike) is None
    refused = authorise(governed(), lookalike, CUSTOMER, "en")
    assert isinstance(refused, Refusal)
    assert refused.reason == "disabled"
    entry = contract_entry(governed(), "ORDER_QUERY")
    assert (entry and entry.resource_name) == "getOrder"


@pytest.mark.covers("F-124", "F-064")
def test_the_model_is_shown_intents_and_no_tool_collection_or_action() -> None:
    """Which resource answers is the contract's alone; a tool protocol only carries the call out."""
    for tenant in ("mall", "cashier"):
        slice_ = governed_tenant(tenant)
        prompt = understanding_request(said("我的订单"), (), slice_)
        shown = f"{prompt.system}{prompt.user}{json.dumps(prompt.schema)}"
        assert [entry.resource_name for entry in slice_.contract if entry.resource_name in shown] == []
        assert all(intent.id in shown for intent in slice_.intents)


@pytest.mark.covers("F-110")
def test_which_provider_answered_is_no_input_of_a_ruling_and_no_part_of_its_trace() -> None:
    """Business routing and model routing are two layers with two records."""
    ruling = govern(asks("退货规则"), looks_like(("退货规则", {"RETURN_POLICY": 0.9})), governed(), CUSTOMER)
    written = json.dumps([wire.write(ruling.trace), *(e.data for e in ruling.events)], ensure_ascii=False)
    for word in ("model", "provider", "usage", "token"):
        assert f'"{word}' not in written
    assert not {"model", "provider", "usage"} & set(Understanding.__struct_fields__)


@pytest.mark.covers("F-108")
@pytest.mark.parametrize("field", ["allow_general_knowledge", "knowledge_only"])
def test_no_routing_option_lets_a_model_answer_without_evidence(field: str) -> None:
    raw = wire.write(governed().routing) | {field: False}
    with pytest.raises(MalformedError, match=field):
        wire.read(raw, type(governed().routing), strictly=True)


@pytest.mark.covers("F-088", "F-536")
@pytest.mark.parametrize(
    ("tenant", "reason"),
    [
        (TILL, "not_connected"),
        (replace(TILL, capabilities=()), "wrong_client"),
        (replace(TILL, client_type="web"), "wrong_client"),
    ],
)
def test_a_skill_asks_for_its_client_and_what_the_client_can(tenant: TenantContext, reason: str) -> None:
    route = authorise(governed_tenant("cashier"), "ORDERING_GUIDE", tenant, "en")
    assert isinstance(route, Refusal)
    assert route.reason == reason


def test_what_is_too_risky_is_blocked_whoever_asks_and_login_comes_first() -> None:
    strict = changed(governed(), max_risk="L0")
    for tenant, reason in ((GUEST, "login_required"), (CUSTOMER, "risk_blocked")):
        route = authorise(strict, "ORDER_QUERY", tenant, "en")
        assert isinstance(route, Refusal)
        assert route.reason == reason
