"""Numbers, codes, names, negations and directions that a text states: what a paraphrase may neither lose nor invent.

They are compared as sets. Equal sets are no proof that each number still stands by its own condition (F-453); a
missing or an extra one is proof of drift, and that is all this module claims.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

from turngate.domain.search_words import FUNCTION_WORDS

# patterns are strings: `re` compiles and keeps each when it is first used, and not in every cold start.
# They cost linear time: what repeats is possessive, and starts only where a run of its characters starts
_JOINED = r"(?<![a-z0-9])[a-z0-9]++(?:[_-][a-z0-9]++)*+"
_QUANTITY = r"\d+(?:\.\d+)?(?:st|nd|rd|th|h|d|g|kg|km|cm|mm|m|w|v|x|s|min|mah|gb|mb|tb|am|pm)?"
_NUMBER = r"\d++(?:,\d{3})*+(?:\.\d++)?"
_MEASURE = "个?工作日|个?自然日|个?小时|个?月|分钟|秒|[天日年周期岁号点次件个元块倍折米斤克]|公斤"
# 一个, 一次 and 一点 are articles more often than counts
_HAN_ARTICLE = "一(?:个(?!月|小时|工作日|自然日)|[次件点])"
_HAN_NUMERAL = "[〇零一二两三四五六七八九十百千万]"
# a numeral of more than 24 characters is none: its value would have thousands of digits
_HAN_NUMBER = rf"(?<!{_HAN_NUMERAL})(?!{_HAN_ARTICLE})({_HAN_NUMERAL}{{1,24}}+)(?=\s*+(?:{_MEASURE}))"
_HAN_DIGITS = {"〇": 0, "零": 0, "两": 2, **{c: n for n, c in enumerate("一二三四五六七八九", start=1)}}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000}
_UP_TO_NINETEEN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
)
_WORDS = _UP_TO_NINETEEN.split()
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = {
    **{word: n for n, word in enumerate(_WORDS) if word != "one"},  # "one" is mostly a pronoun
    **{word: n * 10 for n, word in enumerate(_TENS, start=2)},
}
_WORD = rf"\b(?:({'|'.join(_TENS)})(?:[- ]({'|'.join(_WORDS[1:10])}))?|({'|'.join(_VALUES)}))\b"
_HAN_NOT = r"[不没未无]|(?<![特级区性分类个])别(?!的|人)"
_HAN_NOT_MEANT = r"(.)[不没]\1|有没有|不好意思|不过|差不多|不知道|没关系|没事"
# with the apostrophe or without it, as it is typed
_NOT_JOINED = "(?:do|does|did|is|are|was|were|has|have|had|ca|wo|could|would|should|must|need|ai)n[’']?t"
_LATIN_NOT = (
    rf"(?<![a-z])(?:not|no|never|without|cannot|unable|none|nothing|neither|{_NOT_JOINED})(?![a-z])"
    r"|n[’']t(?![a-z])"
)

_QUOTED = r"[“\"「『《]([^”\"」』》]{2,40}+)[”\"」』》]"
_HAN_CHARACTER = "[\u3400-\u9fff]"
_UNDERSCORED = r"(?<![A-Za-z0-9])[A-Za-z0-9]++(?:_[A-Za-z0-9]++)++"
_LATIN = r"(?<![A-Za-z0-9'’])([A-Za-z][A-Za-z0-9]*+(?:[-_][A-Za-z0-9]++)*+)((?:['’][A-Za-z]++)?+)"
_PART = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]++|[A-Z]|\d++"
_GREETED = "hi hey hello ok okay yes yeah please pls plz thank thanks thx ty sorry lol haha hmm oh um uh btw well let"
_NO_NAMES = FUNCTION_WORDS | frozenset(_GREETED.split())
_TELLS_ALONE = 4
"""Characters from which a name is known inside a longer word: "iphone" in "iphone15promax", but not "pro" in
"product"."""
_MOST_RUN_TOGETHER = 32
_DIRECTIONS = (
    ("寄出|寄给|发出|发给|发货", "收到|收货|签收"),
    ("打开|开启|开通|启用", "关闭|关掉|停用"),
    ("增加|加上|多加", "减少|减去|少"),
    ("升级", "降级"),
    ("换货", "退货"),
    ("买入|购买", "卖出|出售"),
    ("之前|以前", "之后|以后"),
    (r"\b(?:turn(?:ing)? on|enable|activate)\b", r"\b(?:turn(?:ing)? off|disable|deactivate)\b"),
    (r"\b(?:send|sent)\b", r"\b(?:receive|received)\b"),
    (r"\b(?:increase|add|more)\b", r"\b(?:decrease|remove|less)\b"),
    (r"\bbefore\b", r"\bafter\b"),
    (r"\bbuy\b", r"\bsell\b"),
    (r"\bupgrade\b", r"\bdowngrade\b"),
)


def numbers_in(text: str) -> frozenset[str]:
    """The values of the numbers a text states, written as plain decimals: `1,000.0` and `一千元` both give `1000`.
    Chinese numerals count where a measure word follows, English number words from two upward."""
    folded = _folded(text)
    found = {_plain(match.replace(",", "")) for match in re.findall(_NUMBER, folded)}
    found |= {str(_han_value(match)) for match in re.findall(_HAN_NUMBER, folded)}
    found |= {str(_word_value(*match)) for match in re.findall(_WORD, folded)}
    return frozenset(found)


def codes_in(text: str) -> frozenset[str]:
    """Order numbers, models, serial numbers: words of letters and digits, case folded (`sn-20931`, `x5`). A quantity
    with its unit (`30kg`) is a number, not a code."""
    return frozenset(filter(_is_code, re.findall(_JOINED, _folded(text))))


def _is_code(joined: str) -> bool:
    if joined.isdigit() or joined.isalpha():
        return False
    mixed = re.search(r"\d", joined) and re.search("[a-z]", joined)
    return bool(mixed) and not re.fullmatch(_QUANTITY, joined)


def negates(text: str) -> bool:
    """Whether the text negates something, in Chinese or English. A-not-A questions (能不能) do not."""
    folded = _folded(text)
    return bool(re.search(_HAN_NOT, re.sub(_HAN_NOT_MEANT, " ", folded)) or re.search(_LATIN_NOT, folded))


def names_in(text: str) -> frozenset[str]:
    """Names a text spells out, case folded and without spaces or hyphens: what it quotes, identifiers such as
    `dine_in`, and Latin words inside Chinese, which are models and products, unless they carry grammar or courtesy
    (`and`, `please`). Word by word: a paraphrase may say others between them. Plain English words are no names."""
    plain = unicodedata.normalize("NFKC", text)
    found = {*re.findall(_QUOTED, plain), *re.findall(_UNDERSCORED, plain)}
    if re.search(_HAN_CHARACTER, plain):
        found |= {word for word, tail in re.findall(_LATIN, plain) if _may_name(word.casefold(), tail)}
    return frozenset(_squeezed(name) for name in found)


def _may_name(word: str, tail: str) -> bool:
    return len(word) > 1 and word not in _NO_NAMES and not re.fullmatch(_NOT_JOINED, word + tail.casefold())


def names_kept(original: str, wording: str) -> bool:
    """Whether the wording still spells out every name of the original, run together or apart. A wording that runs more
    than 32 of them together is none."""
    gone = names_in(original) - words_in(wording)
    said = _squeezed(unicodedata.normalize("NFKC", wording)) if gone else ""
    return len(gone) <= _MOST_RUN_TOGETHER and all(
        (len(name) >= _TELLS_ALONE or not name.isascii()) and name in said for name in gone
    )


def words_in(text: str) -> frozenset[str]:
    """All Latin words and numbers of a text, case folded: as written, without their hyphens, and in their parts
    (`iPhone15` gives `iphone15`, `i`, `phone` and `15`)."""
    plain = unicodedata.normalize("NFKC", text)
    parts = {part.casefold() for part in re.findall(_PART, plain)}
    return frozenset(parts | {_squeezed(word) for word in re.findall(_JOINED, plain.casefold())})


def turns_around(original: str, wording: str) -> bool:
    """Whether the wording says the opposite direction of the original: on for off, sent for received."""
    was, now = _folded(original), _folded(wording)
    return any(
        re.search(one, was)
        and not re.search(other, was)
        and re.search(other, now)
        and not re.search(one, now)
        for pair in _DIRECTIONS
        for one, other in (pair, pair[::-1])
    )


def _squeezed(text: str) -> str:
    return "".join(text.casefold().split()).replace("-", "").replace("_", "")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _plain(number: str) -> str:
    if number.isascii() and number.isdigit():
        return number.lstrip("0") or "0"
    value = Decimal(number)
    return str(value.to_integral_value()) if value == value.to_integral_value() else str(value.normalize())


def _han_value(numeral: str) -> int:
    total = section = digit = 0
    for character in numeral:
        if character in _HAN_DIGITS:
            digit = _HAN_DIGITS[character]
        elif character == "万":
            total, section, digit = (total + section + digit or 1) * 10_000, 0, 0
        else:
            section, digit = section + (digit or 1) * _HAN_UNITS[character], 0
    return total + section + digit


def _word_value(tens: str, ones: str, word: str) -> int:
    return _VALUES[word] if word else _VALUES[tens] + (_WORDS.index(ones) if ones else 0)
