"""What an assistant says where nothing has to be phrased: texts of its configuration, one per way a turn can end."""

from __future__ import annotations

import msgspec

from turngate.domain.shapes import Frozen, Texts


class MessageTypeReplies(Frozen):
    """F-048: messages that are not chat get a fixed reply."""

    rule: Texts
    form: Texts
    other: Texts


class StandardReplies(Frozen):
    """What is said for each way a turn can end without an answer of its own. Those with a
    default came later: older versions of a configuration lack them."""

    not_connected_reply: Texts
    out_of_scope_reply: Texts
    clarify_reply: Texts
    routing_error_reply: Texts
    no_evidence_reply: Texts
    model_down_reply: Texts
    login_required_reply: Texts
    joined_truncated_notice: Texts
    guidance_reply: Texts = msgspec.field(
        default_factory=lambda: {
            "zh-CN": "您想问的是下面哪一项？可以回复序号。",
            "en": "Which of these do you mean? A number will do.",
        }
    )
    none_of_these_reply: Texts = msgspec.field(
        default_factory=lambda: {
            "zh-CN": "好的，都不是。请再说说您要找的是什么。",
            "en": "None of these, then. Please tell me more about what you need.",
        }
    )
    cancelled_reply: Texts = msgspec.field(
        default_factory=lambda: {"zh-CN": "好的，先不处理这件事。", "en": "All right, I have dropped that."}
    )
    no_such_option_reply: Texts = msgspec.field(
        default_factory=lambda: {
            "zh-CN": "没有这一项，请从下面选择：",
            "en": "There is no such option. Please choose one of these:",
        }
    )
    wrong_client_reply: Texts = msgspec.field(
        default_factory=lambda: {
            "zh-CN": "这项操作不能在您现在使用的终端上进行。",
            "en": "This cannot be done from the client you are using.",
        }
    )
    risk_blocked_reply: Texts = msgspec.field(
        default_factory=lambda: {
            "zh-CN": "这项操作风险过高，不能由助手办理。",
            "en": "This is too risky for the assistant to do.",
        }
    )
