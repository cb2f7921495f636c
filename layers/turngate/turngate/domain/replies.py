"""What a short reply to a question of ours says by its form alone: "第二个", "the last one", "都不是", "never mind".

No understanding is needed for these, and a model could only get them wrong (F-036). Everything that is not certain by
its form is OTHER: names, values, and whatever starts something new. Which option of which question is meant by a form
is for domain/resuming.py to say.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Literal, NamedTuple

from turngate.domain.texts import normalised
from turngate.domain.wording import made_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FormKind = Literal[
    "ORDINAL", "SEVERAL", "ALL", "ANY", "LAST", "THIS", "YES", "NO", "NONE", "CANCEL", "WAIT", "OTHER"
]
"""SEVERAL: "1 and 2". ALL: "both". ANY: somebody who cannot or will not choose. WAIT: asks for a moment."""

_LONGEST = 32
"""Normalised characters: a longer text is never a reply by its form, which also keeps the patterns cheap."""
_LONGEST_RAW = 128
_ONES = dict(zip("一二三四五六七八九", range(1, 10), strict=True)) | {"两": 2, "十": 10}
_ENGLISH = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_ENGLISH_COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_BEFORE = (
    "(?:嗯|好的|好|对|没错|是的|也要|还要|再要|也|还是|那么|那就|那|就要|就选|就|请帮我|帮我|请|我想要|我要|我选|我想|我|选择|选|要|是|查|看"
    "|okay|ok|yes|yeah|also|illtake|ill|iwouldlike|idlike|iwant|ichoose|ipick|please|choose|pick|take|select|goingwith|gowith|itsthe|its"
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
_BARE_COUNT = f"({'|'.join(_ENGLISH_COUNTS[1:])})(?:please|pls|thanks)?"  # "one" is mostly a pronoun
_FORMER = _whole(f"前者|前一{_UNIT}|前面的?那?{_UNIT}|former")
_LAST = _whole(f"最后一?{_UNIT}|倒数第一{_UNIT}|后者|后一{_UNIT}|后面的?那?{_UNIT}|last|latter")
_THIS = _whole("(?:这|那)(?:一)?(?:个|台|款|块|条|种|项|份|张|件|只|部)|它|this|that|itthen|it")
_YES = (
    "(?:(?:对|对的|是|是的|嗯|嗯嗯|好|好的|可以|行|没错|确认|yes|yeah|yep|yup|ok|okay|sure|right|correct|confirm)"
    "(?:吧|please)?){1,3}"
)
_NO = "(?:不|不是|不对|不行|错了|no|nope|nah|notthis|notthisone|wrong)"
_NONE = (
    "(?:都|全|两个都|一个都|这些都|哪个都)(?:不是|不对|不要|没有)(?:我要的|我想要的|我的)?"
    "|没有我要的|没有我想要的|以上都不是|noneofthese|noneofthem|noneoftheabove|none|neither|neitherofthem"
    "|neitherofthese|notanyofthese|notanyofthem|别的|其他的?|其它的?|都?不在里面|others?|anotherone|somethingelse"
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
_CLAUSE_END = r"(?<!\d)[，,]|[，,](?!\d)|[。;；！!、\n]|\.(?=\s)"
_LIST_MARK = r"\s*\d{1,2}\s*[.、．)）]\s*[^\s\d]"
_POINTS = "(?:那|那么|还有|and)?(?:(?:这|那)(?:一)?(?:个|些|台|款|块)|它|thisone|thatone|that|this|it)呢?"


_ALL = _whole(
    "(?!(?:都|全)$)(?:这|那)?(?P<two>两个|俩|两者|三个|几个|所有的?)?(?:都|全都|全部都|全部|全)(?:要|查|看|选|办|问|想要|想看|想查|想问|想知道)?(?:一下)?"
    "|(?P<both>both)(?:ofthem|ofthese|ofthose)?|all(?:ofthem|ofthese|ofthose)?"
)
_ANY = (
    "(?:我|我也)?(?:随便|随意|无所谓|都可以|都行|哪个都行|哪个都可以|你定|你决定|您定|您决定|不知道|不清楚|不太清楚|不确定|不懂)"
    "(?:了|吧|选哪个|是哪个)?"
    "|(?:i|im|ireally)?(?:either|eitherone|eitherisfine|any|anyone|anyofthem|anyofthese|whatever|whichever|dontknow|idk"
    "|notsure|noidea|dunno|youchoose|youdecide|doesntmatter|itdoesntmatter|dontcare|dontmind|havenoidea)(?:which)?"
)
_WAIT = (
    "(?:请?(?:稍等|稍候|等等|等一下|等一等|等下|等会儿?|等一会儿?)(?:一下)?(?:我|让我|我去)?|等我|让我|我先?)"
    "(?:找找|查查|看看|想想|找一下|想一下|找一找|想一想)"
    "|请?(?:稍等|稍候|等等|等一下|等一等|等下|等会儿?|等一会儿?)(?:一下)?"
    "|(?:(?:please)?(?:holdon|hangon|wait|waitaminute|waitasecond|onemoment|onesec|onesecond|justamoment|justasec"
    "|justasecond|givemeasecond|givemeaminute|letmecheck|letmesee|letmelook|letmethink)(?:please)?){1,2}"
)
_AND = r"\s*(?:[,，、;；/&+]|和|与|跟|以及|及|还有|\band\b)\s*"
_OR = r"\s*(?:或者|或|还是|\bor\b)\s*"
_TOGETHER = r"(?i)^\s*both\s+|\s*(?:都|全)(?:要|查|看|选|办)?$"
_MOST_PIECES = 6
_DRAWN = r"</?[A-Za-z]{1,8}>|\u20e3"
"""Simple markup, and the frame of a keycap emoji."""
_COURTESY_WORDS = (
    "好 好的 好吧 好啊 嗯 嗯嗯 嗯好 行 行吧 可以 没问题 知道了 明白 明白了 了解 了解了 收到 是的 对 对的 没错"
    " 谢谢 谢谢你 谢谢您 多谢 感谢 谢了 谢啦 辛苦了 麻烦了 再见 拜拜 拜 回见 晚安"
    " 算了 不用了 不用 不必了 没事 没事了 没事儿了 不问了 不查了"
    " ok okay okey yes yeah yep sure right alright allright gotit isee thanks thankyou thx ty cheers thanksalot"
    " bye byebye goodbye seeyou seeya nevermind forgetit forgetaboutit nothanks nothankyou dontbother leaveit"
    " thatsall thatisall thatsit thatisit nothingelse perfect sorry cool iknow noproblem noworries"
    " 没了 没别的了 没有别的了 没有其他问题 没有其他问题了 我知道了 不需要 好滴 不急 不着急 norush 哈哈"
    " 抱歉 不好意思 不客气 感谢您的帮助 谢谢您的帮助 谢谢你的帮助 感谢你的帮助 yourhelp"
)
_COURTESY_BESIDE = "那 那就 就 先 这样 吧 了 啊 呀 哦 噢 oh then for you very so much a lot good fine great"
_ONLY_BESIDE = frozenset(_COURTESY_BESIDE.split())
_COURTESIES = _ONLY_BESIDE | frozenset(_COURTESY_WORDS.split())
_MEANS_NOTHING_ALONE: tuple[FormKind, ...] = ("ORDINAL", "SEVERAL", "ALL", "ANY", "LAST", "THIS")


class ReplyForm(NamedTuple):
    """`number` counts from 1 and belongs to ORDINAL. `numbers`: of SEVERAL those that are named, the last one as -1;
    of ALL the 2 of "both"."""

    kind: FormKind
    number: int = 0
    numbers: tuple[int, ...] = ()


OTHER = ReplyForm("OTHER")


def read_form(text: str) -> ReplyForm:
    """The form of a whole text; OTHER when it says more than a form."""
    plain = re.sub(_DRAWN, "", unicodedata.normalize("NFKC", text))
    form = normalised(plain)
    if not 0 < len(form) <= _LONGEST:
        return OTHER
    numbers = _several(plain) if len(plain) <= _LONGEST_RAW else ()
    if len(numbers) > 1:
        return ReplyForm("SEVERAL", numbers=numbers)
    if numbers:
        return ReplyForm("LAST") if numbers[0] < 0 else ReplyForm("ORDINAL", numbers[0])
    if len(plain) <= _LONGEST_RAW and len(_places(_OR, plain)) > 1:
        return ReplyForm("ANY")
    first: tuple[tuple[FormKind, str], ...] = (("CANCEL", _CANCEL), ("NONE", _NONE), ("LAST", _LAST))
    for kind, pattern in first:
        if re.fullmatch(pattern, form):
            return ReplyForm(kind)
    number = _ordinal(form)
    if number:
        return ReplyForm("ORDINAL", number)
    every = re.fullmatch(_ALL, form)
    if every:
        return ReplyForm(
            "ALL", numbers=(2,) if every["both"] or every["two"] in ("两个", "俩", "两者") else ()
        )
    last: tuple[tuple[FormKind, str], ...] = (
        ("ANY", _ANY),
        ("WAIT", _WAIT),
        ("THIS", _THIS),
        ("YES", _YES),
        ("NO", _NO),
    )
    return next((ReplyForm(kind) for kind, pattern in last if re.fullmatch(pattern, form)), OTHER)


def _several(plain: str) -> tuple[int, ...]:
    """The numbers of a text that names nothing but places: "第一个和第二个", "1, 2", "the first and the last"."""
    bare = re.sub(_TOGETHER, "", plain)
    return _places(_AND, bare) or _places(rf"{_AND}|\s+", bare)


def _places(between: str, plain: str) -> tuple[int, ...]:
    """The different places that a text is made of, none where anything else is said."""
    found = [_place(piece) for piece in re.split(between, plain) if normalised(piece)]
    several = 1 < len(found) <= _MOST_PIECES and all(found)
    return tuple(dict.fromkeys(found)) if several else ()


def _place(piece: str) -> int:
    form = normalised(piece)
    return -1 if re.fullmatch(_LAST, form) else _ordinal(form)


def _ordinal(form: str) -> int:
    """The place a form names, 0 when it names none. Digits with a zero in front are the end of some number."""
    if form.startswith("0"):
        return 0
    if re.fullmatch(_FORMER, form):
        return 1
    for words, pattern in (
        (_ENGLISH, _ENGLISH_ORDINAL),
        (_ENGLISH_COUNTS, _ENGLISH_COUNT),
        (_ENGLISH_COUNTS, _BARE_COUNT),
    ):
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
    return bool(re.fullmatch(_POINTS, form)) or read_form(text).kind in _MEANS_NOTHING_ALONE


def says_nothing(text: str) -> bool:
    """Whether the text is made of nothing but courtesy and filler ("我想问一下就是", "could you help me with this"):
    somebody wants something, and has not yet said what."""
    form = normalised(text)
    if re.fullmatch(_FILLERS_HAN, form):
        return True
    words = re.findall(r"[\w']+", text.casefold())
    return len(words) > 1 and all(re.fullmatch(_FILLERS_LATIN, word) for word in words)


def clauses(text: str) -> Iterator[tuple[str, str]]:
    """Each clause of a text, and what stands behind it. A number keeps its comma ("1,299"), and what begins like a
    list ("1. …") has no clauses: it is a list of questions."""
    if re.match(_LIST_MARK, text):
        return
    start = 0
    for mark in re.finditer(_CLAUSE_END, text):
        if normalised(text[start : mark.start()]):
            yield text[start : mark.start()].strip(), text[mark.end() :].strip()
        start = mark.end()
    if normalised(text[start:]):
        yield text[start:].strip(), ""


def courteous(text: str) -> bool:
    """Whether the text only acknowledges, thanks, takes leave or waves aside ("好的，谢谢", "算了", "ok bye"). A bare
    "取消" or "confirm" is not among them: it may be about an order."""
    form = normalised(text)
    asked = "?" in text or "？" in text
    return not asked and made_of(form, _COURTESIES) and not made_of(form, _ONLY_BESIDE)


def core(text: str) -> str:
    """The normalised text without the words around a choice: what may be compared with a name."""
    form = normalised(text)
    inner = re.fullmatch(f"{_BEFORE}(.*?){_AFTER}", form) if len(form) <= _LONGEST else None
    return inner[1] if inner else form
