"""Push what a transaction stored, to everyone who watches the conversation, and only that (I2).

A gone socket never fails anything: its client resumes from the log. The event owes its push until it was tried for
every watcher; a crash in between makes the sweeper push again, and clients drop what they have by `seq`."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from turngate.domain import keys
from turngate.domain.client_events import ephemeral, stored_frames
from turngate.domain.upkeep import announced
from turngate.errors import ConditionFailedError, TransientError

if TYPE_CHECKING:
    from turngate.domain.transaction import Item
    from turngate.ports import Clock, ConversationStore, EventPusher

MAX_REPLAYED_EVENTS = 100
MAX_WATCHERS = 20
MAX_CONNECTIONS = 50
"""Rows of one principal that a push tries; those that are gone are forgotten, so a flaky network does not fill it."""
MAX_PARALLEL_POSTS = 16
MAX_FRAME_BYTES = 24 * 1024
GONE_GRACE_MS = 10_000
"""A post before $connect has returned also answers 410: younger rows are kept."""


def encoded(frame: dict[str, Any]) -> bytes:
    """One frame as it goes over the wire: UTF-8, at most 24 KB."""
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode()


def push_events(
    store: ConversationStore, pusher: EventPusher, clock: Clock, *, account: str, conversation: str, evt: int
) -> int:
    """Push the events stored as `evt`; the number of posts that were delivered. Raises TransientError when a post
    may work later."""
    key = keys.events(account, conversation, evt)
    item = store.get(account, (key,)).get(key)
    if item is None:
        return 0
    frames = [encoded(frame) for frame in stored_frames(item)]
    connections = _connections(store, account, conversation)
    delivered = _post_to_all(store, pusher, clock, account, connections, frames)
    try:
        store.write(account, announced(account, conversation, evt))
    except ConditionFailedError:
        return delivered  # the conversation was deleted meanwhile: nothing is owed
    return delivered


def push_frame(
    store: ConversationStore,
    pusher: EventPusher,
    clock: Clock,
    *,
    account: str,
    frame: dict[str, Any],
    conversation: str | None = None,
    connection: dict[str, Any] | None = None,
) -> int:
    """Push an ephemeral frame to one connection, or to every watcher of a conversation."""
    if connection is not None:
        targets = [connection]
    elif conversation is not None:
        targets = _connections(store, account, conversation)
    else:
        targets = []
    return _post_to_all(store, pusher, clock, account, targets, [encoded(frame)])


def replay(
    store: ConversationStore,
    pusher: EventPusher,
    clock: Clock,
    *,
    account: str,
    conversation: str,
    after_seq: int,
    last_seq: int,
    connection: dict[str, Any],
    fetch_url: str,
) -> int:
    """Answer `resume`: the events after `after_seq`, or a gap with the address to fetch them from."""
    if last_seq - after_seq > MAX_REPLAYED_EVENTS:
        data = {"from_seq": after_seq + 1, "to_seq": last_seq, "fetch_url": fetch_url}
        frames = [encoded(ephemeral("resume.gap", data, now=clock.now_ms(), conversation=conversation))]
    else:
        frames = [
            encoded(frame) for frame in read_log(store, account, conversation, after_seq, MAX_REPLAYED_EVENTS)
        ]
    return _post_to_all(store, pusher, clock, account, [connection], frames)


def read_log(
    store: ConversationStore, account: str, conversation: str, after_seq: int, limit: int
) -> list[dict[str, Any]]:
    """At most `limit` durable frames with seq > `after_seq`, in order, without gaps from `after_seq` on."""
    items = store.query(
        account,
        keys.conversation(account, conversation),
        first=keys.events_sk(after_seq + 1),
        last=keys.events_sk(9_999_999_999),
        limit=limit,
    )
    frames = [frame for item in items for frame in stored_frames(item) if frame["seq"] > after_seq]
    return frames[:limit]


def _connections(store: ConversationStore, account: str, conversation: str) -> list[Item]:
    partition = keys.conversation(account, conversation)
    watchers = store.query(account, partition, first="WATCH#", last="WATCH#~", limit=MAX_WATCHERS)
    found: list[Item] = []
    for watcher in watchers:
        of_principal = keys.principal(account, watcher["principal"])
        found += store.query(account, of_principal, first="CONN#", last="CONN#~", limit=MAX_CONNECTIONS)
    return found


def _post_to_all(
    store: ConversationStore,
    pusher: EventPusher,
    clock: Clock,
    account: str,
    connections: list[Item],
    frames: list[bytes],
) -> int:
    """Frames stay in order within a connection; connections are served in parallel."""

    def post(connection: Item) -> int:
        for count, frame in enumerate(frames):
            posted = pusher.post(connection["connection_id"], frame)
            if posted == "gone":
                _forget(store, clock, account, connection)
            if posted != "delivered":
                return count  # what follows would leave a gap; the client resumes from the log
        return len(frames)

    if len(connections) <= 1:
        return sum(post(connection) for connection in connections)
    with ThreadPoolExecutor(max_workers=min(MAX_PARALLEL_POSTS, len(connections))) as pool:
        futures = [pool.submit(post, connection) for connection in connections]
    failures = [future.exception() for future in futures if future.exception() is not None]
    if failures:
        raise TransientError("a post failed") from failures[0]
    return sum(future.result() for future in futures)


def _forget(store: ConversationStore, clock: Clock, account: str, connection: Item) -> None:
    from turngate.protocol.connecting import forget_connection  # noqa: PLC0415 - only on the rare path

    if clock.now_ms() - connection["connected_at"] > GONE_GRACE_MS:
        forget_connection(store, account, connection["principal"], connection["connection_id"])
