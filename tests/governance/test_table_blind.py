"""The half that somebody wrote without sight of the rules, with a perfect understanding put in: what is wrong here is
wrong in the rules. (With the offline model's own understanding: tools/routing_eval, docs/governance.md.)"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.governance.table import Row, governed, rows, ruled
from turngate.domain.shapes import Candidate, SubQuestion, TurnInput, Understanding

if TYPE_CHECKING:
    from turngate.domain.config import GovernanceSlice
    from turngate.domain.resuming import Resumption

ROWS = rows("utterances_blind")
NEEDS_A_MODEL = {
    "B079": "不是 S3，是另外那块: negation and reference; the rules ask again",
    "B085": "a name with a typing error; the rules ask again",
    "B097": "稍等，我找找: asks for time; only a model can tell that from a new matter",
    "B093": "a sentence around a choice; the right resource is found as a new question",
}
"""Rows that no rule may decide by form. With a model that reads the offer they are its to propose."""


def perfect(row: Row):
    """One sub-question a part, led by an intent of the expected resource; a sure wrong tool where nothing should go
    on, so that only a rule can stop it."""

    def understands(spoken: TurnInput, slice_: GovernanceSlice, resumption: Resumption) -> Understanding:
        subs = []
        for number, (ruling, resource) in enumerate(
            zip(row.ruling.split(" + "), row.resource.split(" + "), strict=True)
        ):
            if number == 0 and resumption.taken:
                continue  # that part was answered before anything had to be understood
            scores = {"OUT_OF_SCOPE": {"ORDER_QUERY": 0.1}, "GLOBAL_KB_FALLBACK": {"ORDER_QUERY": 0.4}}.get(
                ruling
            )
            if scores is None:
                intent = next(
                    (e.intent_id for e in slice_.contract if e.resource_name == resource), "ORDER_QUERY"
                )
                scores = {intent: 0.9}
            text = row.utterance if row.ruling.count("+") == 0 else f"{row.utterance} [{number}]"
            subs.append(
                SubQuestion(text=text, candidates=tuple(Candidate(id=i, score=s) for i, s in scores.items()))
            )
        return Understanding(status="OK", rewritten=spoken.text, sub_questions=tuple(subs))

    return understands


@pytest.mark.covers("F-037", "F-063", "F-092", "F-093", "F-095", "F-123")
@pytest.mark.parametrize("row", [row for row in ROWS if row.id not in NEEDS_A_MODEL], ids=lambda row: row.id)
def test_the_rules_add_no_mistake_to_a_perfect_understanding(row: Row) -> None:
    assert ruled(row, perfect(row))[0] == row.as_compared


@pytest.mark.parametrize("row", [row for row in ROWS if row.id in NEEDS_A_MODEL], ids=lambda row: row.id)
def test_what_needs_a_model_is_never_guessed_by_a_rule(row: Row) -> None:
    (ruling, _, reply), _ = ruled(row, perfect(row))
    assert reply in ("unclear", "new")
    assert ruling in ("NEED_CLARIFICATION", "ROUTED")


def test_the_blind_half_is_of_the_mall_alone() -> None:
    assert {row.tenant for row in ROWS} == {"mall"}
    assert governed("mall").intents
