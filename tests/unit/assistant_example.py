"""A small bicycle shop's assistant for the governance tests: four collections, one of them not public."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings

from turngate.domain import wire
from turngate.domain.config import AssistantConfig, GovernanceSlice, governance_slice
from turngate.domain.shapes import (
    Candidate,
    InputMessage,
    Language,
    SubQuestion,
    TenantContext,
    TurnInput,
    Understanding,
)

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For properties: how long an example takes on a busy machine says nothing about it."""
COLLECTIONS = {"sales-kb": True, "repair-kb": True, "staff-kb": False, "guide-kb": True}
GUEST = TenantContext(account="velo", principal="guest:7f")
CUSTOMER = TenantContext(account="velo", principal="user-9", customer="C-1009")


def both(chinese: str, english: str) -> dict[str, str]:
    return {"zh-CN": chinese, "en": english}


def intent(identity: str, chinese: str, english: str, **more: Any) -> dict[str, Any]:
    texts = both(chinese, english)
    return {
        "id": identity,
        "domain": "shop",
        "name": texts,
        "description": texts,
        "examples": [chinese],
        **more,
    }


def entry(identity: str, kind: str, resource: str, **more: Any) -> dict[str, Any]:
    return {"intent_id": identity, "kind": kind, "resource_name": resource, **more}


def rule(identity: str, kind: str, phrases: list[str], reply: dict[str, str], **more: Any) -> dict[str, Any]:
    return {
        "id": identity,
        "owner": "shop",
        "reason": "certain",
        "kind": kind,
        "phrases": phrases,
        "reply": reply,
        **more,
    }


def config_document() -> dict[str, Any]:
    """A valid configuration as JSON data, fresh each time, to be broken by the tests."""
    return {
        "schema_version": 1,
        "account": "velo",
        "assistant": "velo-assistant",
        "languages": ["zh-CN", "en"],
        "default_language": "zh-CN",
        "routing": {
            "intent_threshold": 0.5,
            "max_candidates": 3,
            "clarify_gap": 0.05,
            "fallback_collections": ["sales-kb", "repair-kb"],
            "incomplete_expressions": ["查一下", "看一下", "check it"],
            "action_phrases": ["调校", "tune"],
        },
        "intents": [
            intent("RETURN_POLICY", "退货规则", "Returns"),
            intent("REPAIR_GUIDE", "维修指南", "Repairs"),
            intent("ORDER_QUERY", "我的订单", "My order"),
            intent("PARTS_SEARCH", "配件查询", "Parts search"),
            intent("ORDER_CHANGE", "修改订单", "Change an order"),
            intent("TUNE_UP", "调校", "Tune-up"),
            intent("TRADE_IN", "以旧换新", "Trade-in"),
            intent("OLD_SALE", "旧促销", "Old sale", enabled=False),
        ],
        "contract": [
            entry("RETURN_POLICY", "KB", "sales-kb"),
            entry("REPAIR_GUIDE", "KB", "guide-kb"),
            entry("ORDER_QUERY", "MCP", "getOrder", login_required=True, risk="L1"),
            entry("PARTS_SEARCH", "MCP", "searchParts"),
            entry("ORDER_CHANGE", "SYSTEM", "order_entry"),
            entry("TUNE_UP", "SKILL", "tune_up_guide"),
            entry("TRADE_IN", "KB", "sales-kb", enabled=False),
            entry("OLD_SALE", "KB", "sales-kb"),
        ],
        "system_replies": {"order_entry": both("请到订单页修改。", "Please use the order page.")},
        "pre_routing": {
            "rules": [
                rule("hello", "GREETING", ["你好", "hello"], both("您好！", "Hello!")),
                rule("thanks", "THANKS", ["谢谢", "thank you"], both("不客气。", "You are welcome.")),
                rule(
                    "who",
                    "SYSTEM",
                    ["你是谁", "who are you"],
                    both("我是小店助手。", "I am the shop's assistant."),
                ),
                rule(
                    "user_id",
                    "AUTH_CONTEXT",
                    ["我的用户编号是什么", "what is my user id"],
                    both("您的编号是 {customer}。", "Your id is {customer}."),
                    reply_guest=both("您还没有登录。", "You are not signed in."),
                ),
            ]
        },
        "message_type_replies": {
            "rule": both("收到规则。", "Rule received."),
            "form": both("收到表单。", "Form received."),
            "other": both("请打字。", "Please type."),
        },
        "not_connected_reply": both("还没有接通。", "Not connected yet."),
        "out_of_scope_reply": both("超出范围。", "Out of scope."),
        "clarify_reply": both("请说具体些。", "Please be specific."),
        "routing_error_reply": both("系统出错。", "A technical error."),
        "no_evidence_reply": both("资料里没有。", "Not in our documents."),
        "model_down_reply": both("暂时查不了。", "Cannot look that up now."),
        "login_required_reply": both("请先登录。", "Please sign in."),
        "joined_truncated_notice": both("只看了最近的。", "Only the latest was read."),
    }


def config() -> AssistantConfig:
    return wire.read(config_document(), AssistantConfig)


def governed() -> GovernanceSlice:
    return governance_slice(config())


def asks(*texts: str, language: Language = "zh-CN") -> TurnInput:
    messages = tuple(InputMessage(message_seq=n, text=text) for n, text in enumerate(texts, start=1))
    return TurnInput(messages=messages, language=language)


def looks_like(*subs: tuple[str, dict[str, float]]) -> Understanding:
    """An understanding of sub-questions, each a text and its candidates' scores."""
    return Understanding(
        status="OK",
        rewritten=" ".join(text for text, _ in subs),
        sub_questions=tuple(
            SubQuestion(text=text, candidates=tuple(Candidate(id=i, score=s) for i, s in scores.items()))
            for text, scores in subs
        ),
    )
