/** The three HTTP calls of the chat: a guest identity, a socket ticket, a page of the event log. */

import { readProblem, toMillis } from "./protocol.js";

const TIMEOUT_MS = 10_000;

/** Raised when the server answers with a problem document; `status` 401 means the identity is no longer good. */
export class ApiError extends Error {
  constructor(problem, retryAfterMs) {
    super(problem.title || `HTTP ${problem.status}`);
    this.problem = problem;
    this.status = problem.status;
    this.retryAfterMs = retryAfterMs;
  }
}

export class Api {
  constructor(httpUrl) {
    this.base = httpUrl.replace(/\/+$/, "");
  }

  /** @returns `{token, principal, expires_at}` */
  createGuest(account, language) {
    return this.#call("POST", "/v1/chat/guests", { body: { account, language } });
  }

  /** @returns `{ticket, expires_in_s, ws_url?}` */
  createTicket(token) {
    return this.#call("POST", "/v1/chat/tickets", { token, body: {} });
  }

  /** @returns `{events, next_after, last_seq}` */
  events(token, conversationId, after, limit) {
    const query = new URLSearchParams({ after: String(after), limit: String(limit) });
    return this.#call("GET", `/v1/conversations/${encodeURIComponent(conversationId)}/events?${query}`, { token });
  }

  async #call(method, path, { token, body }) {
    const headers = {};
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body) headers["Content-Type"] = "application/json";
    const response = await fetch(this.base + path, {
      method,
      headers,
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
      credentials: "omit",
      cache: "no-store",
    });
    const answer = await response.json().catch(() => null);
    if (response.ok && answer !== null) return answer;
    const problem = { ...readProblem(answer), status: response.status };
    throw new ApiError(problem, retryAfterMs(response, answer));
  }
}

function retryAfterMs(response, answer) {
  if (Number.isFinite(answer?.retry_after_ms)) return answer.retry_after_ms;
  const header = Number(response.headers.get("Retry-After"));
  return header > 0 ? header * 1000 : 0;
}

const EXPIRY_MARGIN_MS = 60_000;

/** Whether a stored guest identity can still be used for a while. */
export function isFresh(guest, nowMs) {
  if (typeof guest?.token !== "string") return false;
  const expires = toMillis(guest.expires_at);
  return Number.isNaN(expires) || expires - EXPIRY_MARGIN_MS > nowMs;
}
