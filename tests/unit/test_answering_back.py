"""Answers to our own questions become rulings, and rulings become questions that stay open."""

from __future__ import annotations

import pytest

from tests.unit.assistant_example import CUSTOMER, GUEST, asks, governed, looks_like
from tests.unit.test_resuming import item
from turngate.domain import wire
from turngate.domain.governance import Ruling, govern
from turngate.domain.resuming import Resumption, Taken
from turngate.domain.shapes import (
    AllowedRoute,
    Candidate,
    Clarification,
    FixedAnswer,
    Option,
    ProposedReply,
    Refusal,
    SubQuestion,
    TenantContext,
    Understanding,
)

GUIDANCE = item(
    "intent_guidance",
    3,
    question="新车坏了",
    intent_id="",
    missing_fields=(),
    candidates=(Option(id="RETURN_POLICY", name="退货规则"), Option(id="REPAIR_GUIDE", name="维修指南")),
)
CHOICE = item("entity_choice", 1, given={"year": "2026"})


def took(pending: object, how: str, **more: object) -> Taken:
    return wire.read({"pending_id": pending.pending_id, "how": how, "text": "…", **more}, Taken)  # type: ignore[attr-defined]


def resumed(
    *taken: Taken, open_: tuple[object, ...] = (GUIDANCE, CHOICE), tenant: TenantContext = CUSTOMER
) -> Ruling:
    resumption = wire.read({"open": open_, "taken": taken}, Resumption)
    return govern(asks("第二个"), None, governed(), tenant, resumption)


@pytest.mark.covers("F-102", "F-116")
def test_a_chosen_intent_goes_through_the_contract_with_the_question_that_waited() -> None:
    ruling = resumed(took(GUIDANCE, "choice", option_id="REPAIR_GUIDE"))
    (part,) = ruling.parts
    assert (part.question, part.route) == (
        "新车坏了",
        AllowedRoute(
            intent_id="REPAIR_GUIDE",
            resource_name="guide-kb",
            collections=("guide-kb",),
            fallback_collections=("sales-kb", "repair-kb"),
        ),
    )
    assert [(c.pending_id, c.state) for c in ruling.pending.closed] == [("q3", "resumed")]
    assert ruling.pending.opened == ()


@pytest.mark.covers("F-109")
def test_a_choice_is_no_permission() -> None:
    """A guest may choose; the contract still says no, and so it does for an intent that is gone meanwhile."""
    (part,) = resumed(took(CHOICE, "choice", option_id="B-2"), tenant=GUEST).parts
    assert isinstance(part.route, Refusal)
    assert part.route.reason == "login_required"
    ruling = resumed(took(GUIDANCE, "choice", option_id="OLD_SALE"))
    assert ruling.trace.parts[0].outcome == "OUT_OF_SCOPE"


@pytest.mark.covers("F-032", "F-033", "F-034", "F-040")
@pytest.mark.parametrize(
    ("taken", "given"),
    [
        (took(CHOICE, "choice", option_id="B-2"), {"year": "2026", "bike": "B-2"}),
        (took(item("missing_parameter", 2), "value", field="order_no", value="TG-7"), {"order_no": "TG-7"}),
        (took(item("dependency_choice", 4), "choice", option_id="B-1"), {"bike": "B-1"}),
    ],
)
def test_what_was_chosen_or_stated_goes_on_beside_what_was_known(taken: Taken, given: dict[str, str]) -> None:
    open_ = (CHOICE, item("missing_parameter", 2), item("dependency_choice", 4))
    ruling = resumed(taken, open_=open_)
    assert ruling.parts[0].given == given
    assert ruling.trace.parts[0].contract is not None
    assert ruling.trace.parts[0].contract.resource_name == "getOrder"


@pytest.mark.parametrize(
    ("how", "kind", "state"), [("cancel", FixedAnswer, "cancelled"), ("none", Clarification, "declined")]
)
def test_none_and_never_mind_close_the_question(how: str, kind: type, state: str) -> None:
    ruling = resumed(took(CHOICE, how))
    assert isinstance(ruling.parts[0].route, kind)
    assert [(c.pending_id, c.state) for c in ruling.pending.closed] == [("q1", state)]
    assert ruling.pending.opened == ()


@pytest.mark.covers("F-042")
def test_an_unclear_answer_repeats_the_options_and_leaves_the_question_open() -> None:
    ruling = resumed(took(CHOICE, "unclear", reason="which_one"))
    route = ruling.parts[0].route
    assert isinstance(route, Clarification)
    assert "1. 蓝色城市车\n2. 红色公路车" in route.text
    assert (ruling.pending.opened, ruling.pending.closed) == ((), ())
    assert ruling.trace.parts[0].outcome == "NEED_CLARIFICATION"


@pytest.mark.covers("F-066", "F-040")
def test_an_answer_and_a_new_question_are_two_parts() -> None:
    resumption = Resumption(open=(CHOICE,), taken=(took(CHOICE, "choice", option_id="B-2"),))
    ruling = govern(
        asks("退货规则"), looks_like(("退货规则", {"RETURN_POLICY": 0.9})), governed(), CUSTOMER, resumption
    )
    assert [part.outcome for part in ruling.trace.parts] == ["ROUTED", "ROUTED"]
    assert [part.resumed is not None for part in ruling.trace.parts] == [True, False]
    assert len(ruling.parts) == len(ruling.events) == 2


@pytest.mark.covers("F-102")
def test_guidance_is_kept_open_and_replaces_the_same_question() -> None:
    close = looks_like(("配件怎么修", {"PARTS_SEARCH": 0.8, "REPAIR_GUIDE": 0.79}))
    first = govern(asks("配件怎么修"), close, governed(), CUSTOMER)
    (opened,) = first.pending.opened
    assert (opened.part_id, opened.question, opened.clarification.reason) == (
        "p1",
        "配件怎么修",
        "intent_guidance",
    )
    assert first.trace.parts[0].guidance == ("PARTS_SEARCH", "REPAIR_GUIDE")
    earlier = item("intent_guidance", 5, question="别的", candidates=opened.clarification.candidates)
    again = govern(asks("配件怎么修"), close, governed(), CUSTOMER, Resumption(open=(earlier, CHOICE)))
    assert [(c.pending_id, c.state) for c in again.pending.closed] == [("q5", "replaced")]
    assert len(again.pending.opened) == 1


def test_a_fuller_question_settles_the_guidance_it_was_about() -> None:
    ruling = govern(
        asks("我要看维修指南里怎么换链条"),
        looks_like(("怎么换链条", {"REPAIR_GUIDE": 0.9})),
        governed(),
        CUSTOMER,
        Resumption(open=(GUIDANCE, CHOICE)),
    )
    assert [(c.pending_id, c.state) for c in ruling.pending.closed] == [("q3", "resumed")]


@pytest.mark.covers("F-041", "F-109")
def test_the_models_reading_is_taken_only_within_the_offer_and_the_trace_says_why_not() -> None:
    def with_reply(**reply: str) -> Ruling:
        read = Understanding(
            status="OK",
            sub_questions=(
                SubQuestion(text="退货规则", candidates=(Candidate(id="RETURN_POLICY", score=0.9),)),
            ),
            reply=ProposedReply(**reply),
        )
        return govern(asks("还是红的那辆吧"), read, governed(), CUSTOMER, Resumption(open=(CHOICE,)))

    assert with_reply(resume_token="w1", option_id="B-2").parts[0].given == {"year": "2026", "bike": "B-2"}
    invented = with_reply(resume_token="w1", option_id="B-7")
    assert invented.trace.refused_reply == "option_not_offered"
    assert [part.intent_id for part in invented.trace.parts] == ["RETURN_POLICY"]
    assert invented.pending.closed == ()


def test_a_few_words_that_mean_nothing_else_were_an_unclear_answer() -> None:
    nothing = looks_like(("随便", {"ORDER_QUERY": 0.1}))
    ruling = govern(asks("随便"), nothing, governed(), CUSTOMER, Resumption(open=(CHOICE,)))
    assert ruling.trace.parts[0].outcome == "NEED_CLARIFICATION"
    assert ruling.trace.parts[0].resumed is not None
    assert ruling.pending.closed == ()
    long = "今天外面的天气到底怎么样啊朋友"
    other = govern(asks(long), looks_like((long, {})), governed(), CUSTOMER, Resumption(open=(CHOICE,)))
    assert other.trace.parts[0].outcome == "OUT_OF_SCOPE"


@pytest.mark.covers("F-355")
def test_the_event_of_a_resumed_part_holds_no_word_of_the_customer() -> None:
    number = item("missing_parameter", 2)
    ruling = resumed(took(number, "value", field="order_no", value="GEHEIM-7"), open_=(number,))
    assert ruling.trace.parts[0].resumed is not None
    assert ruling.trace.parts[0].resumed.value == "GEHEIM-7"
    assert "GEHEIM" not in wire.write_json(ruling.events[0])
