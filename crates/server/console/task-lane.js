// A column of a task: the attempts of one candidate, and its changes when they are asked for.

import * as api from "./api.js";
import { messageOf } from "./card.js";
import { parseDiff } from "./diff.js";
import { drawDiffs } from "./diff-view.js";
import { button, fill, h } from "./dom.js";
import { clock, cost, counted, duration, tokens } from "./format.js";
import { attemptsOf, diffText, proofStep, standing, stepName } from "./tasks.js";

/** @import { Spent, Step, TaskDetail, TaskState } from "./tasks.js" */

export class TaskLane {
  /**
   * @param {string} task
   * @param {number} candidate
   * @param {(candidate: number) => void} steer
   */
  constructor(task, candidate, steer) {
    this.task = task;
    this.candidate = candidate;
    this.signature = "";
    /** Step whose changes are shown; nothing if none are. */
    this.shown = "";
    this.newest = "";
    this.state = h("p", { class: "line" });
    this.body = h("div", { class: "attempts" });
    this.diff = h("div", null);
    this.show = button("Show changes", () => void this.showDiff(this.shown ? "" : this.newest), { hidden: true, "aria-expanded": "false" });
    this.steer = button("Say something …", () => steer(candidate), { data: { needs: "run" } });
    const id = `candidate-${candidate}`;
    this.element = h("section", { class: "task-lane", "aria-labelledby": id }, h("h2", { id }, `Candidate ${candidate}`), this.state, this.body, h("div", { class: "buttons" }, this.show, this.steer), this.diff);
  }

  /**
   * @param {TaskState} state
   * @param {TaskDetail} task
   * @param {boolean} ended
   */
  draw(state, task, ended) {
    const report = task.report.candidates[this.candidate];
    const attempts = attemptsOf(state, this.candidate, report.attempts);
    const said = state.words.filter((words) => words.candidate === this.candidate);
    const { text, tone } = standing(task, this.candidate);
    this.steer.hidden = ended;
    this.newest = state.steps.filter((step) => step.candidate === this.candidate && step.changed).at(-1)?.key ?? "";
    this.show.hidden = this.newest === "";
    if (this.shown && this.shown !== this.newest) void this.showDiff(this.newest);
    const signature = JSON.stringify([attempts, said, text, tone, report.spent]);
    if (signature === this.signature) return;
    this.signature = signature;
    const model = [report.model, report.effort].filter(Boolean).join(", ");
    fill(this.state, h("span", { class: `state ${tone}` }, h("span", { class: `dot ${tone}` }), " ", text), h("span", { class: "dim" }, [model, spentText(report.spent)].filter(Boolean).join(" · ")));
    fill(this.body, ...attempts.map(drawAttempt), ...said.map((words) => h("p", { class: "said" }, h("span", { class: "name" }, "You"), " ", words.text)));
  }

  /**
   * Shows the changes of a step, or none.
   * @param {string} step
   */
  async showDiff(step) {
    this.shown = step;
    this.show.textContent = step ? "Hide changes" : "Show changes";
    this.show.setAttribute("aria-expanded", String(step !== ""));
    if (step) await this.loadDiff();
    else fill(this.diff);
  }

  async loadDiff() {
    fill(this.diff, h("p", { class: "dim" }, "Loading …"));
    try {
      const files = parseDiff(await api.taskDiff(this.task, this.candidate));
      fill(this.diff, files.length > 0 ? drawDiffs(files, { folded: files.length > 5 }) : h("p", { class: "dim" }, "It changes nothing."));
    } catch (error) {
      fill(this.diff, h("p", { class: "bad" }, `The changes could not be loaded: ${messageOf(error)}`));
    }
  }
}

/** @param {Spent} spent */
export function spentText(spent) {
  if (spent.tokens === 0 && spent.usd === 0) return "";
  return `${costText(spent)}, ${duration(spent.millis)}`;
}

/** @param {Spent} spent */
function costText(spent) {
  const known = spent.is_price_unknown ? `at least ${cost(spent.usd)}` : cost(spent.usd);
  const dollars = spent.is_price_unknown && spent.usd === 0 ? "unknown cost" : known;
  return `${dollars}, ${tokens(spent.tokens)} tokens`;
}

/** @param {Step} step */
export function drawStep(step) {
  const tone = step.status === "running" ? "busy" : step.status === "failed" ? "bad" : "good";
  const when = step.endedAt === null ? `since ${clock(step.startedAt)}` : duration(step.endedAt - step.startedAt);
  return h("li", { class: "step" }, h("span", { class: `dot ${tone}` }), h("span", { class: "name" }, step.status === "failed" ? `${stepName(step)} failed` : stepName(step)), h("span", { class: "dim end" }, step.spent ? `${when} · ${costText(step.spent)}` : when), step.text ? h("p", { class: step.status === "failed" ? "bad" : "dim" }, step.text) : null);
}

/** @param {{number: number, steps: Step[], report: any}} attempt */
function drawAttempt({ number, steps, report }) {
  const title = h("h3", null, `Attempt ${number}`, report?.session ? h("a", { href: `#/s/${encodeURIComponent(report.session)}`, "aria-label": `Session of attempt ${number}` }, "Session") : null);
  const box = h("div", { class: "attempt" }, title, h("ul", { class: "steps" }, ...steps.map(drawStep)));
  if (!report) return box;
  if (report.findings.length > 0) box.append(drawList("Missing", report.findings.map((/** @type {any} */ finding) => [proofStep(finding.step), finding.what]), "bad"));
  for (const output of report.outputs ?? []) box.append(drawOutput(output));
  if (report.proof) box.append(drawList("Evidence", evidenceOf(report.proof), "good"));
  if (report.review?.remarks) box.append(drawList("Review", [["", report.review.remarks]], "dim"));
  if (report.sent_back.length > 0) box.append(drawList("Sent back", report.sent_back.map((/** @type {string} */ words) => ["", words]), "bad"));
  return box;
}

/**
 * @param {any} proof
 * @returns {[string, string][]}
 */
function evidenceOf(proof) {
  /** @type {[string, string][]} */
  const lines = proof.anchor ? [["anchor", "failed before, and passes now"]] : [];
  for (const check of proof.checks) lines.push([`check ${check.name}`, check.passed > 0 ? `passes, with ${counted(check.passed, "test")}` : check.has_tests === false ? "passes, by exit code only" : "passes"]);
  return [...lines, ["diff", diffText(proof.diff)]];
}

/** @param {{check: string | null, lines: string[]}} output */
function drawOutput({ check, lines }) {
  const name = check === null ? "Output of the anchor" : `Output of check ${check}`;
  return h("div", { class: "findings dim" }, h("h4", null, name), h("pre", { tabindex: "0", role: "region", "aria-label": name }, lines.join("\n")));
}

/**
 * @param {string} title
 * @param {[string, string][]} lines
 * @param {"good"|"bad"|"dim"} tone
 */
function drawList(title, lines, tone) {
  const mark = { good: "✓ ", bad: "✗ ", dim: "" }[tone];
  return h("div", { class: `findings ${tone}` }, h("h4", null, title), h("ul", null, ...lines.map(([name, text]) => h("li", null, mark, name ? h("b", null, name, ": ") : null, text))));
}
