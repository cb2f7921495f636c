"""What a short reply to a question of ours says by its form alone: "第二个", "the last one", "都不是", "never mind".

No understanding is needed for these, and a model could only get them wrong (F-036). Everything that is not certain by
its form is OTHER: names, values, and whatever starts something new.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from turngate.domain.texts import normalised

FormKind = Literal["ORDINAL", "LAST", "THIS", "YES", "NO", "NONE", "CANCEL", "OTHER"]

_LONGEST = 32
"""Normalised characters: a longer text is never a reply by its form, which also keeps the patterns cheap."""
_ONES = dict(zip("一二三四五六七八九", range(1, 10), strict=True)) | {"两": 2, "十": 10}
_ENGLISH = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_ENGLISH_COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_BEFORE = (
    "(?:那么|那就|那|就要|就选|就|请帮我|帮我|请|我想要|我要|我选|我想|选择|选|要|是|查|看"
    "|illtake|ill|iwouldlike|idlike|iwant|ichoose|ipick|please|choose|pick|take|select|goingwith|gowith|itsthe|its"
    "|itis|the){0,4}"
)
_COUNTED = "个|台|款|块|条|种|项|份|张|件|只|票|部|位|家|辆"
_UNIT = f"(?:{_COUNTED}|方案|选项|号)?"
_AFTER = f"(?:的?那(?:{_COUNTED})|的|吧|谢谢你|谢谢|就行|就好|就可以|one|please|pls|plz|thanks|thankyou|ithink){{0,3}}"
_NUMBER = r"(\d{1,2}|[一二两三四五六七八九十])"


def _whole(pattern: str) -> str:
    return f"{_BEFORE}(?:{pattern}){_AFTER}"


# patterns stay texts until they are used: `re` compiles and keeps them, and INIT pays for none
_ORDINALS = (
    _whole(f"第{_NUMBER}{_UNIT}"),
    _whole(f"(?:方案|选项|选择|编号|option|number|choice|no){_NUMBER}"),
    f"{_BEFORE}{_NUMBER}(?:号)?(?:吧|谢谢|please|thanks)?",
    _whole(r"(\d{1,2})(?:st|nd|rd|th)"),
)
_ENGLISH_ORDINAL = _whole(f"({'|'.join(_ENGLISH)})")
_ENGLISH_COUNT = _whole(f"(?:option|number|choice)({'|'.join(_ENGLISH_COUNTS)})")
_FORMER = _whole(f"前者|前一{_UNIT}|前面的?那?{_UNIT}|former")
_LAST = _whole(f"最后一?{_UNIT}|倒数第一{_UNIT}|后者|后一{_UNIT}|后面的?那?{_UNIT}|last|latter")
_THIS = _whole("(?:这|那)(?:一)?(?:个|台|款|块|条|种|项|份|张|件|只|部)|它|this|that|itthen|it")
_YES = "(?:对|对的|是|是的|嗯|嗯嗯|好|好的|可以|行|没错|确认|yes|yeah|yep|ok|okay|sure|right|correct|confirm)"
_NO = "(?:不|不是|不对|不行|错了|no|nope|notthis|notthisone|wrong)"
_NONE = (
    "(?:都|全|两个都|一个都|这些都|哪个都)(?:不是|不对|不要|没有)(?:我要的|我想要的|我的)?"
    "|没有我要的|没有我想要的|以上都不是|noneofthese|noneofthem|noneoftheabove|none|neither|neitherofthem"
    "|neitherofthese|notanyofthese|notanyofthem"
)
_CANCEL = (
    "那?(?:(?:算了|不用了|不用|不必了|不需要了|不问了|不查了|不要了|取消|先不了|没事了|没事儿了)(?:谢谢你|谢谢|吧)?){1,3}"
    "|(?:oh)?(?:(?:nevermind|forgetit|forgetaboutit|nothanks|nothankyou|cancelthat|dontbother|leaveit|cancel)"
    "(?:thanks|thankyou)?){1,3}"
)
_FILLERS_HAN = (
    "(?:我想|我要|我|想|要|请|麻烦|帮我|帮忙|帮|给我|你们|您|你|能不能|能|可以|可不可以|问|查|看|弄|办|处理|一下|下|就是|那个|这个"
    "|事情|个事|个问题|嗯|呃|额|那|吗){1,12}"
)
_FILLERS_LATIN = (
    r"(?:i|i'd|want|wanted|would|like|to|ask|can|could|you|please|help|me|with|it|this|that|something|someone|just|check"
    r"|look|at|into|so|um|uh|er|well|a|question|have|about|for|hey|ok)"
)
_FOLLOW_ON = r"[，,。；;！!\n]|\.(?=\s)"
_POINTS = "(?:那|那么|还有|and)?(?:(?:这|那)(?:一)?(?:个|些|台|款|块)|它|thisone|thatone|that|this|it)呢?"


class ReplyForm(NamedTuple):
    """`number` counts from 1 and belongs to ORDINAL."""

    kind: FormKind
    number: int = 0


OTHER = ReplyForm("OTHER")


def read_form(text: str) -> ReplyForm:
    """The form of a whole text; OTHER when it says more than a form."""
    form = normalised(text)
    if not 0 < len(form) <= _LONGEST:
        return OTHER
    plain: tuple[tuple[FormKind, str], ...] = (
        ("CANCEL", _CANCEL),
        ("NONE", _NONE),
        ("LAST", _LAST),
    )
    for kind, pattern in plain:
        if re.fullmatch(pattern, form):
            return ReplyForm(kind)
    number = _ordinal(form)
    if number:
        return ReplyForm("ORDINAL", number)
    last: tuple[tuple[FormKind, str], ...] = (("THIS", _THIS), ("YES", _YES), ("NO", _NO))
    return next((ReplyForm(kind) for kind, pattern in last if re.fullmatch(pattern, form)), OTHER)


def _ordinal(form: str) -> int:
    if re.fullmatch(_FORMER, form):
        return 1
    for words, pattern in ((_ENGLISH, _ENGLISH_ORDINAL), (_ENGLISH_COUNTS, _ENGLISH_COUNT)):
        named = re.fullmatch(pattern, form)
        if named:
            return words.index(named[1]) + 1
    for pattern in _ORDINALS:
        found = re.fullmatch(pattern, form)
        if found:
            return _ONES.get(found[1]) or int(found[1])
    return 0


def points_at_nothing(text: str) -> bool:
    """Whether the text only points ("那个呢", "第二个", "that one?"): nothing can be made of it unless something of
    ours is open."""
    form = normalised(text)
    return bool(re.fullmatch(_POINTS, form)) or read_form(text).kind in ("ORDINAL", "LAST", "THIS")


def says_nothing(text: str) -> bool:
    """Whether the text is made of nothing but courtesy and filler ("我想问一下就是", "could you help me with this"):
    somebody wants something, and has not yet said what."""
    form = normalised(text)
    if re.fullmatch(_FILLERS_HAN, form):
        return True
    words = re.findall(r"[\w']+", text.casefold())
    return len(words) > 1 and all(re.fullmatch(_FILLERS_LATIN, word) for word in words)


def divide(text: str) -> tuple[str, str]:
    """A certain form at the beginning, and what follows it ("第二个，另外退款多久到账"); else the whole text and
    nothing."""
    mark = re.search(_FOLLOW_ON, text)
    if mark is None:
        return text, ""
    first, rest = text[: mark.start()], text[mark.end() :].strip()
    if not normalised(rest) or read_form(first).kind not in ("ORDINAL", "LAST", "NONE", "CANCEL"):
        return text, ""
    return first, rest


def core(text: str) -> str:
    """The normalised text without the words around a choice: what may be compared with a name."""
    form = normalised(text)
    inner = re.fullmatch(f"{_BEFORE}(.*?){_AFTER}", form) if len(form) <= _LONGEST else None
    return inner[1] if inner else form
