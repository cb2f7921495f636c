"""What was measured against what we hold ourselves to (`bench/budget.json`), as one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.contest import Played
    from bench.turn_budget import TurnBudget
    from tools.import_budget import Measured
    from tools.import_rules import ImportRules

HEAD = ("what", "measured", "hold", "stretch", "verdict")
NOT_HELD = "for comparison"


@dataclass(frozen=True)
class Row:
    """One measured number; less is better. Without a hold it only informs. `slack` is the share of the hold that
    noise may add before the row fails the bench; it does not make a loss a win."""

    what: str
    value: float
    hold: float | None = None
    stretch: float | None = None
    slack: float = 0.0

    @property
    def verdict(self) -> str:
        if self.hold is None:
            return NOT_HELD
        if self.stretch is not None and self.value <= self.stretch:
            return "within stretch"
        if self.value <= self.hold:
            return "holds"
        return "LOSES" if self.fails else "LOSES, within slack"

    @property
    def fails(self) -> bool:
        return self.hold is not None and self.value > self.hold * (1 + self.slack)


def import_rows(measured: dict[str, Measured], rules: ImportRules) -> list[Row]:
    """One row a function: its import against the baseline's."""
    return [
        Row(
            f"import {name} ({rules.functions[name].kind}), x {rules.baseline}",
            each.ratio,
            rules.functions[name].hold,
            rules.functions[name].stretch,
            rules.slack,
        )
        for name, each in measured.items()
    ]


def turn_rows(attempts: Sequence[Played], budget: TurnBudget) -> list[Row]:
    """Of what we hold, the best attempt; of what is only compared, the last. Names beyond ours, plain and packed are
    peers."""
    at, short, long = budget.at, budget.short, budget.long
    last = attempts[-1]

    def best(above: tuple[str, int], below: tuple[str, int]) -> float:
        return min(played[above].median / played[below].median for played in attempts)

    def at_last(above: tuple[str, int], below: tuple[str, int]) -> float:
        return last[above].median / last[below].median

    def row(which: str, what: str, value: float) -> Row:
        limit = budget.limits[which]
        slack = budget.slack if limit.is_ratio else 0.0
        return Row(what, value, limit.hold, limit.stretch, slack)

    requests = {length: last["ours", length].requests_of(without=("PushEvents",)) for length in (short, long)}
    with_push = {length: last["ours", length].requests_of() for length in (short, long)}
    rows = [
        row("cpu", f"CPU of a turn at turn {at}, x plain openai loop", best(("ours", at), ("plain", at))),
        row("growth", f"CPU of a turn, turn {long:,} / turn {short}", best(("ours", long), ("ours", short))),
        row("requests", "DynamoDB requests a turn, accept to commit", requests[long]),
        row(
            "more_requests",
            f"… more at turn {long:,} than at turn {short}, push included",
            abs(with_push[long] - with_push[short]),
        ),
        Row(
            f"CPU at turn {at}, x plain loop that packs its history as we do",
            at_last(("ours", at), ("packed", at)),
        ),
        Row(f"plain openai loop, turn {long:,} / turn {short}", at_last(("plain", long), ("plain", short))),
    ]
    for peer in sorted({name for name, _ in last} - {"ours", "plain", "packed"}):
        rows += [
            Row(f"{peer} at turn {at}, x plain openai loop", at_last((peer, at), ("plain", at))),
            Row(f"{peer}, turn {long:,} / turn {short}", at_last((peer, long), (peer, short))),
            Row(f"ours at turn {at}, x {peer}", at_last(("ours", at), (peer, at))),
            Row(f"ours at turn {long:,}, x {peer}", at_last(("ours", long), (peer, long))),
        ]
    return rows


def table_of(rows: Sequence[Row]) -> str:
    """Markdown, so that it can be pasted into docs/measured.md as it is."""
    cells = [HEAD, tuple("---" for _ in HEAD)]
    cells += [
        (row.what, _number(row.value), _number(row.hold), _number(row.stretch), row.verdict) for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD))]
    padded = (
        " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in cells
    )
    return "\n".join(f"| {line} |" for line in padded)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3g}"


def steps_of(played: Played, length: int) -> str:
    """CPU milliseconds of our turn by step, for the curious; never held to anything."""
    turns = played["ours", length]
    return ", ".join(f"{step} {1000 * turns.median_of(step):.2f}" for step in turns.cpu[0])
