"""How well questions are understood, and what governance makes of the uncertain ones.

    python -m tools.routing_eval                      everything, about two minutes
    python -m tools.routing_eval table                the table of utterances (tests/governance), both halves apart
    python -m tools.routing_eval clinc150 banking77   public data, from ../shared/data (--data)
    python -m tools.routing_eval shortlist            how often the right intent is on a shortlist, by its length
    python -m tools.routing_eval cost                 CPU of governance per ruling; no model is needed

The model is the one of MODEL_BASE_URL (MODEL_NAME, MODEL_API_KEY), the embedder that of EMBEDDING_BASE_URL
(EMBEDDING_MODEL, EMBEDDING_API_KEY); without them, the offline demo model, which is started for the run, is both. Each
question goes through the product's own shortlist, prompt, reading and governance. Samples are drawn
with a fixed seed. The threshold is chosen on one half of the questions and judged on the other.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import fields, replace

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(ROOT),
    str(ROOT / "layers" / "turngate"),
]  # the package is shipped as a layer, not installed

from turngate.adapters.openai_chat import OpenAIChatModel  # noqa: E402 - needs the path
from turngate.adapters.openai_embeddings import OpenAIEmbedder  # noqa: E402 - needs the path
from turngate.domain import wire  # noqa: E402 - needs the path
from turngate.domain.config import ContractEntry, GovernanceSlice, OfferedIntent, PreRouting  # noqa: E402 - needs the path
from turngate.domain.governance import govern  # noqa: E402 - needs the path
from turngate.domain.resuming import Resumption  # noqa: E402 - needs the path
from turngate.domain.routing import Routing  # noqa: E402 - needs the path
from turngate.domain.shapes import TenantContext, TurnInput, TurnRef  # noqa: E402 - needs the path
from turngate.domain.shortlist import Catalogue  # noqa: E402 - needs the path
from turngate.domain.standard_replies import StandardReplies  # noqa: E402 - needs the path
from turngate.domain.understanding import read_understanding, understanding_request  # noqa: E402 - needs the path
from turngate.settings import Settings  # noqa: E402 - needs the path
from turngate.states.shortlisting import shortlist  # noqa: E402 - needs the path
from turngate.wiring import Ports  # noqa: E402 - needs the path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from turngate.domain.route_trace import PartRuling
    from turngate.domain.shapes import Texts, Understanding

DEMO_PYTHON = ROOT / ".venvs" / "demo-model" / "bin" / "python"
SEED = 20260106
EXAMPLES = 10
PER_INTENT = {"clinc150": 2, "banking77": 4}
OUT_OF_SCOPE = ""
GRID = (0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9)
GAPS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
LENGTHS = (10, 16, 24, 32, 48)
TENANT = TenantContext(account="eval", principal="user:eval", customer="C-1")


class Question(NamedTuple):
    """`intent` is empty for a question outside the catalogue."""

    text: str
    intent: str


class Data(NamedTuple):
    name: str
    governed: GovernanceSlice
    questions: list[Question]


class Asked(NamedTuple):
    question: Question
    spoken: TurnInput
    understanding: Understanding

    @property
    def ranked(self) -> list[tuple[str, float]]:
        """Candidates over all sub-questions, best first."""
        best: dict[str, float] = {}
        for sub in self.understanding.sub_questions:
            for candidate in sub.candidates:
                best[candidate.id] = max(candidate.score, best.get(candidate.id, 0.0))
        return sorted(best.items(), key=lambda item: -item[1])


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="routing_eval", description="understanding and governance, apart")
    parser.add_argument("which", nargs="*", help="table, clinc150, banking77, shortlist, cost; all")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    options = parser.parse_args(argv)
    which = options.which or ["cost", "table", "shortlist", "clinc150", "banking77"]
    if "cost" in which:
        report_cost()
    if which == ["cost"]:
        return 0
    with ports_from_environment() as ports:
        if "table" in which:
            report_table(ports)
        for name, read in READERS.items():
            if "shortlist" in which:
                report_shortlist(read(options.data), ports)
            if name in which:
                report_data(read(options.data), ports)
    return 0


@contextmanager
def ports_from_environment() -> Iterator[Ports]:
    """The configured endpoints, or the demo model for as long as the block lasts."""
    if os.environ.get("MODEL_BASE_URL"):
        yield Ports(Settings.from_environment(os.environ))
        return
    command = [str(DEMO_PYTHON), "-m", "local.demo_model", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as demo:  # noqa: S603 - our own
        try:
            announced = demo.stdout.readline().split() if demo.stdout else []
            if not announced:
                sys.exit("the demo model did not start; `make setup` installs it")
            url = announced[-1]
            yield Ports(
                model=OpenAIChatModel(base_url=url, api_key="", model="demo"),
                embedder=OpenAIEmbedder(base_url=url, api_key="", model="demo"),
            )
        finally:
            demo.terminate()


def understand(
    ports: Ports, spoken: TurnInput, governed: GovernanceSlice, resumption: Resumption, name: str = "table"
) -> Understanding:
    """What Understand would hand to Govern, without its run. `name` stands for the account."""
    offered = shortlist(ports, turn_of(name), spoken, (), governed).governed
    prompt = understanding_request(spoken, (), offered, resumption.waiting)
    answer, _ = ports.model.complete_json(
        system=prompt.system,
        user=prompt.user,
        schema_name=prompt.schema_name,
        schema=prompt.schema,
        timeout_s=60,
    )
    return read_understanding(answer, offered, spoken, waiting=resumption.waiting).understanding


def turn_of(account: str) -> TurnRef:
    return TurnRef(
        account=account,
        conversation="c",
        run="r",
        execution="x",
        epoch=1,
        seq=1,
        config_version=1,
        deadline=2**53,  # never: what is measured is not how fast this machine is today
    )


def report_cost() -> None:
    """CPU of a ruling with the mall's slice: the rules alone, and all that the function does with its payload."""
    from functions.turn.govern import handler  # noqa: PLC0415 - only this report needs the handler
    from tests.governance.table import governed, read_script  # noqa: PLC0415 - only this report needs the tests' files
    from turngate.states.govern import GovernRequest  # noqa: PLC0415 - as above

    slice_ = governed("mall")
    known = {intent.id for intent in slice_.intents}
    script = [subs for _, subs in read_script("scripted") if subs and all(set(s) <= known for _, s in subs)]
    payloads = []
    for subs in script:
        understanding = {
            "status": "OK",
            "rewritten": subs[0][0],
            "sub_questions": [
                {"text": text, "candidates": [{"id": i, "score": s} for i, s in scores.items()]}
                for text, scores in subs
            ],
        }
        spoken = {
            "messages": [{"message_seq": 1, "text": " ".join(text for text, _ in subs)}],
            "language": "en",
        }
        tenant, governance = wire.write(TENANT), wire.write(slice_)
        payloads.append(
            {"input": spoken, "tenant": tenant, "understanding": understanding, "governance": governance}
        )
    requests = [wire.read(payload, GovernRequest) for payload in payloads]

    def milliseconds(act: Callable[[], object]) -> float:
        act()
        began = time.process_time()
        act()
        return (time.process_time() - began) * 1000 / len(payloads)

    rules = milliseconds(lambda: [govern(r.input, r.understanding, r.governance, r.tenant) for r in requests])
    whole = milliseconds(lambda: [handler.lambda_handler(payload, None) for payload in payloads])
    parts = sum(len(subs) for subs in script)
    size = len(json.dumps(payloads[0]["governance"], ensure_ascii=False).encode())
    print(
        f"govern: {rules:.2f} ms CPU a turn for the rules ({len(payloads)} turns, {parts} parts), {whole:.2f} ms with"
        f" reading and writing its payload (slice {size} bytes)"
    )


# ── the table ───────────────────────────────────────────────────────────────────────────────────────────────────


def report_table(ports: Ports) -> None:
    """Both halves with the model's own candidates: every row that is not ruled as written is named, and how many would
    be with other numbers."""
    from tests.governance.table import Row, governed, rows, ruled  # noqa: PLC0415 - only this report needs the tests' files

    read: dict[str, Understanding] = {}

    def as_read(row: Row) -> Callable[[TurnInput, GovernanceSlice, Resumption], Understanding]:
        def understands(spoken: TurnInput, slice_: GovernanceSlice, resumption: Resumption) -> Understanding:
            if row.id not in read:
                read[row.id] = understand(ports, spoken, slice_, resumption)
            return read[row.id]

        return understands

    halves = {name: rows(name) for name in ("utterances", "utterances_blind")}
    for name, half in halves.items():
        right: Counter[str] = Counter()
        total: Counter[str] = Counter()
        wrong: list[str] = []
        for row in half:
            got, _ = ruled(row, as_read(row))
            group = f"{row.tenant} {row.language}"
            total[group] += 1
            if got == row.as_compared:
                right[group] += 1
            else:
                wrong.append(
                    f"  {row.id} {row.utterance!r}: {' | '.join(row.as_compared)}  ->  {' | '.join(got)}"
                )
        counts = ", ".join(f"{group} {right[group]}/{total[group]}" for group in sorted(total))
        print(f"\n{name}: {sum(right.values())}/{sum(total.values())} as written ({counts})")
        print("\n".join(wrong))
    print("\nas written with other numbers (threshold, gap, documents guided): both halves")
    for threshold in (0.4, 0.5, 0.6, 0.7, 0.8):
        for gap, guided in ((0.05, True), (0.05, False), (0.1, True), (0.15, True), (0.2, True), (0.3, True)):
            numbers = {"intent_threshold": threshold, "clarify_gap": gap, "guide_between_documents": guided}
            slices = {name: _with(governed(name), numbers) for name in ("mall", "cashier")}
            counted = [
                sum(ruled(row, as_read(row), slices[row.tenant])[0] == row.as_compared for row in half)
                for half in halves.values()
            ]
            print(f"    {threshold:.2f} {gap:.2f} {guided!s:<5}  {counted[0]}  {counted[1]}")


def _with(governed: GovernanceSlice, numbers: dict[str, Any]) -> GovernanceSlice:
    return replace(governed, routing=replace(governed.routing, **numbers))


# ── public data ─────────────────────────────────────────────────────────────────────────────────────────────────


def clinc150(data: Path) -> Data:
    """150 intents and questions outside of them (CC BY 3.0)."""
    raw = json.loads((data / "clinc150" / "train_val.json").read_text(encoding="utf-8"))
    examples: dict[str, list[str]] = defaultdict(list)
    for text, intent in raw["train"]:
        examples[intent].append(text)
    draw = random.Random(SEED)  # noqa: S311 - a sample, not a secret
    by_intent: dict[str, list[str]] = defaultdict(list)
    for text, intent in raw["val"]:
        by_intent[intent].append(text)
    questions = [
        Question(text, intent)
        for intent in sorted(by_intent)
        for text in draw.sample(by_intent[intent], PER_INTENT["clinc150"])
    ]
    questions += [Question(text, OUT_OF_SCOPE) for text, _ in raw["oos_val"]]
    return _data("clinc150", examples, questions, draw)


def banking77(data: Path) -> Data:
    """77 near-duplicates (CC BY 4.0); no questions outside."""
    by_intent: dict[str, list[str]] = defaultdict(list)
    with (data / "banking77" / "train.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            by_intent[row["category"]].append(row["text"])
    draw = random.Random(SEED)  # noqa: S311 - a sample, not a secret
    examples: dict[str, list[str]] = {}
    questions: list[Question] = []
    for intent in sorted(by_intent):
        drawn = draw.sample(by_intent[intent], EXAMPLES + PER_INTENT["banking77"])
        examples[intent] = drawn[:EXAMPLES]
        questions += [Question(text, intent) for text in drawn[EXAMPLES:]]
    return _data("banking77", examples, questions, draw)


READERS: dict[str, Callable[[Path], Data]] = {"clinc150": clinc150, "banking77": banking77}


def _data(name: str, examples: dict[str, list[str]], questions: list[Question], draw: random.Random) -> Data:
    """Each intent is its own collection, so that every confusion is a wrong resource; the public one is apart."""
    intents, entries = [], []
    for intent, texts in sorted(examples.items()):
        said = intent.replace("_", " ").replace("?", "")
        named: Texts = {"en": said}
        identity = "".join(c if c.isalnum() else "-" for c in intent).strip("-")
        shown = tuple(draw.sample(texts, min(EXAMPLES, len(texts))))
        intents.append(OfferedIntent(id=identity, name=named, description=named, examples=shown))
        entries.append(ContractEntry(intent_id=identity, kind="KB", resource_name=f"kb-{identity}"))
    same: Texts = {"en": "-"}
    required = [each.name for each in fields(StandardReplies) if each.required]
    governed = GovernanceSlice(
        default_language="en",
        routing=Routing(fallback_collections=("public",)),
        intents=tuple(intents),
        contract=tuple(entries),
        system_replies={},
        pre_routing=PreRouting(),
        replies=StandardReplies(**dict.fromkeys(required, same)),
    )
    renamed = [
        Question(q.text, "".join(c if c.isalnum() else "-" for c in q.intent).strip("-")) for q in questions
    ]
    draw.shuffle(renamed)
    return Data(name, governed, renamed)


def report_shortlist(data: Data, ports: Ports) -> None:
    """Share of the questions inside whose intent is among the nearest, and what finding it costs."""
    catalogue = Catalogue(data.governed, "en")
    inside = [question for question in data.questions if question.intent]
    vectors = ports.embedder.embed([question.text for question in inside])
    own = ports.embedder.embed(catalogue.texts)
    known = [intent.id for intent in data.governed.intents]
    print(f"\nshortlist, {data.name}: {len(known)} intents, {len(inside)} questions, share held by {LENGTHS}")
    for by, given in (("words", ((), ())), ("both", (vectors, own))):
        began = time.process_time()
        places = [
            catalogue.nearest([question.text], given[0][number : number + 1], given[1]).index(
                known.index(question.intent)
            )
            for number, question in enumerate(inside)
        ]
        spent = (time.process_time() - began) * 1000 / len(inside)
        held = "  ".join(f"{sum(place < length for place in places) / len(places):.3f}" for length in LENGTHS)
        print(f"  {by:<6} {held}   {spent:.1f} ms CPU a question")


def report_data(data: Data, ports: Ports) -> None:
    started = time.monotonic()
    asked = []
    for number, question in enumerate(data.questions):
        spoken = wire.read(
            {"messages": [{"message_seq": number + 1, "text": question.text}], "language": "en"}, TurnInput
        )
        asked.append(
            Asked(question, spoken, understand(ports, spoken, data.governed, Resumption(), data.name))
        )
    spent = time.monotonic() - started
    inside = [a for a in asked if a.question.intent]
    outside = [a for a in asked if not a.question.intent]
    print(
        f"\n{data.name}: {len(data.governed.intents)} intents with {EXAMPLES} examples, {len(inside)} questions"
        f" inside, {len(outside)} outside, {spent:.0f} s"
    )
    for top in (1, 3):
        hits = sum(a.question.intent in [name for name, _ in a.ranked[:top]] for a in inside)
        print(f"  top-{top} {hits / len(inside):.3f}")
    if outside:
        print(f"  AUROC inside / outside by the best score {auroc(inside, outside):.3f}")
    for title, half in (("chosen on", asked[::2]), ("judged on", asked[1::2])):
        _curve(title, half)
        _gaps(title, data, half)
    _governed(data, asked[1::2])


def auroc(inside: Sequence[Asked], outside: Sequence[Asked]) -> float:
    """Chance that a question inside has a higher best score than one outside (ties count half)."""
    wins = sum(
        1.0 if one > other else 0.5 if one == other else 0.0
        for one in map(best_score, inside)
        for other in map(best_score, outside)
    )
    return wins / (len(inside) * len(outside))


def best_score(asked: Asked) -> float:
    return max((score for _, score in asked.ranked), default=0.0)


def _curve(title: str, asked: Sequence[Asked]) -> None:
    """Per threshold: the share of questions inside that are routed, how many of those rightly, and the share of
    questions outside that would be routed at all."""
    inside, outside = [a for a in asked if a.question.intent], [a for a in asked if not a.question.intent]
    print(f"  threshold {title} {len(asked)}: routed inside / of those right / routed outside")
    for threshold in GRID:
        routed = [a for a in inside if best_score(a) >= threshold]
        right = sum(a.ranked[0][0] == a.question.intent for a in routed)
        wrongly = sum(best_score(a) >= threshold for a in outside)
        shares = [len(routed) / len(inside), right / len(routed) if routed else 0.0]
        shares += [wrongly / len(outside)] if outside else []
        print(f"    {threshold:.2f}  " + "  ".join(f"{share:.3f}" for share in shares))


def _governed(data: Data, asked: Sequence[Asked]) -> None:
    """What became of each question with the product's defaults."""
    for title, which in (("inside", True), ("outside", False)):
        chosen = [a for a in asked if bool(a.question.intent) is which]
        if chosen:
            outcomes = _outcomes(data.governed, chosen)
            shares = ", ".join(
                f"{name} {count / len(chosen):.3f}" for name, count in sorted(outcomes.items())
            )
            print(f"  governance, {title} ({len(chosen)}): {shares}")


def _gaps(title: str, data: Data, asked: Sequence[Asked]) -> None:
    """Questions inside, by the lead that the best candidate needs."""
    inside = [a for a in asked if a.question.intent]
    print(
        f"  gap {title} {len(inside)}: routed rightly / wrongly / asked with the right one offered / asked without it"
    )
    for gap in GAPS:
        outcomes = _outcomes(_with(data.governed, {"clarify_gap": gap}), inside)
        names = (
            "routed rightly",
            "routed wrongly",
            "asked, right one offered",
            "asked, right one not offered",
        )
        print(f"    {gap:.2f}  " + "  ".join(f"{outcomes[name] / len(inside):.3f}" for name in names))


def _outcomes(governed: GovernanceSlice, asked: Sequence[Asked]) -> Counter[str]:
    return Counter(
        _outcome(each.question, govern(each.spoken, each.understanding, governed, TENANT).trace.parts)
        for each in asked
    )


def _outcome(question: Question, parts: Sequence[PartRuling]) -> str:
    """The worst that happened to any part: a wrong resource, else what the first part got."""
    routed = [part.intent_id for part in parts if part.outcome == "ROUTED"]
    if any(name != question.intent for name in routed):
        return "routed wrongly"
    if routed:
        return "routed rightly"
    first = parts[0]
    if first.outcome == "NEED_CLARIFICATION":
        return (
            "asked, right one offered"
            if question.intent in first.guidance
            else "asked, right one not offered"
        )
    return {"GLOBAL_KB_FALLBACK": "public documents", "OUT_OF_SCOPE": "refused"}.get(first.outcome, "error")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
