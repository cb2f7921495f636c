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
