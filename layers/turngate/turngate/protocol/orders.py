"""Bodies of queue messages: what is owed, by key. They carry no text; who carries them out reads the stored item."""

from __future__ import annotations


def push_order(account: str, conversation: str, evt: int) -> dict[str, str | int]:
    """`events-to-push`: push a stored event."""
    return {"kind": "event", "account": account, "conversation": conversation, "evt": evt}


def start_order(account: str, conversation: str, run: str) -> dict[str, str | int]:
    """`runs-to-start`, and input of the turn machine: start a run."""
    return {"account": account, "conversation": conversation, "run": run, "schema_version": 1}
