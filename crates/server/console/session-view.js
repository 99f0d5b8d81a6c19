// One session: its stream, its timeline, and everything around them.

import { activity, contextOf, stateOf } from "./activity.js";
import * as api from "./api.js";
import { Approvals } from "./approvals.js";
import { Composer } from "./composer.js";
import { confirm, editInput, previewRewind } from "./dialogs.js";
import { announce, button, fill, h, select, toast } from "./dom.js";
import { drawEntry } from "./entry-view.js";
import { exportSession } from "./export.js";
import { cost, percent, tokens } from "./format.js";
import { Lanes } from "./lanes.js";
import { Panel } from "./panel.js";
import { isDelta } from "./reducer.js";
import { Log } from "./replay.js";
import { ReplayBar } from "./replay-bar.js";
import { findEntry, visibleEntries } from "./rows.js";
import { Stream } from "./stream.js";
import { Timeline } from "./timeline.js";
import { droppedRanges, rewindPreview, turnsBefore, turnsThrough } from "./turns.js";

/**
 * @import { Entry, Event, HistoryTurn, Image, InputEntry, Model, Session, SessionState } from "./types.js"
 * @import { View } from "./rows.js"
 */

const VIEWS = [
  { value: "all", text: "Everything" },
  { value: "talk", text: "Conversation" },
  { value: "calls", text: "Calls" },
  { value: "changes", text: "Changes" },
  { value: "problems", text: "Problems" },
];

const SLICE_MS = 10;

export class SessionView {
  /**
   * @param {string} id
   * @param {Model[]} models
   * @param {{go: (id: string|null) => void, removed: (id: string) => void, titled: () => void}} app
   */
  constructor(id, models, app) {
    this.id = id;
    this.app = app;
    this.models = models;
    /** @type {Session|null} */
    this.session = null;
    this.log = new Log(id);
    /** @type {Event[]} */
    this.inbox = [];
    this.ready = false;
    this.rewinds = 0;
    this.drawnAt = 0;
    this.frame = 0;
    this.connection = "connecting";
    /** @type {View} */
    this.view = "all";
    this.quiet = false;
    /** @type {ReplayBar|null} */
    this.replay = null;
    this.lanes = new Lanes();
    this.destroyed = false;
    this.timeline = new Timeline((entry) => drawEntry(entry, this.actions), (follow, below) => this.moved(follow, below));
    this.approvals = new Approvals(id);
    this.composer = new Composer(id, (error) => this.failed(error));
    this.composer.models = models;
    this.panel = new Panel(id, {
      agent: (entry) => app.go(entry.child),
      fork: (turns) => void this.forkAt(turns),
      rewind: (turns, history) => this.rewindTo(turns, history),
      compact: () => void this.attempt(async () => void (await api.control(id, "compact")), "A summary is requested"),
      close: () => this.togglePanel(),
      jump: (seq) => this.jump(seq),
      context: (state) => this.context(state),
    });
    this.panel.element.hidden = !matchMedia("(min-width: 1200px)").matches;
    this.actions = this.makeActions();
    this.build();
    this.stream = new Stream({
      url: api.eventsUrl(id),
      open: (url) => new EventSource(url),
      receive: (name, data) => this.receive(name, data),
      changed: (state) => this.connectionChanged(state),
      allowed: () => api.session(id).then(() => true, (error) => error.status !== 401 && error.status !== 404),
    });
    this.ticker = window.setInterval(() => this.drawStatus(), 1000);
  }

  /** @returns {import("./entry-view.js").Actions} */
  makeActions() {
    return {
      unfolded: new Set(),
      edit: (entry) => this.edit(entry),
      fork: (entry) => void this.forkAfter(entry),
      rewind: (entry) => void this.rewindBefore(entry),
      lane: (entry) => this.lanes.show(entry),
      imageUrl: (image) => this.imageUrl(image),
    };
  }

  build() {
    this.title = h("h1", { class: "cut" }, "…");
    this.subtitle = h("p", { class: "dim cut" });
    this.search = h("input", { type: "search", "aria-label": "Search the timeline", placeholder: "Find" });
    this.search.addEventListener("keydown", (event) => this.searchKey(event));
    this.found = h("span", { class: "dim found", role: "status" });
    const views = select(VIEWS, "all", (value) => this.setView(/** @type {View} */ (value)), { "aria-label": "Entries that are shown" });
    const quiet = h("input", { type: "checkbox" });
    quiet.addEventListener("change", () => {
      this.quiet = quiet.checked;
      this.draw();
    });
    this.more = h("details", { class: "menu" }, h("summary", null, "More"), h(
      "div",
      { class: "menu-body" },
      h("label", null, quiet, " Checkpoints and loaded files"),
      button("Export as HTML", () => void this.export()),
      h("a", { href: api.journalUrl(this.id), download: "" }, "Journal as JSON lines"),
      button("Abort the run", () => void this.attempt(async () => void (await api.control(this.id, "abort")), "Aborted")),
      button("Delete the session …", () => this.remove(), { class: "danger" }),
    ));
    const { more } = this;
    more.addEventListener("focusout", (event) => {
      if (!(event.relatedTarget instanceof Node && more.contains(event.relatedTarget))) more.open = false;
    });
    this.back = h("a", { href: "#/", class: "back" }, "Sessions");
    const tools = h("div", { class: "head-tools" }, this.search, this.found, views, button("Replay", () => this.toggleReplay(), { title: "r" }), button("Panel", () => this.togglePanel(), { title: "i", class: "panel-toggle" }), this.more);
    this.head = h("header", { class: "session-head" }, this.back, h("div", { class: "titles" }, this.title, this.subtitle), tools);
    this.newest = button("Newest", () => this.timeline.toEnd(), { class: "newest", hidden: true });
    this.status = h("div", { class: "status" });
    this.foot = h("div", { class: "foot" }, this.approvals.element, this.status, this.composer.element);
    this.element = h("div", { class: "session" }, h("main", { id: "main", tabindex: "-1" }, this.head, h("div", { class: "timeline-box" }, this.timeline.element, this.newest), this.foot), this.panel.element);
  }

  start() {
    this.stream.start();
    void this.approvals.load();
    api.session(this.id).then((session) => this.update(session), (error) => this.failed(error));
  }

  destroy() {
    this.destroyed = true;
    this.approvals.destroyed = true;
    clearInterval(this.ticker);
    cancelAnimationFrame(this.frame);
    this.replay?.destroy();
    this.stream.stop();
    this.lanes.destroy();
    this.timeline.destroy();
  }

  /** @param {Session} session */
  update(session) {
    const before = this.session;
    this.session = session;
    if (before && before.pending_approvals !== session.pending_approvals) void this.approvals.load();
    fill(/** @type {Element} */ (this.title), session.title || "Untitled");
    this.app.titled();
    this.composer.update(session);
    this.drawStatus();
    if (!this.replay) this.panel.update(session, this.log.state);
  }

  /**
   * @param {string} name
   * @param {any} data
   */
  receive(name, data) {
    if (name === "reset") {
      this.log = new Log(this.id);
      this.inbox = [];
      this.ready = false;
      this.rewinds = 0;
      this.leaveReplay();
    } else if (name === "ready") this.ready = true;
    else if (name === "message") this.inbox.push(data);
    this.schedule();
  }

  schedule() {
    if (document.hidden) setTimeout(() => this.work(), 200);
    else this.frame ||= requestAnimationFrame(() => this.work());
  }

  /** Applies what has arrived, for a slice of a frame, and draws. */
  work() {
    this.frame = 0;
    if (this.destroyed) return;
    const until = performance.now() + SLICE_MS;
    let done = 0;
    while (done < this.inbox.length && (done % 32 !== 0 || performance.now() < until)) {
      const event = this.inbox[done];
      done += 1;
      if (this.log.add(event) && !isDelta(event)) this.noticed(event);
    }
    this.inbox.splice(0, done);
    // While the past arrives, most of what would be drawn is out of view soon.
    const due = this.ready || performance.now() - this.drawnAt > 500;
    if (!this.replay && due) {
      this.draw();
      this.drawnAt = performance.now();
    }
    if (this.inbox.length > 0) this.schedule();
    else if (this.ready && this.log.state.rewinds.length !== this.rewinds) void this.markDropped();
  }

  /** Asks for the history after a rewind, and marks the entries that are no part of it any more. */
  async markDropped() {
    const { rewinds } = this.log.state;
    this.rewinds = rewinds.length;
    const turns = await api.history(this.id).catch(() => null);
    if (!turns || this.destroyed) return;
    const ranges = droppedRanges(turns, rewinds);
    this.timeline.dropped = (entry) => ranges.some(({ from, to }) => entry.seq > from && entry.seq < to);
    this.timeline.render();
  }

  /**
   * Does what an event asks for besides drawing.
   * @param {Event} event
   */
  noticed(event) {
    if (event.kind === "USER_INPUT" || event.kind === "STEERING_INJECTED") this.composer.taken(String(event.data.content ?? ""));
    if (!this.ready) return;
    if (event.kind === "APPROVAL_REQUESTED" || event.kind === "APPROVAL_DECIDED") void this.approvals.load();
    if (event.kind === "PROCESSING_END") announce("The run has ended");
    if (event.kind === "REWOUND" && this.panel.tab === "history") void this.panel.loadHistory();
  }

  state() {
    return this.replay ? this.replay.replay.state : this.log.state;
  }

  /** @param {SessionState} [state] */
  draw(state = this.state()) {
    this.timeline.show(visibleEntries(state.entries, this.view, this.quiet));
    this.composer.setPhase(this.log.state.phase);
    this.panel.update(this.session, state);
    this.drawStatus();
  }

  /** @param {SessionState} state */
  context(state) {
    const model = this.session?.model ?? state.model;
    return contextOf(state, this.models.find(({ id }) => id === model)?.context_window ?? 0);
  }

  drawStatus() {
    const state = this.state();
    const { usage } = state;
    const context = this.context(state);
    const parts = [];
    if (context && context.window > 0) parts.push(`context ${percent(context.used, context.window)}`);
    parts.push(`${tokens(usage.input + usage.output)} tokens`, `${percent(usage.cacheRead, usage.input)} cached`);
    if (this.session?.cost_usd !== undefined) parts.push(cost(this.session.cost_usd));
    const text = activity(state, this.replay ? state.lastAt : Date.now());
    const connection = this.connection === "open" || this.connection === "closed" ? "" : "Reconnecting …";
    const signature = JSON.stringify([text, parts, connection]);
    if (this.status && this.status.dataset.signature !== signature) {
      this.status.dataset.signature = signature;
      fill(this.status, h("span", { class: `dot ${text ? "busy" : "idle"}` }), h("span", { class: "doing cut" }, text || stateOf(this.session, state)), connection ? h("span", { class: "badge warning" }, connection) : null, h("span", { class: "space" }), h("span", { class: "dim numbers" }, parts.join(" · ")));
    }
    const subtitle = [this.session?.directory ?? state.directory, this.session?.model ?? state.model].filter(Boolean).join(" · ");
    if (this.subtitle && this.subtitle.textContent !== subtitle) fill(this.subtitle, subtitle);
  }

  /** @param {string} state */
  connectionChanged(state) {
    this.connection = state;
    this.drawStatus();
  }

  /**
   * @param {boolean} follow
   * @param {number} below
   */
  moved(follow, below) {
    if (!this.newest) return;
    this.newest.hidden = follow || below <= 0;
  }

  /** @param {View} view */
  setView(view) {
    this.view = view;
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  searchKey(event) {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const { timeline } = this;
    const step = event.shiftKey ? -1 : 1;
    const text = this.search?.value ?? "";
    const selected = timeline.indexOf(timeline.selected);
    const at = findEntry(timeline.entries, text, selected < 0 ? 0 : selected + step, step);
    if (at < 0) {
      fill(/** @type {Element} */ (this.found), "not found");
      return;
    }
    fill(/** @type {Element} */ (this.found), `entry ${at + 1}`);
    timeline.follow = false;
    timeline.mark(timeline.entries[at].seq);
    timeline.reveal(at);
    timeline.settle(at);
  }

  /** @param {number} seq */
  jump(seq) {
    const entries = this.timeline.entries;
    let at = entries.findIndex((entry) => entry.lastSeq >= seq);
    if (at < 0) at = entries.length - 1;
    this.timeline.follow = false;
    this.timeline.select(at);
  }

  togglePanel() {
    this.panel.element.hidden = !this.panel.element.hidden;
    this.draw();
    if (!this.panel.element.hidden && !matchMedia("(min-width: 1200px)").matches) this.panel.tabs[0].focus();
  }

  showDiff() {
    this.panel.element.hidden = false;
    this.panel.open("changes");
  }

  toggleReplay() {
    if (this.replay) {
      this.leaveReplay();
      return;
    }
    this.replay = new ReplayBar(this.log, (state) => this.draw(state), () => this.leaveReplay());
    this.foot?.replaceChildren(this.replay.element);
    this.element?.classList.add("replaying");
    this.replay.range.focus();
    this.draw();
  }

  leaveReplay() {
    if (!this.replay) return;
    this.replay.destroy();
    this.replay = null;
    this.foot?.replaceChildren(this.approvals.element, /** @type {Node} */ (this.status), this.composer.element);
    this.element?.classList.remove("replaying");
    this.timeline.follow = true;
    this.draw();
  }

  async export() {
    await this.attempt(() => exportSession(this.session, this.log.state, (image) => this.imageUrl(image)), "The file is ready");
  }

  /** @param {Image} image */
  imageUrl(image) {
    return image.hash ? api.blobUrl(this.id, image.hash) : null;
  }

  /** @param {InputEntry} entry */
  edit(entry) {
    editInput(entry.text, async (text, how) => {
      const count = turnsBefore(await api.history(this.id), entry);
      if (how === "fork") {
        const fork = await api.fork(this.id, count);
        await api.say(fork.id, "submit", { text });
        this.app.go(fork.id);
      } else {
        await api.rewind(this.id, count);
        await api.say(this.id, "submit", { text });
      }
    });
  }

  /** @param {Entry} entry */
  async forkAfter(entry) {
    await this.attempt(async () => this.forkAt(turnsThrough(await api.history(this.id), entry)));
  }

  /** @param {number} turns */
  async forkAt(turns) {
    await this.attempt(async () => {
      const fork = await api.fork(this.id, turns);
      this.app.go(fork.id);
    }, "This is the fork");
  }

  /** @param {Entry} entry */
  async rewindBefore(entry) {
    await this.attempt(async () => {
      const history = await api.history(this.id);
      this.rewindTo(turnsBefore(history, entry), history);
    });
  }

  /**
   * @param {number} turns
   * @param {HistoryTurn[]} history
   */
  rewindTo(turns, history) {
    previewRewind(turns, rewindPreview(history, this.log.state, turns), () => {
      void this.attempt(async () => void (await api.rewind(this.id, turns)), "The conversation was rewound");
    });
  }

  remove() {
    confirm("Delete the session", "Its record is removed for good.", "Delete", () => {
      void this.attempt(async () => {
        await api.remove(this.id);
        this.app.removed(this.id);
      }, "The session was deleted");
    });
  }

  /**
   * @param {() => Promise<void>} run
   * @param {string} [success]
   */
  async attempt(run, success) {
    try {
      await run();
      if (success) toast(success);
    } catch (error) {
      this.failed(error);
    }
  }

  /** @param {unknown} error */
  failed(error) {
    if (this.destroyed || (error instanceof api.ApiError && error.status === 401)) return;
    toast(error instanceof Error ? error.message : String(error), "error");
  }
}
