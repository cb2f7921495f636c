"""The first half of the table with scripted candidates: what governance rules, apart from what a model understands.

The scripts are hostile where a rule must show itself: corrections meet a leading wrong intent, incomplete messages a
certain one, and what asks for an action meets a document close behind."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.governance.table import BEFORE, Row, governed, read_script, rows, ruled
from turngate.domain.preroute import matching_rule
from turngate.domain.shapes import Candidate, Refusal, SubQuestion, TurnInput, Understanding

if TYPE_CHECKING:
    from turngate.domain.config import GovernanceSlice
    from turngate.domain.resuming import Resumption

ROWS = rows()
SCRIPT = dict(read_script("scripted"))


def scripted(row: Row):
    def understands(spoken: TurnInput, _slice: GovernanceSlice, _resumption: Resumption) -> Understanding:
        subs = tuple(
            SubQuestion(text=text, candidates=tuple(Candidate(id=i, score=s) for i, s in scores.items()))
            for text, scores in SCRIPT[row.id]
        )
        return Understanding(status="OK", rewritten=spoken.text, sub_questions=subs)

    return understands


@pytest.mark.covers(
    "F-032", "F-033", "F-034", "F-036", "F-037", "F-041", "F-042", "F-045", "F-046", "F-058", "F-062",
    "F-063", "F-070", "F-072", "F-073", "F-084", "F-090", "F-092", "F-093", "F-096", "F-097", "F-098",
    "F-099", "F-100", "F-103", "F-120", "F-121", "F-122", "F-318", "F-319", "F-320", "F-321", "F-533",
    "F-534", "F-535",
)  # fmt: skip
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_utterance_is_ruled_as_it_was_written_down(row: Row) -> None:
    assert ruled(row, scripted(row))[0] == row.expected


@pytest.mark.covers("F-088", "F-126", "F-536")
def test_the_till_shows_its_guide_to_nobody_but_a_till_that_can() -> None:
    refusals = {}
    for row in ROWS:
        if row.utterance == "演示如何下单":
            ruling = ruled(row, scripted(row))[1]
            assert ruling is not None
            (part,) = ruling.parts
            assert isinstance(part.route, Refusal)
            refusals[row.speaker] = part.route.reason
    assert refusals == {"terminal": "not_connected", "customer": "wrong_client"}


def test_the_table_is_large_and_in_both_languages() -> None:
    everything = [*ROWS, *rows("utterances_blind")]
    assert len(everything) >= 120
    assert len(everything) - len(ROWS) >= 60
    spoken = Counter(row.language for row in everything)
    assert min(spoken["zh-CN"], spoken["en"]) >= 40
    assert len({row.id for row in everything}) == len(everything)
    assert {row.before for row in everything} <= {"-", *BEFORE}


@pytest.mark.covers("F-047")
def test_no_utterance_but_the_certain_ones_meets_a_pre_routing_rule() -> None:
    """Ordinary semantics never end in the rule table."""
    for row in ROWS:
        rule = matching_rule(governed(row.tenant).pre_routing, row.utterance)
        assert (rule is not None) == row.resource.startswith("rule:"), row
