"""`make demo-check`: what the demo shows, without a browser. One line a step with its time; non-zero on a failure."""

from __future__ import annotations

import os
import sys
import time
import urllib.request
from typing import TYPE_CHECKING

from local.chat_client import ChatClient, ChatError, call, welcome
from local.demo import THINGS_TO_TRY, Page
from local.stack import model_from_environment, run_stack

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.stack import Stack

HTTP_OK = 200


class CheckFailedError(AssertionError):
    """Raised when a step does not show what it should; the message says what was seen instead."""


def require(holds: bool, seen: object) -> None:
    if not holds:
        raise CheckFailedError(str(seen))


def check_page(stack: Stack) -> str:
    with Page(stack, simulated=True) as page, urllib.request.urlopen(page.url, timeout=5) as response:  # noqa: S310 - ours
        require(response.status == HTTP_OK, response.status)
    return "the chat page is served"


def check_answer(chat: ChatClient, question: str) -> str:
    data = chat.ask(question)["data"]
    require(data["outcome"] == "answer" and bool(data["sources"]), data)
    return f"{question} → {data['content'][:60]}… [{data['sources'][0]['document_id']}]"


def check_fixed(chat: ChatClient) -> str:
    data = chat.ask(THINGS_TO_TRY[2]["zh-CN"])["data"]
    require(data["response_source"] == "fixed" and not data["sources"], data)
    return "a capability question is answered by rule, no model asked"


def check_out_of_scope(chat: ChatClient) -> str:
    data = chat.ask(THINGS_TO_TRY[3]["en"])["data"]
    require(data["outcome"] == "decline" and not data["sources"], data)
    return f"out of scope is told so: {data['content'][:60]}"


def check_not_connected(chat: ChatClient) -> str:
    data = chat.ask("查一下我的订单")["data"]
    require(data["outcome"] == "decline" and not data["sources"], data)
    return "an order question is refused by contract, not answered by the model"


def check_two_at_once(chat: ChatClient) -> str:
    first = chat.say("电子发票怎么开?")
    second = chat.say("保修期是多久?")
    reply = chat.reply_to(second)
    one, two = chat.accepted(first), chat.accepted(second)
    earlier, later = sorted((one, two), key=lambda frame: frame["message_seq"])
    ended = chat.ending(earlier["run_id"])
    require(ended["type"] == "run.superseded", ended)
    require(reply["message_seq"] == later["message_seq"], reply)
    chat.ending(reply["run_id"])
    replies = [f for f in chat.log() if f["type"] == "message.completed"]
    require(all(f["message_seq"] != earlier["message_seq"] for f in replies), replies)
    return f"two messages at once, one reply to both: {reply['data']['content'][:60]!r}…"


def check_resend(chat: ChatClient) -> str:
    ident = chat.say("运费怎么算?")
    reply = chat.reply_to(ident)
    chat.ending(reply["run_id"])
    before = len(chat.events)
    chat.say("运费怎么算?", ident)
    chat.wait(lambda: any(f["type"] == "message.accepted" for f in chat.ephemeral), "duplicate answer")
    require(len(chat.events) == before, "the resend made new events")
    chat.say("另一句话", ident)
    problem = chat.error()["data"]["problem"]
    require(problem["code"] == "message_conflict", problem)
    return f"a resend gets the same result, another text under its id a 409 (reply {reply['message_seq']})"


def check_resume(chat: ChatClient) -> str:
    chat.disconnect()
    missed, chat.events = dict(chat.events), {}
    chat.connect()
    chat.wait(lambda: len(chat.events) == len(missed), "all events again")
    require(chat.events == missed, "the replayed events differ")
    return f"after a reconnect all {len(missed)} events come again, the same"


def check_rubbish(chat: ChatClient) -> str:
    codes = []
    for raw in (
        "not json",
        "[1]",
        '{"type":"nonsense"}',
        '{"type":"message.send","client_message_id":"x","text":""}',
    ):
        chat.send_raw(raw)
        codes.append(chat.error()["data"]["problem"]["code"])
    require(codes == ["frame_not_json", "frame_not_json", "frame_unknown_type", "text_empty"], codes)
    return f"rubbish gets coded answers: {', '.join(codes)}"


def check_forged_ticket(stack: Stack, chat: ChatClient) -> str:
    used = chat.ticket()
    with ChatClient(stack.http_url, stack.socket_url, chat.token) as other:
        other.disconnect()
        other.connect(used)
        other.disconnect()
        for bad in (used, "forged"):
            try:
                other.connect(bad)
            except Exception as error:
                refusal = str(error)
            else:
                raise CheckFailedError(f"ticket accepted: {bad[:6]}…")
    answer = call("POST", f"{stack.http_url}/v1/chat/tickets", token="guest.forged", body=b"{}")  # noqa: S106 - forged
    require(answer.status in {401, 403}, answer)
    return f"a used or forged ticket opens nothing ({refusal[:40]})"


def main() -> int:
    print("demo-check: the demo without a browser", flush=True)
    steps = _Steps()
    with run_stack(
        model=model_from_environment(os.environ), say=lambda line: print(line, flush=True)
    ) as stack:
        steps.run(lambda: check_page(stack))
        token = welcome(stack.http_url)
        with ChatClient(stack.http_url, stack.socket_url, token) as chat:
            checks: list[Callable[[], str]] = [
                lambda: check_answer(chat, THINGS_TO_TRY[0]["zh-CN"]),
                lambda: check_answer(chat, THINGS_TO_TRY[0]["en"]),
                lambda: check_answer(chat, THINGS_TO_TRY[1]["zh-CN"]),
                lambda: check_fixed(chat),
                lambda: check_out_of_scope(chat),
                lambda: check_not_connected(chat),
                lambda: check_two_at_once(chat),
                lambda: check_resend(chat),
                lambda: check_rubbish(chat),
                lambda: check_resume(chat),
                lambda: check_forged_ticket(stack, chat),
            ]
            for check in checks:
                steps.run(check)
    print(f"{steps.passed} passed, {steps.failed} failed")
    return 1 if steps.failed else 0


class _Steps:
    def __init__(self) -> None:
        self.passed = self.failed = 0

    def run(self, check: Callable[[], str]) -> None:
        began = time.monotonic()
        try:
            said = check()
        except (AssertionError, ChatError) as error:
            self.failed += 1
            print(f"{time.monotonic() - began:6.1f} s  FAILED  {error}", flush=True)
        else:
            self.passed += 1
            print(f"{time.monotonic() - began:6.1f} s  {said}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
