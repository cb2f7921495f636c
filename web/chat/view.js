/**
 * Draws the conversation. Server text becomes text nodes only; the page never builds HTML from a string.
 *
 * Each item keeps its element and each part of it is touched only when it changed, so the live region announces what is
 * new and nothing else, and an opened source stays open.
 */

import { problemText, text } from "./texts.js";
import { toMillis } from "./protocol.js";

/** An element with properties and children; strings become text nodes. */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== ""));
  return node;
}

/** The address when it is http(s), else null: a link to anything else is shown as text. */
export function safeLink(address) {
  try {
    const url = new URL(address);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}

const secondsUntil = (when) => Math.max(1, Math.ceil((when - Date.now()) / 1000));
const NEAR_BOTTOM_PX = 80;

export class ConversationView {
  #drawn = new Map();

  /** @param log the scrolling live region; @param onRetry called with a client_message_id */
  constructor(log, { onRetry }) {
    this.log = log;
    this.onRetry = onRetry;
  }

  /** @param frame `{items, run, language, online}` */
  render(frame) {
    this.frame = frame;
    const follow = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < NEAR_BOTTOM_PX;
    const before = this.log.scrollHeight;
    const keys = new Set(frame.items.map((item) => item.key));
    for (const [key, drawn] of this.#drawn) {
      if (keys.has(key)) continue;
      drawn.node.remove();
      this.#drawn.delete(key);
    }
    let previous = null;
    for (const item of frame.items) {
      const drawn = this.#drawn.get(item.key) ?? this.#create(item);
      this.#update(drawn, item);
      const next = previous ? previous.nextSibling : this.log.firstChild;
      if (drawn.node !== next) this.log.insertBefore(drawn.node, next);
      previous = drawn.node;
    }
    if (follow && this.log.scrollHeight !== before) this.scrollToEnd();
  }

  scrollToEnd() {
    this.log.scrollTop = this.log.scrollHeight;
  }

  #say(key, values) {
    return text(this.frame.language, key, values);
  }

  #create(item) {
    const slots = {};
    for (const name of SLOTS[item.kind]) slots[name] = element("div", { className: name });
    // times and states change often and are not worth an announcement; a new message or problem is
    slots.meta?.setAttribute("aria-live", "off");
    const tag = item.kind === "notice" ? "p" : "article";
    const node = element(tag, { className: `item ${item.kind}` }, ...Object.values(slots));
    const drawn = { node, slots, seen: {} };
    this.#drawn.set(item.key, drawn);
    return drawn;
  }

  #update(drawn, item) {
    const { language } = this.frame;
    drawn.node.dataset.state = item.state ?? item.outcome ?? "notice";
    if (item.kind === "notice") {
      this.#fill(drawn, "body", [item.code, language], () => [this.#notice(item.code)]);
      return;
    }
    const who = item.kind === "customer" ? "log.you" : item.byAgent ? "log.agent" : "log.assistant";
    drawn.node.setAttribute("aria-label", this.#say(who));
    this.#fill(drawn, "body", [item.text, item.text === null && language], () => [item.text ?? this.#say("log.unknown")]);
    if (item.kind === "customer") this.#updateCustomer(drawn, item);
    else this.#updateAssistant(drawn, item);
  }

  #updateCustomer(drawn, item) {
    const { language, online } = this.frame;
    const again = item.retryAt && item.state === "sending" ? secondsUntil(item.retryAt) : null;
    const queued = item.state === "sending" && !online;
    this.#fill(drawn, "meta", [item.state, item.superseded, again, queued, language, item.ts], () => {
      const state = again ? this.#say("state.again", { n: again }) : this.#say(queued ? "state.queued" : `state.${item.state}`);
      return [
        item.superseded && element("span", { className: "note" }, this.#say(`superseded.${item.superseded}`)),
        this.#time(item.ts),
        element("span", { className: "state" }, state),
      ].filter(Boolean);
    });
    this.#fill(drawn, "problem", [item.problem, item.state, language], () => {
      if (!item.problem) return [];
      const problem = problemText(language, item.problem);
      const said = [problem.title, problem.detail].filter(Boolean).join(this.#isChinese() ? "：" : ": ");
      const code = problem.code ? element("code", {}, problem.code) : null;
      const retry = element("button", { type: "button", onclick: () => this.onRetry(item.clientMessageId) }, this.#say("state.retry"));
      return [element("span", {}, said), code, item.state === "failed" ? retry : null].filter(Boolean);
    });
  }

  #updateAssistant(drawn, item) {
    const { language } = this.frame;
    this.#fill(drawn, "sources", [item.sources, language], () => (item.sources.length > 0 ? [this.#sources(item.sources)] : []));
    this.#fill(drawn, "meta", [item.outcome, item.byAgent, item.simulated, item.replaced, language, item.ts], () =>
      [
        this.#time(item.ts),
        this.#tag(this.#say(item.byAgent ? "log.agent" : `outcome.${item.outcome}`), "tag"),
        item.replaced && this.#tag(this.#say("reply.replaced"), "tag"),
        item.simulated && this.#tag(this.#say("reply.simulated"), "badge", this.#say("head.simulated.hint")),
      ].filter(Boolean),
    );
  }

  /** Replace a part's children when what it shows has changed. */
  #fill(drawn, slot, dependencies, build) {
    const signature = JSON.stringify(dependencies);
    if (drawn.seen[slot] === signature) return;
    drawn.seen[slot] = signature;
    drawn.slots[slot].replaceChildren(...build());
  }

  #notice(code) {
    if (typeof code === "string") return this.#say(`notice.${code}`);
    const problem = problemText(this.frame.language, code.problem);
    return [problem.title, problem.detail].filter(Boolean).join(this.#isChinese() ? "：" : ": ");
  }

  #tag(label, className, title = "") {
    return label ? element("span", { className, title }, label) : null;
  }

  #time(ts) {
    const at = toMillis(ts);
    if (Number.isNaN(at)) return null;
    const date = new Date(at);
    const label = date.toLocaleTimeString(this.frame.language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    return element("time", { dateTime: date.toISOString() }, label);
  }

  #sources(sources) {
    const titles = sources.map((source) => sourceTitle(source)).join(this.#isChinese() ? "、" : ", ");
    return element(
      "details",
      {},
      element("summary", {}, element("span", { className: "label" }, this.#say("sources.title")), " ", titles),
      element("ol", {}, ...sources.map((source) => element("li", {}, ...this.#source(source)))),
    );
  }

  #source(source) {
    const link = safeLink(source.source) ?? safeLink(source.url);
    const title = sourceTitle(source);
    const parts = [
      link
        ? element("a", { href: link, target: "_blank", rel: "noopener noreferrer" }, title)
        : element("strong", {}, title),
    ];
    const terms = element("dl", {});
    const rows = [
      ["document", source.document_id],
      ["collection", source.collection],
      ["version", source.version],
      ["origin", link ? null : source.source],
    ];
    for (const [name, value] of rows) {
      if (value === undefined || value === null || value === "" || typeof value === "object") continue;
      terms.append(element("div", {}, element("dt", {}, this.#say(`sources.${name}`)), element("dd", {}, String(value))));
    }
    parts.push(terms);
    const excerpt = source.quote ?? source.excerpt;
    if (typeof excerpt === "string" && excerpt !== "") parts.push(element("blockquote", {}, excerpt));
    return parts;
  }

  #isChinese() {
    return this.frame.language === "zh-CN";
  }
}

const SLOTS = {
  customer: ["body", "meta", "problem"],
  assistant: ["body", "sources", "meta"],
  notice: ["body"],
};

function sourceTitle(source) {
  return String(source.title || source.document_id || source.ref || "?");
}
