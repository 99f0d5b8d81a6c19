// The page of tasks: each with its state, the newest first.

import * as api from "./api.js";
import { messageOf } from "./card.js";
import { button, fill, h } from "./dom.js";
import { ago } from "./format.js";
import { toneOf } from "./tasks.js";

/** @import { Task } from "./tasks.js" */

// No stream tells which tasks change.
const LOAD_MS = 10_000;

export class TaskList {
  constructor() {
    this.title = "Tasks";
    /** @type {Task[]} the pages after the first one, which is asked for again */
    this.more = [];
    /** @type {string|undefined} */
    this.next = undefined;
    this.signature = "";
    this.note = h("p", { class: "dim count", role: "status" }, "Loading …");
    this.list = h("ul", { class: "sessions" });
    this.button = button("Load more", () => void this.loadMore(), { class: "more", hidden: true });
    this.element = h("main", { id: "main", tabindex: "-1", class: "tasks" }, h("header", { class: "session-head" }, h("a", { href: "#/", class: "back" }, "Sessions"), h("div", { class: "titles" }, h("h1", null, "Tasks"))), h("div", { class: "task-body" }, this.note, this.list, this.button));
    this.timer = 0;
  }

  start() {
    void this.load();
    this.timer = window.setInterval(() => void (document.hidden || this.load()), LOAD_MS);
  }

  destroy() {
    clearInterval(this.timer);
  }

  visibility() {
    if (!document.hidden) void this.load();
  }

  async load() {
    try {
      const page = await api.tasks();
      if (!page) return fill(this.note, "This server shows no tasks.");
      if (this.more.length === 0) this.next = page.next;
      this.draw(page.tasks);
    } catch (error) {
      fill(this.note, `The tasks could not be loaded: ${messageOf(error)}`);
    }
  }

  async loadMore() {
    const page = await api.tasks(this.next).catch(() => null);
    if (!page) return;
    this.more.push(...page.tasks);
    this.next = page.next;
    await this.load();
  }

  /** @param {Task[]} first */
  draw(first) {
    const known = new Set(first.map(({ id }) => id));
    const tasks = [...first, ...this.more.filter(({ id }) => !known.has(id))];
    const now = Date.now();
    const signature = JSON.stringify([tasks, tasks.map((task) => ago(Date.parse(task.updated_at), now))]);
    this.button.hidden = !this.next;
    if (signature === this.signature) return;
    this.signature = signature;
    const focused = this.list.contains(document.activeElement) ? document.activeElement?.getAttribute("href") : null;
    fill(this.note, tasks.length === 0 ? "No tasks. `pintle task run` begins one." : "");
    fill(this.list, ...tasks.map((task) => drawTask(task, now)));
    for (const link of this.list.querySelectorAll("a")) if (link.getAttribute("href") === focused) link.focus();
  }
}

/**
 * @param {Task} task
 * @param {number} now
 */
function drawTask(task, now) {
  const tone = toneOf(task);
  return h("li", null, h(
    "a",
    { href: `#/t/${encodeURIComponent(task.id)}` },
    h("span", { class: "line" }, h("span", { class: "title cut" }, task.title || "Untitled"), h("time", { class: "dim", datetime: task.updated_at }, ago(Date.parse(task.updated_at), now))),
    h("span", { class: "line" }, h("span", { class: `state ${tone}` }, h("span", { class: `dot ${tone}` }), task.state), h("span", { class: "dim" }, task.running ? "running" : "")),
  ));
}
