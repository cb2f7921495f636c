"""How documents are limited, cut and spelled."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.domain import wire
from turngate.domain.knowledge import (
    MAX_DOCUMENT_BYTES,
    MAX_PIECE,
    Document,
    check_scope,
    cut,
    decode_document,
    digest_of,
    publishable,
)
from turngate.domain.search_words import MAX_QUERY_WORDS, query_words, words
from turngate.errors import BrokenInvariantError, MalformedError, RefusedError


def document(text: str, document_id: str = "d", **fields) -> Document:
    return wire.read({"document_id": document_id, "title": "T", "text": text, **fields}, Document)


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


# Limits


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "document_empty"),
        (b" \n\t", "document_empty"),
        (b"\xef\xbb\xbf", "document_empty"),
        (b"caf\xe9", "document_not_utf8"),
        (b"\xff\xfea\x00", "document_not_utf8"),
        (b"x" * (MAX_DOCUMENT_BYTES + 1), "document_too_large"),
    ],
)
def test_a_file_outside_the_limits_is_refused_by_code(raw, code):
    with pytest.raises(RefusedError) as caught:
        decode_document(raw)
    assert caught.value.code == code


def test_a_file_at_the_limits_is_read():
    assert decode_document(b"\xef\xbb\xbf" + "退货".encode()) == "退货"
    assert len(decode_document(b"x" * MAX_DOCUMENT_BYTES)) == MAX_DOCUMENT_BYTES


@pytest.mark.parametrize(
    ("documents", "code"),
    [
        ([document(" ")], "document_empty"),
        ([document("half \ud83d")], "document_not_utf8"),
        ([document("好" * (MAX_DOCUMENT_BYTES // 3 + 1))], "document_too_large"),
        ([document("a", "same"), document("b", "same")], "document_duplicate"),
    ],
)
def test_a_document_that_cannot_be_published_is_named(documents, code):
    with pytest.raises(RefusedError) as caught:
        publishable(documents)
    assert caught.value.code == code
    assert documents[-1].document_id in caught.value.detail


@pytest.mark.covers("F-146", "F-147")
def test_a_document_keeps_its_owner_its_scope_and_three_times_apart():
    full = wire.read(
        {
            "document_id": "退货.md",
            "title": "退货",
            "text": "七天。",
            "topic": "returns",
            "language": "zh-CN",
            "country": "CN",
            "channel": "web",
            "customer_scope": "retail",
            "version": "2026-03",
            "enabled": False,
            "source": "https://example.org/r",
            "business_owner": "care",
            "file_date": "2026-01-02",
            "effective_from": "2026-02-01",
            "imported_at": 1_772_000_000_000,
            "confirmed_at": 1_772_000_000_001,
        },
        Document,
    )
    assert str(full.file_date) < str(full.effective_from)
    assert full.imported_at != full.confirmed_at
    assert publishable([full, document("x")]) == (document("x"),), "a draft never reaches an index (F-150)"


@pytest.mark.parametrize("name", ["a/b", "a#b", "", "a b", "a\nb", "a\n", "a\ud800", "x" * 201])
def test_a_document_id_cannot_break_a_reference(name):
    with pytest.raises(MalformedError):
        document("x", name)


def test_the_digest_follows_content_and_model_and_not_the_order_given():
    one, two = document("a", "1"), document("b", "2")
    digest = digest_of(publishable([one, two]), "m")
    assert digest == digest_of(publishable([two, one]), "m")
    assert digest != digest_of(publishable([one, two]), "other")
    assert digest != digest_of(publishable([one, document("c", "2")]), "m")
    assert digest != digest_of(publishable([one]), "m")


@pytest.mark.invariant("I6")
@pytest.mark.parametrize(
    "scope", [("../a", "c", 1), ("a", "c/d", 1), ("a", "..", 1), ("", "c", 1), ("a#", "c", 1), ("a", "c", -1)]
)
def test_a_scope_that_could_name_something_else_is_refused(scope):
    with pytest.raises(BrokenInvariantError):
        check_scope(*scope)
    check_scope("tenant-1", "public.returns", 0)


# Cutting

lines = st.one_of(
    st.text(alphabet="ab 好的。.,\n", max_size=60),
    st.sampled_from(
        ["# One\n", "## Two\n", "\n\n", "```\n", "- item\n", "word " * 300, "句子很长，" * 400, "x" * 3000]
    ),
)


@pytest.mark.covers("F-149")
@given(st.lists(lines, max_size=25).map("".join))
def test_pieces_are_bounded_and_together_hold_the_whole_document(text):
    pieces = cut(document(text))
    assert [piece.number for piece in pieces] == list(range(len(pieces)))
    assert all(0 < len(piece.text.strip()) <= len(piece.text) <= MAX_PIECE for piece in pieces)
    assert squeezed("".join(piece.text for piece in pieces)) == squeezed(text)
    clauses = [piece.clause for piece in pieces]
    assert clauses == sorted(clauses)


@pytest.mark.covers("F-149")
def test_a_clause_that_fits_is_never_cut_and_neighbours_stay_together_while_they_fit():
    clause = "A fee of 5 EUR applies.\n\nExcept when the parcel is late.\n" + "x" * 400
    text = "".join(f"## Clause {n}\n\n{clause}\n" for n in range(5))
    pieces = cut(document(text))
    assert [piece.text.count("## Clause") for piece in pieces] == [2, 2, 1]
    assert all(piece.text.count("fee of 5") == piece.text.count("Except") for piece in pieces)


@pytest.mark.covers("F-149")
def test_a_long_clause_is_cut_between_paragraphs_and_keeps_its_headings():
    paragraphs = [f"Paragraph {n} begins. " + "It goes on. " * 40 for n in range(6)]
    pieces = cut(document("# Returns\n\n## Shoes\n\n" + "\n\n".join(paragraphs)))
    assert len(pieces) > 1
    assert {piece.clause for piece in pieces} == {pieces[0].clause}
    assert all(piece.text.startswith(("Paragraph", "# Returns")) for piece in pieces)
    assert pieces[0].heading == ""
    assert {piece.heading for piece in pieces[1:]} == {"Returns > Shoes"}
    assert pieces[1].quoted.startswith("Returns > Shoes\nParagraph")


def test_a_paragraph_too_long_is_cut_between_sentences():
    pieces = cut(document("退货须在七天内提出。" * 300))
    assert len(pieces) == 3
    assert all(piece.text.endswith("。") for piece in pieces)


def test_a_heading_is_never_alone_and_a_number_sign_in_code_is_no_heading():
    pieces = cut(document("# Top\n## Sub\n\n" + "word " * 500))
    assert all(len(piece.text) > 100 for piece in pieces)
    fenced = cut(document("## Real\n```\n# not a heading\n```\n" + ("y " * 300 + "\n\n") * 3))
    assert {piece.heading for piece in fenced} == {"", "Real"}


# Words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("退货需要几天", ["退货", "货需", "需要", "要几", "几天"]),
        ("我 or 你们", ["我", "or", "你们"]),
        ("Café REFUNDS Straße", ["cafe", "refunds", "strasse"]),
        ("S55ES0000134", ["s55es0000134"]),
        ("仓库FRA-01的", ["仓库", "fra-01", "fra", "01", "的"]),
        ("well-known 3.5%", ["well", "known", "3.5", "3", "5"]),
        ("ＡＢＣ１２３", ["abc123"]),
        ("ガス 한국어", ["ガス", "한국", "국어"]),
        ("\U0001f600 \"'`NEAR(", ["near"]),
        ("", []),
    ],
)
def test_words_of_a_text(text, expected):
    assert words(text) == expected


@given(st.text(max_size=200))
def test_no_word_can_leave_its_quotes(text):
    assert all(re.fullmatch(r"[^\s\"'()*:^]+", word) for word in words(text))
    assert set(query_words(text)) <= set(words(text))
    assert bool(query_words(text)) == bool(words(text))


def test_a_question_is_reduced_to_its_different_words_of_substance():
    assert query_words("How do I return a return? 我要退货") == ["return", "我要", "要退", "退货"]
    assert query_words("保修期是多久?怎么算") == ["保修", "修期", "期是", "是多", "么算"]
    assert query_words("怎么?") == ["怎么"]
    assert query_words("Who am I?") == ["who", "am", "i"], "a question of nothing else keeps them"
    many = query_words(" ".join(f"word{n} word{n}" for n in range(1000)))
    assert many == [f"word{n}" for n in range(MAX_QUERY_WORDS)]
