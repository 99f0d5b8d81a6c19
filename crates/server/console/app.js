// The page: login, routes, keys.

import * as api from "./api.js";
import { loginForm, showKeys } from "./dialogs.js";
import { announce, button, dialog, fill, h, toast } from "./dom.js";
import { waits } from "./filter.js";
import { bindingOf, keyName, letterHint, lettersAreOn, startLetters } from "./keys.js";
import { pageOf } from "./routes.js";
import { may, setScopes } from "./scopes.js";
import { newSessionForm, SessionList } from "./session-list.js";
import { isShared } from "./shared-streams.js";
import { SessionView } from "./session-view.js";
import { TaskList } from "./task-list.js";
import { TaskView } from "./task-view.js";
import { visible } from "./text.js";
import { nextTheme, startTheme, themeName } from "./theme.js";

/**
 * @import { Approvals } from "./approvals.js"
 * @import { Model, Session } from "./types.js"
 */

class App {
  constructor() {
    this.root = /** @type {HTMLElement} */ (document.getElementById("app"));
    /** @type {SessionView|null} */
    this.view = null;
    /** @type {TaskView|TaskList|null} */
    this.tasks = null;
    /** The page that is shown. */
    this.shown = "";
    /** @type {Model[]} */
    this.models = [];
    this.started = false;
    /** The part of the address that names a session. */
    this.place = "";
    this.list = new SessionList((session, all) => this.sessionChanged(session, all), () => this.create());
    this.empty = h("main", { id: "main", class: "empty", tabindex: "-1" }, h("p", null, "Choose a session, or start one."), h("p", { class: "dim letters" }, h("kbd", null, "?"), " shows the keys"));
    this.slot = h("div", { class: "slot" }, this.empty);
    this.theme = button(themeName(), () => this.switchTheme(), { class: "quiet", title: "t" });
    this.tasksLink = h("a", { href: "#/t", class: "tasks-link", hidden: true }, "Tasks");
    this.list.element.querySelector("h1")?.after(this.tasksLink);
    this.list.element.append(h("footer", null, this.theme, button("Keys", () => showKeys(), { class: "quiet", title: "?" })));
  }

  async start() {
    api.onUnauthorized(() => this.showLogin());
    addEventListener("hashchange", () => void this.route());
    addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("visibilitychange", () => this.visibility());
    if (!(await this.takeToken())) await this.enter();
  }

  /** Signs in with a token in the address, and removes it from there. Returns whether there is one. */
  async takeToken() {
    const match = /^#token=(.+)$/.exec(location.hash);
    if (!match) return false;
    history.replaceState(null, "", location.pathname + location.search + this.place);
    try {
      await api.login(decodeURIComponent(match[1]));
      await this.enter();
    } catch {
      this.showLogin();
    }
    return true;
  }

  async enter() {
    try {
      const scopes = await api.scopes();
      if (scopes) setScopes(scopes);
      this.models = await api.models();
    } catch (error) {
      if (error instanceof api.ApiError && error.status === 401) return;
    }
    this.started = true;
    fill(this.root, this.list.element, this.slot);
    await this.list.start();
    // A server without tasks has no page of them.
    this.tasksLink.hidden = (await api.tasks().catch(() => null)) === null;
    await this.route();
  }

  showLogin() {
    if (this.root.querySelector("form.alone")) return;
    this.leave();
    this.list.stream.stop();
    const form = loginForm(async (token) => {
      await api.login(token);
      await this.enter();
    });
    fill(this.root, h("main", { id: "main" }, form));
    form.querySelector("input")?.focus();
  }

  leave() {
    this.view?.destroy();
    this.tasks?.destroy();
    this.view = this.tasks = null;
    this.shown = "";
  }

  /** Shows what the address names: a session, a task, or the list. */
  async route() {
    if ((await this.takeToken()) || !this.started) return;
    this.place = location.hash;
    const { kind, id } = pageOf(location.hash);
    if (this.shown === `${kind} ${id}`) return;
    this.leave();
    this.shown = `${kind} ${id}`;
    this.list.select(kind === "session" ? id : "");
    this.root.classList.toggle("in-session", kind !== "none");
    if (kind === "task" || kind === "tasks") this.tasksLink.setAttribute("aria-current", "page");
    else this.tasksLink.removeAttribute("aria-current");
    if (kind === "session") this.showSession(id);
    else if (kind !== "none") this.showTasks(kind === "task" ? new TaskView(id, () => this.setTitle()) : new TaskList());
    else fill(this.slot, this.empty);
    this.setTitle();
  }

  /** @param {string} id */
  showSession(id) {
    this.view = new SessionView(id, this.models, { go: (next) => this.go(next), removed: (gone) => this.removed(gone), titled: () => this.setTitle() });
    fill(this.slot, this.view.element ?? null);
    const known = this.list.sessions.get(id);
    if (known) this.view.update(known);
    this.view.start();
  }

  /** @param {TaskView|TaskList} page */
  showTasks(page) {
    this.tasks = page;
    fill(this.slot, page.element);
    page.start();
  }

  /** @param {string|null} id */
  go(id) {
    location.hash = id ? `#/s/${encodeURIComponent(id)}` : "#/";
  }

  /** @param {string} id */
  removed(id) {
    this.list.forget(id);
    this.go(null);
  }

  /**
   * @param {Session|null} session
   * @param {Map<string, Session>} all
   */
  sessionChanged(session, all) {
    if (session && this.view?.id === session.id) this.view.update(session);
    const waiting = [...all.values()].filter((item) => !item.parent && waits(item)).length;
    if (this.waiting !== undefined && waiting > this.waiting && !(session && this.view?.id === session.id)) announce(`A session waits for you.${letterHint(" Press w to open it.")}`, true);
    this.waiting = waiting;
    this.setTitle();
  }

  setTitle() {
    const title = this.view?.session?.title ?? this.tasks?.title ?? "";
    document.title = visible(`${this.waiting ? `(${this.waiting}) ` : ""}${title ? `${title} – ` : ""}Pintle`);
  }

  create() {
    const form = newSessionForm(this.models, async (options) => {
      const session = await api.create(options);
      element.close();
      this.list.keep(session);
      this.go(session.id);
    });
    const element = dialog("New session", [form], "wide-dialog");
  }

  switchTheme() {
    const name = nextTheme();
    this.theme.textContent = name;
    announce(name);
  }

  /**
   * A hidden page follows the list only, and without a worker that the tabs share nothing: browsers open only six connections
   * for all pages together.
   */
  visibility() {
    this.tasks?.visibility();
    if (this.started && !isShared() && !this.root.querySelector("form.alone")) {
      if (document.hidden) this.list.stream.stop();
      else this.list.stream.start();
    }
    if (!this.view) return;
    if (document.hidden) this.view.stream.stop();
    else {
      this.view.stream.start();
      void this.view.approvals.load();
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.defaultPrevented || event.isComposing || !this.started) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (document.querySelector("dialog[open]")) return;
    const name = keyName(event);
    if (name === "Escape") {
      this.escape(target);
      return;
    }
    if (name === "Ctrl+." && this.view && may("run")) {
      event.preventDefault();
      void this.view.composer.control("interrupt");
      return;
    }
    if (name.length === 1 && !lettersAreOn()) return;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input:not([type=checkbox]):not([type=range]), textarea, select")) return;
    if ((name === "Enter" || name === " ") && target.closest("button, a, summary")) return;
    if (target.closest("[role=tablist], input[type=range]") && name.startsWith("Arrow")) return;
    if (this.run(name, target)) event.preventDefault();
  }

  /** @param {Element} target */
  escape(target) {
    if (target.closest("input, textarea, select") && target instanceof HTMLElement && !target.closest(".replay")) target.blur();
    else if (this.view?.head.more.open) this.view.head.more.open = false;
    else if (this.view?.replay) this.view.leaveReplay();
    this.view?.timeline.element.focus({ preventScroll: true });
  }

  /**
   * Returns the card that a key is about: the one that has the focus, or the card of the focused call in the timeline.
   * @param {Element} target
   */
  cardFor(target) {
    const focused = this.decisions()?.current();
    if (focused) return focused;
    const row = target.closest("[data-seq]");
    const { view } = this;
    if (!view || !(row instanceof HTMLElement)) return null;
    const entry = view.timeline.entries[view.timeline.indexOf(Number(row.dataset.seq))];
    return entry?.type === "call" ? view.approvals.cardOf(entry.callId) : null;
  }

  /** Returns what has the cards of the page that wait for a decision. */
  decisions() {
    return this.view?.approvals ?? (this.tasks instanceof TaskView ? this.tasks : null);
  }

  /**
   * Runs the action of a key. Returns whether there is one.
   * @param {string} name
   * @param {Element} target
   */
  run(name, target) {
    const { view } = this;
    const card = this.cardFor(target);
    const inText = target.closest("pre, .wide, .panel-body, .sessions") && /^(Arrow|Home|End)/.test(name);
    if (inText) return false;
    const general = ACTIONS[bindingOf(name, card ? ["Approvals", "Everywhere", "Sessions"] : ["Everywhere", "Sessions", "Approvals"]) ?? ""];
    if (general?.(this, target)) return true;
    if (!view) return false;
    const id = bindingOf(name, ["Timeline", "Replay"]);
    if (id && id in CARD_ACTIONS && view.approvals.current()) {
      CARD_ACTIONS[id](view.approvals);
      return true;
    }
    const action = id ? VIEW_ACTIONS[id] : undefined;
    if (!action) return false;
    action(view);
    return true;
  }
}

/** @type {Record<string, (app: App, target: Element) => boolean>} */
const ACTIONS = {
  help: () => (showKeys(), true),
  search: (app) => (focus(app.view?.head.search ?? app.list.search), true),
  compose: (app) => (app.view ? focus(app.view.composer.text) : false),
  new: (app) => may("run") && (app.create(), true),
  theme: (app) => (app.switchTheme(), true),
  sessions: (app) => {
    if (!matchMedia("(min-width: 800px)").matches) app.go(null);
    return focus(app.list.element.querySelector("[aria-current]") ?? app.list.element.querySelector(".sessions a") ?? app.list.search);
  },
  waiting: (app) => {
    const next = app.list.nextWaiting();
    if (next) app.go(next.id);
    else toast("Nothing waits for you");
    return true;
  },
  tasks: (app) => {
    if (!app.tasksLink.hidden) location.hash = "#/t";
    return !app.tasksLink.hidden;
  },
  approvals: (app) => app.decisions()?.focusNext() ?? false,
  approve: (app, target) => (app.cardFor(target)?.approve(), app.decisions() !== null),
  deny: (app, target) => (app.cardFor(target)?.showDeny(), app.decisions() !== null),
};

/**
 * Actions of the timeline while a card has the focus. Those on the selected entry do nothing: it is not the focused one.
 * @type {Record<string, (approvals: Approvals) => void>}
 */
const CARD_ACTIONS = {
  next: (approvals) => void approvals.step(1),
  previous: (approvals) => void approvals.step(-1),
  unfold: (approvals) => {
    const details = approvals.current()?.element.querySelector("details");
    if (details) details.open = !details.open;
  },
  edit: () => {},
  fork: () => {},
};

/** @type {Record<string, (view: SessionView) => void>} */
const VIEW_ACTIONS = {
  next: (view) => view.timeline.step(1),
  previous: (view) => view.timeline.step(-1),
  nextTurn: (view) => view.timeline.step(1, (entry) => entry.type === "input"),
  previousTurn: (view) => view.timeline.step(-1, (entry) => entry.type === "input"),
  first: (view) => view.timeline.select(0),
  last: (view) => {
    view.timeline.select(view.timeline.entries.length - 1);
    view.timeline.toEnd();
  },
  unfold: (view) => {
    const row = view.timeline.shown.get(view.timeline.selected)?.row.element;
    const details = row?.querySelector("details");
    if (details) details.open = !details.open;
  },
  edit: (view) => {
    const entry = view.timeline.current();
    if (entry?.type === "input" && !entry.steering) view.actions.edit?.(entry);
  },
  fork: (view) => {
    const entry = view.timeline.current();
    if (may("run") && (entry?.type === "input" || entry?.type === "text")) void view.acts.forkAfter(entry);
  },
  inspect: (view) => view.togglePanel(),
  diff: (view) => view.showDiff(),
  export: (view) => void view.acts.export(),
  replay: (view) => view.toggleReplay(),
  stepBack: (view) => view.replay?.step(-1),
  step: (view) => view.replay?.step(1),
  play: (view) => view.replay?.toggle(),
};

/** @param {Element|null|undefined} element */
function focus(element) {
  if (!(element instanceof HTMLElement)) return false;
  element.focus();
  return true;
}

startTheme();
startLetters();
void new App().start();
