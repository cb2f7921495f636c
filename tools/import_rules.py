"""What each function may cost to import and what it must not import: `imports` of `bench/budget.json`, read.

A function belongs to a class (pure, aws, retrieve, model) that gives its hold and stretch, as ratios to the
baseline, and forbids what its class never needs. `only_in` names modules that few functions may import, or none.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BUDGET = Path("bench", "budget.json")


@dataclass(frozen=True)
class FunctionBudget:
    """The limits of one function; `forbidden` joins those of its class, of `only_in` and its own."""

    kind: str
    hold: float
    stretch: float
    forbidden: frozenset[str]


@dataclass(frozen=True)
class ImportRules:
    """How to measure, and the limits per function (`turn/model`).

    `environment` is all that a handler sees while it is imported: what Lambda sets, and the settings of the
    template with values that lead nowhere.
    """

    baseline: str
    slack: float
    rounds: int
    attempts: int
    environment: dict[str, str]
    functions: dict[str, FunctionBudget]

    def problems(self, root: Path) -> Iterator[str]:
        """Functions without a budget and budgets without a function."""
        names = set(function_names(root))
        for name in sorted(names - set(self.functions)):
            yield f"functions/{name} has no entry in {BUDGET}"
        for name in sorted(set(self.functions) - names):
            yield f"{BUDGET} has an entry for functions/{name}, which does not exist"


def function_names(root: Path) -> list[str]:
    """`<group>/<name>` of every folder that holds a handler."""
    handlers = (root / "functions").glob("*/*/handler.py")
    return sorted(handler.parent.relative_to(root / "functions").as_posix() for handler in handlers)


def read_import_rules(root: Path) -> ImportRules:
    """Read the budgets; a key that is missing is a KeyError, for the file is ours."""
    data = json.loads((root / BUDGET).read_text(encoding="utf-8"))["imports"]
    functions = {}
    for name, entry in data["functions"].items():
        kind = data["classes"][entry["class"]]
        elsewhere = {module for module, allowed in data["only_in"].items() if name not in allowed}
        forbidden = frozenset({*elsewhere, *kind["forbidden"], *entry.get("forbidden", [])})
        functions[name] = FunctionBudget(entry["class"], kind["hold"], kind["stretch"], forbidden)
    measuring = {key: data[key] for key in ("baseline", "slack", "rounds", "attempts", "environment")}
    return ImportRules(functions=functions, **measuring)
