/**
 * What a conversation looks like, derived from its events alone: who said what, which run is open, how each ended.
 *
 * Pure state: the caller feeds durable events in order of `seq` (and admitted ephemeral ones) and renders `items()`.
 */

import { readProblem } from "./protocol.js";

const PHASES = new Set([
  "routing",
  "retrieving",
  "tool",
  "generating",
  "verifying",
  "awaiting_input",
  "awaiting_approval",
  "awaiting_client",
]);
const NOTICES = new Set(["handoff.requested", "handoff.accepted", "handoff.released"]);

/** The plain text of a message's content, which is text or holds text; anything else is empty. */
export function contentText(content) {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(contentText).join("");
  if (content !== null && typeof content === "object") return contentText(content.text ?? "");
  return "";
}

export class Conversation {
  #items = new Map();
  #runs = new Map();
  #arrivals = 0;
  suggestions = [];

  /** A message of the customer on this page, before anybody has accepted it. */
  addOwn(clientMessageId, text) {
    const item = this.#customer(clientMessageId);
    item.text = text;
    return item;
  }

  own(clientMessageId) {
    return this.#items.get(`c:${clientMessageId}`) ?? null;
  }

  addNotice(code, id = `local-${this.#arrivals}`) {
    this.#put({ key: `n:${id}`, kind: "notice", code });
  }

  /** Items as they are to be read: in the order of the log, what is not in the log yet last. */
  items() {
    return [...this.#items.values()].sort((a, b) => a.position - b.position || a.arrival - b.arrival);
  }

  /** The run that is working now, `{id, phase, draft}`, or null. */
  openRun() {
    return [...this.#runs.values()].findLast((run) => run.open) ?? null;
  }

  apply(event) {
    const handler = HANDLERS[event.type];
    if (handler) handler(this, event);
    else if (NOTICES.has(event.type)) this.#notice(event);
  }

  accepted(event) {
    const { data } = event;
    if (typeof data.client_message_id !== "string") return;
    const item = this.#customer(data.client_message_id);
    if (item.text === null && typeof data.text === "string") item.text = data.text;
    item.runId = data.run_id ?? event.run_id ?? null;
    item.messageSeq ??= event.message_seq ?? null;
    item.ts ??= event.ts;
    if (event.seq !== null) item.position = event.seq;
    if (item.state === "sending" || item.state === "failed") {
      item.state = "accepted";
      item.problem = null;
    }
    if (item.runId) this.#run(item.runId);
    this.suggestions = [];
  }

  status(event) {
    const run = event.run_id ? this.#run(event.run_id) : null;
    if (run?.open && PHASES.has(event.data.phase)) run.phase = event.data.phase;
  }

  delta(event) {
    const run = event.run_id ? this.#run(event.run_id) : null;
    if (run?.open && typeof event.data.text === "string") run.draft += event.data.text;
  }

  replied(event) {
    const { data } = event;
    const run = event.run_id ? this.#run(event.run_id) : null;
    if (run) run.draft = "";
    const key = `a:${event.message_id ?? event.id ?? event.seq}`;
    this.#put({
      key,
      kind: "assistant",
      position: event.seq,
      ts: event.ts,
      runId: event.run_id ?? null,
      text: contentText(data.content),
      byAgent: typeof data.agent === "string",
      outcome: typeof data.outcome === "string" ? data.outcome : "answer",
      sources: Array.isArray(data.sources) ? data.sources.filter((s) => s !== null && typeof s === "object") : [],
      simulated: run?.simulated ?? false,
      replaced: false,
    });
    this.#cover(event, (item) => {
      item.state = "answered";
      item.answeredBy = event.run_id;
    });
  }

  replaced(event) {
    const item = this.#items.get(`a:${event.message_id}`);
    if (!item) return;
    item.text = contentText(event.data.content);
    item.replaced = true;
  }

  suggested(event) {
    const items = Array.isArray(event.data.items) ? event.data.items : [];
    this.suggestions = items.map(contentText).filter((text) => text !== "");
  }

  completed(event) {
    const run = this.#end(event);
    if (!run || event.data.usage?.simulated !== true) return;
    run.simulated = true;
    for (const item of this.#items.values()) {
      if (item.kind === "assistant" && item.runId === run.id) item.simulated = true;
    }
  }

  failed(event) {
    const problem = readProblem(event.data);
    if (event.type === "run.timed_out" && problem.code === "") problem.code = "turn_timed_out";
    this.#end(event);
    const fail = (item) => {
      item.state = "failed";
      item.problem = { ...problem, of: "run" };
    };
    this.#cover(event, fail);
    // a stated failure is also a reply of the same run, which may have come first
    for (const item of this.#items.values()) {
      if (item.kind === "customer" && item.answeredBy && item.answeredBy === event.run_id) fail(item);
    }
  }

  cancelled(event) {
    this.#end(event);
    this.#cover(event, (item) => (item.state = "cancelled"));
  }

  superseded(event) {
    const run = this.#end(event);
    if (!run) return;
    for (const item of this.#items.values()) {
      if (item.kind === "customer" && item.runId === run.id) {
        item.superseded = event.data.reason === "human_takeover" ? "human_takeover" : "newer_message";
      }
    }
  }

  #notice(event) {
    this.#put({ key: `n:${event.id ?? event.seq}`, kind: "notice", code: event.type, position: event.seq, ts: event.ts });
  }

  /** One run answers (or fails, or drops) every message before it that is still open, up to its own trigger. */
  #cover(event, change) {
    const open = [...this.#items.values()].filter((item) => item.kind === "customer" && item.state === "accepted");
    const own = open.filter((item) => item.runId === event.run_id).map((item) => item.messageSeq ?? 0);
    const trigger = own.length > 0 ? Math.max(...own) : (event.message_seq ?? Infinity);
    for (const item of open) {
      const joined = item.messageSeq === null ? item.position < event.seq : item.messageSeq <= trigger;
      if (joined || item.runId === event.run_id) change(item);
    }
  }

  #customer(clientMessageId) {
    const key = `c:${clientMessageId}`;
    const known = this.#items.get(key);
    if (known) return known;
    return this.#put({
      key,
      kind: "customer",
      clientMessageId,
      text: null,
      state: "sending",
      superseded: null,
      problem: null,
      retryAt: null,
      runId: null,
      messageSeq: null,
      answeredBy: null,
    });
  }

  #put(fields) {
    const arrival = this.#items.get(fields.key)?.arrival ?? ++this.#arrivals;
    const item = { position: Infinity, ts: null, ...fields, arrival };
    item.position ??= Infinity;
    this.#items.set(item.key, item);
    return item;
  }

  #run(id) {
    if (!this.#runs.has(id)) this.#runs.set(id, { id, open: true, phase: null, draft: "", simulated: false });
    return this.#runs.get(id);
  }

  #end(event) {
    if (!event.run_id) return null;
    const run = this.#run(event.run_id);
    run.open = false;
    run.phase = null;
    run.draft = "";
    return run;
  }
}

const HANDLERS = {
  "message.accepted": (conversation, event) => conversation.accepted(event),
  "run.started": (conversation, event) => conversation.status(event),
  "run.status": (conversation, event) => conversation.status(event),
  "message.delta": (conversation, event) => conversation.delta(event),
  "message.completed": (conversation, event) => conversation.replied(event),
  "message.replaced": (conversation, event) => conversation.replaced(event),
  suggestions: (conversation, event) => conversation.suggested(event),
  "run.completed": (conversation, event) => conversation.completed(event),
  "run.failed": (conversation, event) => conversation.failed(event),
  "run.timed_out": (conversation, event) => conversation.failed(event),
  "run.cancelled": (conversation, event) => conversation.cancelled(event),
  "run.superseded": (conversation, event) => conversation.superseded(event),
};
