"""Which of the offered options a text names, and which it denies.

A name counts when the text says nothing beside it but the words of choosing ("那块 please"). Everything else is a
sentence, and what a sentence means is not for rules to say.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from turngate.domain.figures import codes_in
from turngate.domain.replies import core, read_form
from turngate.domain.texts import normalised
from turngate.domain.wording import Spelled, made_of, places_of, spelled, topic_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turngate.domain.shapes import Option

_LEAST_NAME = 2
_LEAST_DIGITS = 3
_LONGEST = 64
"""Characters of a text in which a name is looked for by rules."""
_LONGEST_DENIAL = 400
_ASKS = (
    r"(?i)[?？]|[吗呢么]|怎|多久|多少|什么|哪|谁|如何|是否"
    r"|\b(?:what|how|when|where|which|who|why)\b|^\s*(?:can|could|is|are|do|does|did|will)\b"
)
_BESIDE_WORDS = (
    "我想 想 那 那么 这 就 就要 就选 要 我要 想要 我想要 选 我选 选择 是 是的 好 好的 的 吧 了 啊 呀 哦 嗯 请 麻烦"
    " 麻烦您 麻烦你 快点 尽快 帮 帮我 给 给我 我 我的 查 看 一下 下 个 台 款 块 条 种 项 份 张 件 只 票 部 位 家 辆"
    " 笔 单 那个 那块 那笔 那单 谢谢 谢谢你 谢谢您 就行 就好 就可以 可以 行 和 跟 与 及 还有 都 也 单号 订单 订单号"
    " 订单号码 订单编号 编号 号 号码 尾号 末尾 结尾 序列号 运单号 快递单号"
    " i id ill want would like to take choose pick select the one its it is my mine this that please pls plz thanks"
    " thank you ok okay yes go going with for order orders number code sn serial think guess and option choice ending"
    " ends in"
)
_BESIDE = frozenset(_BESIDE_WORDS.split())
"""What may stand beside a name or a value without saying anything more."""
_LONG_NUMBER = r"(?<![A-Za-z0-9_-])\d{6,}(?![A-Za-z0-9_-])"
_DIGITS = r"\d{2,}"
_IN_FRONT = (
    r"(?i)\s*(?:(?:选项|方案|编号|option|number|no\.?)?\s*(\d{1,2})\s*[.、．)）:：\s]"
    r"|(第(?:\d{1,2}|[一二两三四五六七八九十])(?:个|项|条)?))\s*(?=\S)"
)
_TURNS = r"[，,。;；！!、\n]|而是|(?<![不就也还都])是|应该|(?<!anything )\bbut\b|\binstead\b"
_DENIES = (
    r"(?i)(?:不是|并非|不想要|不要|不选|别选|别|不用|除了|\bnot\b|\bisn[’']?t\b|\bdon[’']?t (?:want|mean|need)\b"
    r"|\b(?:anything but|except)\b)\s*(?:(?:the|that|this|a|for|about|option|number)\b|[要选说]|[那这]?个)*\s*"
)
"""What denies the thing that it stands before. "没有网络" and "cannot connect" deny nothing: they say what is wrong."""
_DENIED_BEHIND = r"(?i)\s*(?:不要了?|不对|不行|不是|除外|以外的?|错了|就?算了|\bis wrong|\bno)\W*$"
_ONLY_DENIES = r"(?i)\W*(?:不对|不是|不要了?|不是这个|错了|no|not that(?: one)?|wrong)\W*"
_NEXT = r"\s*(?:[A-Za-z0-9’'.-]+\s*){1,3}|[^A-Za-z]{1,10}"
"""How far a denial reaches: three Latin words, or ten characters."""
_PLACES = (
    r"第(?:\d{1,2}|[一二两三四五六七八九十])(?:个|台|款|块|条|项)?|前者|后者|最后一个"
    r"|\b(?:the )?(?:first|second|third|fourth|last|former|latter)\b|(?:选项|\boption )\s*\d{1,2}|\d{1,2}号"
)


class Pointed(NamedTuple):
    """`options`: what the text names. `surely`: nothing else is said and nothing contradicts; else it was meant as an
    answer, and several remain."""

    options: tuple[Option, ...] = ()
    surely: bool = False


NOTHING = Pointed()


def asks(text: str) -> bool:
    """Whether the text has the form of a question."""
    return bool(re.search(_ASKS, text))


def pointed_at(options: Sequence[Option], text: str, first: int = 1) -> Pointed:
    """What a text without a form of its own names of the options: by a whole name or an id, by a part of a name, by
    the last digits of a code, each alone or behind its place in the list ("1. 退货"). A text that asks, denies or
    says anything else names nothing. `first` is the number printed before the first option."""
    if len(text) > _LONGEST or asks(text):
        return NOTHING
    front = re.match(_IN_FRONT, text)
    if front is None:
        return _named(options, text)
    place = read_form(front[1] or front[2]).number - first + 1
    named = _named(options, text[front.end() :])
    if not named.options or not 0 < place <= len(options):
        return NOTHING if not named.options else Pointed(named.options)
    meant = options[place - 1]
    if meant in named.options and (not named.surely or len(named.options) == 1):
        return Pointed((meant,), surely=True)
    return Pointed((meant, *named.options))


def _named(options: Sequence[Option], text: str) -> Pointed:
    said = spelled(text)
    whole = _whole_names(options, said)
    if whole:
        rest, at = [], 0
        for start, end in sorted(span for spans in whole.values() for span in spans):
            rest.append(said.form[at : max(at, start)])
            at = max(at, end)
        rest.append(said.form[at:])
        alone = all(not piece or made_of(piece, _BESIDE) for piece in rest)
        return Pointed(tuple(o for o in options if o.id in whole), surely=True) if alone else NOTHING
    digits = _ending(text)
    if digits:
        ending = tuple(o for o in options if any(c.endswith(digits) for n in names_of(o) for c in _codes(n)))
        return Pointed(ending, surely=len(ending) == 1)
    inner = spelled(core(text)).form
    if len(inner) < _LEAST_NAME or not topic_words(text):
        return NOTHING
    parts = tuple(o for o in options if any(places_of(inner, spelled(name)) for name in names_of(o)))
    return Pointed(parts, surely=len(parts) == 1)


def _whole_names(options: Sequence[Option], said: Spelled) -> dict[str, list[tuple[int, int]]]:
    """Where each option's names stand. Where one name lies within another's, the longer one is meant."""
    spans = [
        (option.id, at, at + len(form))
        for option in options
        for form in {normalised(name) for name in names_of(option)}
        if len(form) >= _LEAST_NAME
        for at in places_of(form, said)
    ]
    kept: dict[str, list[tuple[int, int]]] = {}
    for identity, start, end in spans:
        if not any(a <= start and end <= b and b - a > end - start for _, a, b in spans):
            kept.setdefault(identity, []).append((start, end))
    return kept


def names_of(option: Option) -> tuple[str, ...]:
    """What an option may be called: its id, its name and its other names."""
    return (option.id, option.name, *option.also)


def _ending(text: str) -> str:
    """The digits of a text that says nothing but digits."""
    plain = unicodedata.normalize("NFKC", text)
    found = re.findall(_DIGITS, plain)
    rest = normalised(re.sub(_DIGITS, "", plain))
    return found[0] if len(found) == 1 and (not rest or made_of(rest, _BESIDE)) else ""


def _codes(text: str) -> frozenset[str]:
    """Codes and the numbers of two digits and more, case folded."""
    return codes_in(text) | frozenset(re.findall(r"(?<![A-Za-z0-9])\d{2,}(?![A-Za-z0-9])", text))


def alone_with(text: str, value: str) -> bool:
    """Whether the text says nothing but the value and words around it."""
    said, form = spelled(text), normalised(value)
    places = places_of(form, said)
    if not places or len(said.form) > _LONGEST:
        return False
    rest = (said.form[: places[0]], said.form[places[0] + len(form) :])
    return all(not piece or made_of(piece, _BESIDE) for piece in rest)


def values_in(text: str) -> frozenset[str]:
    """What may be the value of a number that we asked for: codes and long numbers, case folded."""
    plain = unicodedata.normalize("NFKC", text)
    return codes_in(plain) | frozenset(re.findall(_LONG_NUMBER, plain))


def as_written(text: str, value: str) -> str:
    """The value with the letters the customer used; codes are compared case folded."""
    folded = unicodedata.normalize("NFKC", text)
    place = folded.casefold().find(value.casefold())
    return folded[place : place + len(value)] if place >= 0 else value


def is_numberlike(value: str) -> bool:
    """Whether a code is more likely a number of something than the name of a model: "TG20261107", not "iPhone15"."""
    digits = sum(character.isdigit() for character in value)
    return digits >= _LEAST_DIGITS and digits >= sum(character.isalpha() for character in value)


def denied(options: Sequence[Option], text: str, first: int = 1) -> frozenset[str]:
    """The ids of the options that a text denies and nowhere affirms ("不是第一个，是第二个"): right behind a denial,
    right before one, or before a clause that is nothing else ("第一个，不对")."""
    refused: set[str] = set()
    affirmed: set[str] = set()
    before: frozenset[str] = frozenset()
    for clause in re.split(f"(?i){_TURNS}", text[:_LONGEST_DENIAL]):
        if not normalised(clause):
            continue
        if re.fullmatch(_ONLY_DENIES, clause):
            refused |= before
            affirmed -= before
            before = frozenset()
            continue
        denial = re.search(_DENIES, clause)
        behind = frozenset[str]()
        if denial is not None:
            reach = re.match(_NEXT, clause[denial.end() :])
            behind = _pointed(options, reach[0], first) if reach else behind
        tail = re.search(_DENIED_BEHIND, clause)
        ahead = (
            _mentioned(options, clause[: tail.start()], first) if tail and not behind else frozenset[str]()
        )
        refused |= behind | ahead
        before = mentioned(options, clause, first) - behind - ahead
        affirmed |= before
    return frozenset(refused - affirmed)


def refuses(clause: str) -> bool:
    """Whether a clause that follows an answer denies something: it begins or ends with a denial, or is nothing else.
    "不急" and a name such as "无线耳机" deny nothing."""
    denials = (
        re.fullmatch(_ONLY_DENIES, clause),
        re.match(_DENIES, clause.strip()),
        re.search(_DENIED_BEHIND, clause),
    )
    return any(denials)


def _pointed(options: Sequence[Option], words: str, first: int) -> frozenset[str]:
    """What the words behind a denial mean: a bare place, or what they mention."""
    form = read_form(words)
    if form.kind == "ORDINAL" and 0 < (number := form.number - first + 1) <= len(options):
        return frozenset({options[number - 1].id})
    return _mentioned(options, words, first)


def _mentioned(options: Sequence[Option], clause: str, first: int) -> frozenset[str]:
    """What `mentioned` finds, else the options of which the clause says a word that no other has."""
    sure = mentioned(options, clause, first)
    if sure:
        return sure
    words = {option.id: topic_words(" ".join(names_of(option))) for option in options}
    found: set[str] = set()
    for word in topic_words(clause):
        having = [identity for identity, of in words.items() if word in of]
        found.update(having if len(having) == 1 else ())
    return frozenset(found)


def mentioned(options: Sequence[Option], text: str, first: int = 1) -> frozenset[str]:
    """The ids of the options that a text names by places in the list or by whole names."""
    found: set[str] = set()
    for place in re.findall(f"(?i){_PLACES}", text[:_LONGEST_DENIAL]):
        form = read_form(place)
        number = len(options) if form.kind == "LAST" else form.number - first + 1
        if form.kind in ("LAST", "ORDINAL") and 0 < number <= len(options):
            found.add(options[number - 1].id)
    return frozenset(found | _whole_names(options, spelled(text[:_LONGEST_DENIAL])).keys())


def named(options: Sequence[Option], text: str) -> bool:
    """Whether the text says the whole name or the id of one of the options."""
    return bool(_whole_names(options, spelled(text[:_LONGEST_DENIAL])))


def foreign_code(options: Sequence[Option], option: Option, text: str) -> bool:
    """Whether the text names a code, and none that belongs to this option: the customer means another thing."""
    said = values_in(text)
    own = frozenset().union(*(_codes(unicodedata.normalize("NFKC", n).casefold()) for n in names_of(option)))
    coded = any(_codes(name) for other in options for name in names_of(other))
    return coded and bool(said) and not said & own
