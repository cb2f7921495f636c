"""Open questions in the prompt: the demo model chooses one offer that stands out, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.demo_model.serving import understanding_document

if TYPE_CHECKING:
    from collections.abc import Callable

WATCHES = {
    "resume_token": "w1",
    "asked": "两块手表都符合，请选择",
    "question": "还在保吗",
    "options": [
        {"option_id": "W-S3", "name": "Turngate Watch S3"},
        {"option_id": "W-LITE", "name": "Turngate Watch Lite"},
    ],
    "missing_fields": [],
}
CITY = {
    "resume_token": "w2",
    "asked": "送到哪个城市？",
    "question": "运费",
    "options": [],
    "missing_fields": ["city"],
}


def asked(text: str, *waiting: dict[str, Any]) -> dict[str, Any]:
    return understanding_document(text, **({"waiting": list(waiting)} if waiting else {}))


@pytest.mark.parametrize(
    ("text", "option"),
    [("Turngate wach S3", "W-S3"), ("turngate watch  lite", "W-LITE"), ("退款多久到账？", ""), ("上海", "")],
)
def test_only_an_offer_that_stands_out_is_chosen(
    ask: Callable[..., dict[str, Any]], text: str, option: str
) -> None:
    answer = ask("understanding", asked(text, WATCHES, CITY))
    assert answer["reply"] == {"resume_token": "w1" if option else "none", "option_id": option, "value": ""}
    assert bool(answer["sub_questions"]) is not bool(option)


def test_without_an_open_question_there_is_no_reply(ask: Callable[..., dict[str, Any]]) -> None:
    assert "reply" not in ask("understanding", asked("Turngate Watch S3"))
