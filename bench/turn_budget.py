"""What a turn may cost: `turn` of `bench/budget.json`, read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.import_rules import BUDGET

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Limit:
    """`is_ratio`: noise may add the slack to it; a count is exact."""

    hold: float
    stretch: float
    is_ratio: bool


@dataclass(frozen=True)
class TurnBudget:
    """`at`, `short` and `long` are turns of a conversation: where everybody is compared, and what growth is between."""

    at: int
    short: int
    long: int
    rounds: int
    attempts: int
    slack: float
    limits: dict[str, Limit]


def read_turn_budget(root: Path) -> TurnBudget:
    """A key that is missing is a KeyError, for the file is ours."""
    data = json.loads((root / BUDGET).read_text(encoding="utf-8"))["turn"]
    limits = {
        name: Limit(entry["hold"], entry["stretch"], kind == "ratios")
        for kind in ("ratios", "counts")
        for name, entry in data[kind].items()
    }
    measuring = {name: data[name] for name in ("at", "short", "long", "rounds", "attempts", "slack")}
    return TurnBudget(limits=limits, **measuring)
