"""The problem catalogue: every code that the product can give has words in both languages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from turngate.domain.problems import PROBLEMS, TYPE_PREFIX, problem_document

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted([*(ROOT / "layers" / "turngate").rglob("*.py"), *(ROOT / "functions").rglob("*.py")])
CODE_TAKERS = {"RefusedError", "Refuse", "problem_document", "_problem"}


def codes_in_the_code() -> set[str]:
    """First arguments of everything that takes a code, and `problem=` of endings."""
    found = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            given = node.args[:1] if name in CODE_TAKERS else []
            given += [keyword.value for keyword in node.keywords if keyword.arg == "problem"]
            found |= {
                each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)
            }
    return found


def test_every_code_that_is_raised_is_in_the_catalogue() -> None:
    raised = codes_in_the_code()
    assert len(raised) > 15, "the search finds what it should"
    assert raised - set(PROBLEMS) == set()


@pytest.mark.parametrize("code", PROBLEMS)
def test_a_problem_has_a_status_and_words_in_both_languages(code: str) -> None:
    problem = PROBLEMS[code]
    assert 400 <= problem.status < 600
    assert re.search(r"[\u4e00-\u9fff]", problem.zh)
    assert not re.search(r"[\u4e00-\u9fff]", problem.en)
    assert re.fullmatch(r"[a-z][a-z0-9_]*", code)


@pytest.mark.parametrize("code", ["rate_limited", "busy", "internal"])
def test_what_may_succeed_later_says_so(code: str) -> None:
    assert problem_document(code, "en", retry_after_ms=1500)["retry_after_ms"] == 1500
    assert problem_document(code, "en")["retryable"] is True


def test_a_document_speaks_the_language_and_has_no_empty_fields() -> None:
    assert problem_document("text_empty", "zh-CN") == {
        "type": f"{TYPE_PREFIX}text_empty",
        "title": "请输入内容。",
        "status": 422,
        "code": "text_empty",
        "retryable": False,
    }
    assert problem_document("text_empty", "en", detail="why")["detail"] == "why"


def test_a_code_nobody_knows_is_our_own_fault_and_tells_nothing_of_itself() -> None:
    document = problem_document("KeyError: 'secret'", "en")
    assert document["code"] == "internal"
    assert "secret" not in str(document)
