"""A tenant with more intents than a model is shown: the mall and the 77 of banking77 in one catalogue."""

from __future__ import annotations

import csv
import json
from collections import defaultdict

import pytest

from local.stack import ROOT
from local.tenants import MALL
from tools.trace import read_told
from turngate.domain import wire
from turngate.domain.config import AssistantConfig
from turngate.protocol.configuring import activate_config, put_config

BANKING = ROOT / ".." / "shared" / "data" / "banking77" / "train.csv"
ACCOUNT = "mall-and-bank"
EXAMPLES = 1


@pytest.fixture(scope="module")
def catalogue(started):
    """The ids of the catalogue; the account has no documents, because only rulings are looked at."""
    if not BANKING.is_file():
        pytest.skip(f"{BANKING} is missing: banking77 is not part of this repository")
    world, _ = started
    document = json.loads((MALL / "config.json").read_text(encoding="utf-8")) | {"account": ACCOUNT}
    document["routing"][
        "corrections"
    ] = []  # a turn carries 64 KB of a configuration, and the 77 take the rest
    collections = {e["resource_name"]: True for e in document["contract"] if e["kind"] == "KB"}
    collections |= dict.fromkeys(document["routing"]["fallback_collections"], True)
    examples: dict[str, list[str]] = defaultdict(list)
    with BANKING.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            examples[row["category"].strip("?")].append(row["text"])
    for name, texts in examples.items():
        said = dict.fromkeys(document["languages"], name.replace("_", " "))
        intent = {"id": name, "domain": "bank", "name": said, "description": said}
        document["intents"].append({**intent, "examples": texts[:EXAMPLES]})
        document["contract"].append(
            {"intent_id": name, "kind": "KB", "resource_name": next(iter(collections))}
        )
    config = wire.read(document, AssistantConfig)
    put_config(world.stack.store, config, 1, collections=collections)
    activate_config(world.stack.store, ACCOUNT, 1)
    return [intent.id for intent in config.intents]


@pytest.mark.covers("F-074", "F-606")
@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("我的快递到哪里了？", "LOGISTICS_QUERY"),
        ("My card was swallowed by the cash machine, what now?", "card_swallowed"),
    ],
)
def test_the_model_chooses_from_a_shortlist_of_a_large_catalogue(world, catalogue, question, intent):
    chat = world.guest(ACCOUNT).chat()
    run = chat.ask(question)["run_id"]
    (understood,) = (
        data
        for name, data in world.run_log(run, ACCOUNT).items()
        if data.get("task") == "understand" and name.endswith("model.finished")
    )
    assert len(catalogue) == 101
    assert (understood["offered"], understood["of"]) == (32, 101)
    assert (understood["shortlist"], understood["degraded"]) == ("words_and_vectors", "")
    trace = read_told(world.stack.store, ACCOUNT, run).trace
    assert len(trace.offered) == 32
    assert set(trace.offered) < set(catalogue)
    assert trace.parts[0].candidates[0].id == intent
    world.settle(chat.conversation, ACCOUNT)
