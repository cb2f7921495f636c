"""A catalogue too large to show: the model chooses from a shortlist, and from nothing else (F-074, F-075)."""

from __future__ import annotations

import json

import pytest

from tests.machines.scripts import phrases, reads
from tests.machines.test_degraded import DownEmbedder
from tests.machines.world import ACCOUNT
from tests.unit.assistant_example import config_document, entry, intent
from tools.trace import read_told, told_lines
from turngate.adapters.memory.embedder import HashingEmbedder
from turngate.domain import wire
from turngate.domain.config import AssistantConfig

QUESTION = "Returns: when are refunds paid?"
READ = reads((QUESTION, {"RETURN_POLICY": 0.9}))
SAID = phrases(("p1", "Refunds take 3 working days.", ["p1.E1"]))
MOST = 10


def large(**routing: object) -> AssistantConfig:
    """The bicycle shop with thirty departments more than it has."""
    document = config_document()
    document["routing"] |= {"shortlist": MOST, **routing}
    document["intents"] += [intent(f"DEPARTMENT_{n}", f"部门{n}号", f"Department {n}") for n in range(30)]
    document["contract"] += [entry(f"DEPARTMENT_{n}", "KB", "guide-kb") for n in range(30)]
    return wire.read(document, AssistantConfig)


class CountingEmbedder(HashingEmbedder):
    """Counts the texts of each call."""

    def __init__(self, dimensions: int = 128) -> None:
        super().__init__(dimensions)
        self.calls: list[int] = []

    def embed(self, texts, *, timeout_s=None):
        texts = list(texts)
        self.calls.append(len(texts))
        return super().embed(texts, timeout_s=timeout_s)


def asked(world, call: int = 0) -> list[str]:
    """Ids that the model was shown; its schema allows no other."""
    shown = [each["id"] for each in json.loads(world.model.calls[call].user)["intents"]]
    sub = world.model.calls[call].schema["properties"]["sub_questions"]["items"]
    candidate = sub["properties"]["candidates"]["items"]
    assert candidate["properties"]["id"]["enum"] == shown
    return shown


def understood(world, run: int = 0) -> dict[str, object]:
    (data,) = (data for _, step, _, data in world.run_log(world.runs()[run].run) if step == 10)
    return {name: data[name] for name in ("offered", "of", "shortlist", "degraded", "dropped")}


@pytest.mark.covers("F-074", "F-606")
def test_a_large_catalogue_is_offered_as_a_shortlist_that_the_trace_names(story) -> None:
    world = story(READ, SAID, configuration=large())
    world.say(QUESTION)
    world.turn()
    assert world.reply["text"] == "Refunds take 3 working days."
    offered = asked(world)
    assert len(offered) == MOST
    assert "RETURN_POLICY" in offered
    of = len([i for i in large().intents if i.enabled])
    expected = {"offered": MOST, "of": of, "shortlist": "words_and_vectors", "degraded": "", "dropped": {}}
    assert understood(world) == expected
    lines = list(told_lines(read_told(world.store, ACCOUNT, world.runs()[0].run)))
    assert f"shortlist    {', '.join(offered)}" in lines


@pytest.mark.covers("F-075")
def test_an_enabled_intent_that_was_not_offered_is_no_candidate(story) -> None:
    world = story(
        reads((QUESTION, {"DEPARTMENT_29": 0.99, "RETURN_POLICY": 0.9})), SAID, configuration=large()
    )
    world.say(QUESTION)
    world.turn()
    assert "DEPARTMENT_29" not in asked(world)
    assert understood(world)["dropped"] == {"unknown_intent": 1}
    assert world.reply["text"] == "Refunds take 3 working days."


@pytest.mark.covers("F-624")
def test_without_the_embedder_words_alone_make_the_shortlist(story) -> None:
    world = story(READ, SAID, configuration=large())
    world.embedder = DownEmbedder()
    world.say(QUESTION)
    world.turn()
    assert "RETURN_POLICY" in asked(world)
    assert (understood(world)["shortlist"], understood(world)["degraded"]) == ("words", "connection")


def test_a_follow_up_is_looked_for_with_what_was_asked_before(story) -> None:
    follow_up = reads(("and 7?", {"DEPARTMENT_29": 0.9}))
    answered = phrases(("p1", "Use two tyre levers.", ["p1.E1"]))
    world = story(
        reads(("department 29", {"DEPARTMENT_29": 0.9})),
        answered,
        follow_up,
        answered,
        configuration=large(),
    )
    world.say("What about department 29")
    world.turn()
    world.say("and when?")
    world.turn()
    assert "DEPARTMENT_29" in asked(world, 2)


def test_a_small_catalogue_is_offered_whole_and_needs_no_vectors(story) -> None:
    world = story(READ, SAID)
    world.embedder = counting = CountingEmbedder()
    world.say(QUESTION)
    world.turn()
    assert counting.calls == [1]  # Retrieve's question
    assert understood(world)["shortlist"] == "all"
    assert read_told(world.store, ACCOUNT, world.runs()[0].run).trace.offered == ()


def test_a_catalogue_is_embedded_once_and_anew_when_the_embedding_model_changes(story) -> None:
    world = story(*[READ, SAID] * 4, configuration=large())
    counts, sizes = [], []
    catalogue = len([i for i in large().intents if i.enabled])
    for dimensions in (128, 128, 64, 64):
        world.embedder = counting = CountingEmbedder(dimensions)
        world.say(QUESTION)
        world.turn()
        counts.append(max(counting.calls))
        sizes.append(understood(world, len(counts) - 1)["degraded"])
        assert "RETURN_POLICY" in asked(world, 2 * len(counts) - 2)
    assert [count == catalogue for count in counts] == [True, False, False, True]
    assert sizes == ["", "", "other_length", ""]
