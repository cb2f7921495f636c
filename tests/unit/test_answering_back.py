"""Answers to our own questions become rulings, and rulings become questions that stay open."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.assistant_example import CUSTOMER, GUEST, asks, governed, looks_like, patient
from tests.unit.test_resuming import item
from turngate.domain import wire
from turngate.domain.governance import Ruling, govern
from turngate.domain.resuming import Resumption
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
from turngate.domain.taking import Taken
from turngate.domain.understanding import failed_understanding

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
def test_an_unclear_answer_asks_the_same_question_once_more_as_a_new_one() -> None:
    """A new item, so that "asked last" and its half hour are true of it; how often it was asked is kept."""
    ruling = resumed(took(CHOICE, "unclear", reason="which_one"))
    route = ruling.parts[0].route
    assert isinstance(route, Clarification)
    assert "1. 蓝色城市车\n2. 红色公路车" in route.text
    (opened,) = ruling.pending.opened
    assert (opened.again, opened.first_number, opened.question) == (1, 1, CHOICE.question)
    assert (opened.clarification.intent_id, opened.clarification.given) == ("ORDER_QUERY", {"year": "2026"})
    assert [(c.pending_id, c.state) for c in ruling.pending.closed] == [("q1", "replaced")]
    assert ruling.trace.parts[0].outcome == "NEED_CLARIFICATION"


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("no_such_option", "没有这一项"),
        ("one_first", "一次只能办一个"),
        ("own_words", "请用您自己的话说说要办什么。"),
    ],
)
def test_asking_again_says_why(reason: str, said: str) -> None:
    route = resumed(took(CHOICE, "unclear", reason=reason)).parts[0].route
    assert isinstance(route, Clarification)
    assert said in route.text
    assert "2. 红色公路车" in route.text


def test_a_question_is_asked_again_in_the_language_of_the_answer() -> None:
    open_ = Resumption(open=(GUIDANCE,), taken=(took(GUIDANCE, "unclear", reason="which_one"),))
    ruling = govern(asks("that one", language="en"), None, governed(), CUSTOMER, open_)
    (part,) = ruling.parts
    assert isinstance(part.route, Clarification)
    assert part.route.text == "Which of these do you mean? A number will do.\n1. Returns\n2. Repairs"


def test_what_somebody_else_phrased_is_asked_again_in_their_words() -> None:
    shown = replace(CHOICE, text="两辆都符合，请选：\n1. 蓝色城市车\n2. 红色公路车")
    (part,) = resumed(took(shown, "unclear", reason="which_one"), open_=(shown,)).parts
    assert isinstance(part.route, Clarification)
    assert part.route.text == shown.text


def test_who_cannot_choose_is_asked_for_own_words_and_the_question_ends() -> None:
    ruling = resumed(took(CHOICE, "none", reason="own_words"))
    assert ruling.parts[0].route == Clarification(
        reason="incomplete", text="拿不准也没关系，请用您自己的话说说要办什么。"
    )
    assert [(c.pending_id, c.state) for c in ruling.pending.closed] == [("q1", "declined")]


def test_each_of_several_choices_goes_through_the_contract() -> None:
    ruling = resumed(
        took(GUIDANCE, "choice", option_id="RETURN_POLICY"),
        took(GUIDANCE, "choice", option_id="ORDER_QUERY"),
        tenant=GUEST,
    )
    returns, order = ruling.parts
    assert isinstance(returns.route, AllowedRoute)
    assert isinstance(order.route, Refusal)
    assert order.route.reason == "login_required"
    assert [(c.pending_id, c.state) for c in ruling.pending.closed] == [("q3", "resumed")]


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
    offered = {"candidates": opened.clarification.candidates, "intent_id": "", "missing_fields": ()}
    earlier = item("intent_guidance", 5, question="这个配件坏了怎么修", **offered)
    another = item("intent_guidance", 6, question="车铃的价格", **offered)
    open_ = Resumption(open=(earlier, another, CHOICE))
    again = govern(asks("配件怎么修"), close, governed(), CUSTOMER, open_)
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


@pytest.mark.parametrize(
    ("question", "text", "intent", "settled"),
    [
        ("price of Arch 5", "Show me the laptops you sell", "RETURN_POLICY", False),
        ("price of Arch5", "what does the Slate11 cost, its price?", "RETURN_POLICY", False),
        ("price of Arch 5", "how do I return the Arch 5?", "RETURN_POLICY", True),
        ("price of Arch 5", "do my points expire", "ORDER_QUERY", False),
        ("新车坏了", "退货规则里写几天", "RETURN_POLICY", True),
    ],
)
def test_only_a_question_about_the_same_settles_a_guidance(
    question: str, text: str, intent: str, settled: bool
) -> None:
    ruling = govern(
        asks(text),
        looks_like((text, {intent: 0.9})),
        governed(),
        CUSTOMER,
        Resumption(open=(replace(GUIDANCE, question=question),)),
    )
    assert [c.state for c in ruling.pending.closed] == (["resumed"] if settled else [])


def test_the_same_offer_for_another_thing_keeps_the_first_question() -> None:
    offered = (
        Option(id="PARTS_SEARCH", name="配件查询", also=("Parts price",)),
        Option(id="REPAIR_GUIDE", name="维修指南", also=("Repairs",)),
    )
    arch = replace(GUIDANCE, question="price of Arch 5", candidates=offered)
    for text, states in (("price of Slate 11", []), ("the Arch 5 price, please", ["replaced"])):
        close = looks_like((text, {"PARTS_SEARCH": 0.8, "REPAIR_GUIDE": 0.79}))
        ruling = govern(asks(text), close, governed(), CUSTOMER, Resumption(open=(arch,)))
        assert len(ruling.pending.opened) == 1
        assert [c.state for c in ruling.pending.closed] == states


def after(open_: tuple[object, ...], text: str, read: Understanding) -> Ruling:
    """The ruling of a message right after the open questions were asked for the first time."""
    resumption = wire.read({"open": open_, "asked_last": [each.pending_id for each in open_]}, Resumption)  # type: ignore[attr-defined]
    return govern(asks(text), read, governed(), CUSTOMER, resumption)


NOTHING_ASKED = Understanding(status="OK")


def test_what_would_be_asked_back_anyway_was_a_failed_answer() -> None:
    for text, read in (("那个呢", looks_like(("那个呢", {}))), ("红的那辆吧大概", NOTHING_ASKED)):
        ruling = after((CHOICE,), text, read)
        assert ruling.trace.parts[0].resumed is not None
        assert [(c.pending_id, c.state) for c in ruling.pending.closed] == [("q1", "replaced")]
        later = govern(asks(text), read, governed(), CUSTOMER, Resumption(open=(CHOICE,)))
        assert later.trace.parts[0].resumed is None
        assert later.pending.closed == ()


def test_a_denied_offer_that_nobody_understood_is_asked_again_and_not_refused() -> None:
    ruling = after((CHOICE,), "不是红色公路车", looks_like(("不是红色公路车", {})))
    assert ruling.trace.parts[0].outcome == "NEED_CLARIFICATION"
    assert ruling.trace.parts[0].resumed is not None


QUESTIONS = [
    "will it rain?",
    "明天天气怎么样",
    "讲个笑话",
    "人工",
    "转人工",
    "what do you mean?",
    "运费多少",
    "hi there",
]


@patient
@hypothesis.given(
    st.sampled_from(QUESTIONS),
    st.sampled_from([0.0, 0.1, 0.45, 0.9]),
    st.sampled_from(["RETURN_POLICY", "ORDER_QUERY"]),
    st.booleans(),
)
@pytest.mark.covers("F-094")
def test_an_item_never_changes_the_ruling_of_a_question_of_its_own(
    text: str, score: float, intent: str, model_up: bool
) -> None:
    read = looks_like((text, {intent: score})) if model_up else failed_understanding("timeout")
    alone = govern(asks(text), read, governed(), CUSTOMER)
    beside = after((CHOICE, GUIDANCE), text, read)
    assert [(p.outcome, p.reason) for p in beside.trace.parts] == [
        (p.outcome, p.reason) for p in alone.trace.parts
    ]
    assert [part.route for part in beside.parts] == [part.route for part in alone.parts]


def test_a_question_in_which_nothing_was_found_is_no_failed_answer_unless_the_model_took_it_for_one() -> None:
    text = "where do I send it to you people?"
    assert after((CHOICE,), text, NOTHING_ASKED).trace.parts[0].resumed is None
    reply = ProposedReply(resume_token="w1", option_id="B-9", value="")
    assert after((CHOICE,), text, replace(NOTHING_ASKED, reply=reply)).trace.parts[0].resumed is not None
    stray = replace(reply, resume_token="w77")
    assert after((CHOICE,), text, replace(NOTHING_ASKED, reply=stray)).trace.parts[0].resumed is None


def test_what_the_model_left_out_beside_the_name_it_took_is_asked_back() -> None:
    def left_over(text: str) -> list[str]:
        reply = ProposedReply(resume_token="w3", option_id="REPAIR_GUIDE", value="")
        return [p.question for p in after((GUIDANCE,), text, Understanding(status="OK", reply=reply)).parts]

    assert left_over("维修指南，质保") == ["新车坏了", "质保"]
    assert left_over("维修指南和质保") == ["新车坏了", "质保"]
    assert left_over("维修指南，谢谢") == ["新车坏了"]
    assert left_over("我想我要的是修车那一项") == ["新车坏了"]


def test_questions_of_one_reply_are_numbered_on_and_no_more_is_asked_than_stays_open() -> None:
    texts = [f"零件{number}坏了" for number in range(6)]
    close = looks_like(*((text, {"PARTS_SEARCH": 0.8, "REPAIR_GUIDE": 0.79}) for text in texts))
    ruling = govern(asks("，".join(texts)), close, governed(), CUSTOMER)
    routes = [part.route for part in ruling.parts]
    assert [route.reason for route in routes if isinstance(route, Clarification)] == (
        ["intent_guidance"] * 4 + ["incomplete"] * 2
    )
    assert [opening.first_number for opening in ruling.pending.opened] == [1, 3, 5, 7]
    for opening in ruling.pending.opened:
        lines = [
            f"{opening.first_number + n}. {o.name}" for n, o in enumerate(opening.clarification.candidates)
        ]
        assert opening.clarification.text.split("\n")[-2:] == lines
        assert opening.clarification in routes


def test_a_turn_has_six_parts_and_the_trace_names_the_rest() -> None:
    chosen = [took(GUIDANCE, "choice", option_id=each) for each in ("RETURN_POLICY", "REPAIR_GUIDE")]
    asked = looks_like(*((f"第{number}件事怎么退", {"RETURN_POLICY": 0.9}) for number in range(6)))
    open_ = Resumption(open=(GUIDANCE,), taken=tuple(chosen))
    ruling = govern(asks("许多事"), asked, governed(), CUSTOMER, open_)
    assert [part.resumed is not None for part in ruling.trace.parts] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    assert ruling.trace.discarded == ("surplus_part:RETURN_POLICY",) * 2


@pytest.mark.parametrize("text", ["好的", "ok", "再见", "算了", "never mind"])
def test_courtesy_gets_courtesy_and_vanishes_beside_a_question(text: str) -> None:
    alone = govern(asks(text), looks_like((text, {"RETURN_POLICY": 0.4})), governed(), CUSTOMER)
    (part,) = alone.parts
    assert part.route == FixedAnswer(
        intent_id="courtesy", resource_name="courtesy", text="有需要随时告诉我。"
    )
    both = looks_like((text, {}), ("退货规则", {"RETURN_POLICY": 0.9}))
    beside = govern(asks(f"{text}，退货规则"), both, governed(), CUSTOMER)
    assert [(p.question, p.outcome) for p in beside.trace.parts] == [("退货规则", "ROUTED")]


@pytest.mark.covers("F-355")
def test_the_event_of_a_resumed_part_holds_no_word_of_the_customer() -> None:
    number = item("missing_parameter", 2)
    ruling = resumed(took(number, "value", field="order_no", value="GEHEIM-7"), open_=(number,))
    assert ruling.trace.parts[0].resumed is not None
    assert ruling.trace.parts[0].resumed.value == "GEHEIM-7"
    assert "GEHEIM" not in wire.write_json(ruling.events[0])
