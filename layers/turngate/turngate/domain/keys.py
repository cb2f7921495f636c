"""The key table: the only place that spells a key (INVARIANTS, One table).

Ids may not contain `#` (I6), so no id can reach into another kind of item or another account. `GSI1` is the due
index: an item carries its keys exactly while it owes a follow-up.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal

from turngate.domain.transaction import Item, Key
from turngate.errors import BrokenInvariantError

RUN_SHARDS = range(16)
EVENT_SHARDS = range(16, 32)
"""Partitions of the due index: unpushed events have their own, so that a flood of them never stands before a run."""
_FORBIDDEN = re.compile(r"[#\x00-\x1f]")

MessageKind = Literal["U", "R", "H", "S"]
"""Customer, reply to it, human agent, system trigger."""


def _id(value: str) -> str:
    if not value or _FORBIDDEN.search(value):
        raise BrokenInvariantError(f"not an id for a key: {value!r}")
    return value


def account_prefix(account: str) -> str:
    return f"T#{_id(account)}#"


def conversation(account: str, conversation_id: str) -> str:
    """Partition of everything that must change together."""
    return f"{account_prefix(account)}C#{_id(conversation_id)}"


def head(account: str, conversation_id: str) -> Key:
    return Key(conversation(account, conversation_id), "HEAD")


def message(account: str, conversation_id: str, seq: int, kind: MessageKind) -> Key:
    return Key(conversation(account, conversation_id), message_sk(seq, kind))


def message_sk(seq: int, kind: str = "") -> str:
    return f"MSG#{seq:010d}#{kind}"


def events(account: str, conversation_id: str, last_evt: int) -> Key:
    """The item of all client events of one transaction, named by the last of them."""
    return Key(conversation(account, conversation_id), events_sk(last_evt))


def events_sk(evt: int) -> str:
    return f"EVT#{evt:010d}"


def message_idempotency(account: str, conversation_id: str, client_message_id: str) -> Key:
    return Key(conversation(account, conversation_id), f"IDEM#MSG#{_id(client_message_id)}")


def run(account: str, conversation_id: str, run_id: str) -> Key:
    return Key(conversation(account, conversation_id), f"RUN#{_id(run_id)}")


def pending(account: str, conversation_id: str, pending_id: str) -> Key:
    return Key(conversation(account, conversation_id), f"PEND#{_id(pending_id)}")


def watcher(account: str, conversation_id: str, principal: str) -> Key:
    return Key(conversation(account, conversation_id), f"WATCH#{_id(principal)}")


def run_partition(account: str, run_id: str) -> str:
    """The run's own partition: its log, working texts and budget never heat HEAD."""
    return f"{account_prefix(account)}R#{_id(run_id)}"


def budget(account: str, run_id: str) -> Key:
    return Key(run_partition(account, run_id), "BUDGET")


def run_event(account: str, run_id: str, part: str, step: int, kind: str) -> Key:
    return Key(run_partition(account, run_id), f"EV#{_id(part)}#{step:03d}#{_id(kind)}")


def working(account: str, run_id: str, part: str, name: str) -> Key:
    return Key(run_partition(account, run_id), f"WORK#{_id(part)}#{_id(name)}")


def config_version(account: str, version: int) -> Key:
    return Key(f"{account_prefix(account)}CFG", f"V#{version:08d}")


def config_active(account: str) -> Key:
    return Key(f"{account_prefix(account)}CFG", "ACTIVE")


def knowledge_pins(account: str) -> Key:
    """Active version of each collection, in one item, so that begin pins them by one read."""
    return Key(f"{account_prefix(account)}CFG", "PINS")


def knowledge_version(account: str, collection: str, version: int) -> Key:
    return Key(f"{account_prefix(account)}KB#{_id(collection)}", f"V#{version:08d}")


def principal(account: str, principal_id: str) -> str:
    return f"{account_prefix(account)}P#{_id(principal_id)}"


def rate(account: str, principal_id: str) -> Key:
    return Key(principal(account, principal_id), "RATE")


def connection(account: str, principal_id: str, connection_id: str) -> Key:
    return Key(principal(account, principal_id), f"CONN#{_id(connection_id)}")


def reverse_connection(connection_id: str) -> Key:
    return Key(f"CONN#{_id(connection_id)}", "-")


def ticket(ticket_sha256: str) -> Key:
    return Key(f"TKT#{_id(ticket_sha256)}", "-")


def due(key: Key, due_ms: int) -> Item:
    """Attributes that put an item on the due index."""
    shards = EVENT_SHARDS if key.sk.startswith("EVT#") else RUN_SHARDS
    shard = shards[int.from_bytes(hashlib.sha256(key.pk.encode()).digest()[:2]) % len(shards)]
    return {"GSI1PK": due_partition(shard), "GSI1SK": f"{due_ms:013d}#{key.pk}#{key.sk}"}


DUE_ATTRIBUTES = ("GSI1PK", "GSI1SK")


def due_partition(shard: int) -> str:
    return f"DUE#{shard}"


def due_at(item: Item) -> int | None:
    """Epoch ms when the item's follow-up is due, None when it owes nothing."""
    sort_key = item.get("GSI1SK")
    return int(sort_key.partition("#")[0]) if isinstance(sort_key, str) else None


def account_of(key: Key) -> str:
    """The account a key belongs to; fails for keys without one."""
    prefix, _, rest = key.pk.partition("#")
    if prefix != "T" or not rest:
        raise BrokenInvariantError(f"key of no account: {key.pk}")
    return rest.partition("#")[0]


def conversation_id_for(account: str, principal_id: str, opening: str) -> str:
    """Id of the conversation a first message opens: the same for every resend of it (I7)."""
    digest = hashlib.sha256(f"{account}#{principal_id}#{opening}".encode()).hexdigest()
    return f"c{digest[:31]}"


def run_id_for(account: str, conversation_id: str, trigger_seq: int) -> str:
    digest = hashlib.sha256(f"{account}#{conversation_id}#{trigger_seq}".encode()).hexdigest()
    return f"r{digest[:31]}"
