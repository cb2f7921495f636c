"""Whether a phrasing is borne out by the evidence it cites.

Code cannot tell whether a sentence follows from a document, but it can tell that something certainly does not: a number
that stands nowhere, a code nobody mentioned, an action nobody carried out (F-457). Numbers are compared as sets; that
each still stands by its own condition (F-453) is what Facts are for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from turngate.domain.figures import codes_in, numbers_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turngate.domain.shapes import Evidence

_TAG = r"</?[a-zA-Z!][^<>]*>"
_CITED = r"\s*[\[(（【]?(?<![A-Za-z0-9])p\d+\.E\d+(?![0-9])[\])）】]?"
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f]"
_LIST_MARK = r"(?m)^\s*\d{1,2}[.)、．]\s*(?!\d)"
_DEED = "order|plac|cancel|chang|updat|refund|submit|creat|book|contact|transfer|escalat|ship|sent|process|urg|register"
_CLAIM = (
    r"(?i)已经?(?:成功)?(?:为|帮|给|替)(?:您|你)|(?:我|我们)已经?(?:成功)?(?:下单|取消|修改|退款|提交|催|联系|转接|登记)"
    rf"|\b(?:i|we)(?:['’]ve| have)\s+(?:\w+\s)?(?:{_DEED})"
)


def objection(question: str, text: str, used: tuple[Evidence, ...], reply: Mapping[str, Any] | None) -> str:
    """Why this phrasing may not be said; empty when it may. `used` are the pieces it cites that really were retrieved.

    `no_reply` the model left the part out · `declined` it found no answer · `unusable` neither of its two outcomes, or
    no text · `no_known_ref` · `number_not_in_evidence` a number or code that neither the cited pieces nor the question
    state · `action_claimed`."""
    if reply is None:
        return "no_reply"
    if reply.get("outcome") == "decline":
        return "declined"
    if reply.get("outcome") != "answer":
        return "unusable"
    if not used:
        return "no_known_ref"
    if not text:
        return "unusable"
    grounds = "\n".join((question, *(f"{piece.title}\n{piece.text}" for piece in used)))
    stated = re.sub(_LIST_MARK, "", text)
    if not numbers_in(stated) <= numbers_in(grounds) or not codes_in(stated) <= codes_in(grounds):
        return "number_not_in_evidence"
    if any(claim.group(0) not in grounds for claim in re.finditer(_CLAIM, text)):
        return "action_claimed"
    return ""


def plain_text(text: object) -> str:
    """Text without tags, control characters and the refs a model likes to leave in; empty for anything but text."""
    if not isinstance(text, str):
        return ""
    return re.sub(_CONTROL, "", re.sub(_CITED, "", re.sub(_TAG, "", text))).strip()
