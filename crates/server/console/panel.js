// The side panel: meters, plan, subagents, changes of the workspace, history.

import { plainLine } from "./ansi.js";
import * as api from "./api.js";
import { drawPlan } from "./call-view.js";
import { fromHunks } from "./diff.js";
import { drawDiffs } from "./diff-view.js";
import { button, fill, h } from "./dom.js";
import { cost, counted, duration, percent, tokens } from "./format.js";
import { drawBars } from "./lanes.js";

/**
 * @import { AgentEntry, HistoryTurn, Session, SessionState } from "./types.js"
 *
 * @typedef {object} PanelActions
 * @property {(entry: AgentEntry) => void} agent
 * @property {(turns: number) => void} fork
 * @property {(turns: number, history: HistoryTurn[]) => void} rewind
 * @property {(checkpoint: string, done: () => void) => void} restore
 * @property {() => void} compact
 * @property {() => void} close
 * @property {(seq: number) => void} jump
 * @property {(state: SessionState) => SessionState["context"]} context
 */

const TABS = [
  { id: "overview", text: "Overview" },
  { id: "agents", text: "Subagents" },
  { id: "changes", text: "Changes" },
  { id: "history", text: "History" },
];

const CHANGES = 2;

export class Panel {
  /**
   * @param {string} id
   * @param {PanelActions} actions
   */
  constructor(id, actions) {
    this.id = id;
    this.actions = actions;
    this.tab = "overview";
    /** @type {Session|null} */
    this.session = null;
    /** @type {SessionState|null} */
    this.state = null;
    this.signature = "";
    this.body = h("div", { id: "panel-body", role: "tabpanel", tabindex: "0", class: "panel-body" });
    this.tabs = TABS.map(({ id: tab, text }) => h("button", { type: "button", role: "tab", id: `tab-${tab}`, "aria-controls": "panel-body", on: { click: () => this.open(tab) } }, text));
    const list = h("div", { role: "tablist", class: "tabs", "aria-label": "Side panel" }, ...this.tabs);
    list.addEventListener("keydown", (event) => this.key(event));
    this.element = h("aside", { id: "panel", "aria-label": "Side panel" }, h("div", { class: "panel-head" }, list, button("Close", () => actions.close(), { class: "quiet close" })), this.body);
    this.markTab();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    let next = TABS.findIndex((tab) => tab.id === this.tab);
    do next = (next + step + TABS.length) % TABS.length;
    while (this.tabs[next].hidden);
    this.open(TABS[next].id);
    this.tabs[next].focus();
  }

  markTab() {
    TABS.forEach(({ id }, index) => {
      this.tabs[index].setAttribute("aria-selected", String(id === this.tab));
      this.tabs[index].setAttribute("tabindex", id === this.tab ? "0" : "-1");
    });
    this.body.setAttribute("aria-labelledby", `tab-${this.tab}`);
  }

  /** @param {string} tab */
  open(tab) {
    if (this.tabs[TABS.findIndex(({ id }) => id === tab)].hidden) return;
    this.tab = tab;
    this.signature = "";
    this.markTab();
    if (tab === "changes") void this.loadChanges();
    else if (tab === "history") void this.loadHistory();
    else this.draw();
  }

  /**
   * @param {Session|null} session
   * @param {SessionState} state
   */
  update(session, state) {
    this.session = session;
    this.state = state;
    this.draw();
  }

  /** Draws the tabs that follow the state. The other two are loaded when they are opened. */
  draw() {
    const { state } = this;
    if (!state || this.element.hidden || (this.tab !== "overview" && this.tab !== "agents")) return;
    const signature = JSON.stringify([this.tab, this.session, state.usage, state.context, state.plan, state.misses, state.phase, [...state.agents.values()].map((agent) => agent.revision), this.tab === "agents" ? Math.floor(state.lastAt / 1000) : 0]);
    if (signature === this.signature) return;
    this.signature = signature;
    if (this.tab === "agents") fill(this.body, drawBars(state, this.actions.agent));
    else fill(this.body, ...this.overview(state));
  }

  /** @param {SessionState} state */
  overview(state) {
    const { session } = this;
    const { usage } = state;
    const facts = h("dl", { class: "facts" });
    /** @param {string} name @param {string|Node} value */
    const fact = (name, value) => facts.append(h("div", null, h("dt", null, name), h("dd", null, value)));
    fact("Model", session?.model ?? state.model);
    if (session?.mode ?? state.mode) fact("Mode", session?.mode ?? state.mode ?? "");
    fact("Directory", session?.directory ?? state.directory);
    if (session?.cost_usd !== undefined) fact("Cost", cost(session.cost_usd));
    fact("Input", `${tokens(usage.input)} tokens, ${percent(usage.cacheRead, usage.input)} from the cache`);
    fact("Output", `${tokens(usage.output)} tokens`);
    fact("Model calls", `${state.rounds}${state.misses > 0 ? `, ${counted(state.misses, "cache miss", "cache misses")}` : ""}`);
    if (state.startedAt > 0) fact("Time", duration(state.lastAt - state.startedAt));
    if (session?.parent) fact("Parent", linkTo(session.parent));
    if (state.forkedFrom) fact("Fork of", linkTo(state.forkedFrom.session));
    const nodes = [drawContext(this.actions.context(state)), facts];
    if (state.plan) nodes.push(h("h2", null, "Plan"), drawPlan(state.plan));
    if (state.phase !== "CLOSED" && !session?.parent) nodes.push(h("div", { class: "buttons" }, button("Compact the context", () => this.actions.compact(), { data: { needs: "run" } })));
    return nodes;
  }

  async loadChanges() {
    fill(this.body, h("p", { class: "dim" }, "Loading …"));
    try {
      const [files, checkpoints] = await Promise.all([api.diff(this.id), api.checkpoints(this.id)]);
      if (this.tab !== "changes") return;
      if (!files) {
        this.open("overview");
        this.tabs[CHANGES].hidden = true;
        return;
      }
      const diffs = files.map(fromHunks);
      const head = h("div", { class: "line" }, h("h2", null, counted(diffs.length, "changed file")), button("Reload", () => void this.loadChanges(), { class: "quiet" }));
      fill(this.body, head, diffs.length > 0 ? drawDiffs(diffs, { folded: diffs.length > 5 }) : h("p", { class: "dim" }, "The workspace is as it was."), h("h2", null, "Checkpoints"), drawCheckpoints(checkpoints, this.session?.parent ? null : (id) => this.actions.restore(id, () => void this.loadChanges())));
    } catch (error) {
      if (this.tab === "changes") fill(this.body, h("p", { class: "bad" }, `The changes could not be loaded: ${error instanceof Error ? error.message : error}`));
    }
  }

  async loadHistory() {
    fill(this.body, h("p", { class: "dim" }, "Loading …"));
    try {
      const { turns, damage } = await api.wholeHistory(this.id);
      if (this.tab !== "history") return;
      const items = turns.map((turn, index) => {
        const count = index + 1;
        const jump = h("button", { type: "button", class: "quiet jump", on: { click: () => this.actions.jump(turn.event) } }, h("span", { class: "name" }, turn.kind.replaceAll("_", " ")), " ", h("span", { class: "cut" }, plainLine(turn.text, 90)));
        const label = `after entry ${count}`;
        return h("li", null, jump, h("div", { class: "tools", data: { needs: "run" } }, button("Fork", () => this.actions.fork(count), { class: "quiet", "aria-label": `Fork ${label}` }), this.session?.parent ? null : button("Rewind", () => this.actions.rewind(count, turns), { class: "quiet", "aria-label": `Rewind to ${label}` })));
      });
      fill(this.body, h("p", { class: "dim", data: { needs: "run" } }, "A fork begins with the entries up to here, in a session of its own. A rewind continues this one from here."), h("ol", { class: "turns" }, ...items), damage ? h("p", { class: "bad" }, `The rest of the record cannot be read: ${damage}`) : null);
    } catch (error) {
      if (this.tab === "history") fill(this.body, h("p", { class: "bad" }, `The history could not be loaded: ${error instanceof Error ? error.message : error}`));
    }
  }
}

/** @param {string} id */
function linkTo(id) {
  return h("a", { href: `#/s/${encodeURIComponent(id)}` }, id);
}

/**
 * @param {import("./types.js").Checkpoint[]} checkpoints
 * @param {((id: string) => void)|null} restore null for a subagent, whose files are those of its session
 */
function drawCheckpoints(checkpoints, restore) {
  if (checkpoints.length === 0) return h("p", { class: "dim" }, "None");
  return h("ul", { class: "checkpoints" }, ...checkpoints.map(({ id, at, reason }) => {
    const time = at.replace("T", " ").slice(0, 19);
    const bring = restore && button("Restore", () => restore(id), { class: "quiet", "aria-label": `Restore the files of ${time}`, data: { needs: "run" } });
    return h("li", null, h("time", { class: "dim", datetime: at }, time), " ", h("span", null, reason.replaceAll("_", " ")), " ", bring);
  }));
}

/**
 * Draws how full the context is, and with what.
 * @param {SessionState["context"]} context
 */
export function drawContext(context) {
  if (!context || context.window <= 0) return h("p", { class: "dim" }, "The use of the context is not known yet.");
  const { window, used, system, tools, history } = context;
  const bar = h("div", { class: "meter", role: "meter", "aria-label": "Context", "aria-valuemin": 0, "aria-valuemax": window, "aria-valuenow": Math.min(used, window), "aria-valuetext": `${tokens(used)} of ${tokens(window)} tokens` });
  const parts = system + tools > 0 ? { system, tools, history } : { history };
  for (const [name, value] of Object.entries(parts)) {
    const part = h("span", { class: `part ${name}` });
    part.style.width = `${Math.min(100, (value / window) * 100)}%`;
    bar.append(part);
  }
  const legend = h("ul", { class: "legend" }, ...Object.entries(parts).map(([name, value]) => h("li", null, h("span", { class: `swatch ${name}` }), `${name} ${tokens(value)}`)));
  return h("div", { class: "context-use" }, h("div", { class: "line" }, h("span", null, "Context"), h("span", { class: "dim" }, `${tokens(used)} of ${tokens(window)}, ${percent(used, window)}`)), bar, legend);
}
