"""The whole matrix as a command: `python -m tests.faults.matrix` plays it and prints its table (docs/faults.md)."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.actions import Cell, cells
from tests.faults.bench import bench
from tests.faults.places import PLACES
from tests.faults.playing import Result, find_sites, run

if TYPE_CHECKING:
    from tests.faults.sites import Site


def spread(wanted: list[Cell], seed: int) -> list[Cell]:
    """The cells in an order whose every beginning touches as many sites as it can, chosen by the seed."""
    chance = random.Random(seed)
    by_site: defaultdict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell in wanted:
        by_site[cell.site.signature].append(cell)
    for found in by_site.values():
        chance.shuffle(found)
    rounds = max((len(found) for found in by_site.values()), default=0)
    ordered = []
    for number in range(rounds):
        row = [found[number] for found in by_site.values() if number < len(found)]
        chance.shuffle(row)
        ordered += row
    return ordered


def table(results: list[Result]) -> str:
    """Cells by place: played, reached, struck twice, broken, slowest end of a run."""
    rows = defaultdict(list)
    for each in results:
        rows[each.cell.site.place].append(each)
    lines = [
        "| place | sites | cells | reached | broken | answered | stated failure | slowest end, s | heard after, s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    total = [("all", results)]
    for name, found in [*sorted(rows.items(), key=lambda row: _order(row[0])), *total]:
        sites = len({each.cell.site.signature for each in found})
        answered = sum(each.outcome.endswith("completed") for each in found)
        lines.append(
            f"| {name} | {sites} | {len(found)} | {sum(each.reached for each in found)} "
            f"| {sum(bool(each.broken) for each in found)} | {answered} | {len(found) - answered} "
            f"| {max(each.recovery for each in found):.1f} | {max(each.waited for each in found):.1f} |"
        )
    return "\n".join(lines)


def _order(place: str) -> int:
    names = [each.name for each in PLACES]
    return names.index(place) if place in names else len(names)


def sites_by_kind(sites: list[Site]) -> list[str]:
    """How many sites and cells of each kind there are."""
    kinds = Counter(each.kind for each in sites)
    many = Counter(cell.site.kind for cell in cells(sites))
    return [f"  {kind}: {count} sites, {many[kind]} cells" for kind, count in kinds.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=48)
    parser.add_argument("--minutes", type=float, default=40.0, help="begin no cell after so many minutes")
    parser.add_argument("--seed", type=int, default=1, help="which cells come first")
    parser.add_argument("--only", default="", help="only cells whose label contains this text")
    parser.add_argument("--out", type=Path, default=Path(".local/faults.jsonl"), help="a JSON line per cell")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="faults-") as folder,
        bench(Path(folder), _say) as running,
        options.out.open("w", encoding="utf-8") as out,
    ):
        sites = find_sites(running)
        for line in sites_by_kind(sites):
            _say(line)
        wanted = spread([cell for cell in cells(sites) if options.only in cell.label], options.seed)
        _say(f"{len(sites)} sites, {len(wanted)} cells, {options.threads} conversations at a time")
        playing = time.monotonic()

        def heard(result: Result, count: int) -> None:
            out.write(json.dumps(result.as_json(), ensure_ascii=False) + "\n")
            out.flush()
            if result.broken or not result.reached:
                _say(
                    f"  {'BROKEN' if result.broken else 'not reached'}: {result.cell.label}: {result.broken[:3]}"
                )
            if count % 25 == 0:
                spent = time.monotonic() - playing
                _say(
                    f"{count}/{len(wanted)} cells in {spent:.0f} s, {spent / count * (len(wanted) - count):.0f} s to go"
                )

        results = run(running, wanted, options.threads, minutes=options.minutes, heard=heard)
        _say(table(results))
    broken = [each for each in results if each.broken]
    missed = [each for each in results if not each.reached]
    for each in broken:
        _say(f"BROKEN {each.cell.label}: {each.broken}")
    _say(
        f"{len(results)} of {len(wanted)} cells in {time.monotonic() - began:.0f} s: "
        f"{len(broken)} broken, {len(missed)} not reached"
    )
    return 1 if broken or missed else 0


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    sys.exit(main())
