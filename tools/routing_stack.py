"""The table of utterances against the deployed stack: the template on the emulator, with the offline demo model.

    python -m tools.routing_stack [--every N]     both halves apart; N = 4 asks every fourth row

Every row is a conversation of its own, with roles enforced as the stack has them, so what `govern` rules here it rules
without any right but its log group. What the assistant has asked before is put into the table as a commit leaves it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from turngate.domain import wire

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(ROOT),
    str(ROOT / "layers" / "turngate"),
]  # the package is shipped as a layer, not installed

from local.chat_client import ChatClient  # noqa: E402 - needs the path
from local.stack import Stack, model_from_environment, run_stack  # noqa: E402 - needs the path
from tests.governance.table import BEFORE, CONFIGS, Row, columns, rows, speaker  # noqa: E402 - needs the path
from tools.trace import read_told  # noqa: E402 - needs the path
from turngate.domain import keys  # noqa: E402 - needs the path
from turngate.domain.config import AssistantConfig  # noqa: E402 - needs the path
from turngate.domain.fence import NO_ACCOUNT  # noqa: E402 - needs the path
from turngate.domain.pending import LIFETIME_MS, stored  # noqa: E402 - needs the path
from turngate.protocol.configuring import activate_config, put_config  # noqa: E402 - needs the path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turngate.domain.transaction import Item

TURN_PATIENCE_S = 60


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="routing_stack", description="the table against the deployed stack")
    parser.add_argument("--every", type=int, default=1, help="ask every Nth row only")
    options = parser.parse_args(argv)
    with run_stack(model=model_from_environment(os.environ), say=print) as stack:
        _load_cashier(stack)
        for name in ("utterances", "utterances_blind"):
            chosen = rows(name)[:: options.every]
            started = time.monotonic()
            wrong = [(row, got) for row in chosen if (got := ruled_by_stack(stack, row)) != row.as_compared]
            spent = time.monotonic() - started
            asked = Counter(row.tenant for row in chosen)
            missed = Counter(row.tenant for row, _ in wrong)
            by_tenant = ", ".join(
                f"{tenant} {count - missed[tenant]}/{count}" for tenant, count in asked.items()
            )
            print(
                f"\n{name}: {len(chosen) - len(wrong)}/{len(chosen)} as written ({by_tenant}), {spent:.0f} s"
            )
            for row, got in wrong:
                print(f"  {row.id} {row.utterance!r}: {' | '.join(row.as_compared)}  ->  {' | '.join(got)}")
    return 0


def _load_cashier(stack: Stack) -> None:
    """The configuration alone: only rulings are looked at, so its collections need no documents."""
    config = wire.read_json(CONFIGS["cashier"].read_text(encoding="utf-8"), AssistantConfig)
    collections = {entry.resource_name: True for entry in config.contract if entry.kind == "KB"}
    put_config(stack.store, config, 1, collections=collections)
    activate_config(stack.store, config.account, 1)


def ruled_by_stack(stack: Stack, row: Row) -> tuple[str, str, str]:
    """(ruling, resource, reply) that the trace of the row's turn tells."""
    with ChatClient(stack.http_url, stack.socket_url, _token(stack, row)) as chat:
        if row.before != "-":
            opened = chat.ask("你好", TURN_PATIENCE_S)
            chat.conversation = str(opened["conversation_id"])
            _leave_open(stack, row.tenant, chat.conversation, row.before)
        reply = chat.ask(row.utterance, TURN_PATIENCE_S)
        return columns(row, read_told(stack.store, row.tenant, str(reply["run_id"])).trace)


def _token(stack: Stack, row: Row) -> str:
    """A guest's token that stands for the row's speaker."""
    token = f"guest.{uuid.uuid4().hex}"
    tenant = replace(speaker(row), principal=f"guest:{uuid.uuid4().hex[:12]}")
    item: Item = {
        "entity": "guest",
        "tenant": tenant.known(),
        "expires_at": int(time.time() * 1000) + 600_000,
    }
    stack.store.put_all(NO_ACCOUNT, [(keys.ticket(hashlib.sha256(token.encode()).hexdigest()), item)])
    return token


def _leave_open(stack: Stack, account: str, conversation: str, before: str) -> None:
    """The question as a commit would have left it: the item, and its name on HEAD."""
    item = replace(BEFORE[before], expires_at=int(time.time() * 1000) + LIFETIME_MS)
    head = keys.head(account, conversation)
    listed = [{"id": item.pending_id, "expires_at": item.expires_at}]
    stack.store.put_all(
        account,
        [
            (keys.pending(account, conversation, item.pending_id), stored(item)),
            (head, {**stack.store.get(account, (head,))[head], "open_pending": listed}),
        ],
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
