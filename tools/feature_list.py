"""The inventory of what the product must do, kept as data in `docs/features.csv`.

One row per item: its number (kept for good), group, kind, the seed it comes from, a name and a statement.
`apart` is empty for what must be covered; otherwise it holds the reason why the item is counted apart
(a limit a seed admits, or a note about a seed's own repository) or what we do instead.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

COLUMNS = ("number", "group", "group_name", "kind", "seed", "feature", "statement", "apart")
NUMBER = re.compile(r"F-\d{3}")
INVARIANTS = tuple(f"I{n}" for n in range(1, 21))


@dataclass(frozen=True)
class Feature:
    """One item of the inventory."""

    number: str
    group: str
    group_name: str
    kind: str
    seed: str
    feature: str
    statement: str
    apart: str

    @property
    def counted(self) -> bool:
        """Whether a test is expected to show this item."""
        return not self.apart


class FeatureListError(Exception):
    """Raised when the inventory itself cannot be trusted; the message names each bad row."""


def read_features(path: Path) -> list[Feature]:
    """Read the inventory in its own order; raise FeatureListError on a bad, incomplete or repeated row."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file, strict=True)
        header = tuple(next(reader, ()))
        if header != COLUMNS:
            raise FeatureListError(f"{path}: columns are {', '.join(header)}, not {', '.join(COLUMNS)}")
        rows = list(reader)
    problems: list[str] = []
    features: dict[str, Feature] = {}
    group_names: dict[str, str] = {}
    for row in rows:
        if len(row) != len(COLUMNS):
            problems.append(f"{row[:1]}: {len(row)} columns, not {len(COLUMNS)}")
            continue
        item = Feature(*row)
        if not NUMBER.fullmatch(item.number):
            problems.append(f"{item.number!r} is not a feature number")
        if item.number in features:
            problems.append(f"{item.number} appears twice")
        if not all(row[:-1]):
            problems.append(f"{item.number} has an empty column")
        if group_names.setdefault(item.group, item.group_name) != item.group_name:
            problems.append(f"{item.number}: group {item.group} has two names")
        features[item.number] = item
    if problems:
        raise FeatureListError("\n".join(f"{path}: {problem}" for problem in problems))
    return list(features.values())
