"""How often the right document is found: words alone, vectors alone, both.

    .venv/bin/python -m tools.hit_rate [--weights] [--data ../shared/data]

Runs the product's own index and embedder. Embeddings come from EMBEDDING_BASE_URL (with EMBEDDING_API_KEY and
EMBEDDING_MODEL) or, without it, from the offline demo model, which is started for the run. `--weights` prints other
weights of the words too, on the sets they were chosen on and never on the thirty questions.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(ROOT),
    str(ROOT / "layers" / "turngate"),
]  # the package is shipped as a layer, not installed

from local.tenants import MALL, read_tenant  # noqa: E402 - needs the path
from turngate.adapters.knowledge_files import DirectoryFiles  # noqa: E402 - needs the path
from turngate.adapters.openai_embeddings import OpenAIEmbedder  # noqa: E402 - needs the path
from turngate.adapters.sqlite_knowledge import SqliteKnowledge  # noqa: E402 - needs the path
from turngate.domain.knowledge import Document  # noqa: E402 - needs the path
from turngate.domain.ranking import LEXICAL_WEIGHT, fuse  # noqa: E402 - needs the path
from turngate.states.retrieve import NEAREST  # noqa: E402 - needs the path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from turngate.ports import Embedder

QUESTIONS = ROOT / "examples" / "bank" / "questions.json"
DEMO_PYTHON = ROOT / ".venvs" / "demo-model" / "bin" / "python"
WEIGHTS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
TOP = 5
DEPTH = 100
ACCOUNT = "hit-rate"


@dataclass(frozen=True)
class Question:
    text: str
    document_id: str


@dataclass(frozen=True)
class Check:
    name: str
    documents: Sequence[Document]
    questions: dict[str, list[Question]]
    """By language, or another name for a part of them."""


def bank(data: Path) -> list[Document]:
    """The documents of tau2_banking."""
    read = [
        json.loads(path.read_text()) for path in sorted((data / "tau2_banking" / "documents").glob("*.json"))
    ]
    return [
        Document(document_id=row["id"], title=row["title"], text=row["content"], language="en")
        for row in read
    ]


def thirty(data: Path) -> Check:
    """The thirty questions, written before there was code to answer them."""
    questions: dict[str, list[Question]] = {}
    for row in json.loads(QUESTIONS.read_text())["questions"]:
        questions.setdefault(row["language"], []).append(Question(row["question"], row["document_id"]))
    return Check("thirty questions about 698 bank documents", bank(data), questions)


def known_items(data: Path) -> Check:
    """Each bank document without its title, asked for by that title; titles that several share are left out. Those
    that are questions are shown again by themselves."""
    documents = bank(data)
    titles = [document.title for document in documents]
    questions = [Question(d.title, d.document_id) for d in documents if titles.count(d.title) == 1]
    bare = [replace(document, title="") for document in documents]
    asked = [question for question in questions if question.text.endswith("?")]
    return Check("bank documents by their titles", bare, {"en": questions, "en, titles that ask": asked})


def cmrc(data: Path) -> Check:
    """Chinese passages and the questions that readers asked about them (CMRC 2018, trial set)."""
    documents: list[Document] = []
    questions: list[Question] = []
    for article in json.loads((data / "cmrc2018" / "trial.json").read_text())["data"]:
        for passage in article["paragraphs"]:
            documents.append(
                Document(
                    document_id=passage["id"],
                    title=article["title"],
                    text=passage["context"],
                    language="zh-CN",
                )
            )
            questions.extend(
                Question(row["question"], passage["id"]) for row in passage["qas"] if row["question"]
            )
    return Check("Chinese passages (CMRC 2018)", documents, {"zh-CN": questions})


def rank(scores: dict[str, float], document_id: str) -> int | None:
    """The place, from 1, of a document among others by score."""
    order = sorted(scores, key=lambda key: -scores[key])
    return order.index(document_id) + 1 if document_id in scores else None


def line(name: str, ranks: Sequence[int | None]) -> str:
    hits = [sum(1 for place in ranks if place and place <= top) / len(ranks) for top in (1, TOP)]
    mrr = sum(1 / place for place in ranks if place and place <= 10) / len(ranks)  # noqa: PLR2004 - MRR@10
    return f"    {name:<24} top 1 {hits[0]:.3f}   top {TOP} {hits[1]:.3f}   MRR@10 {mrr:.3f}"


def run(check: Check, embedder: Embedder, *, weights: bool) -> None:
    """Publish the documents of a check as one version and print how its questions fare."""
    with tempfile.TemporaryDirectory() as folder, SqliteKnowledge(DirectoryFiles(Path(folder))) as index:
        summary = index.put_version(ACCOUNT, "all", 1, check.documents, embedder)
        print(
            f"{check.name}: {summary.documents} documents, {summary.pieces} pieces, vectors by {summary.model}"
        )
        for language, questions in check.questions.items():
            vectors = embedder.embed([question.text for question in questions])
            found: dict[str, list[dict[str, float]]] = {"words": [], "vectors": [], "both": []}
            start = time.process_time()
            for question, vector in zip(questions, vectors, strict=True):
                for name, text, asked in (
                    ("words", question.text, None),
                    ("vectors", "", vector),
                    ("both", question.text, vector),
                ):
                    scores: dict[str, float] = {}
                    for hit in index.search(ACCOUNT, {"all": 1}, text, asked, DEPTH).pieces:
                        scores.setdefault(hit.document_id, hit.score)
                    found[name].append(scores)
            cpu_ms = (time.process_time() - start) * 1000 / len(questions) / len(found)
            print(f"  {language}: {len(questions)} questions, {cpu_ms:.2f} ms CPU per search of {DEPTH}")
            for name, rows in found.items():
                ranks = [rank(scores, q.document_id) for scores, q in zip(rows, questions, strict=True)]
                print(line(f"{name} (weight {LEXICAL_WEIGHT})" if name == "both" else name, ranks))
            if weights:
                sweep(found, questions)


def run_collections(embedder: Embedder) -> None:
    """Several collections at once: the mall's, asked with the example questions of its document intents. Ranked as one,
    against each by its own best; and how often a question's own collection looks as if it held nothing (it should
    not), and another one as if it did (it should not either)."""
    config, collections = read_tenant(MALL)
    examples = {intent.id: intent.examples for intent in config.intents}
    bound = {entry.intent_id: entry.resource_name for entry in config.contract if entry.kind == "KB"}
    asked = [(text, name) for intent, name in bound.items() for text in examples[intent]]
    vectors = embedder.embed([text for text, _ in asked])
    public = config.routing.fallback_collections
    together, apart = [], []
    strays: dict[bool, list[bool]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder, SqliteKnowledge(DirectoryFiles(Path(folder))) as index:
        for name, documents in collections.items():
            index.put_version(ACCOUNT, name, 1, documents, embedder)
        for (text, own), vector in zip(asked, vectors, strict=True):
            if own in public:
                ranked = index.search(ACCOUNT, dict.fromkeys(public, 1), text, vector, TOP).pieces
                together.append(ranked[0].collection == own)
                bests = [index.search(ACCOUNT, {name: 1}, text, vector, 1).pieces for name in public]
                apart.append(max((b[0] for b in bests if b), key=lambda piece: piece.score).collection == own)
            for name in collections:
                searched = dict.fromkeys((name, *public), 1)
                nearest = index.search(ACCOUNT, searched, text, vector, NEAREST).pieces
                strays[name == own].append(all(piece.collection != name for piece in nearest))
    print(f"mall: {len(asked)} questions, {len(collections)} collections, {len(public)} of them public")
    print(
        f"  right collection first of the public ones: ranked as one {sum(together) / len(together):.3f}",
        end="",
    )
    print(f", each by its own best {sum(apart) / len(apart):.3f}")
    rates = {own: sum(each) / len(each) for own, each in strays.items()}
    print(f"  nothing near: in the own collection {rates[True]:.3f}, in another one {rates[False]:.3f}")


def sweep(found: dict[str, list[dict[str, float]]], questions: Sequence[Question]) -> None:
    """Print what other weights of the words would have given."""
    for weight in WEIGHTS:
        ranks = []
        for words, vectors, question in zip(found["words"], found["vectors"], questions, strict=True):
            names = sorted(words | vectors)
            numbers = {name: number for number, name in enumerate(names)}
            fused = fuse(
                {numbers[name]: score for name, score in words.items()},
                {numbers[name]: score for name, score in vectors.items()},
                weight,
            )
            ranks.append(
                rank({names[number]: score for number, score in fused.items()}, question.document_id)
            )
        print(line(f"  words weigh {weight}", ranks))


@contextmanager
def embedder_from_environment() -> Iterator[Embedder]:
    """The configured endpoint, or the demo model for as long as the block lasts."""
    if url := os.environ.get("EMBEDDING_BASE_URL"):
        model = os.environ.get("EMBEDDING_MODEL", "text-embedding-3-small")
        yield OpenAIEmbedder(base_url=url, api_key=os.environ.get("EMBEDDING_API_KEY", ""), model=model)
        return
    command = [str(DEMO_PYTHON), "-m", "local.demo_model", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as demo:  # noqa: S603 - our own
        try:
            announced = demo.stdout.readline().split() if demo.stdout else []
            if not announced:
                sys.exit("the demo model did not start; `make setup` installs it")
            yield OpenAIEmbedder(base_url=announced[-1], api_key="", model="demo", timeout_s=60)
        finally:
            demo.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="tools.hit_rate", description="How often the right document is found."
    )
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument(
        "--weights", action="store_true", help="print other weights on the sets they were chosen on"
    )
    arguments = parser.parse_args()
    if not (arguments.data / "tau2_banking").is_dir():
        sys.exit(f"no data at {arguments.data}: nothing was measured")
    with embedder_from_environment() as embedder:
        run_collections(embedder)
        run(cmrc(arguments.data), embedder, weights=arguments.weights)
        run(known_items(arguments.data), embedder, weights=arguments.weights)
        run(thirty(arguments.data), embedder, weights=False)


if __name__ == "__main__":
    main()
