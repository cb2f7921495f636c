"""`make features`: how much of the inventory the tests show, per group and per layer.

    python -m tools.features             covered/total per group, and which layer shows how many
    python -m tools.features --group H   each item of a group with the tests that name it, or "-"
    python -m tools.features --check     only the errors

Unknown numbers, repeated rows and marks that cannot be read are errors (exit 1) in every form. Items counted
apart (see `tools/feature_list.py`) never enter a total.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.feature_list import INVARIANTS, Feature, FeatureListError, read_features
from tools.marks import Mark, MarksOfTests, read_marks

ROOT = Path(__file__).resolve().parent.parent
FIRST_LAYERS = ("domain", "machine", "stack")


def main(argv: Sequence[str], root: Path = ROOT) -> int:
    """Print the report that `argv` asks for; return the exit code."""
    parser = argparse.ArgumentParser(prog="features", description="covered/total of docs/features.csv")
    parser.add_argument("--group", help="list every item of this group")
    parser.add_argument("--check", action="store_true", help="print errors only")
    options = parser.parse_args(argv)
    try:
        features = read_features(root / "docs" / "features.csv")
    except FeatureListError as error:
        print(error, file=sys.stderr)
        return 1
    found = read_marks(root / "tests")
    groups = list(dict.fromkeys(item.group for item in features))
    if options.group and options.group not in groups:
        print(f"no group {options.group!r}; there are {' '.join(groups)}", file=sys.stderr)
        return 1
    if options.group:
        print(group_report(options.group, features, found))
    elif not options.check:
        print(summary(features, found))
    problems = problems_of(features, found)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def problems_of(features: list[Feature], found: MarksOfTests) -> list[str]:
    """Marks that cannot be read and marks that name something which does not exist."""
    known = {"covers": {item.number for item in features}, "invariant": set(INVARIANTS)}
    unknown = [
        f"{mark.test}: {mark.kind} names {mark.name}, which does not exist"
        for mark in found.marks
        if mark.name not in known[mark.kind]
    ]
    return [*found.problems, *unknown]


def summary(features: list[Feature], found: MarksOfTests) -> str:
    """The table of groups, the items counted apart, and the tests that defend each invariant."""
    tests = found.tests_by_name("covers")
    layers = layers_of(found)
    rows = [("group", "covered", *layers)]
    for group in dict.fromkeys(item.group for item in features):
        members = [item for item in features if item.group == group]
        rows.append((f"{group:<2} {members[0].group_name}", *_counts(members, tests, layers)))
    rows.append(("total", *_counts(features, tests, layers)))
    apart = [item for item in features if not item.counted]
    shown = sum(1 for item in apart if item.number in tests)
    aside = f"{len(apart)} items are counted apart, each with its reason; {shown} of them have a test."
    return "\n".join(
        [
            *_table(rows),
            "",
            "domain: tests/unit; machine: tests/machines; stack: tests/stack and tests/browser; others by folder.",
            aside,
            "",
            *_table([("invariant", "tests", *layers), *_invariant_rows(found, layers)]),
        ]
    )


def group_report(group: str, features: list[Feature], found: MarksOfTests) -> str:
    """Every item of a group, one line each, followed by the tests that name it."""
    tests = found.tests_by_name("covers")
    lines = []
    for item in features:
        if item.group != group:
            continue
        lines.append(f"{item.number}  {item.feature}: {item.statement}")
        if item.apart:
            lines.append(f"       apart: {item.apart}")
        marks = tests.get(item.number, [])
        lines += [f"       {mark.layer:<9} {mark.test}" for mark in marks] or ["       -"]
    return "\n".join(lines)


def layers_of(found: MarksOfTests) -> list[str]:
    """The layers of the report: the three that always show, then whatever else the tests have."""
    others = {mark.layer for mark in found.marks} - set(FIRST_LAYERS)
    return [*FIRST_LAYERS, *sorted(others)]


def _counts(members: list[Feature], tests: dict[str, list[Mark]], layers: list[str]) -> list[str]:
    counted = [item for item in members if item.counted]
    covered = [item for item in counted if item.number in tests]
    per_layer = Counter(layer for item in covered for layer in {mark.layer for mark in tests[item.number]})
    return [f"{len(covered)}/{len(counted)}", *(str(per_layer[layer] or "") for layer in layers)]


def _invariant_rows(found: MarksOfTests, layers: list[str]) -> list[tuple[str, ...]]:
    tests = found.tests_by_name("invariant")
    rows = []
    for name in INVARIANTS:
        per_layer = Counter(mark.layer for mark in tests.get(name, []))
        rows.append((name, str(per_layer.total() or "-"), *(str(per_layer[layer] or "") for layer in layers)))
    return rows


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *numbers]).rstrip())
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
