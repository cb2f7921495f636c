"""Configuration and knowledge as versions: put once, never changed, activated by a pointer (I11, I12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngate.domain import keys, wire
from turngate.domain.config import AssistantConfig
from turngate.domain.transaction import Absent, Check, Equals, Exists, Item, Put, Term, Transaction
from turngate.errors import BrokenInvariantError, ConditionFailedError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from turngate.ports import ConversationStore

_CACHE_SIZE = 32
_cache: dict[tuple[int, str, int], tuple[ConversationStore, AssistantConfig]] = {}
"""Each entry keeps its store alive, so that no other store gets its id."""


def load_config(store: ConversationStore, account: str, version: int) -> AssistantConfig:
    """One immutable version, kept for as long as the function stays warm."""
    cached = _cache.get((id(store), account, version))
    if cached is not None:
        return cached[1]
    key = keys.config_version(account, version)
    item = store.get(account, (key,)).get(key)
    if item is None:
        raise BrokenInvariantError(f"config version {version} of {account} does not exist")
    config = wire.read_json(item["config"], AssistantConfig)
    if len(_cache) >= _CACHE_SIZE:
        _cache.clear()
    _cache[id(store), account, version] = (store, config)
    return config


def put_config(
    store: ConversationStore, config: AssistantConfig, version: int, *, collections: Mapping[str, bool]
) -> None:
    """Store one version, validated against the account's collections (name → whether it is public).

    The same version with the same content is fine. Raises RefusedError `version_conflict` for other content, and
    `config_invalid` with every finding on a line of its own: place, what to change, code."""
    from turngate.domain.checking import validate_config  # noqa: PLC0415 - saving alone checks; turns only load

    findings = validate_config(config, collections)
    if findings:
        raise RefusedError("config_invalid", "".join(f"\n  {finding}" for finding in findings))
    document = wire.write_json(config)
    key = keys.config_version(config.account, version)
    item: Item = {"entity": "config", "version": version, "config": document, "status": "READY"}
    try:
        store.write(config.account, Transaction("put_config", (Put("config", key, item, (Absent(),)),)))
    except ConditionFailedError as error:
        stored = error.failed["config"]
        if stored is None or wire.read_json(stored["config"], AssistantConfig) != config:
            raise RefusedError("version_conflict", f"config {version} of {config.account}") from error


def activate_config(store: ConversationStore, account: str, version: int) -> None:
    """Point new runs at `version`. Raises RefusedError `version_conflict` when it is not there, or when somebody else
    activated another one meanwhile."""
    key = keys.config_active(account)
    seen = store.get(account, (key,)).get(key)
    unchanged: tuple[Term, ...] = (Absent(),) if seen is None else (Equals("version", seen["version"]),)
    ready = (Exists(), Equals("status", "READY"))
    actions = (
        Put("active", key, {"entity": "config_active", "version": version}, unchanged),
        Check("version", keys.config_version(account, version), ready),
    )
    try:
        store.write(account, Transaction("activate_config", actions))
    except ConditionFailedError as error:
        raise RefusedError("version_conflict", f"config {version} of {account}") from error


def activate_knowledge(store: ConversationStore, account: str, versions: dict[str, int]) -> None:
    """Pin the named collections to these versions for runs begun from now on; others keep theirs."""
    key = keys.knowledge_pins(account)
    seen = store.get(account, (key,)).get(key)
    revision = seen["revision"] if seen else 0
    unchanged: tuple[Term, ...] = (Equals("revision", revision),) if seen else (Absent(),)
    item: Item = {
        "entity": "knowledge_pins",
        "versions": {**(seen["versions"] if seen else {}), **versions},
        "revision": revision + 1,
    }
    try:
        store.write(account, Transaction("activate_knowledge", (Put("pins", key, item, unchanged),)))
    except ConditionFailedError as error:
        raise RefusedError("version_conflict", f"knowledge of {account}") from error
