"""The pieces of `make bench`: everybody plays the same turn, ours the whole product's; holds are judged as said."""

from __future__ import annotations

import pytest

from bench.__main__ import losses, peers_named
from bench.contest import OURS, PACKED, PEERS, PLAIN, ROOT, Contest, Entrant, Turns, UnfairError
from bench.scenario import ANSWER, mall_scenario
from bench.turn_budget import Limit, TurnBudget, read_turn_budget
from bench.verdicts import Row, table_of, turn_rows
from local.tenants import MALL, read_tenant

SHORT, LONG = 10, 1_000
STEPS = [
    "AcceptMessage",
    "BeginTurn",
    "Understand",
    "Govern",
    "Retrieve",
    "ComposeReply",
    "CommitTurn",
    "PushEvents",
]


class Parrot:
    """A contestant that answers without a model."""

    def __init__(self, scenario, base_url):
        self.answer = scenario["answers"][""]

    def seed(self, turns, conversation=None):
        return conversation or "only"

    def turn(self, conversation, watch):
        with watch.step("turn"):
            return self.answer


class Stranger(Parrot):
    """One that says something else."""

    def turn(self, conversation, watch):
        return "Ask somebody else."


@pytest.fixture(scope="module")
def contest():
    with Contest([OURS, PLAIN, PACKED], [SHORT, LONG]) as running:
        yield running


@pytest.fixture(scope="module")
def played(contest):
    return contest.play(rounds=2)


def test_our_turn_goes_through_every_step_and_is_timed_in_each(played):
    for length in (SHORT, LONG):
        turns = played["ours", length]
        assert len(turns.cpu) == 2
        assert [list(steps) for steps in turns.cpu] == [STEPS, STEPS]
        assert all(seconds > 0 for steps in turns.cpu for seconds in steps.values())


def test_our_turn_makes_the_requests_it_makes_on_the_deployed_stack_however_long_the_conversation(played):
    """docs/measured.md, "One turn"."""
    for length in (SHORT, LONG):
        assert played["ours", length].requests_of(without=["PushEvents"]) == 14
        assert played["ours", length].requests_of() == 26
    assert played["ours", SHORT].requests[0]["Govern"] == 0


def test_the_answer_is_the_documents_and_everybody_asks_twice_for_about_as_much(contest, played):
    """`play` has compared every reply with the answer, and `asked` counts the calls."""
    _, collections = read_tenant(MALL)
    documents = {each.document_id: each for held in collections.values() for each in held}
    assert ANSWER in documents["refund-timing-en"].text
    assert sum(ANSWER in shown for shown in mall_scenario().documents) == 1
    sizes = contest.asked()
    assert set(sizes) == {"ours", "plain", "packed"}
    assert max(sizes.values()) < 1.15 * min(sizes.values())


@pytest.mark.parametrize(
    ("entrant", "why"),
    [("Stranger", "Stranger replied 'Ask somebody else.'"), ("Parrot", "made 0 model requests in 4 turns")],
)
def test_another_turn_than_everybodys_is_no_measurement(entrant, why):
    with (
        Contest([Entrant(entrant, f"tests.tools.test_bench:{entrant}")], [1]) as contest,
        pytest.raises(UnfairError, match=why),
    ):
        contest.play(rounds=1)
        contest.asked()


def test_a_contestant_that_dies_is_named():
    with Contest([Entrant("nobody", "bench.nobody:Nobody")], [1]) as contest:
        for _ in range(2):
            with pytest.raises(UnfairError, match="nobody ended"):
                contest.play(rounds=1)


def test_turns_that_make_different_requests_have_no_number():
    turns = Turns(requests=[{"BeginTurn": 4}, {"BeginTurn": 5}])
    with pytest.raises(UnfairError, match=r"\[4, 5\]"):
        turns.requests_of()


@pytest.mark.parametrize(
    ("value", "slack", "verdict", "fails"),
    [
        (1.2, 0.1, "within stretch", False),
        (1.21, 0.1, "holds", False),
        (1.5, 0.1, "holds", False),
        (1.6, 0.1, "LOSES, within slack", False),
        (1.66, 0.1, "LOSES", True),
        (1.51, 0.0, "LOSES", True),
    ],
)
def test_a_row_is_judged_by_stretch_hold_and_slack(value, slack, verdict, fails):
    row = Row("a turn", value, hold=1.5, stretch=1.2, slack=slack)
    assert (row.verdict, row.fails) == (verdict, fails)
    assert bool(losses([row])) == verdict.startswith("LOSES")
    assert verdict in table_of([row])


def test_a_row_without_a_hold_is_neither_won_nor_lost():
    row = Row("a peer", 1000.0)
    assert (row.verdict, row.fails, losses([row])) == ("for comparison", False, [])


def attempt(ours, plain=1.0, more_requests=0):
    """An attempt with these CPU seconds at turn 100."""

    def turns(seconds, requests):
        return Turns([{"turn": seconds}] * 3, [{"BeginTurn": requests, "PushEvents": 12}] * 3)

    return {
        **{("ours", length): turns(ours, 14) for length in (20, 100)},
        ("ours", 10_000): turns(1.1 * ours, 14 + more_requests),
        **{("plain", length): turns(plain, 0) for length in (20, 100, 10_000)},
        **{("packed", length): turns(plain / 2, 0) for length in (20, 100, 10_000)},
        **{("graph", length): turns(length * plain, 0) for length in (20, 100, 10_000)},
    }


BUDGET = TurnBudget(
    at=100,
    short=20,
    long=10_000,
    rounds=1,
    attempts=3,
    slack=0.1,
    limits={
        "cpu": Limit(1.5, 1.2, is_ratio=True),
        "growth": Limit(1.15, 1.05, is_ratio=True),
        "requests": Limit(14, 12, is_ratio=False),
        "more_requests": Limit(0, 0, is_ratio=False),
    },
)


def rows_of(*attempts):
    return {row.what: row for row in turn_rows(attempts, BUDGET)}


def test_the_best_attempt_counts_for_what_we_hold_and_the_last_for_what_is_only_compared():
    rows = rows_of(attempt(3.0), attempt(1.4), attempt(2.0))
    cpu = rows["CPU of a turn at turn 100, x plain openai loop"]
    assert (cpu.value, cpu.verdict) == (1.4, "holds")
    assert rows["CPU of a turn, turn 10,000 / turn 20"].value == pytest.approx(1.1)
    assert rows["CPU at turn 100, x plain loop that packs its history as we do"].value == 4.0
    assert rows["graph, turn 10,000 / turn 20"].value == 500.0


def test_noise_may_add_to_a_ratio_but_not_to_a_count():
    rows = rows_of(attempt(1.6, more_requests=1))
    assert rows["CPU of a turn at turn 100, x plain openai loop"].verdict == "LOSES, within slack"
    assert rows["DynamoDB requests a turn, accept to commit"].verdict == "LOSES"
    assert rows["… more at turn 10,000 than at turn 20, push included"].verdict == "LOSES"


def test_every_row_of_a_turn_has_its_limit_in_the_budget():
    budget = read_turn_budget(ROOT)
    assert budget.limits.keys() == BUDGET.limits.keys()
    assert (budget.short, budget.at, budget.long) == (BUDGET.short, BUDGET.at, BUDGET.long)
    assert all(limit.stretch <= limit.hold for limit in budget.limits.values())


def test_peers_are_named_or_left_out_and_an_unknown_one_is_refused(capsys):
    assert peers_named([]) == []
    assert peers_named(["langgraph"]) == [PEERS["langgraph"]]
    with pytest.raises(SystemExit):
        peers_named(["autogpt"])
    assert "no such peer: autogpt" in capsys.readouterr().err
