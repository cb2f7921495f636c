/** Starts the page: configuration, controls, and one render for every change. */

import { Api } from "./api.js";
import { Chat } from "./chat.js";
import { utf8Bytes } from "./protocol.js";
import { loadLanguage, saveLanguage, Store } from "./store.js";
import { chooseLanguage, LANGUAGES, text } from "./texts.js";
import { ConversationView, element } from "./view.js";

const COUNTER_FROM = 0.75;
const OFFLINE_AFTER_ATTEMPTS = 5;
const KILO = 1024;

const $ = (id) => document.getElementById(id);
let language = chooseLanguage(loadLanguage(), navigator.languages);
const say = (key, values) => text(language, key, values);

function localize() {
  document.documentElement.lang = language;
  document.title = say("page.title");
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = say(node.dataset.text);
  for (const node of document.querySelectorAll("[data-hint]")) node.title = say(node.dataset.hint);
  for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", say(node.dataset.label));
  for (const node of document.querySelectorAll("[data-placeholder]")) node.placeholder = say(node.dataset.placeholder);
  for (const button of $("languages").children) {
    button.setAttribute("aria-pressed", String(button.dataset.language === language));
  }
}

/** Set text only when it differs, so that a live region does not repeat itself. */
function put(node, value) {
  if (node.textContent !== value) node.textContent = value;
}

class Page {
  #scheduled = false;
  #chipsShown = "";

  constructor(config, account) {
    this.config = config;
    const store = new Store(account);
    this.chat = new Chat({
      config,
      account,
      api: new Api(config.http_url),
      store,
      language: () => language,
      onChange: () => this.#schedule(),
    });
    this.view = new ConversationView($("log"), { onRetry: (id) => this.#act(() => this.chat.retry(id)) });
    $("simulated").hidden = config.simulated !== true;
    $("try").open = this.chat.conversation.items().length === 0;
    this.#listen(store);
    // countdowns (reconnect, automatic resend) need a render each second
    setInterval(() => this.#schedule(), 1000);
    this.#render();
    this.view.scrollToEnd();
    this.chat.start();
    $("text").focus();
  }

  #listen(store) {
    const field = $("text");
    $("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    field.addEventListener("keydown", (event) => {
      // Enter also confirms a candidate of an input method: that is not ours
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      this.#submit();
    });
    field.addEventListener("input", () => this.#measure());
    $("stop").addEventListener("click", () => this.#act(() => this.chat.stopRun()));
    $("reconnect").addEventListener("click", () => this.#act(() => this.chat.connection.retryNow()));
    $("new").addEventListener("click", () =>
      this.#act(() => {
        this.chat.startAnew();
        $("try").open = true;
      }),
    );
    $("languages").addEventListener("click", (event) => {
      const chosen = event.target.dataset?.language;
      if (!LANGUAGES.includes(chosen)) return;
      language = chosen;
      saveLanguage(language);
      localize();
      this.#measure();
      this.#render();
    });
    // a browser that calls itself offline may still reach this server, as on one machine: only the socket can tell
    for (const change of ["online", "offline"]) addEventListener(change, () => this.chat.connection.check());
    document.addEventListener("visibilitychange", () => document.hidden || this.chat.connection.check());
    addEventListener("storage", (event) => event.key === store.recordKey && this.chat.adopt(store.loadRecord()));
  }

  /** Do it and put the focus back to where one writes: the button may be gone afterwards. */
  #act(action) {
    action();
    $("text").focus();
  }

  #submit() {
    const field = $("text");
    const message = field.value.trim();
    if (message === "" || !this.#fits()) return;
    field.value = "";
    this.#measure();
    this.#send(message);
  }

  #send(message) {
    $("try").open = false;
    this.chat.send(message);
    this.#render();
    this.view.scrollToEnd();
    $("text").focus();
  }

  #fits() {
    return utf8Bytes($("text").value.trim()) <= this.chat.textLimit;
  }

  /** Grow the field with its text (CSS cannot everywhere) and count bytes near the limit. */
  #measure() {
    const field = $("text");
    field.rows = Math.min(6, Math.max(1, field.value.split("\n").length));
    const bytes = utf8Bytes(field.value.trim());
    const limit = this.chat.textLimit;
    const fits = bytes <= limit;
    const values = { n: (Math.ceil((bytes / KILO) * 10) / 10).toFixed(1), limit: (limit / KILO).toFixed(1) };
    const near = bytes > limit * COUNTER_FROM;
    put($("bytes"), near ? say(fits ? "composer.bytes" : "composer.too_long", values) : "");
    field.setAttribute("aria-invalid", String(!fits));
    $("send").disabled = !fits;
  }

  #schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // a microtask, not an animation frame: a page in the background still announces what arrives
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#render();
    });
  }

  #render() {
    const { conversation, connectionState } = this.chat;
    const items = conversation.items();
    const run = conversation.openRun();
    this.view.render({ items, language, online: connectionState.kind === "online" });
    $("welcome").hidden = items.length > 0;
    $("run").hidden = run === null;
    put($("phase"), run ? say(`phase.${run.phase ?? "open"}`) : "");
    $("stop").disabled = connectionState.kind !== "online";
    $("draft").hidden = !run?.draft;
    put($("draft"), run?.draft ?? "");
    this.#renderConnection(connectionState);
    this.#renderChips(conversation.suggestions);
  }

  #renderConnection({ kind, until, attempt }) {
    const seconds = Math.max(1, Math.ceil((until - Date.now()) / 1000));
    const offline = kind === "waiting" && (!navigator.onLine || attempt > OFFLINE_AFTER_ATTEMPTS);
    const shown = offline ? "offline" : kind;
    $("connection").dataset.kind = shown;
    put($("connection-text"), say(`connection.${shown}`, { n: seconds }));
    // spoken once per change: a countdown read aloud every second would drown everything else
    put($("connection-said"), kind === "waiting" ? say("connection.said") : say(`connection.${shown}`));
    $("reconnect").hidden = kind !== "waiting";
  }

  #renderChips(suggestions) {
    const signature = JSON.stringify([language, suggestions]);
    if (signature === this.#chipsShown) return;
    this.#chipsShown = signature;
    const chip = (label) => element("button", { type: "button", className: "chip", onclick: () => this.#send(label) }, label);
    const ideas = (this.config.things_to_try ?? []).map((idea) => idea[language] ?? idea.en).filter(Boolean);
    $("chips").replaceChildren(...ideas.map(chip));
    $("try").hidden = ideas.length === 0;
    $("suggestions").replaceChildren(...suggestions.map(chip));
    $("suggestions").hidden = suggestions.length === 0;
  }
}

/** The account from the address, else the first one offered; a choice is shown when there are several. */
function chooseAccount(config) {
  const accounts = (config.accounts ?? []).map((account) =>
    typeof account === "string" ? { id: account, name: account } : { id: account.id ?? account.account, name: account.name ?? account.id },
  );
  const wanted = new URLSearchParams(location.search).get("account");
  const account = accounts.find(({ id }) => id === wanted)?.id ?? accounts[0]?.id ?? "mall";
  $("account").replaceChildren(...accounts.map(({ id, name }) => element("option", { value: id, selected: id === account }, String(name))));
  $("account-choice").hidden = accounts.length < 2;
  $("account").addEventListener("change", () => {
    location.search = new URLSearchParams({ account: $("account").value }).toString();
  });
  return account;
}

async function start() {
  localize();
  try {
    const response = await fetch("/config.json", { cache: "no-store" });
    const config = await response.json();
    new Page(config, chooseAccount(config));
  } catch (error) {
    $("welcome").hidden = false;
    $("welcome").replaceChildren(element("p", { role: "alert" }, say("config.failed")));
    throw error;
  }
}

start();
