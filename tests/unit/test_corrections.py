"""Corrections: certain confusions only, by the customer's own words, and never a guess turned into an action."""

from __future__ import annotations

import json

import pytest

from tests.governance.table import CONFIGS, governed, said
from turngate.domain import wire
from turngate.domain.checking import validate_config
from turngate.domain.config import AssistantConfig
from turngate.domain.corrections import correct
from turngate.domain.governance import govern
from turngate.domain.routing import MAX_CORRECTIONS, Correction
from turngate.domain.shapes import Candidate, SubQuestion, TenantContext, Understanding
from turngate.errors import MalformedError

CUSTOMER = TenantContext(account="mall", principal="user:1", customer="C-1")
ORDER_TO_PARCEL = Correction(
    id="location", owner="desk", evidence="F-096", from_intents=("ORDER",), to_intent="PARCEL",
    all_of=(("订单", "order"), ("到哪", "where is")), none_of=("详情",),
)  # fmt: skip


def corrected(text: str, *candidates: tuple[str, float], original: str = "", **more: object):
    return correct(
        tuple(Candidate(id=i, score=s) for i, s in candidates),
        (ORDER_TO_PARCEL,),
        wording=text,
        original=original or text,
        reachable=more.get("reachable", frozenset({"ORDER", "PARCEL"})),  # type: ignore[arg-type]
        acting=more.get("acting", frozenset({"ORDER", "PARCEL"})),  # type: ignore[arg-type]
        threshold=0.5,
    )


@pytest.mark.covers("F-096")
def test_a_phrase_of_every_group_puts_the_right_intent_in_the_lead() -> None:
    candidates, applied = corrected("订单 到哪了？", ("ORDER", 0.9), ("PARCEL", 0.4), ("OTHER", 0.3))
    assert [(c.id, c.score) for c in candidates] == [("PARCEL", 0.9), ("OTHER", 0.3)]
    assert applied is not None
    assert (applied.id, applied.from_intent, applied.phrases) == ("location", "ORDER", ("订单", "到哪"))


@pytest.mark.covers("F-101")
@pytest.mark.parametrize(
    ("text", "leading"),
    [
        ("订单详情到哪看", "ORDER"),
        ("订单", "ORDER"),
        ("到哪了", "ORDER"),
        ("订单到哪了", "OTHER"),
        ("订单到哪了", "PARCEL"),
    ],
)
def test_anything_less_certain_is_left_to_the_candidates(text: str, leading: str) -> None:
    candidates, applied = corrected(text, (leading, 0.9))
    assert (candidates[0].id, applied) == (leading, None)


@pytest.mark.covers("F-095")
def test_a_guess_is_never_corrected_into_an_action_but_may_become_a_document() -> None:
    assert corrected("订单到哪了", ("ORDER", 0.49))[1] is None
    candidates, applied = corrected("订单到哪了", ("ORDER", 0.49), acting=frozenset({"ORDER"}))
    assert applied is not None
    assert candidates[0] == Candidate(id="PARCEL", score=0.5)


def test_an_intent_without_an_enabled_entry_is_never_corrected_to() -> None:
    assert corrected("订单到哪了", ("ORDER", 0.9), reachable=frozenset({"ORDER"}))[1] is None


@pytest.mark.covers("F-065")
def test_a_phrase_counts_only_when_the_customer_wrote_it() -> None:
    assert corrected("订单到哪了", ("ORDER", 0.9), original="帮我看看订单，再说说退货")[1] is None
    assert corrected("订单到哪了", ("ORDER", 0.9), original="订单到哪了，再说说退货")[1] is not None


@pytest.mark.covers("F-065", "F-096")
def test_drift_of_the_wording_is_corrected_by_the_original() -> None:
    """The model dropped the very words that decide."""
    read = Understanding(
        status="OK",
        rewritten="查询我的订单",
        sub_questions=(
            SubQuestion(text="查询我的订单", candidates=(Candidate(id="ORDER_QUERY", score=0.95),)),
        ),
    )
    (part,) = govern(said("订单到哪了"), read, governed("mall"), CUSTOMER).trace.parts
    assert (part.contract and part.contract.resource_name) == "getLogistics"
    assert part.correction is not None
    assert (part.correction.id, part.candidates[0].id) == ("order_location", "ORDER_QUERY")


def ruled_alone(text: str, leading: str) -> tuple[str, str]:
    """What the mall rules when a model is sure of `leading`: the intent, and the correction that was applied."""
    sub = SubQuestion(text=text, candidates=(Candidate(id=leading, score=0.98),))
    read = Understanding(status="OK", rewritten=text, sub_questions=(sub,))
    (part,) = govern(said(text), read, governed("mall"), CUSTOMER).trace.parts
    return part.intent_id, part.correction.id if part.correction else ""


@pytest.mark.covers("F-096", "F-097", "F-098", "F-099", "F-100")
@pytest.mark.parametrize(
    ("text", "leading"),
    [
        ("在哪取消订单", "ORDER_CHANGE"),
        ("在哪修改订单的收货地址", "ORDER_CHANGE"),
        ("订单在哪里可以取消", "ORDER_CHANGE"),
        ("订单到哪了，还能取消吗", "ORDER_QUERY"),
        ("在哪里看订单", "ORDER_QUERY"),
        ("我现在在哪里看订单", "ORDER_QUERY"),
        ("我知道订单在哪看，帮我查订单状态", "ORDER_QUERY"),
        ("我想知道在哪里可以查订单", "ORDER_QUERY"),
        ("订单发票在哪开", "ORDER_QUERY"),
        ("订单优惠券在哪用", "ORDER_QUERY"),
        ("订单的配送站在哪", "DELIVERY_POLICY"),
        ("快递能送到哪些国家", "DELIVERY_POLICY"),
        ("包裹可以送到哪里", "DELIVERY_POLICY"),
        ("到哪里了解订单配送规则", "DELIVERY_POLICY"),
        ("Where is my order shipped from?", "DELIVERY_POLICY"),
        ("Where is my order number?", "ORDER_QUERY"),
        ("where is the order number printed", "ORDER_QUERY"),
        ("Where is my order confirmation page?", "ORDER_QUERY"),
        ("订单金额可以分期吗", "PAYMENT_INVOICE"),
        ("想买一副耳机，搜不到", "PRODUCT_SEARCH"),
        ("耳机搜不到", "PRODUCT_SEARCH"),
        ("找不到说明书里的设备编号", "USAGE_GUIDE"),
        ("我找不到手表的保修卡", "USAGE_GUIDE"),
        ("手表找不到了怎么办", "USAGE_GUIDE"),
        ("watch not found in your list of phones", "PRODUCT_SEARCH"),
        ("耳机搜不到，想退货", "TROUBLESHOOTING"),
        ("how to set a refund method", "PRODUCT_INFO"),
        ("配对失败能换货吗", "EXCHANGE_POLICY"),
        ("一直重启在哪维修", "REPAIR_POLICY"),
        ("怎么打开耳机盒，一边没声音", "TROUBLESHOOTING"),
        ("怎么打开机身后盖", "TROUBLESHOOTING"),
    ],
)
def test_words_that_are_not_certain_leave_the_understanding_alone(text: str, leading: str) -> None:
    assert ruled_alone(text, leading) == (leading, "")


@pytest.mark.covers("F-096", "F-097", "F-098", "F-099", "F-100")
@pytest.mark.parametrize(
    ("text", "leading", "right"),
    [
        ("查一下订单到哪了", "ORDER_QUERY", "LOGISTICS_QUERY"),
        ("我的包裹现在在哪", "DELIVERY_POLICY", "LOGISTICS_QUERY"),
        ("快递送到哪里了", "ORDER_QUERY", "LOGISTICS_QUERY"),
        ("Where's my package?", "ORDER_QUERY", "LOGISTICS_QUERY"),
        ("订单花了多少", "PAYMENT_INVOICE", "ORDER_QUERY"),
        ("蓝牙列表里找不到手表", "PRODUCT_SEARCH", "CONNECTION_NETWORK"),
        ("耳机搜不到", "TROUBLESHOOTING", "CONNECTION_NETWORK"),
        ("耳机配对失败", "EXCHANGE_POLICY", "CONNECTION_NETWORK"),
        ("一边没声音", "REPAIR_POLICY", "TROUBLESHOOTING"),
        ("通话降噪怎么打开", "PRODUCT_INFO", "USAGE_GUIDE"),
    ],
)
def test_certain_words_put_a_known_confusion_right(text: str, leading: str, right: str) -> None:
    intent, correction = ruled_alone(text, leading)
    assert (intent, bool(correction)) == (right, True)


@pytest.mark.covers("F-101")
def test_corrections_are_few_and_each_has_an_owner_and_evidence() -> None:
    raw = json.loads(CONFIGS["mall"].read_text(encoding="utf-8"))
    found = raw["routing"]["corrections"]
    assert 5 <= len(found) <= 8
    assert all(each["owner"] and len(each["evidence"]) > 20 for each in found)
    raw["routing"]["corrections"] = [{**found[0], "id": f"c{n}"} for n in range(MAX_CORRECTIONS + 1)]
    assert "too_many_corrections" in findings(raw)


def findings(raw: dict) -> set[str]:  # type: ignore[type-arg]
    config = wire.read(raw, AssistantConfig)
    return {finding.code for finding in validate_config(config, {})} - {"unknown_collection"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"to_intent": "GONE"}, "unknown_intent"),
        ({"from_intents": ["GONE"]}, "unknown_intent"),
        ({"from_intents": ["LOGISTICS_QUERY"]}, "idle_correction"),
        ({"all_of": [["！！"]]}, "empty_phrase"),
        ({"all_of": [[]]}, "empty_phrase"),
        ({"none_of": [" "]}, "empty_phrase"),
    ],
)
def test_a_broken_correction_cannot_be_saved(change: dict[str, object], code: str) -> None:
    raw = json.loads(CONFIGS["mall"].read_text(encoding="utf-8"))
    assert findings(raw) == set()
    raw["routing"]["corrections"][0] |= change
    assert findings(raw) == {code}


@pytest.mark.parametrize("missing", ["owner", "evidence"])
def test_a_correction_without_owner_or_evidence_is_none(missing: str) -> None:
    raw = wire.write(ORDER_TO_PARCEL) | {missing: ""}
    with pytest.raises(MalformedError, match=missing):
        wire.read(raw, Correction)
