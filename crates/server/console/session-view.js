// One session: its stream, its timeline, and everything around them.

import { contextOf } from "./activity.js";
import * as api from "./api.js";
import { Approvals } from "./approvals.js";
import { Composer } from "./composer.js";
import { announce, button, h, toast } from "./dom.js";
import { drawEntry } from "./entry-view.js";
import { Inbox } from "./inbox.js";
import { Lanes } from "./lanes.js";
import { Panel } from "./panel.js";
import { isDelta } from "./reducer.js";
import { Log } from "./replay.js";
import { ReplayBar } from "./replay-bar.js";
import { findEntry, visibleEntries } from "./rows.js";
import { may } from "./scopes.js";
import { SessionActions } from "./session-actions.js";
import { SessionHead } from "./session-head.js";
import { StatusLine } from "./status-line.js";
import { openStream } from "./shared-streams.js";
import { Stream } from "./stream.js";
import { Timeline } from "./timeline.js";
import { droppedRanges } from "./turns.js";

/**
 * @import { Event, Model, Session, SessionState } from "./types.js"
 * @import { View } from "./rows.js"
 */

// While the past arrives, most of what would be drawn is out of view soon.
const DRAW_PAST_MS = 500;

// Events of subagents are in streams of their own, most of which are not followed.
const SUBAGENTS_MS = 3000;

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
    this.inbox = new Inbox((event) => this.take(event), (empty) => this.taken(empty));
    this.ready = false;
    this.rewinds = 0;
    this.drawnAt = 0;
    this.askedAt = 0;
    this.connection = "connecting";
    this.trouble = "";
    /** @type {View} */
    this.view = "all";
    this.quiet = false;
    /** @type {ReplayBar|null} */
    this.replay = null;
    this.lanes = new Lanes();
    this.destroyed = false;
    this.acts = new SessionActions(this);
    this.actions = this.makeActions();
    this.timeline = new Timeline((entry) => drawEntry(entry, this.actions), (follow, below) => this.moved(follow, below));
    this.approvals = new Approvals(id);
    this.composer = new Composer(id, (error) => this.acts.failed(error));
    this.composer.models = models;
    this.head = new SessionHead(this);
    this.panel = this.makePanel();
    this.status = new StatusLine();
    this.newest = button("Newest", () => this.timeline.toEnd(), { class: "newest", hidden: true });
    const lacking = h("p", { class: "dim lacks-run" }, "This token can only read: it does not have the scope ", h("code", null, "run"), ".");
    this.damage = h("p", { class: "bad", role: "alert", hidden: true });
    this.footParts = [this.damage, this.approvals.element, this.status.element, this.composer.element, lacking];
    this.foot = h("div", { class: "foot" }, ...this.footParts);
    this.element = h("div", { class: "session" }, h("main", { id: "main", tabindex: "-1" }, this.head.element, h("div", { class: "timeline-box" }, this.timeline.element, this.newest), this.foot), this.panel.element);
    this.stream = new Stream({
      url: api.eventsUrl(id),
      open: openStream,
      receive: (name, data) => this.receive(name, data),
      changed: (state) => this.connectionChanged(state),
      allowed: () => api.session(id).then(() => true, (error) => this.isTemporary(error)),
    });
    this.ticker = window.setInterval(() => this.tick(), 1000);
  }

  /** @returns {import("./entry-view.js").Actions} */
  makeActions() {
    return {
      folds: new Map(),
      edit: may("run") ? (entry) => this.acts.edit(entry) : undefined,
      fork: may("run") ? (entry) => void this.acts.forkAfter(entry) : undefined,
      rewind: may("run") ? (entry) => void this.acts.rewindBefore(entry) : undefined,
      lane: (entry) => this.lanes.show(entry),
      imageUrl: (image) => this.acts.imageUrl(image),
    };
  }

  makePanel() {
    const panel = new Panel(this.id, {
      agent: (entry) => this.app.go(entry.child),
      fork: (turns) => void this.acts.forkAt(turns),
      rewind: (turns, history) => this.acts.rewindTo(turns, history),
      restore: (checkpoint, done) => void this.acts.restoreFiles(checkpoint, done),
      compact: () => this.acts.compact(),
      close: () => this.togglePanel(),
      jump: (seq) => this.jump(seq),
      context: (state) => this.context(state),
    });
    panel.element.hidden = !matchMedia("(min-width: 1200px)").matches;
    return panel;
  }

  start() {
    this.stream.start();
    void this.approvals.load();
    api.session(this.id).then((session) => this.update(session), (error) => this.acts.failed(error));
  }

  destroy() {
    this.destroyed = true;
    this.approvals.destroyed = true;
    clearInterval(this.ticker);
    this.replay?.destroy();
    this.stream.stop();
    this.inbox.destroy();
    this.lanes.destroy();
    this.timeline.destroy();
  }

  /**
   * Returns whether the stream is worth another attempt after an error.
   * @param {api.ApiError} error
   */
  isTemporary(error) {
    if (error.status === 404 && !this.destroyed) {
      toast("There is no such session, or it was deleted");
      this.app.removed(this.id);
    }
    return error.status !== 401 && error.status !== 404;
  }

  /** @param {Session} session */
  update(session) {
    const before = this.session;
    this.session = session;
    if (before && before.pending_approvals !== session.pending_approvals) void this.approvals.load();
    if (session.parent && this.actions.edit) {
      // The conversation of a subagent belongs to the call that it works for.
      this.actions.edit = this.actions.rewind = undefined;
      this.timeline.redraw();
    }
    this.head.update(session);
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
    if (name === "problem") {
      this.trouble = String(data?.detail ?? "");
      void this.checkDamage();
    } else if (name === "message") this.inbox.push(data);
    else if (name === "ready") this.inbox.push(null);
    else if (name === "reset") {
      this.log = new Log(this.id);
      this.inbox.clear();
      this.ready = false;
      this.rewinds = 0;
      this.leaveReplay();
      this.inbox.schedule();
    }
  }

  /** Shows the damage of the record, after whose last intact event the stream has failed. */
  async checkDamage() {
    const { damage } = await api.wholeHistory(this.id).catch(() => ({ damage: undefined }));
    if (!damage || this.destroyed) return;
    this.stream.stop();
    this.damage.textContent = `The rest of the record cannot be read: ${damage}`;
    this.damage.hidden = false;
    this.inbox.push(null);
  }

  /** @param {Event|null} event */
  take(event) {
    if (event) {
      if (this.log.add(event) && !isDelta(event)) this.noticed(event);
      return;
    }
    this.trouble = "";
    // Decisions of others may have passed while the stream was cut.
    if (this.ready) void this.approvals.load();
    this.ready = true;
  }

  /** @param {boolean} empty whether everything that has arrived is applied */
  taken(empty) {
    if (!this.replay && (this.ready || performance.now() - this.drawnAt > DRAW_PAST_MS)) {
      this.draw();
      this.drawnAt = performance.now();
    }
    if (empty && this.ready && this.log.state.rewinds.length !== this.rewinds) void this.markDropped();
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

  /** @param {View} view */
  setView(view) {
    this.view = view;
    this.draw();
  }

  /** @param {boolean} quiet whether quiet notices are shown */
  setQuiet(quiet) {
    this.quiet = quiet;
    this.draw();
  }

  /** @param {SessionState} state */
  context(state) {
    const model = this.session?.model ?? state.model;
    return contextOf(state, this.models.find(({ id }) => id === model)?.context_window ?? 0);
  }

  tick() {
    this.drawStatus();
    const { phase, agents } = this.log.state;
    if (document.hidden || phase !== "PROCESSING" || performance.now() - this.askedAt < SUBAGENTS_MS) return;
    if (![...agents.values()].some((agent) => agent.endedAt === null)) return;
    this.askedAt = performance.now();
    void this.approvals.load();
  }

  drawStatus() {
    const state = this.state();
    const isOpen = this.connection === "open" || this.connection === "closed";
    const connection = this.trouble || (isOpen ? "" : "Reconnecting …");
    this.status.draw(this.session, state, this.context(state), this.replay ? state.lastAt : Date.now(), connection);
    this.head.draw(this.session, state);
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
    this.newest.hidden = follow || below <= 0;
  }

  /**
   * Selects the next entry with a text. Returns which one it is, in words.
   * @param {string} text
   * @param {1|-1} step
   */
  find(text, step) {
    const { timeline } = this;
    const selected = timeline.indexOf(timeline.selected);
    const at = findEntry(timeline.entries, text, selected < 0 ? 0 : selected + step, step);
    if (at < 0) return "not found";
    timeline.follow = false;
    timeline.mark(timeline.entries[at].seq);
    timeline.reveal(at);
    timeline.settle(at);
    return `entry ${at + 1}`;
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
    this.foot.replaceChildren(this.replay.element);
    this.element.classList.add("replaying");
    this.replay.range.focus();
    this.draw();
  }

  leaveReplay() {
    if (!this.replay) return;
    this.replay.destroy();
    this.replay = null;
    this.foot.replaceChildren(...this.footParts);
    this.element.classList.remove("replaying");
    this.timeline.follow = true;
    this.draw();
  }
}
