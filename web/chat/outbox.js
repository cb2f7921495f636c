/**
 * Messages that the server has not acknowledged: sent, sent again under the same client_message_id, or given up on.
 *
 * The gateway may run two frames of one connection side by side, and the later one may be accepted first. So messages
 * stand in line: one goes out when the one before it has been answered, or has waited long enough for its answer.
 *
 * The entries live in the conversation's stored record (`record.sent`), so a reload loses none.
 */

import { readProblem, sendFrame } from "./protocol.js";

const ACK_TIMEOUT_MS = 10_000;
const MOST_ATTEMPTS = 4;
const DEFAULT_RETRY_MS = 2_000;
/** How long a message waits for the one before it. */
const PATIENCE_MS = 800;

/** A version 4 UUID; `crypto.randomUUID` alone would need a secure context. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

export class Outbox {
  #attempts = new Map();
  #timers = new Map();
  #line = [];
  #ahead = null;
  #patience = null;

  /**
   * @param record the stored conversation
   * @param hooks `send(frame)` returns whether a socket took it; `onChange(entry, {state: sending|failed, problem?, retryAt?})`
   */
  constructor(record, { send, onChange }) {
    this.record = record;
    this.hooks = { send, onChange };
  }

  /** Add a message, its address fixed now: the conversation, or the message that opens it, or (as that one) none. */
  add(text) {
    const { record } = this;
    const id = newId();
    record.opening ??= id;
    const address = record.conversation_id
      ? { conversation_id: record.conversation_id }
      : { opening: record.opening === id ? null : record.opening };
    const entry = { client_message_id: id, text, acknowledged: false, refused: null, ...address };
    record.sent.push(entry);
    return entry;
  }

  find(clientMessageId) {
    return this.record.sent.find((entry) => entry.client_message_id === clientMessageId) ?? null;
  }

  /** Send what is waiting, in the order it was written. */
  flush() {
    for (const entry of this.#open()) {
      if (!entry.refused && !this.#timers.has(entry.client_message_id)) this.#join(entry);
    }
    this.#advance();
  }

  /** The socket is gone: nobody will answer what is in flight; it goes again after the next `flush`. */
  interrupt() {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    this.#attempts.clear();
    this.#line = [];
    this.#passed(this.#ahead);
    for (const entry of this.#open()) {
      if (entry.refused?.code === "no_acknowledgement") this.retry(entry, { now: false });
    }
  }

  acknowledge(clientMessageId) {
    const entry = this.find(clientMessageId);
    if (entry) Object.assign(entry, { acknowledged: true, refused: null });
    this.#settle(clientMessageId);
    this.#passed(clientMessageId);
  }

  /** An `error` frame for one of our messages. */
  refuse(entry, data) {
    if (entry.acknowledged) return;
    const problem = { ...readProblem(data), of: "send" };
    this.#settle(entry.client_message_id, { keepAttempts: true });
    if (data.retryable === true && this.#attemptsOf(entry) < MOST_ATTEMPTS) {
      const wait = data.retry_after_ms > 0 ? data.retry_after_ms : DEFAULT_RETRY_MS;
      // those behind it stay behind it: they would be refused for the same reason
      if (this.#ahead === entry.client_message_id) clearTimeout(this.#patience);
      this.#wait(entry, wait, () => this.#send(entry));
      this.hooks.onChange(entry, { state: "sending", problem, retryAt: Date.now() + wait });
    } else {
      this.#giveUp(entry, { ...problem, retryable: data.retryable === true });
    }
  }

  /** The same message once more, under the same id. */
  retry(entry, { now = true } = {}) {
    entry.refused = null;
    this.#settle(entry.client_message_id);
    this.hooks.onChange(entry, { state: "sending" });
    if (!now) return;
    this.#join(entry);
    this.#advance();
  }

  /** Forget all of them; returns the texts nobody has accepted. */
  close() {
    this.interrupt();
    return this.#open().map((entry) => entry.text);
  }

  #open() {
    return this.record.sent.filter((entry) => !entry.acknowledged);
  }

  #join({ client_message_id: id }) {
    if (!this.#line.includes(id)) this.#line.push(id);
  }

  /** Send the next in line, unless one ahead of it is still to be answered. */
  #advance() {
    while (this.#ahead === null && this.#line.length > 0) {
      const entry = this.find(this.#line.shift());
      if (entry && !entry.acknowledged && !entry.refused) this.#send(entry);
    }
  }

  /** This message no longer keeps the others waiting. */
  #passed(clientMessageId) {
    if (this.#ahead !== clientMessageId) return;
    clearTimeout(this.#patience);
    this.#ahead = null;
    this.#advance();
  }

  #send(entry) {
    if (!this.hooks.send(sendFrame(entry))) return;
    const id = entry.client_message_id;
    this.#ahead ??= id;
    if (this.#ahead === id) {
      clearTimeout(this.#patience);
      this.#patience = setTimeout(() => this.#passed(id), PATIENCE_MS);
    }
    const attempt = this.#attemptsOf(entry) + 1;
    this.#attempts.set(entry.client_message_id, attempt);
    this.hooks.onChange(entry, { state: "sending" });
    this.#wait(entry, ACK_TIMEOUT_MS, () => {
      if (attempt < MOST_ATTEMPTS) this.#send(entry);
      else this.#giveUp(entry, { status: null, code: "no_acknowledgement", title: "", detail: "", of: "send", retryable: true });
    });
  }

  #giveUp(entry, problem) {
    entry.refused = problem;
    this.#passed(entry.client_message_id);
    this.hooks.onChange(entry, { state: "failed", problem });
  }

  #wait(entry, delayMs, action) {
    clearTimeout(this.#timers.get(entry.client_message_id));
    const timer = setTimeout(() => {
      this.#timers.delete(entry.client_message_id);
      action();
    }, delayMs);
    this.#timers.set(entry.client_message_id, timer);
  }

  #settle(clientMessageId, { keepAttempts = false } = {}) {
    clearTimeout(this.#timers.get(clientMessageId));
    this.#timers.delete(clientMessageId);
    if (!keepAttempts) this.#attempts.delete(clientMessageId);
  }

  #attemptsOf(entry) {
    return this.#attempts.get(entry.client_message_id) ?? 0;
  }
}
