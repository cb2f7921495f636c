"""The problem catalogue: every code a caller can be given, with its HTTP status and its words (RFC 9457).

`contracts/problems.yaml` is this catalogue as a file of the wire; a test keeps the two equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from turngate.domain.shapes import Language

TYPE_PREFIX = "urn:turngate:problem:"


class Problem(Struct, frozen=True):
    """`retryable`: the same request may succeed later, unchanged."""

    status: int
    zh: str
    en: str
    retryable: bool = False


PROBLEMS: dict[str, Problem] = {
    "frame_empty": Problem(400, "消息是空的。", "The frame is empty."),
    "frame_not_text": Problem(400, "只接受 UTF-8 文本帧。", "Only UTF-8 text frames are accepted."),
    "frame_too_large": Problem(413, "消息帧超过 32 KB。", "The frame is larger than 32 KB."),
    "frame_not_json": Problem(400, "消息帧不是合法的 JSON 对象。", "The frame is not a JSON object."),
    "frame_too_deep": Problem(400, "消息帧嵌套过深。", "The frame is nested too deeply."),
    "frame_unknown_type": Problem(400, "不支持这种消息类型。", "This frame type is not known."),
    "frame_invalid": Problem(422, "消息帧的字段不正确。", "A field of the frame is missing or wrong."),
    "text_empty": Problem(422, "请输入内容。", "The message has no text."),
    "text_too_long": Problem(
        413, "消息超过 8 KB，请分开发送。", "The text is longer than 8 KB; please split it."
    ),
    "not_supported": Problem(501, "这个操作还没有开放。", "This action is not available yet."),
    "message_conflict": Problem(
        409, "同一个消息编号已用于另一条内容。", "This client_message_id was used for another message."
    ),
    "conversation_not_found": Problem(404, "找不到这个会话。", "There is no such conversation."),
    "run_not_found": Problem(404, "找不到这次回答。", "There is no such run."),
    "run_not_open": Problem(409, "这次回答已经结束。", "This run has already ended."),
    "rate_limited": Problem(
        429, "消息发送过快，请稍后再试。", "Too many messages; please wait.", retryable=True
    ),
    "busy": Problem(503, "现在有点忙，请重试。", "Busy right now; please try again.", retryable=True),
    "internal": Problem(
        500, "出了点问题，请重试。", "Something went wrong; please try again.", retryable=True
    ),
    "unauthorized": Problem(401, "请先登录。", "Please sign in."),
    "ticket_invalid": Problem(
        401, "连接凭证无效、已使用或已过期。", "The ticket is invalid, used or expired."
    ),
    "account_not_found": Problem(404, "找不到这个商户。", "There is no such account."),
    "body_invalid": Problem(422, "请求内容不正确。", "The request body is not valid."),
    "handoff_conflict": Problem(409, "会话状态已变化，请刷新后再试。", "The conversation changed hands."),
    "turn_failed": Problem(500, "抱歉，这次没能回答，请再发一次。", "Sorry, this failed. Please ask again."),
    "turn_timed_out": Problem(
        504, "抱歉，这次回答超时了，请再发一次。", "Sorry, this answer took too long. Please ask again."
    ),
    "document_empty": Problem(422, "文档没有内容。", "The document has no content."),
    "document_not_utf8": Problem(422, "文档不是 UTF-8 文本。", "The document is not UTF-8 text."),
    "document_too_large": Problem(413, "文档超过大小上限。", "The document is over the size limit."),
    "document_duplicate": Problem(422, "文档编号重复。", "Two documents share an id."),
    "knowledge_version_exists": Problem(
        409, "这个资料版本已存在且内容不同。", "This version exists with other content."
    ),
    "config_invalid": Problem(422, "配置不正确。", "The configuration is not valid."),
    "version_conflict": Problem(409, "这个版本已存在且内容不同。", "This version exists with other content."),
}


def problem_document(
    code: str, language: Language, *, detail: str = "", retry_after_ms: int | None = None
) -> dict[str, Any]:
    """A problem document; an unknown code is our own fault and answers `internal`."""
    known = code if code in PROBLEMS else "internal"
    problem = PROBLEMS[known]
    document: dict[str, Any] = {
        "type": f"{TYPE_PREFIX}{known}",
        "title": problem.zh if language == "zh-CN" else problem.en,
        "status": problem.status,
        "code": known,
        "retryable": problem.retryable,
    }
    if detail:
        document["detail"] = detail
    if retry_after_ms is not None:
        document["retry_after_ms"] = retry_after_ms
    return document
