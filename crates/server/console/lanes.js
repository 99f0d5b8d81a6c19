// Subagents: each has a session of its own, whose events are followed while its lane is open.

import { eventsUrl } from "./api.js";
import { fill, h } from "./dom.js";
import { counted, duration } from "./format.js";
import { Inbox } from "./inbox.js";
import { Log } from "./replay.js";
import { outcome, subject } from "./rows.js";
import { openStream } from "./shared-streams.js";
import { Stream } from "./stream.js";
import { firstLine } from "./text.js";

/**
 * @import { AgentEntry, Entry, SessionState } from "./types.js"
 */

// The server reads a record for each stream.
const MAX_STREAMS = 8;
const SHOWN = 40;

export class Lanes {
  constructor() {
    /** @type {Map<string, Lane>} */
    this.lanes = new Map();
    /** @type {Lane[]} */
    this.queue = [];
    this.open = 0;
  }

  /**
   * Returns the element of a subagent's lane, and follows its events.
   * @param {AgentEntry} entry
   */
  show(entry) {
    let lane = this.lanes.get(entry.child);
    if (!lane) {
      lane = new Lane(entry, () => this.released());
      this.lanes.set(entry.child, lane);
      this.queue.push(lane);
      this.fill();
    }
    lane.entry = entry;
    return lane.element;
  }

  fill() {
    while (this.open < MAX_STREAMS && this.queue.length > 0) {
      this.open += 1;
      this.queue.shift()?.stream.start();
    }
  }

  released() {
    this.open -= 1;
    this.fill();
  }

  destroy() {
    this.queue = [];
    for (const lane of this.lanes.values()) lane.destroy();
  }
}

class Lane {
  /**
   * @param {AgentEntry} entry
   * @param {() => void} released
   */
  constructor(entry, released) {
    this.entry = entry;
    this.log = new Log(entry.child);
    this.past = true;
    this.done = false;
    this.inbox = new Inbox((event) => (event ? this.log.add(event) : (this.past = false)), () => this.draw());
    this.element = h("div", { class: "lane" }, h("p", { class: "dim" }, "Loading …"));
    this.stream = new Stream({
      url: eventsUrl(entry.child),
      open: openStream,
      receive: (name, data) => this.receive(name, data),
      changed: (state) => {
        if (state !== "closed" || this.done) return;
        this.done = true;
        released();
      },
    });
  }

  /**
   * @param {string} name
   * @param {any} data
   */
  receive(name, data) {
    if (name === "reset") {
      this.log = new Log(this.entry.child);
      this.inbox.clear();
    } else if (name === "ready") this.inbox.push(null);
    else if (name === "message") this.inbox.push(data);
  }

  destroy() {
    this.stream.stop();
    this.inbox.destroy();
  }

  draw() {
    const { entries, phase } = this.log.state;
    if (phase === "CLOSED" || (!this.past && this.entry.endedAt !== null)) this.stream.stop();
    const lines = entries.filter((entry) => entry.type !== "round" && entry.type !== "end" && entry.type !== "notice");
    const hidden = Math.max(0, lines.length - SHOWN);
    fill(
      this.element,
      hidden > 0 ? h("p", { class: "dim" }, `${counted(hidden, "earlier entry", "earlier entries")} not shown`) : null,
      h("ul", null, ...lines.slice(-SHOWN).map(drawLine)),
      h("p", null, h("a", { href: `#/s/${encodeURIComponent(this.entry.child)}`, data: { focus: "lane" } }, "Open as a session")),
    );
  }
}

/** @param {Entry} entry */
function drawLine(entry) {
  switch (entry.type) {
    case "call": {
      const bad = entry.error !== null || entry.status === "denied";
      const tone = bad ? "bad" : entry.status === "done" ? "good" : "busy";
      const took = entry.durationMs === null ? "" : duration(entry.durationMs);
      return h("li", { class: "call" }, h("span", { class: `dot ${tone}` }), h("span", { class: "name" }, entry.tool), " ", h("span", { class: "subject cut" }, subject(entry)), " ", h("span", { class: "dim end" }, tone === "good" ? took : outcome(entry)));
    }
    case "agent":
      return h("li", { class: "call" }, h("span", { class: "name" }, entry.agentId), " ", h("span", { class: "cut" }, firstLine(entry.task)));
    case "input":
      return h("li", { class: "said" }, h("span", { class: "name" }, entry.steering ? "Steering" : "Task"), " ", h("span", null, entry.text.slice(0, 1000)));
    case "reasoning":
      return h("li", { class: "dim" }, firstLine(entry.text));
    case "text":
      return h("li", { class: "said" }, entry.text.slice(0, 2000));
    default:
      return h("li");
  }
}

/**
 * Draws the times of all subagents as bars next to each other.
 * @param {SessionState} state
 * @param {(entry: AgentEntry) => void} open
 */
export function drawBars(state, open) {
  const agents = [...state.agents.values()];
  if (agents.length === 0) return h("p", { class: "dim" }, "No subagents so far.");
  const from = Math.min(...agents.map((agent) => agent.at));
  const now = Math.max(state.lastAt, ...agents.map((agent) => agent.endedAt ?? 0), from + 1);
  const rows = agents.map((agent) => {
    const end = agent.endedAt ?? now;
    const bar = h("span", { class: `bar ${agent.status.toLowerCase()}` });
    bar.style.left = `${((agent.at - from) / (now - from)) * 100}%`;
    bar.style.width = `${Math.max(1, ((end - agent.at) / (now - from)) * 100)}%`;
    const name = h("button", { type: "button", class: "quiet", on: { click: () => open(agent) } }, agent.agentId);
    return h("li", null, h("div", { class: "line" }, name, h("span", { class: "dim" }, `${agent.status.toLowerCase()} · ${duration(end - agent.at)}`)), h("div", { class: "track" }, bar), h("p", { class: "dim" }, firstLine(agent.task)));
  });
  return h("ul", { class: "bars" }, ...rows);
}
