"""Tickets open one connection once; connection rows say who is on the line."""

from __future__ import annotations

import pytest

from tests.protocol.world import START, WatchedStore
from turngate.adapters.memory.edges import FixedClock, SeededIds
from turngate.domain import keys
from turngate.domain.shapes import TenantContext
from turngate.errors import RefusedError, TransientError
from turngate.protocol.connecting import (
    TICKET_TTL_MS,
    forget_by_id,
    forget_connection,
    issue_ticket,
    redeem_ticket,
    remember_connection,
)

ANN = TenantContext(account="acme", principal="ann", customer="c1", client_type="app", client_session="s1")


@pytest.fixture
def store():
    return WatchedStore()


@pytest.fixture
def clock():
    return FixedClock(START)


def refused(store, clock, ticket: str) -> bool:
    with pytest.raises(RefusedError) as refusal:
        redeem_ticket(store, clock, ticket)
    return refusal.value.code == "ticket_invalid"


class TestTickets:
    @pytest.mark.covers("F-638", "F-639", "F-643")
    def test_a_ticket_brings_back_who_it_was_made_for(self, store, clock):
        ticket = issue_ticket(store, clock, SeededIds(1), ANN)
        assert redeem_ticket(store, clock, ticket) == ANN

    def test_it_opens_one_connection(self, store, clock):
        ticket = issue_ticket(store, clock, SeededIds(1), ANN)
        redeem_ticket(store, clock, ticket)
        assert refused(store, clock, ticket)

    def test_of_two_uses_at_once_one_opens(self, store, clock):
        ticket = issue_ticket(store, clock, SeededIds(1), ANN)
        store.before["redeem_ticket"] = lambda: redeem_ticket(store, clock, ticket)
        assert refused(store, clock, ticket)

    @pytest.mark.parametrize(("age", "valid"), [(TICKET_TTL_MS, True), (TICKET_TTL_MS + 1, False)])
    def test_it_lives_sixty_seconds(self, store, clock, age, valid):
        ticket = issue_ticket(store, clock, SeededIds(1), ANN)
        clock.advance(age)
        if valid:
            assert redeem_ticket(store, clock, ticket) == ANN
        else:
            assert refused(store, clock, ticket)

    @pytest.mark.parametrize("forged", ["", "x", "#", "退货", "a" * 10_000, "\x00"])
    def test_a_forged_one_opens_nothing(self, store, clock, forged):
        issue_ticket(store, clock, SeededIds(1), ANN)
        assert refused(store, clock, forged)

    def test_what_is_stored_is_no_ticket(self, store, clock):
        ticket = issue_ticket(store, clock, SeededIds(1), ANN)
        (key,) = store.snapshot()
        stored = key.pk.removeprefix("TKT#")
        assert ticket not in str(store.snapshot())
        assert refused(store, clock, stored)

    def test_two_tickets_of_one_person_are_two(self, store, clock):
        ids = SeededIds(1)
        assert issue_ticket(store, clock, ids, ANN) != issue_ticket(store, clock, ids, ANN)

    def test_a_lost_answer_of_its_use_does_not_open(self, store, clock):
        """Better one ticket too many than one connection too many: the client asks for another."""
        ticket = issue_ticket(store, clock, SeededIds(1), ANN)
        store.lose["redeem_ticket"] = 1
        with pytest.raises(TransientError):
            redeem_ticket(store, clock, ticket)
        assert refused(store, clock, ticket)


class TestConnections:
    def test_a_connection_is_found_by_principal_and_by_id(self, store, clock):
        remember_connection(store, clock, ANN, "c1", START)
        row = store.snapshot()[keys.connection("acme", "ann", "c1")]
        assert (row["connection_id"], row["principal"], row["connected_at"]) == ("c1", "ann", START)
        assert row["ttl"] == START // 1000 + 7200
        assert store.snapshot()[keys.reverse_connection("c1")]["account"] == "acme"

    def test_a_ping_keeps_one_row_and_its_age(self, store, clock):
        remember_connection(store, clock, ANN, "c1", START)
        clock.advance(300_000)
        remember_connection(store, clock, ANN, "c1", START)
        row = store.snapshot()[keys.connection("acme", "ann", "c1")]
        assert (row["connected_at"], row["seen_at"]) == (START, START + 300_000)
        assert len(store.snapshot()) == 2

    @pytest.mark.parametrize("how", ["by id", "by principal"])
    def test_a_closed_connection_leaves_no_row(self, store, clock, how):
        remember_connection(store, clock, ANN, "c1", START)
        remember_connection(store, clock, ANN, "c2", START)
        for _ in range(2):
            if how == "by id":
                forget_by_id(store, "c1")
            else:
                forget_connection(store, "acme", "ann", "c1")
        assert set(store.snapshot()) == {keys.connection("acme", "ann", "c2"), keys.reverse_connection("c2")}

    def test_forgetting_a_stranger_does_nothing(self, store, clock):
        remember_connection(store, clock, ANN, "c1", START)
        forget_by_id(store, "c9")
        assert len(store.snapshot()) == 2
