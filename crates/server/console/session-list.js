// The list of sessions: search, filters, state, cost, and what waits for the user.

import * as api from "./api.js";
import { button, fill, h, labelled, select, toast } from "./dom.js";
import { choose, stateText, waits } from "./filter.js";
import { ago, cost, counted, tokens } from "./format.js";
import { openStream } from "./shared-streams.js";
import { Stream } from "./stream.js";

/**
 * @import { Filter } from "./filter.js"
 * @import { Session } from "./types.js"
 */

const FILTERS = [
  { value: "all", text: "All" },
  { value: "waiting", text: "Waits for me" },
  { value: "PROCESSING", text: "Running" },
  { value: "IDLE", text: "Idle" },
  { value: "AWAITING_INPUT", text: "Asks a question" },
  { value: "CLOSED", text: "Closed" },
];

export class SessionList {
  /**
   * @param {(session: Session|null, all: Map<string, Session>) => void} changed called when a session has changed
   * @param {() => void} create
   */
  constructor(changed, create) {
    this.changed = changed;
    /** @type {Map<string, Session>} */
    this.sessions = new Map();
    /** @type {Map<string, {signature: string, element: HTMLElement}>} */
    this.items = new Map();
    this.selected = "";
    /** @type {Filter} */
    this.filter = "all";
    /** @type {string|undefined} */
    this.next = undefined;
    this.loads = 0;
    /** @type {Set<string>} ids that the server has found for the search */
    this.hits = new Set();
    this.timer = 0;
    this.frame = 0;
    this.search = h("input", { type: "search", "aria-label": "Search sessions", placeholder: "Search sessions" });
    this.search.addEventListener("input", () => this.typed());
    this.filters = select(FILTERS, "all", (value) => this.choose(/** @type {Filter} */ (value)), { "aria-label": "Filter by state" });
    this.count = h("p", { class: "dim count", role: "status" });
    this.list = h("ul", { class: "sessions" });
    this.more = button("Load more", () => void this.load(false), { class: "more", hidden: true });
    this.element = h(
      "nav",
      { id: "sessions", "aria-label": "Sessions" },
      h("div", { class: "list-head" }, h("h1", null, "Sessions"), button("New", create, { class: "primary", title: "n", data: { needs: "run" } })),
      h("div", { class: "list-tools" }, this.search, this.filters),
      this.count,
      h("div", { class: "list-body" }, this.list, this.more),
    );
    this.stream = new Stream({
      url: "/v1/events",
      open: openStream,
      names: ["session", "deleted"],
      receive: (name, data) => this.receive(name, data),
      // Changes may have passed while the stream was not open.
      restored: () => void this.load(true, true),
      allowed: () => api.sessions({}).then(() => true, (error) => error.status !== 401),
    });
  }

  async start() {
    await this.load(true);
    this.stream.start();
  }

  /** @param {Filter} filter */
  choose(filter) {
    this.filter = filter;
    void this.load(true);
  }

  typed() {
    clearTimeout(this.timer);
    this.hits.clear();
    this.timer = window.setTimeout(() => void this.load(true), 200);
    this.draw();
  }

  /**
   * Loads a page of the sessions that fit. The order of answers does not matter: only the newest request counts.
   * @param {boolean} fresh
   * @param {boolean} [again] whether the first page is read again, and those behind it stay
   */
  async load(fresh, again = false) {
    if (!again) this.loads += 1;
    const load = this.loads;
    const search = this.search.value.trim();
    const state = this.filter === "all" || this.filter === "waiting" ? undefined : this.filter;
    const known = fresh && !search && !state ? [...this.sessions.values()] : [];
    try {
      const page = await api.sessions({ cursor: fresh ? undefined : this.next, search, state });
      this.dropMissing(known, page);
      for (const session of page.sessions) this.keep(session);
      if (load === this.loads && !again) {
        this.next = page.next;
      }
      if (load === this.loads && search) for (const session of page.sessions) this.hits.add(session.id);
    } catch (error) {
      if (!(error instanceof api.ApiError && error.status === 401)) toast(`Sessions: ${error instanceof Error ? error.message : error}`, "error");
    }
    this.changed(null, this.sessions);
    this.draw();
  }

  /**
   * Drops sessions that were known before the first page was asked for and that it would have: they were deleted.
   * @param {Session[]} known
   * @param {{sessions: Session[], next?: string}} page
   */
  dropMissing(known, page) {
    const last = page.next ? Date.parse(page.sessions.at(-1)?.updated_at ?? "") : -Infinity;
    const found = new Set(page.sessions.map(({ id }) => id));
    for (const { id, parent, updated_at: at } of known) {
      if (!parent && !found.has(id) && Date.parse(at) > last) this.sessions.delete(id);
    }
  }

  /**
   * @param {string} name
   * @param {Session} data
   */
  receive(name, data) {
    if (name === "deleted") {
      this.forget(data.id);
      this.changed(null, this.sessions);
    }
    if (name !== "session" || !data?.id) return;
    this.keep(data);
    this.changed(data, this.sessions);
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  /**
   * Keeps a session unless a newer state of it is known.
   * @param {Session} session
   */
  keep(session) {
    const known = this.sessions.get(session.id);
    if (known && Date.parse(known.updated_at) > Date.parse(session.updated_at)) return;
    this.sessions.set(session.id, session);
  }

  /** @param {string} id */
  forget(id) {
    this.sessions.delete(id);
    this.draw();
  }

  /** @param {string} id */
  select(id) {
    this.selected = id;
    this.draw();
  }

  /** Returns the session after the selected one that waits for the user. */
  nextWaiting() {
    const waiting = choose(this.sessions.values(), "waiting", "");
    const at = waiting.findIndex((session) => session.id === this.selected);
    return waiting[(at + 1) % waiting.length] ?? null;
  }

  draw() {
    this.frame = 0;
    const sessions = choose(this.sessions.values(), this.filter, this.search.value, this.hits);
    const now = Date.now();
    const keep = new Set();
    let next = this.list.firstChild;
    for (const session of sessions) {
      keep.add(session.id);
      const element = this.item(session, now);
      if (next === element) next = next.nextSibling;
      else this.list.insertBefore(element, next);
    }
    for (const [id, item] of this.items) {
      if (keep.has(id)) continue;
      item.element.remove();
      this.items.delete(id);
    }
    const waiting = choose(this.sessions.values(), "waiting", "").length;
    fill(this.count, `${this.next ? `first ${counted(sessions.length, "session")}` : counted(sessions.length, "session")}${waiting > 0 ? ` · ${waiting} ${waiting === 1 ? "waits" : "wait"} for you` : ""}`);
    this.more.hidden = !this.next;
  }

  /**
   * Returns the item of a session; one that looks the same is kept.
   * @param {Session} session
   * @param {number} now
   */
  item(session, now) {
    const when = ago(Date.parse(session.updated_at), now);
    const signature = JSON.stringify([session, when, session.id === this.selected]);
    const known = this.items.get(session.id);
    if (known?.signature === signature) return known.element;
    const element = known?.element ?? h("li");
    const focused = element.contains(document.activeElement);
    fill(element, this.link(session, when));
    if (focused) element.querySelector("a")?.focus();
    this.items.set(session.id, { signature, element });
    return element;
  }

  /**
   * @param {Session} session
   * @param {string} when
   */
  link(session, when) {
    const tone = waits(session) ? "asks" : session.state === "PROCESSING" && session.live ? "busy" : session.state === "CLOSED" ? "dim" : "idle";
    const facts = [session.directory?.split("/").filter(Boolean).at(-1), session.model, session.tokens === undefined ? null : `${tokens(session.tokens)} tokens`].filter(Boolean);
    return h(
      "a",
      { href: `#/s/${encodeURIComponent(session.id)}`, "aria-current": session.id === this.selected ? "page" : undefined },
      h("span", { class: "line" }, h("span", { class: "title cut" }, session.title || "Untitled"), h("time", { class: "dim", datetime: session.updated_at }, when)),
      h("span", { class: "line" }, h("span", { class: `state ${tone}` }, h("span", { class: `dot ${tone}` }), stateText(session)), h("span", { class: "dim cost" }, session.cost_usd === undefined ? "" : cost(session.cost_usd))),
      h("span", { class: "line dim" }, h("span", { class: "cut" }, facts.join(" · "))),
    );
  }
}

/**
 * Draws the form for a new session.
 * @param {import("./types.js").Model[]} models
 * @param {(options: Record<string, unknown>) => Promise<void>} create
 */
export function newSessionForm(models, create) {
  const message = h("textarea", { rows: 5, autofocus: true });
  const directory = h("input", { type: "text", placeholder: "the server's directory", spellcheck: "false" });
  const model = select([{ value: "", text: "default" }, ...models.map(({ id }) => ({ value: id, text: id }))], "", () => {});
  const mode = select(["", "plan", "ask", "edit", "auto"].map((value) => ({ value, text: value || "default" })), "", () => {});
  const effort = select(["", "low", "medium", "high"].map((value) => ({ value, text: value || "default" })), "", () => {});
  const error = h("p", { class: "bad", role: "alert" });
  const submit = h("button", { type: "submit", class: "primary" }, "Start");
  const form = h(
    "form",
    { class: "stack" },
    labelled("Message", message),
    h("div", { class: "columns" }, labelled("Directory", directory), labelled("Model", model), labelled("Mode", mode), labelled("Effort", effort)),
    error,
    h("div", { class: "buttons" }, submit),
  );
  message.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    submit.disabled = true;
    const text = message.value.trim();
    try {
      await create({ directory: directory.value || undefined, model: model.value || undefined, mode: mode.value || undefined, effort: effort.value || undefined, message: text ? { text } : undefined });
    } catch (problem) {
      fill(error, problem instanceof Error ? problem.message : String(problem));
      submit.disabled = false;
    }
  });
  return form;
}
