/**
 * The client's half of the chat wire, as pure functions and values: no DOM, no network, no clock.
 *
 * The server keeps one ordered log per conversation. Durable events carry `seq` (gap-free, from 1); ephemeral
 * ones (`seq` null) are never replayed. Unknown types and fields are ignored.
 */

export const PROTOCOL_VERSION = 1;
export const DEFAULT_TEXT_LIMIT_BYTES = 8192;

/** A client frame ready for JSON; fields that are undefined or null are left out. */
export function clientFrame(type, fields = {}) {
  const frame = { v: PROTOCOL_VERSION, type };
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined && value !== null) frame[name] = value;
  }
  return frame;
}

/** The `resume` frame: what we hold of which conversation; nothing when there is none yet. */
export function resumeFrame(conversationId, afterSeq) {
  return conversationId
    ? clientFrame("resume", { conversation_id: conversationId, after_seq: afterSeq })
    : clientFrame("resume");
}

/**
 * The `message.send` frame of an outbox entry.
 *
 * The address (conversation_id, or opening, or neither for the message that opens a conversation) was fixed when
 * the entry was made, so every resend is the same body under the same client_message_id.
 */
export function sendFrame(entry) {
  return clientFrame("message.send", {
    client_message_id: entry.client_message_id,
    conversation_id: entry.conversation_id,
    opening: entry.opening,
    text: entry.text,
    message_type: "user_chat",
  });
}

/** An envelope made safe to read (`data` is an object, `seq` a positive integer or null), or null for noise. */
export function readEnvelope(value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
  if (typeof value.type !== "string") return null;
  const data = value.data !== null && typeof value.data === "object" && !Array.isArray(value.data) ? value.data : {};
  const seq = Number.isSafeInteger(value.seq) && value.seq > 0 ? value.seq : null;
  return { ...value, data, seq };
}

/** {@link readEnvelope} of a text frame. */
export function parseFrame(text) {
  try {
    return readEnvelope(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Durable events in the order of `seq`, each exactly once. */
export class EventLog {
  #waiting = new Map();
  #highest;

  /** @param lastSeq the seq of the newest event already held, 0 for none */
  constructor(lastSeq = 0) {
    this.lastSeq = lastSeq;
    this.#highest = lastSeq;
  }

  /** Take one event; returns the events that can now be applied, in order (none for a duplicate or behind a gap). */
  offer(event) {
    if (event.seq > this.lastSeq) this.#waiting.set(event.seq, event);
    this.expect(event.seq);
    const ready = [];
    for (let next = this.#take(); next !== undefined; next = this.#take()) ready.push(next);
    return ready;
  }

  /** The server says that events up to `seq` exist. */
  expect(seq) {
    if (Number.isSafeInteger(seq) && seq > this.#highest) this.#highest = seq;
  }

  /** Whether everything that is known to exist has been applied; if not, ask for what comes after `lastSeq`. */
  get complete() {
    return this.#highest === this.lastSeq;
  }

  #take() {
    const next = this.#waiting.get(this.lastSeq + 1);
    if (next !== undefined) {
      this.#waiting.delete(next.seq);
      this.lastSeq = next.seq;
    }
    return next;
  }
}

const REMEMBERED_IDS = 500;

/** Decides which ephemeral frames still count: none of a lower epoch, none twice (two sockets overlap on renewal). */
export class EphemeralGate {
  #epoch = 0;
  #ids = new Set();
  #lastDelta = new Map();

  /** Every event that arrives, durable or not, may raise the epoch. */
  observe(event) {
    if (Number.isSafeInteger(event.epoch) && event.epoch > this.#epoch) this.#epoch = event.epoch;
  }

  admits(event) {
    if (Number.isSafeInteger(event.epoch) && event.epoch < this.#epoch) return false;
    if (typeof event.id === "string") {
      if (this.#ids.has(event.id)) return false;
      this.#ids.add(event.id);
      if (this.#ids.size > REMEMBERED_IDS) this.#ids.delete(this.#ids.values().next().value);
    }
    return event.type !== "message.delta" || this.#isNextDelta(event);
  }

  #isNextDelta(event) {
    const last = this.#lastDelta.get(event.run_id);
    const place = [event.after ?? 0, event.n ?? 0];
    if (last && (place[0] < last[0] || (place[0] === last[0] && place[1] < last[1]))) return false;
    this.#lastDelta.set(event.run_id, place);
    return true;
  }
}

/** The size of a text on the wire, in UTF-8 bytes. */
export function utf8Bytes(text) {
  return new TextEncoder().encode(text).length;
}

/** Milliseconds since the epoch of a timestamp given as ISO text, seconds or milliseconds; NaN when it is none. */
export function toMillis(value) {
  const SECONDS_BELOW = 1e11;
  if (typeof value === "string" && value.trim() !== "" && Number.isNaN(Number(value))) return Date.parse(value);
  if (value === null || value === undefined || value === "") return Number.NaN;
  const number = Number(value);
  return number < SECONDS_BELOW ? number * 1000 : number;
}

/**
 * The problem of an `error` frame, a `run.failed` event or an HTTP body, with only text and number fields. A problem is a
 * document (RFC 9457), or only its code where the log keeps it.
 */
export function readProblem(data) {
  const found = data?.problem ?? data;
  const source = typeof found === "string" ? { code: found } : found !== null && typeof found === "object" ? found : {};
  const text = (value) => (typeof value === "string" ? value : "");
  return {
    status: Number.isInteger(source.status) ? source.status : null,
    code: text(source.code),
    title: text(source.title),
    detail: text(source.detail),
  };
}
