"""Certain questions with certain answers, before any model is asked.

A few phrases ("你好", "who are you", "我的用户编号是什么") have one right answer that the configuration or the login
context already holds. A model could only add cost and, for identity, a wrong answer. The match is of a whole message,
so that a greeting in front of a question never swallows the question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from turngate.domain.replies import courteous
from turngate.domain.shapes import Frozen, TenantContext, TurnInput
from turngate.domain.standard_replies import StandardReplies
from turngate.domain.texts import normalised, phrase_form, say

if TYPE_CHECKING:
    from turngate.domain.config import AssistantConfig, GovernanceSlice, PreRouteRule, PreRouting
    from turngate.domain.shapes import Language, MessageType

COURTESY = "courtesy"
"""Stands where a rule's id does, for "好的" and "never mind" to which no rule has its own reply."""
_SOCIAL = ("GREETING", "THANKS")


class Answered(Frozen):
    """Every message of the turn was certain; `content` answers them. `rules` names the rules, in message order, or is
    COURTESY alone."""

    kind: Literal["ANSWERED"] = "ANSWERED"
    rules: tuple[str, ...]
    content: str


class Fresh(Frozen):
    """Something has to be understood: `input` without the messages that only greet or thank."""

    kind: Literal["FRESH"] = "FRESH"
    input: TurnInput


def fixed_reply(config: AssistantConfig, message_type: MessageType, language: Language) -> str | None:
    """The reply to a message that is not chat (F-048, F-049); None for chat."""
    if message_type == "user_chat":
        return None
    return say(getattr(config.message_type_replies, message_type), language, config.default_language)


def matching_rule(pre_routing: PreRouting, text: str) -> PreRouteRule | None:
    """The rule one of whose phrases is the whole text, both normalised."""
    form = normalised(text)
    if not form:
        return None
    for rule in pre_routing.rules:
        if any(phrase_form(phrase) == form for phrase in rule.phrases):
            return rule
    return None


def is_social(rule: PreRouteRule | None) -> bool:
    """Whether the rule answers a mere greeting or thanks, which may be left out once something else is asked."""
    return rule is not None and rule.kind in _SOCIAL


def rule_reply(rule: PreRouteRule, tenant: TenantContext, language: Language, default: Language) -> str:
    """The rule's text for this speaker. Ids come from the login context alone (F-045, F-643)."""
    if rule.kind != "AUTH_CONTEXT":
        return say(rule.reply, language, default)
    if tenant.customer is None:
        return say(rule.reply_guest or {}, language, default)
    text = say(rule.reply, language, default)
    return text.replace("{customer}", tenant.customer).replace("{principal}", tenant.principal)


def pre_route(
    config: AssistantConfig | GovernanceSlice, turn_input: TurnInput, tenant: TenantContext
) -> Answered | Fresh:
    """Answer the turn when every one of its messages is certain; otherwise pass on what has to be understood.

    Greetings, thanks and other courtesy beside a question are dropped, not answered: "你好" + "退货需要几天" asks one
    thing. Among certain messages a question outweighs a greeting, and of several greetings the last is returned."""
    matched = [(message, matching_rule(config.pre_routing, message.text)) for message in turn_input.messages]
    questions = [
        (m, rule) for m, rule in matched if not is_social(rule) and not (rule is None and courteous(m.text))
    ]
    asked = questions or [(m, rule) for m, rule in matched if rule is not None][-1:]
    language, default = turn_input.language, config.default_language
    if matched and not asked:
        return Answered(rules=(COURTESY,), content=courtesy_reply(config, language, default))
    rules = {rule.id: rule for _, rule in asked if rule is not None}
    if not rules or any(rule is None for _, rule in asked):
        messages = tuple(message for message, _ in asked)
        return Fresh(input=replace(turn_input, messages=messages))
    replies = (rule_reply(rule, tenant, language, default) for rule in rules.values())
    return Answered(rules=tuple(rules), content="\n\n".join(replies))


def courtesy_reply(config: AssistantConfig | GovernanceSlice, language: Language, default: Language) -> str:
    """What is said to mere courtesy while nothing is open."""
    replies = config if isinstance(config, StandardReplies) else config.replies
    return say(replies.courtesy_reply, language, default)
