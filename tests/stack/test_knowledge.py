"""A second tenant with 698 real documents: answered from its own, and from nobody else's."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from local.stack import ROOT
from local.tenants import read_bank
from turngate.domain.knowledge import Document

DOCUMENTS = ROOT / ".." / "shared" / "data" / "tau2_banking" / "documents"
INCREASE = "How many months must an account be open before a credit limit increase?"
CANARY = "XANADU-7731"


@pytest.fixture(scope="module")
def bank(started):
    if not DOCUMENTS.is_dir():
        pytest.skip(f"{DOCUMENTS} is missing: the documents of tau2_banking are not part of this repository")
    world, _ = started
    config, collections = read_bank(DOCUMENTS)
    assert world.stack.loader.load(config, collections) == {"bank-kb": 698}
    return config, collections["bank-kb"]


def ask(world, account, question):
    """Reply to a guest of the account, and what was retrieved for it: references and scores."""
    chat = world.guest(account).chat()
    reply = chat.ask(question)
    log = world.run_log(reply["run_id"], account)
    found = [
        (data["evidence"], data["scores_milli"])
        for name, data in sorted(log.items())
        if name.endswith("retrieval.finished")
    ]
    chat.ending(reply["run_id"])
    world.settle(chat.conversation, account)
    return reply["data"], found


@pytest.mark.parametrize(
    "question", [INCREASE, "What is the fee for a domestic wire transfer?", "How do I dispute a charge?"]
)
def test_a_question_to_the_bank_is_answered_from_its_documents(world, bank, question):
    known = {document.document_id: document for document in bank[1]}
    reply, found = ask(world, "bank", question)
    assert reply["outcome"] == "answer"
    assert found
    assert {source["collection"] for source in reply["sources"]} == {"bank-kb"}
    quoted = "".join(known[source["document_id"]].text for source in reply["sources"])
    figures = {word for word in reply["content"].split() if any(char.isdigit() for char in word)}
    assert all(figure.strip(".,;:()*|") in quoted for figure in figures)


@pytest.mark.invariant("I6")
@pytest.mark.covers("F-649")
def test_a_tenants_documents_are_not_found_by_another_and_do_not_move_its_scores(world, bank):
    before = ask(world, "bank", INCREASE)
    planted = Document(
        document_id="canary",
        title="Credit limit increase",
        text=f"An account must be open for 77 months before a credit limit increase, says {CANARY}.",
        language="en",
    )
    rival = replace(bank[0], account="rival")
    world.stack.loader.load(rival, {"bank-kb": [planted]})
    theirs, of_rival = ask(world, "rival", INCREASE)
    assert CANARY in theirs["content"]
    assert {each.split("/")[2] for references, _ in of_rival for each in references} == {"canary"}
    assert ask(world, "bank", INCREASE) == before
    assert CANARY not in str(before)
