"""Consult or act, skill or document, or too close to call: decided before the contract keeps one candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.governance.table import governed
from tests.unit.assistant_example import patient
from turngate.domain.arbitration import Verdict, arbitrate
from turngate.domain.routing import SkillBands
from turngate.domain.shapes import Candidate, TenantContext

if TYPE_CHECKING:
    from turngate.domain.config import GovernanceSlice

TILL = TenantContext(account="cashier", principal="t", client_type="android", capabilities=("ui.show_guide",))
PRESETS = {
    "conservative": SkillBands(),
    "balanced": SkillBands(high=0.78, mid=0.62, gap=0.06, explicit_action="preferred"),
    "action_first": SkillBands(high=0.74, mid=0.58, gap=0.04, explicit_action="optional"),
}
GUIDE, HELP, OPTIONS, CHECK = "ORDERING_GUIDE", "ORDERING_HELP", "PRODUCT_OPTIONS", "PRINTER_CHECK"


def till(preset: str = "conservative", **routing: object) -> GovernanceSlice:
    slice_ = governed("cashier")
    changed = replace(slice_.routing, **{"skills": PRESETS[preset], **routing})
    return replace(slice_, routing=changed)


def decided(text: str, scores: dict[str, float], slice_: GovernanceSlice | None = None) -> Verdict:
    ranked = tuple(Candidate(id=i, score=s) for i, s in sorted(scores.items(), key=lambda item: -item[1]))
    return arbitrate(ranked, text, slice_ or till(), TILL, "zh-CN")


def led(text: str, scores: dict[str, float], slice_: GovernanceSlice | None = None) -> tuple[str, str]:
    verdict = decided(text, scores, slice_)
    assert verdict.rivals == ()
    return (verdict.best.id if verdict.best else ""), verdict.why


@pytest.mark.covers("F-084", "F-103", "F-104")
def test_a_question_that_consults_gets_documents_unless_it_asks_to_act() -> None:
    scores = {CHECK: 0.95, "PRINTER_HELP": 0.6}
    assert led("打印机怎么重新连接", scores) == ("PRINTER_HELP", "knowledge_preferred")
    assert led("检查打印机怎么样了", scores) == (CHECK, "")
    assert led("打印机", scores) == (CHECK, "")
    assert led("打印机怎么重新连接", scores, till(prefer_knowledge=False)) == (CHECK, "")
    assert led("打印机怎么重新连接", {CHECK: 0.95}) == (CHECK, "")


@pytest.mark.covers("F-085", "F-087", "F-095")
@pytest.mark.parametrize(("score", "admitted"), [(0.82, True), (0.64, True), (0.639, False)])
def test_below_its_bands_a_skill_is_no_candidate(score: float, admitted: bool) -> None:
    assert (led("演示如何下单", {GUIDE: score})[0] == GUIDE) is admitted


@pytest.mark.covers("F-086")
def test_in_the_middle_band_one_of_its_words_must_be_said() -> None:
    assert led("演示一遍", {GUIDE: 0.9}) == (GUIDE, "")
    assert led("演示一遍", {GUIDE: 0.7}) == ("", "skill_not_admitted")
    assert led("演示下单", {GUIDE: 0.7}) == (GUIDE, "")
    bands = SkillBands(lexical_in_mid_band=False)
    assert led("演示一遍", {GUIDE: 0.7}, till(skills=bands)) == (GUIDE, "")


@pytest.mark.covers("F-109")
@pytest.mark.parametrize(
    ("preset", "score", "admitted"),
    [
        ("conservative", 0.99, False),
        ("balanced", 0.8, True),
        ("balanced", 0.7, False),
        ("action_first", 0.6, True),
        ("action_first", 0.57, False),
    ],
)
def test_how_much_an_explicit_action_is_asked_for_is_the_presets(
    preset: str, score: float, admitted: bool
) -> None:
    assert (led("下单流程", {GUIDE: score}, till(preset))[0] == GUIDE) is admitted


@pytest.mark.covers("F-105")
def test_a_skill_in_the_middle_band_never_beats_a_reliable_document() -> None:
    assert led("演示下单", {GUIDE: 0.75, HELP: 0.66}) == (HELP, "knowledge_over_mid_skill")
    assert led("演示下单", {GUIDE: 0.75, HELP: 0.6}) == (GUIDE, "")
    assert led("演示下单", {GUIDE: 0.85, HELP: 0.7}) == (GUIDE, "")
    switched_off = till(knowledge_overrides_mid_skill=False)
    assert led("演示下单", {GUIDE: 0.75, HELP: 0.66}, switched_off) == (GUIDE, "")


@pytest.mark.covers("F-102")
def test_two_that_stand_too_close_are_asked_about_before_the_contract_keeps_one() -> None:
    verdict = decided("打印机", {CHECK: 0.9, OPTIONS: 0.87, HELP: 0.6})
    assert (verdict.why, [rival.id for rival in verdict.rivals]) == ("too_close", [OPTIONS])
    assert led("打印机", {CHECK: 0.9, OPTIONS: 0.84}) == (CHECK, "")


def test_documents_of_one_collection_are_never_asked_about() -> None:
    assert led("规格", {OPTIONS: 0.9, HELP: 0.9}) == (OPTIONS, "")


def test_a_document_is_no_rival_of_an_action_that_was_asked_for() -> None:
    assert led("检查打印机", {CHECK: 0.9, "PRINTER_HELP": 0.89}) == (CHECK, "")


def test_nothing_trusted_means_nothing_to_decide() -> None:
    assert decided("随便", {}) == Verdict(best=None)


scores = st.dictionaries(
    st.sampled_from([GUIDE, HELP, OPTIONS, CHECK, "PRINTER_HELP"]), st.floats(0.5, 1.0), min_size=1
)
texts = st.lists(
    st.sampled_from(["演示", "检查", "怎么", "下单", "打印机", "show me", "how to"]), max_size=3
).map("".join)


@pytest.mark.covers("F-087", "F-095", "F-105")
@patient
@given(scores, texts, st.sampled_from(sorted(PRESETS)))
def test_no_mix_of_words_and_scores_starts_a_skill_outside_its_bands(
    candidates: dict[str, float], text: str, preset: str
) -> None:
    slice_ = till(preset)
    verdict, bands = decided(text, candidates, slice_), slice_.routing.skills
    if verdict.best is None:
        assert set(candidates) == {GUIDE}
        return
    assert verdict.best.id in candidates
    assert all(verdict.best.score >= rival.score for rival in verdict.rivals)
    if verdict.best.id == GUIDE:
        acts = any(word in text for word in ("演示", "检查", "show me"))
        assert candidates[GUIDE] >= bands.mid
        assert acts or bands.explicit_action != "required"
        reliable = max((candidates.get(i, 0.0) for i in (HELP, OPTIONS, "PRINTER_HELP")), default=0.0)
        assert candidates[GUIDE] >= bands.high or reliable < bands.mid
