// The page of one task: its candidates side by side, live, and what people can say to it.

import * as api from "./api.js";
import { messageOf } from "./card.js";
import { confirm } from "./dialogs.js";
import { announce, button, dialog, fill, h, labelled, toast } from "./dom.js";
import { GateCard } from "./gate.js";
import { letterHint } from "./keys.js";
import { openStream } from "./shared-streams.js";
import { Stream, parsed } from "./stream.js";
import { drawStep, spentText, TaskLane } from "./task-lane.js";
import { applyInput, hasEnded, initialTask, toneOf } from "./tasks.js";

/** @import { TaskDetail } from "./tasks.js" */

const LOAD_MS = 200;

// Opening and releasing a task adds nothing to its stream, so its state is polled.
const LOOK_MS = 5000;

export class TaskView {
  /**
   * @param {string} id
   * @param {() => void} titled
   */
  constructor(id, titled) {
    this.id = id;
    this.titled = titled;
    this.title = "";
    this.state = initialTask();
    /** @type {TaskDetail|null} */
    this.task = null;
    /** @type {GateCard|null} */
    this.card = null;
    /** @type {TaskLane[]} */
    this.lanes = [];
    this.loading = 0;
    this.loads = 0;
    this.signature = "";
    this.destroyed = false;
    this.heading = h("h1", { class: "cut" }, "…");
    this.status = h("p", { class: "line" });
    this.note = h("p", { class: "dim", hidden: true });
    this.common = h("div", { class: "task-common" });
    this.columns = h("div", { class: "task-lanes", role: "group", "aria-label": "Candidates", tabindex: "0" });
    this.gate = h("div", { class: "approvals", hidden: true });
    this.acts = [button("Say to all …", () => this.say(null), { data: { needs: "run" } }), button("Cancel the task …", () => this.cancel(), { class: "danger", data: { needs: "run" } })];
    const tools = h("div", { class: "head-tools" }, h("a", { href: api.taskReportUrl(id), download: `${id}.md` }, "Report"), ...this.acts);
    const head = h("header", { class: "session-head" }, h("a", { href: "#/t" }, "Tasks"), h("div", { class: "titles" }, this.heading, this.status), tools);
    this.element = h("main", { id: "main", tabindex: "-1", class: "tasks" }, head, h("div", { class: "task-body" }, this.note, this.common, this.columns), this.gate);
    this.stream = new Stream({
      url: api.taskEventsUrl(id),
      open: openStream,
      names: ["end"],
      receive: (name, data) => this.receive(name, data),
      allowed: () => api.task(id).then(() => true, (error) => error.status !== 401 && error.status !== 404),
    });
    this.ticker = 0;
  }

  start() {
    this.stream.start();
    void this.load();
    this.ticker = window.setInterval(() => this.look(), LOOK_MS);
  }

  destroy() {
    this.destroyed = true;
    this.stream.stop();
    clearInterval(this.ticker);
    clearTimeout(this.loading);
  }

  visibility() {
    if (document.hidden) this.stream.stop();
    else if (!this.ended()) this.stream.start();
    this.look();
  }

  look() {
    if (!document.hidden && !this.ended()) void this.load();
  }

  ended() {
    return this.task !== null && hasEnded(this.task.state);
  }

  /**
   * @param {string} name
   * @param {any} data
   */
  receive(name, data) {
    if (name === "message") applyInput(this.state, parsed(data), this.stream.lastId);
    else if (name === "reset") this.state = initialTask();
    else if (name === "end") {
      // The stream would reconnect forever.
      this.stream.stop();
      announce(`The task has ended: ${data?.state}`);
    }
    // Inputs that follow soon are in the same report.
    this.loading ||= window.setTimeout(() => void this.load(), LOAD_MS);
  }

  /** Loads the report. The order of answers does not matter: only the newest request counts. */
  async load() {
    this.loading = 0;
    this.loads += 1;
    const load = this.loads;
    try {
      const task = await api.task(this.id);
      if (this.destroyed || load !== this.loads) return;
      this.task = task;
      this.draw(task);
    } catch (error) {
      if (this.destroyed) return;
      this.note.hidden = false;
      this.signature = "";
      fill(this.note, `The task could not be loaded: ${messageOf(error)}`);
    }
  }

  /** @param {TaskDetail} task */
  draw(task) {
    const ended = hasEnded(task.state);
    const tone = toneOf(task);
    this.title = task.title;
    this.titled();
    for (const act of this.acts) act.hidden = ended;
    const isLeft = !ended && !task.running;
    this.note.hidden = !isLeft;
    const signature = JSON.stringify([task.title, task.state, task.running, task.report.spent, this.state.steps, this.state.words]);
    if (signature !== this.signature) {
      this.signature = signature;
      fill(this.heading, task.title || "Untitled");
      fill(this.status, h("span", { class: `state ${tone}` }, h("span", { class: `dot ${tone}` }), " ", task.state), h("span", { class: "dim" }, spentText(task.report.spent)));
      fill(this.note, "No process has this task open: ", h("code", null, `pintle task run --task ${this.id}`), " resumes it, and accepts your messages and decisions here.");
      this.drawCommon(task);
    }
    this.drawGate(task);
    for (let index = this.lanes.length; index < task.report.candidates.length; index += 1) {
      const lane = new TaskLane(this.id, index, (candidate) => this.say(candidate));
      this.lanes.push(lane);
      this.columns.append(lane.element);
    }
    for (const lane of this.lanes) lane.draw(this.state, task, ended);
  }

  /**
   * Draws the goal, the steps before the candidates, and what was said to all of them.
   * @param {TaskDetail} task
   */
  drawCommon({ report, title }) {
    const { goal } = report.contract;
    const steps = this.state.steps.filter((step) => step.candidate === null || step.round > 0);
    const words = this.state.words.filter((said) => said.candidate === null);
    const ending = report.outcome?.aborted?.reason ?? report.outcome?.failed?.reason;
    fill(
      this.common,
      goal.trim() === title ? null : h("p", { class: "goal" }, goal.trim()),
      h("ul", { class: "steps" }, ...steps.map(drawStep)),
      report.plan ? drawPlan(report.plan) : null,
      ...words.map((said) => h("p", { class: "said" }, said.text)),
      ...report.remarks.map((/** @type {string} */ remark) => h("p", { class: "dim" }, remark)),
      ending ? h("p", { class: "bad" }, ending) : null,
    );
  }

  /** @param {TaskDetail} task */
  drawGate(task) {
    const { gate } = task;
    const isSame = gate && this.card?.gate.name === gate.name && this.card.gate.place === gate.place;
    if (isSame || (!gate && !this.card)) return;
    this.card = gate ? new GateCard(task, gate, () => void this.load()) : null;
    this.gate.hidden = this.card === null;
    fill(this.gate, this.card?.element);
    if (this.card) announce(`The task waits for your decision.${letterHint(" Press a to go there.")}`, true);
  }

  /** Focuses the gate. Returns whether there is one. */
  focusNext() {
    this.card?.element.focus();
    return this.card !== null;
  }

  /** Returns the gate, if it has the focus. */
  current() {
    return this.card?.element.contains(document.activeElement) ? this.card : null;
  }

  /** @param {number|null} candidate null for all */
  say(candidate) {
    const text = h("textarea", { rows: 4, required: true });
    const error = h("p", { class: "bad", role: "alert" });
    const form = h("form", { class: "stack" }, labelled("Words, which the model reads", text), error, h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Send")));
    const box = dialog(candidate === null ? "Say to all candidates" : `Say to candidate ${candidate}`, [form]);
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      api.steerTask(this.id, text.value.trim(), candidate).then(() => {
        box.close();
        toast("It is said");
      }, (problem) => fill(error, messageOf(problem)));
    });
    text.focus();
  }

  cancel() {
    confirm("Cancel the task", "Everything stops, and the task cannot go on.", "Cancel the task", () => {
      api.cancelTask(this.id).then(() => void this.load(), (error) => toast(`The task was not cancelled: ${messageOf(error)}`, "error"));
    });
  }
}

/**
 * Draws the steps of a plan, with the findings against those that failed, and the remaining steps.
 * @param {any} plan
 */
function drawPlan({ steps, remaining }) {
  const done = steps.map((/** @type {any} */ step) => h("li", null, step.goal, h("span", { class: "dim" }, ` ${step.state}`), ...step.findings.map((/** @type {string} */ finding) => h("p", { class: "bad" }, finding))));
  const left = remaining.map((/** @type {string} */ goal) => h("li", { class: "dim" }, goal));
  return h("div", { class: "findings" }, h("h2", null, "Plan"), h("ol", null, ...done, ...left));
}
