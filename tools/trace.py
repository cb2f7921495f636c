"""Why did this question go there?  Print the route trace of a run, in the order in which a wrong tool is looked for.

    python -m tools.trace ACCOUNT RUN                          from TABLE_NAME, at AWS_ENDPOINT_URL if that is set
    python -m tools.trace ACCOUNT RUN --expect p1=ORDER_QUERY:getOrder     and say where it first went wrong
    python -m tools.trace --file trace.json                    a stored trace, as `work` items and this tool hold it

The order is S1's (F-613): what the model was offered and made of it, what a correction changed, what governance
decided, what the contract says, and which resource was really used. The trace holds what the customer wrote: treat it
as such.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "layers" / "turngate"))  # the package is shipped as a layer, not installed

from turngate.adapters.aws import client  # noqa: E402 - needs the path
from turngate.adapters.dynamodb.store import DynamoDBConversationStore  # noqa: E402 - needs the path
from turngate.domain import keys, wire  # noqa: E402 - needs the path
from turngate.domain.packing import unpack  # noqa: E402 - needs the path
from turngate.domain.route_trace import PartRuling, RouteTrace  # noqa: E402 - needs the path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from turngate.ports import ConversationStore

Stage = Literal["shortlist", "intent", "correction", "governance", "contract", "execution"]
_MOST_EVENTS = 500


@dataclass(frozen=True)
class Expected:
    """What a tester knows should have happened to a part."""

    intent_id: str
    resource_name: str


@dataclass(frozen=True)
class Told:
    """A trace, and per part the resources that the run's log says were used; `beyond` are public collections that were
    searched too, because the allowed one held nothing near (R-14)."""

    trace: RouteTrace
    used: Mapping[str, tuple[str, ...]]
    beyond: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quoted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Documents that the reply quotes (`collection/version/document/piece`), by part."""


def read_told(store: ConversationStore, account: str, run: str) -> Told:
    """Raises LookupError when the run left no trace (or it has expired)."""
    key = keys.working(account, run, "-", "route")
    item = store.get(account, (key,)).get(key)
    if item is None:
        raise LookupError(
            f"run {run} of {account} has no route trace: it failed before it was ruled, or it expired"
        )
    log = store.query(account, keys.run_partition(account, run), first="EV#", last="EV#~", limit=_MOST_EVENTS)
    events = [(event["sk"].split("#")[1], json.loads(event["data"])) for event in log]
    beyond = {part: tuple(data.get("fallback_collections", ())) for part, data in events}
    found = {part: data["evidence"] for part, data in events if "evidence" in data}
    said = [each for _, data in events for each in data.get("parts", ()) if isinstance(each, dict)]
    quoted = {each["part"]: _named(each["used"], found.get(each["part"], [])) for each in said}
    trace = wire.read_json(unpack(item["text"]), RouteTrace)
    return Told(trace, used_resources(events), beyond, quoted)


def _named(refs: Sequence[str], evidence: Sequence[str]) -> tuple[str, ...]:
    """What `p1.E2` stands for: the second piece of evidence of its part."""
    places = [int(ref.rpartition("E")[2]) - 1 for ref in refs]
    return tuple(evidence[place] for place in places if place < len(evidence))


def used_resources(events: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, tuple[str, ...]]:
    """Collections searched and tools called, by part, as the states that did it wrote them down."""
    used: dict[str, tuple[str, ...]] = {}
    for part, data in events:
        names = (*data.get("collections", ()), *((data["tool"],) if "tool" in data else ()))
        if names:
            used[part] = (*used.get(part, ()), *names)
    return used


def told_lines(told: Told) -> Iterator[str]:
    """The trace for a reader, one thing a line."""
    trace = told.trace
    yield f"original     {trace.original!r}"
    yield f"rewritten    {trace.rewritten!r}"
    for name, what in (("error", trace.error), ("drift", ", ".join(trace.drift))):
        if what:
            yield f"{name:<12} {what}"
    if trace.discarded:  # a model's own words: quoted, so that no line of them passes for one of ours
        yield f"discarded    {', '.join(map(repr, trace.discarded))}"
    if trace.offered:
        yield f"shortlist    {', '.join(trace.offered)}"
    if trace.refused_reply:
        yield f"reply        not taken: {trace.refused_reply}"
    for part in trace.parts:
        yield from _part_lines(part, told)


def _part_lines(part: PartRuling, told: Told) -> Iterator[str]:
    yield f"{part.part_id}  {part.question!r}"
    if part.resumed is not None:
        answer = part.resumed
        chosen = f" {(answer.option_id or answer.value)!r}" if answer.option_id or answer.value else ""
        why = f", because {answer.reason}" if answer.reason else ""
        yield f"  1 resumed    {answer.kind} {answer.pending_id}: {answer.how}{chosen} by {answer.by}{why}"
    scores = ", ".join(f"{candidate.id} {candidate.score:g}" for candidate in part.candidates)
    yield f"  1 intent     {part.resolution}: {scores or 'no candidate'}"
    fixed = part.correction
    if fixed is not None:
        yield f"  2 correction {fixed.id}: {fixed.from_intent} -> {fixed.to_intent} by {', '.join(fixed.phrases)}"
    else:
        yield "  2 correction none"
    why = f" ({part.arbitration})" if part.arbitration else ""
    asked = f", asked between {', '.join(part.guidance)}" if part.guidance else ""
    yield f"  3 governance {part.outcome}{why}{asked}{f', because {part.reason}' if part.reason else ''}"
    contract = part.contract
    if contract is not None:
        terms = f"risk {contract.risk}{', login required' if contract.login_required else ''}"
        yield f"  4 contract   {contract.intent_id} = {contract.kind} {contract.resource_name}, {terms}"
    else:
        yield f"  4 contract   not asked{', public fallback' if part.fallback else ''}"
    used, beyond = told.used.get(part.part_id, ()), told.beyond.get(part.part_id, ())
    also = f"; held nothing near, so also: {', '.join(beyond)}" if beyond else ""
    yield f"  5 resource   {part.route_kind} {part.resource_name or '-'}; used: {', '.join(used) or 'none'}{also}"
    if quoted := told.quoted.get(part.part_id):
        yield f"    quoted     {', '.join(quoted)}"


def first_deviation(told: Told, part_id: str, expected: Expected) -> Stage | None:
    """The first step of a part that is not as expected, None when all are. Only the trace is looked at."""
    part = next(
        part for part in told.trace.parts if part.part_id == part_id
    )  # main has looked that it is there
    proposed = part.candidates[0].id if part.candidates else ""
    settled = part.correction.to_intent if part.correction else proposed
    ruled = part.contract.intent_id if part.contract else ""
    used = told.used.get(part_id, ())
    if told.trace.offered and expected.intent_id not in told.trace.offered:
        return "shortlist"
    if proposed != expected.intent_id and not (part.correction and settled == expected.intent_id):
        return "intent"
    if settled != expected.intent_id:
        return "correction"
    if ruled != expected.intent_id:
        return "governance"
    if part.contract is not None and part.contract.resource_name != expected.resource_name:
        return "contract"
    if used and set(used) != {expected.resource_name}:
        return "execution"
    return None


def _expectations(given: Sequence[str]) -> dict[str, Expected]:
    found = {}
    for each in given:
        part, _, rest = each.partition("=")
        intent, _, resource = rest.partition(":")
        if not (part and intent and resource):
            raise SystemExit(f"--expect {each}: write it as p1=INTENT_ID:resource")
        found[part] = Expected(intent, resource)
    return found


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="trace", description="why a question went where it went")
    parser.add_argument("account", nargs="?")
    parser.add_argument("run", nargs="?")
    parser.add_argument("--file", type=Path, help="read a stored trace instead of a table")
    parser.add_argument("--expect", action="append", default=[], metavar="PART=INTENT:RESOURCE")
    options = parser.parse_args(argv)
    if options.file:
        told = Told(wire.read_json(options.file.read_bytes(), RouteTrace), {})
    elif options.account and options.run and "TABLE_NAME" in os.environ:
        store = DynamoDBConversationStore(client("dynamodb"), os.environ["TABLE_NAME"])
        try:
            told = read_told(store, options.account, options.run)
        except LookupError as error:
            print(error, file=sys.stderr)
            return 1
    else:
        parser.error("give ACCOUNT and RUN with TABLE_NAME set, or --file")
    print("\n".join(told_lines(told)))
    there = [part.part_id for part in told.trace.parts]
    for part, expected in _expectations(options.expect).items():
        if part not in there:
            print(f"{part}: there is no such part, only {', '.join(there)}")
            continue
        stage = first_deviation(told, part, expected)
        print(f"{part}: {f'first went wrong at {stage}' if stage else 'as expected'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
