"""Cuts what a customer wrote into clauses that may be questions of their own.

Only form is used here: punctuation, joining words, and the words with which people ask. *Firm* cuts stand.
*Possible* cuts (a comma between two questions, a bare "and") are offered to the caller, who accepts them when both
sides mean different things. Nothing here knows a topic.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MAX_CLAUSES = 6

# a full stop ends a sentence only before a space: "1.5" and "v2.0" stay whole
_SENTENCE = re.compile(
    r"[^?？;；。!！\n.]*(?:\.(?!\s|$)[^?？;；。!！\n.]*)*(?:[?？;；。!！\n]+|\.+(?=\s|$)|$)\s*"
)
_JOIN_ZH = "还有|另外|此外|顺便|以及|并且|同时|然后|对了"
_JOIN_EN = "and also|and then|also|another thing|by the way|in addition|besides|plus"
_ASK_EN = (
    "what|how|when|where|which|who|why|can|could|do|does|did|is|are|will|would|should|may|am i"
    "|tell|show|check|cancel|please|i want|i need|i'd like|i would like"
)
# a joining word after a comma, or "and" right before a question word: cut whatever the sides mean
_FIRM_JOIN = re.compile(
    rf"[，,、]\s*(?=(?:再(?=[告帮查看问给说请])|{_JOIN_ZH}|还(?=[想要]))|(?:{_JOIN_EN}|and (?:{_ASK_EN}))\b)"
    rf"|\s+(?=(?:and also|by the way|another thing|and (?:{_ASK_EN}))\b)",
    re.IGNORECASE,
)
_POSSIBLE_JOIN = re.compile(
    rf"[，,]\s*|(?={_JOIN_ZH}|再[告帮查问])|\s+(?=(?:and|also|plus)\b)", re.IGNORECASE
)
_LEADING_JOIN = re.compile(
    rf"(?:(?:{_JOIN_ZH})(?:问一?下|说一?下)?|再(?=[告帮查看问给说请])"
    rf"|(?:oh )?\b(?:{_JOIN_EN}|and|then)\b)[，,、:：\s]*",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"(?:(?:你好|您好|哈喽|嗨|早上好|下午好|晚上好|在吗|谢谢(?:你|您|啦|了)?|多谢|感谢|辛苦了)"
    r"|(?:hello|hi|hey|good (?:morning|afternoon|evening)|thanks(?: a lot| so much)?|thank you(?: very much)?)"
    r"(?: there| team)?\b(?! for))[呀啊哦~，,。.!！、\s]*",
    re.IGNORECASE,
)
_ASKS_ZH = re.compile(
    r"[吗呢么?？]|怎么|怎样|如何|多久|多少|多大|多长|几|什么|啥|哪|谁|是否|能不能|能否|可不可以|有没有|是不是"
    r"|要不要|为何|帮|告诉|查|请|我想|我要|想要|想问|想知道|需要|给我"
    r"|^(?:讲|写|说|推荐|介绍|翻译|算|解释|看|取消|修改|改|退|换|开|办|预约|联系|转)"
)
_ASKS_EN = re.compile(
    r"\?|\b(?:what|how|when|where|which|who|why|i want|i need|i'd like|i would like|please|tell me|let me know)\b"
    r"|^(?:can|could|do|does|did|is|are|am|will|would|should|may|has|have|tell|show|check|cancel|give|send|help"
    r"|explain|find|track|book|write|translate|recommend|return|refund|exchange|change)\b",
    re.IGNORECASE,
)
_HAN = re.compile(r"[\u3400-\u9fff]")
# two Han characters, two short words or one longer word are something to talk about
_CONTENT = re.compile(
    r"[A-Za-z]{3}|(?:[\u3400-\u9fff]|\b[A-Za-z0-9]+\b)(?:.*?)(?:[\u3400-\u9fff]|\b[A-Za-z0-9])", re.DOTALL
)
# nobody asks two questions in one sentence of this many characters; it also keeps hostile input cheap
_LONGEST_CUT = 600


def tidy(text: str) -> str:
    """The text without control characters, runs of blanks as one blank; line ends stay."""
    printable = "".join(c if c == "\n" or c.isprintable() else " " for c in text.replace("\r", "\n"))
    return re.sub(r"[^\S\n]+", " ", printable).strip()


def has_content(text: str) -> bool:
    """Whether more than a syllable is left of the text once greetings and thanks are taken away."""
    return bool(_CONTENT.search(_COURTESY.sub("", text)))


def asks(text: str) -> bool:
    """Whether the text on its own looks like a question or a request."""
    bare = _LEADING_JOIN.sub("", _COURTESY.sub("", text.strip()), count=1).strip()
    return bool(_ASKS_ZH.search(bare) if _HAN.search(bare) else _ASKS_EN.search(bare))


def trim(text: str) -> str:
    """A clause without the greeting around it, the joining word before it and the comma after it."""
    bare = text.strip()
    while (start := _COURTESY.match(bare)) and has_content(bare[start.end() :]):
        bare = bare[start.end() :]
    tails = [found for found in _COURTESY.finditer(bare) if found.end() == len(bare) and found.start() > 0]
    if tails and has_content(bare[: tails[0].start()]):
        bare = bare[: tails[0].start()]
    start = _LEADING_JOIN.match(bare)
    if start and has_content(bare[start.end() :]):
        bare = bare[start.end() :]
    return bare.strip().rstrip("，,、;；").strip()


def firm_clauses(messages: Sequence[str]) -> list[str]:
    """Cut at sentence ends, message borders and clear joining words.

    A clause that asks nothing is context: it joins the clause after it, or the last one when none follows. Only a
    semicolon makes two items of phrases that do not ask.
    """
    raw: list[str] = []
    for message in messages:
        for sentence in _SENTENCE.findall(message):
            if sentence.strip():
                raw += _cut_at_joins(sentence)
        if raw and not raw[-1].endswith("\n"):
            raw[-1] += "\n"
    clauses: list[str] = []
    waiting = ""
    for piece in raw:
        waiting = _glue(waiting, piece)
        closed_by_semicolon = piece.rstrip().endswith((";", "；")) and has_content(waiting)
        if asks(piece) or closed_by_semicolon:
            clauses.append(waiting)
            waiting = ""
    if has_content(waiting) and clauses and not clauses[-1].rstrip().endswith((";", "；")):
        clauses[-1] = _glue(clauses[-1], waiting)
    elif waiting.strip() and (has_content(waiting) or not clauses):
        clauses.append(waiting)
    trimmed = [trim(clause.replace("\n", " ")) for clause in clauses]
    return _at_most([clause for clause in trimmed if clause])


def _cut_at_joins(sentence: str) -> list[str]:
    pieces: list[str] = []
    start = 0
    for join in _FIRM_JOIN.finditer(sentence) if len(sentence) <= _LONGEST_CUT else ():
        left, right = sentence[start : join.start()], sentence[join.end() :]
        if asks(left) and has_content(left) and has_content(right):
            pieces.append(left)
            start = join.end()
    return [*pieces, sentence[start:]]


def possible_clauses(clause: str) -> list[str]:
    """Where a clause might be cut further: at commas and bare joining words with a question on both sides."""
    parts: list[str] = []
    start = 0
    for join in _POSSIBLE_JOIN.finditer(clause) if len(clause) <= _LONGEST_CUT else ():
        left, right = clause[start : join.start()], clause[join.end() :]
        if asks(left) and has_content(left) and has_content(right):
            parts.append(left.strip())
            start = join.end()
    return _at_most([*parts, clause[start:].strip()])


def merge_likes(parts: Sequence[str], are_different: Callable[[str, str], bool]) -> list[str]:
    """Accept the possible cuts whose two sides the caller calls different; join the others again."""
    merged = list(parts[:1])
    for part in parts[1:]:
        if are_different(merged[-1], part):
            merged.append(part)
        else:
            merged[-1] = _glue(merged[-1], part)
    return [trim(part) for part in merged]


def _glue(left: str, right: str) -> str:
    left = left.rstrip("\n ") if left.strip() else ""
    if not left:
        return right
    ends_open = left[-1] not in "，,。.！!？?；;、"
    joint = ("，" if ends_open else "") if _HAN.match(left[-1:]) or _HAN.match(right[:1]) else " "
    return f"{left}{joint}{right}"


def _at_most(clauses: Iterable[str]) -> list[str]:
    found = list(clauses)
    if len(found) <= MAX_CLAUSES:
        return found
    rest = found[MAX_CLAUSES - 1]
    for clause in found[MAX_CLAUSES:]:
        rest = _glue(rest, clause)
    return [*found[: MAX_CLAUSES - 1], rest]
