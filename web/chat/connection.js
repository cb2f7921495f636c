/**
 * One live socket, kept alive: a fresh ticket for every attempt, backoff with jitter, pings, and renewal with overlap
 * before the gateway ends the connection (it lives two hours at most).
 */

import { parseFrame, toMillis } from "./protocol.js";

const HEARTBEAT_S = 300;
const READY_TIMEOUT_MS = 10_000;
const PONG_TIMEOUT_MS = 10_000;
const RENEW_BEFORE_EXPIRY_MS = 300_000;
const OVERLAP_MS = 2_000;
const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 30_000;
const SHORTEST_WAIT_MS = 200;

/** Wait before attempt number `attempt` (0 first): full jitter under a doubling ceiling, never below `floorMs`. */
export function backoffMs(attempt, random, floorMs = 0) {
  const ceiling = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(attempt, 10));
  return Math.max(floorMs, SHORTEST_WAIT_MS + random() * ceiling);
}

/** How long a connection may live on before it is renewed; a lifetime too short for the rule is halved. */
export function renewalDelayMs(expiresAtMs, nowMs) {
  const left = expiresAtMs - nowMs;
  const delay = left > 2 * RENEW_BEFORE_EXPIRY_MS ? left - RENEW_BEFORE_EXPIRY_MS : left / 2;
  return Math.max(delay, READY_TIMEOUT_MS);
}

export class Connection {
  #primary = null;
  #candidate = null;
  #generation = 0;
  #attempt = 0;
  #timers = {};

  /**
   * @param hooks `openTicket()` resolves to the socket's address with a fresh ticket, or rejects (`retryAfterMs` is kept);
   *   `resume()` gives the frame to send first, `ping()` that of the heartbeat; `onFrame(event)`; `onState({kind: connecting|online|waiting, until?, attempt})`
   */
  constructor({ openTicket, resume, ping, onFrame, onState, random = Math.random }) {
    this.hooks = { openTicket, resume, ping, onFrame, onState };
    this.random = random;
  }

  start() {
    this.#open();
  }

  /** Try now instead of waiting out the backoff. */
  retryNow() {
    if (this.#primary || this.#candidate || !this.#timers.retry) return;
    this.#open();
  }

  /** The page came back to the front: find out at once whether the socket still lives. */
  check() {
    if (this.#primary) this.#ping();
    else this.retryNow();
  }

  /** Give up this socket and connect again, for a changed identity. */
  restart() {
    this.#drop(this.#primary);
    this.#drop(this.#candidate);
    this.#primary = null;
    this.#candidate = null;
    this.#clear();
    this.#open();
  }

  /** @returns whether the frame was handed to an open socket (not whether it arrived) */
  send(frame) {
    if (this.#primary?.readyState !== WebSocket.OPEN) return false;
    this.#primary.send(JSON.stringify(frame));
    return true;
  }

  async #open() {
    const generation = ++this.#generation;
    this.#clear("retry");
    if (!this.#primary) this.#report("connecting");
    let url;
    try {
      url = await this.hooks.openTicket();
    } catch (error) {
      console.warn("no ticket for the chat socket", error);
      if (generation === this.#generation) this.#later(error.retryAfterMs);
      return;
    }
    if (generation !== this.#generation) return;
    const socket = new WebSocket(url);
    this.#candidate = socket;
    this.#timer("ready", READY_TIMEOUT_MS, () => this.#lost(socket));
    socket.onopen = () => socket.send(JSON.stringify(this.hooks.resume()));
    socket.onmessage = (message) => this.#receive(socket, message.data);
    socket.onclose = () => this.#lost(socket);
  }

  #receive(socket, text) {
    const event = typeof text === "string" ? parseFrame(text) : null;
    if (event === null) return;
    if (event.type === "session.ready" && socket === this.#candidate) this.#promote(socket, event);
    if (event.type === "pong") this.#clear("pong");
    this.hooks.onFrame(event);
  }

  /** The new socket has answered `resume`: it takes over, the old one hears what is still under way to it. */
  #promote(socket, ready) {
    const old = this.#primary;
    this.#primary = socket;
    this.#candidate = null;
    this.#attempt = 0;
    this.#clear();
    if (old) setTimeout(() => this.#drop(old), OVERLAP_MS);
    const heartbeat = ready.data.heartbeat_s > 0 ? ready.data.heartbeat_s : HEARTBEAT_S;
    this.#timers.heartbeat = setInterval(() => this.#ping(), heartbeat * 1000);
    const expires = toMillis(ready.data.connection_expires_at);
    if (!Number.isNaN(expires)) {
      // the server's own clock, where it tells it: ours may be wrong
      const now = toMillis(ready.ts);
      this.#timer("renew", renewalDelayMs(expires, Number.isNaN(now) ? Date.now() : now), () => this.#open());
    }
    this.#report("online");
  }

  #ping() {
    if (!this.send(this.hooks.ping())) return;
    const socket = this.#primary;
    if (!this.#timers.pong) this.#timer("pong", PONG_TIMEOUT_MS, () => this.#lost(socket));
  }

  #lost(socket) {
    this.#drop(socket);
    if (socket === this.#candidate) {
      this.#candidate = null;
      this.#clear("ready");
      this.#later();
    } else if (socket === this.#primary) {
      this.#primary = null;
      if (this.#candidate) {
        this.#clear("heartbeat", "pong", "renew");
        this.#report("connecting");
      } else {
        this.#clear();
        this.#later();
      }
    }
  }

  #later(floorMs = 0) {
    const wait = backoffMs(this.#attempt, this.random, floorMs);
    this.#attempt += 1;
    this.#timer("retry", wait, () => this.#open());
    if (!this.#primary) this.#report("waiting", Date.now() + wait);
  }

  #report(kind, until = null) {
    this.hooks.onState({ kind, until, attempt: this.#attempt });
  }

  #drop(socket) {
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  #timer(name, delayMs, action) {
    this.#clear(name);
    this.#timers[name] = setTimeout(() => {
      delete this.#timers[name];
      action();
    }, delayMs);
  }

  #clear(...names) {
    for (const name of names.length > 0 ? names : Object.keys(this.#timers)) {
      clearTimeout(this.#timers[name]);
      delete this.#timers[name];
    }
  }
}
