"""Where a customer's text is cut, by form alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.demo_model.splitting import MAX_CLAUSES, firm_clauses, possible_clauses, tidy

FIRM = [
    (["看看我的订单，再说说怎么保养"], ["看看我的订单", "说说怎么保养"]),
    (["电池充满要多久？试骑收钱吗？"], ["电池充满要多久？", "试骑收钱吗？"]),
    (["链条断了能保修吗，另外几点关门"], ["链条断了能保修吗", "几点关门"]),
    (["订单进度；积分规则"], ["订单进度", "积分规则"]),
    (["退款什么时候到", "还有发票怎么开"], ["退款什么时候到", "发票怎么开"]),
    (["When do you open and how much is a test ride?"], ["When do you open", "how much is a test ride?"]),
    (["Is it covered? Another thing, do you take cards?"], ["Is it covered?", "do you take cards?"]),
    (["I need an invoice; where is my parcel?"], ["I need an invoice", "where is my parcel?"]),
    # context stays with the question it belongs to
    (["我上个月买了车。链条昨天断了。能保修吗？"], ["我上个月买了车。链条昨天断了。能保修吗？"]),
    (["我买的头盔", "能退吗"], ["我买的头盔，能退吗"]),
    (["能退吗？我上周买的"], ["能退吗？我上周买的"]),
    (
        ["I bought a bike and then the chain broke, is that covered?"],
        ["I bought a bike and then the chain broke, is that covered?"],
    ),
    # what only looks like a joint
    (["店里还有货吗"], ["店里还有货吗"]),
    (["The 1.5 inch tyre of v2.0, how much is it?"], ["The 1.5 inch tyre of v2.0, how much is it?"]),
    # courtesy is not a question
    (["您好！电池能整晚充吗？谢谢！"], ["电池能整晚充吗？"]),
    (["Hello, do you repair bikes? Thank you very much!"], ["do you repair bikes?"]),
    (["你好"], ["你好"]),
    (["那个呢"], ["那个呢"]),
]


@pytest.mark.parametrize(("messages", "clauses"), FIRM)
def test_firm_cuts(messages, clauses):
    assert firm_clauses(messages) == clauses


def test_a_comma_between_two_questions_is_only_offered_as_a_cut():
    (clause,) = firm_clauses(["充电要多久，试骑收钱吗"])
    assert possible_clauses(clause) == ["充电要多久", "试骑收钱吗"]


def test_a_comma_after_context_is_not_even_offered():
    assert possible_clauses("如果骑过一次，还能退吗") == ["如果骑过一次，还能退吗"]


def test_many_questions_are_kept_in_the_last_clause():
    clauses = firm_clauses(["".join(f"第{n}个问题怎么办？" for n in range(20))])
    assert len(clauses) == MAX_CLAUSES
    assert clauses[-1].endswith("第19个问题怎么办？")


@given(st.lists(st.text(max_size=80), min_size=1, max_size=4))
def test_no_word_is_invented_and_any_text_is_survived(messages):
    tidied = [tidy(message) for message in messages]
    source = "".join(tidied)
    for clause in firm_clauses(tidied):
        for part in possible_clauses(clause):
            assert part.strip()
            added = [c for c in part if c not in source]
            assert set(added) <= {"，", " "}
