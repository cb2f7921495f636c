/** The chat without its looks: identity, socket, log, outbox and conversation state, joined into one thing to render. */

import { ApiError, isFresh } from "./api.js";
import { Connection } from "./connection.js";
import { Conversation } from "./conversation.js";
import { Outbox } from "./outbox.js";
import {
  clientFrame,
  DEFAULT_TEXT_LIMIT_BYTES,
  EphemeralGate,
  EventLog,
  readEnvelope,
  readProblem,
  resumeFrame,
} from "./protocol.js";
import { emptyRecord, lastSeq } from "./store.js";

const GAP_PATIENCE_MS = 1_500;
const LONGEST_GAP_WAIT_MS = 30_000;
const EVENTS_PER_PAGE = 100;
const MOST_EARLY_FRAMES = 200;
/** HTTP APIs of API Gateway answer 403 when the authorizer says no, and 401 when there was nothing to judge. */
const IDENTITY_REFUSED = new Set([401, 403]);
const LOST_CONVERSATION = "conversation_not_found";
/** The run ended while the customer pressed stop: its ending is on the way and says it. */
const OVERTAKEN = new Set(["run_not_open", "run_not_found"]);
/** Frames without a seq that may change what is stored; statuses and deltas come often and never do. */
const KEPT = new Set(["message.accepted", "error", "session.ready"]);

export class Chat {
  #gapTimer = null;
  #gapTries = 0;
  #fetching = false;
  #early = [];
  #ready = false;

  /** @param options `config` (config.json), `account`, `api`, `store`, `language()` and `onChange()` */
  constructor({ config, account, api, store, language, onChange }) {
    Object.assign(this, { config, account, api, store, language, onChange });
    this.connectionState = { kind: "connecting", until: null, attempt: 0 };
    this.textLimit = DEFAULT_TEXT_LIMIT_BYTES;
    this.#load(store.loadRecord());
    this.connection = new Connection({
      openTicket: () => this.#openTicket(),
      resume: () => resumeFrame(this.record.conversation_id, this.log.lastSeq),
      // with the conversation the pong tells its last seq: a push that got lost is noticed
      ping: () => clientFrame("ping", { conversation_id: this.record.conversation_id }),
      onFrame: (event) => this.#receive(event),
      onState: (state) => this.#connectionChanged(state),
    });
  }

  start() {
    this.connection.start();
  }

  send(text) {
    const entry = this.outbox.add(text);
    this.conversation.addOwn(entry.client_message_id, text);
    if (this.#ready) this.outbox.flush();
    this.#changed();
  }

  /** Try a failed message again: the same message when the server never took it, else its text as a new one. */
  retry(clientMessageId) {
    const item = this.conversation.own(clientMessageId);
    const entry = this.outbox.find(clientMessageId);
    if (entry && !entry.acknowledged && entry.refused?.retryable !== false) {
      this.outbox.retry(entry, { now: this.#ready });
      this.#changed();
    } else if (item?.text) {
      this.send(item.text);
    }
  }

  stopRun() {
    const run = this.conversation.openRun();
    if (run) this.connection.send(clientFrame("run.cancel", { conversation_id: this.record.conversation_id, run_id: run.id }));
  }

  /** Leave the present conversation; the next message opens another one. */
  startAnew() {
    this.outbox.close();
    this.#load(emptyRecord());
    this.#changed();
  }

  /** Another window of this conversation wrote the stored record: take over the messages we have not seen. */
  adopt(record) {
    if (record.opening === null || record.opening !== this.record.opening) return;
    for (const entry of record.sent) {
      if (this.outbox.find(entry.client_message_id)) continue;
      this.record.sent.push({ ...entry });
      this.conversation.addOwn(entry.client_message_id, entry.text);
    }
    this.onChange();
  }

  #load(record) {
    this.record = record;
    this.#clearGap();
    this.#early = [];
    this.gate = new EphemeralGate();
    this.log = new EventLog(lastSeq(record));
    this.conversation = new Conversation();
    this.outbox = new Outbox(record, {
      send: (frame) => this.connection.send(frame),
      onChange: (entry, change) => this.#outboxChanged(entry, change),
    });
    for (const entry of record.sent) this.conversation.addOwn(entry.client_message_id, entry.text);
    for (const event of record.events) {
      this.gate.observe(event);
      this.conversation.apply(event);
    }
    for (const entry of record.sent) {
      if (entry.refused) this.#outboxChanged(entry, { state: "failed", problem: entry.refused });
    }
  }

  /** A ticket for our identity; a new identity when there is none, it is about to end, or the server no longer takes it. */
  async #openTicket() {
    let guest = this.store.loadGuest();
    if (!isFresh(guest, Date.now())) guest = await this.#newGuest(guest);
    let ticket;
    try {
      ticket = await this.api.createTicket(guest.token);
    } catch (error) {
      if (!(await this.#isRefusal(error, guest))) throw error;
      guest = await this.#newGuest(guest);
      ticket = await this.api.createTicket(guest.token);
    }
    const url = new URL(ticket.ws_url ?? this.config.ws_url);
    url.searchParams.set("ticket", ticket.ticket);
    return url.href;
  }

  /**
   * Whether no ticket was given because of who we are.
   *
   * A gateway's own refusal may lack the CORS headers, and then looks like a network that fails. It is taken for a
   * refusal only where the same server answers a stranger, and us again not.
   */
  async #isRefusal(error, guest) {
    if (error instanceof ApiError) return IDENTITY_REFUSED.has(error.status);
    if (!(error instanceof TypeError)) return false;
    await this.api.createGuest(this.account, this.language());
    return this.api.createTicket(guest.token).then(
      () => false,
      (again) => again instanceof TypeError || IDENTITY_REFUSED.has(again.status),
    );
  }

  async #newGuest(former) {
    const guest = await this.api.createGuest(this.account, this.language());
    this.store.saveGuest(guest);
    if (former && former.principal !== guest.principal && this.record.opening) this.#loseConversation("guest_expired");
    return guest;
  }

  /** The conversation is not ours any more: open a new one with what was not sent yet. */
  #loseConversation(notice) {
    const unsent = this.outbox.close();
    this.#load(emptyRecord());
    this.conversation.addNotice(notice);
    for (const text of unsent) this.conversation.addOwn(this.outbox.add(text).client_message_id, text);
    this.#changed();
  }

  #connectionChanged(state) {
    this.connectionState = state;
    if (state.kind !== "online") {
      this.#ready = false;
      this.#clearGap();
      this.outbox.interrupt();
    }
    this.onChange();
  }

  #receive(event) {
    if (event.type === "session.ready") this.#sessionReady(event);
    else if (event.type === "error") this.#refused(event);
    else if (event.type === "resume.gap") this.#fetchMissing();
    else if (event.type === "pong") this.#expect(event.data.last_seq);
    else this.#event(event);
    if (event.seq !== null || KEPT.has(event.type)) this.#changed();
    else this.onChange();
  }

  #sessionReady(event) {
    const limit = event.data.limits?.text_bytes;
    if (Number.isInteger(limit) && limit > 0) this.textLimit = limit;
    // a socket that was opened before the conversation had a name is told nothing about it
    const ours = (event.conversation_id ?? null) === (this.record.conversation_id ?? null);
    if (ours && this.record.conversation_id && event.data.last_seq === 0 && this.log.lastSeq > 0) {
      this.#loseConversation("conversation_gone");
    }
    this.#ready = true;
    if (ours) this.#expect(event.data.last_seq);
    this.outbox.flush();
  }

  #refused(event) {
    const { data } = event;
    const entry = typeof data.client_message_id === "string" ? this.outbox.find(data.client_message_id) : null;
    const problem = { ...readProblem(data), of: "send" };
    if (entry) {
      this.outbox.refuse(entry, data);
    } else if (!this.#ready && problem.code === LOST_CONVERSATION && this.record.conversation_id) {
      this.#loseConversation("conversation_gone");
      this.connection.restart();
    } else if (!OVERTAKEN.has(problem.code)) {
      this.conversation.addNotice({ problem });
    }
  }

  /** A frame of the log or of a run. Until the first `message.accepted` names our conversation, others are held back. */
  #event(event) {
    if (event.type === "message.accepted") this.#acknowledged(event);
    if (!this.record.conversation_id) {
      if (this.#early.length < MOST_EARLY_FRAMES) this.#early.push(event);
      return;
    }
    if (event.conversation_id && event.conversation_id !== this.record.conversation_id) return;
    this.gate.observe(event); // an epoch counts in its own conversation only
    if (event.seq === null) {
      if (this.gate.admits(event)) this.conversation.apply(event);
      return;
    }
    for (const next of this.log.offer(event)) {
      this.record.events.push(next);
      this.conversation.apply(next);
    }
    this.#watchGap();
  }

  #acknowledged(event) {
    const id = event.data.client_message_id;
    if (!this.outbox.find(id)) return;
    this.outbox.acknowledge(id);
    if (!this.record.conversation_id && event.conversation_id) {
      this.record.conversation_id = event.conversation_id;
      const early = this.#early.splice(0);
      for (const frame of early) this.#event(frame);
      // a resend learns the address from a copy without seq: what the log holds by now is not here yet
      if (event.seq === null) this.connection.send(resumeFrame(event.conversation_id, this.log.lastSeq));
    }
    // a resend is answered with the stored event, whose seq we may hold already: settle the item itself
    this.conversation.accepted({ ...event, seq: null });
  }

  #outboxChanged(entry, { state, problem = null, retryAt = null }) {
    const item = this.conversation.own(entry.client_message_id);
    if (!item || entry.acknowledged) return;
    Object.assign(item, { state, problem, retryAt });
    this.onChange();
  }

  #expect(seq) {
    if (this.record.conversation_id) this.log.expect(seq);
    this.#watchGap();
  }

  /** A hole that stays open for 1.5 s is asked for again: by the socket first, by HTTP when that did not help. */
  #watchGap() {
    if (this.log.complete) this.#clearGap();
    else if (this.#gapTimer === null) {
      const wait = Math.min(LONGEST_GAP_WAIT_MS, GAP_PATIENCE_MS * 2 ** Math.max(0, this.#gapTries - 1));
      this.#gapTimer = setTimeout(() => this.#closeGap(), wait);
    }
  }

  async #closeGap() {
    this.#gapTries += 1;
    if (this.#gapTries === 1) this.connection.send(resumeFrame(this.record.conversation_id, this.log.lastSeq));
    else await this.#fetchMissing();
    this.#gapTimer = null;
    if (this.#ready) this.#watchGap();
  }

  #clearGap() {
    clearTimeout(this.#gapTimer);
    this.#gapTimer = null;
    this.#gapTries = 0;
  }

  /**
   * Read the missing part of the log, page by page.
   *
   * The path is built here instead of following `fetch_url`: the bearer token goes to the configured API only.
   */
  async #fetchMissing() {
    if (this.#fetching) return;
    this.#fetching = true;
    const conversation = this.record.conversation_id;
    try {
      for (let after = this.log.lastSeq, more = true; more; ) {
        const page = await this.api.events(this.store.loadGuest()?.token, conversation, after, EVENTS_PER_PAGE);
        if (conversation !== this.record.conversation_id) return;
        for (const event of (page.events ?? []).map(readEnvelope)) if (event) this.#event(event);
        more = Number.isInteger(page.next_after) && page.next_after > after && page.next_after < page.last_seq;
        after = page.next_after;
      }
    } catch (error) {
      // it stays a gap: #watchGap asks again, later each time
      console.warn("the event log cannot be read now", error);
    } finally {
      this.#fetching = false;
    }
    this.#watchGap();
    this.#changed();
  }

  #changed() {
    if (this.record.opening || this.record.events.length > 0) this.store.saveRecord(this.record);
    this.onChange();
  }
}
