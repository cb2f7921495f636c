"""The client's pure parts, run where they run: in the browser, imported from the page's own origin."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.scripted_server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    server = ScriptedServer()
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.page_url + "/icon.svg")
    yield page
    context.close()
    server.close()


def shuffled_with_duplicates(seed: int) -> list[int]:
    dice = random.Random(seed)
    seqs = list(range(1, 31)) + dice.choices(range(1, 31), k=15)
    dice.shuffle(seqs)
    return seqs


@pytest.mark.invariant("I2")
def test_the_log_applies_each_event_once_and_in_order_however_they_arrive(page: Page) -> None:
    orders = [shuffled_with_duplicates(seed) for seed in range(100)]
    results: list[dict[str, Any]] = page.evaluate(
        """async (orders) => {
          const { EventLog } = await import("/protocol.js");
          return orders.map((order) => {
            const log = new EventLog();
            const wasComplete = [];
            const applied = order.flatMap((seq) => {
              const ready = log.offer({ seq }).map((event) => event.seq);
              wasComplete.push(log.complete);
              return ready;
            });
            return { applied, wasComplete };
          });
        }""",
        orders,
    )
    for order, result in zip(orders, results, strict=True):
        assert result["applied"] == list(range(1, 31))
        heard = [set(order[: n + 1]) for n in range(len(order))]
        assert result["wasComplete"] == [len(seqs) == max(seqs) for seqs in heard]


def test_an_event_announced_but_not_seen_leaves_the_log_incomplete(page: Page) -> None:
    complete = page.evaluate(
        """async () => {
          const { EventLog } = await import("/protocol.js");
          const log = new EventLog(4);
          return [4, 6, undefined].map((seq) => { log.expect(seq); return log.complete; });
        }"""
    )
    assert complete == [True, False, False]


def test_reconnecting_waits_longer_each_time_within_bounds_and_never_in_step(page: Page) -> None:
    low, high, asked = page.evaluate(
        """async () => {
          const { backoffMs } = await import("/connection.js");
          const attempts = [0, 1, 2, 5, 20, 1000];
          return [attempts.map((n) => backoffMs(n, () => 0)), attempts.map((n) => backoffMs(n, () => 1)),
                  backoffMs(0, () => 0, 9000)];
        }"""
    )
    assert low == [200] * 6
    assert high == [700, 1200, 2200, 16_200, 30_200, 30_200]
    assert asked == 9000


def test_a_connection_is_renewed_five_minutes_before_its_end_and_never_in_a_loop(page: Page) -> None:
    delays = page.evaluate(
        """async () => {
          const { renewalDelayMs } = await import("/connection.js");
          return [7_200_000, 400_000, 1_000, -5_000].map((life) => renewalDelayMs(1e12 + life, 1e12));
        }"""
    )
    assert delays == [6_900_000, 200_000, 10_000, 10_000]


def test_times_are_read_in_every_form_the_wire_may_use(page: Page) -> None:
    read = page.evaluate(
        """async () => {
          const { toMillis } = await import("/protocol.js");
          return [1_700_000_000, 1_700_000_000_000, "1700000000", "2023-11-14T22:13:20Z"].map(toMillis)
            .concat([null, undefined, "", "soon"].map((value) => Number.isNaN(toMillis(value))));
        }"""
    )
    assert read == [1_700_000_000_000] * 4 + [True] * 4


def test_message_ids_are_random_version_4_uuids(page: Page) -> None:
    ids = page.evaluate(
        """async () => {
          const { newId } = await import("/outbox.js");
          return Array.from({ length: 200 }, newId);
        }"""
    )
    assert len(set(ids)) == 200
    assert all(len(an_id) == 36 and an_id[14] == "4" and an_id[19] in "89ab" for an_id in ids)


def test_a_stored_conversation_keeps_the_newest_events_and_every_unsent_message(page: Page) -> None:
    kept = page.evaluate(
        """async () => {
          const { emptyRecord, lastSeq, Store } = await import("/store.js");
          const record = emptyRecord();
          for (let seq = 1; seq <= 600; seq += 1) {
            record.events.push({ seq, type: "message.accepted", data: { client_message_id: `m-${seq}` } });
            record.sent.push({ client_message_id: `m-${seq}`, text: "x", acknowledged: true });
          }
          record.sent.unshift({ client_message_id: "unsent", text: "x", acknowledged: false });
          new Store("law").saveRecord(record);
          const read = new Store("law").loadRecord();
          const sent = read.sent.map((entry) => entry.client_message_id);
          return [read.base_seq, read.events.length, lastSeq(read), sent.length, sent[0], sent[1]];
        }"""
    )
    assert kept == [100, 500, 600, 501, "unsent", "m-101"]


def test_a_full_storage_keeps_the_outbox_and_the_place_in_the_log(page: Page) -> None:
    kept = page.evaluate(
        """async () => {
          const { emptyRecord, Store } = await import("/store.js");
          const record = emptyRecord();
          record.events.push({ seq: 1, type: "message.completed", data: { content: "x".repeat(6_000_000) } });
          record.sent.push({ client_message_id: "m-1", text: "x", acknowledged: true });
          record.sent.push({ client_message_id: "m-2", text: "y", acknowledged: false });
          new Store("law").saveRecord(record);
          const read = new Store("law").loadRecord();
          return [read.base_seq, read.events.length, read.sent.map((entry) => entry.client_message_id)];
        }"""
    )
    assert kept == [1, 0, ["m-2"]]
