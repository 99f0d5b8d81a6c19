// Draws tool calls: one line that unfolds to arguments, output, diffs, plans and images.

import { diffOfArguments, parseDiff } from "./diff.js";
import { drawCounts, drawDiffs } from "./diff-view.js";
import { h } from "./dom.js";
import { drawImages, folded } from "./entry-view.js";
import { bytes, counted, duration } from "./format.js";
import { drawQuestions, questionsOf } from "./questions.js";
import { planOf, proposedPlan } from "./reduce-calls.js";
import { changedLines, outcome, subject } from "./rows.js";
import { drawCode, drawMarkdown, drawOutput } from "./text-view.js";

/**
 * @import { Actions } from "./entry-view.js"
 * @import { CallEntry, PlanStep } from "./types.js"
 */

/** @param {CallEntry} call */
function toneOf(call) {
  if (call.status === "failed" || call.status === "denied") return "bad";
  if (call.status === "asking") return "asks";
  if (call.status === "cut") return "dim";
  if (call.status === "running" || call.status === "writing" || call.status === "written") return "busy";
  return call.exitCode !== null && call.exitCode !== 0 ? "odd" : "good";
}

/**
 * @param {CallEntry} call
 * @param {Actions} actions
 */
export function drawCall(call, actions) {
  const tone = toneOf(call);
  const parts = [];
  if (tone !== "good") parts.push(outcome(call));
  if (call.durationMs !== null) parts.push(duration(call.durationMs));
  const summary = h(
    "summary",
    { class: tone },
    h("span", { class: `dot ${tone}` }),
    h("span", { class: "name" }, call.tool),
    " ",
    h("span", { class: "subject cut" }, subject(call)),
    " ",
    drawChangeCounts(call),
    " ",
    h("span", { class: `end ${tone}` }, tone === "good" ? h("span", { class: "hidden-text" }, "done ") : null, parts.join(" · ")),
  );
  const preview = call.plan !== null || proposedPlan(call.arguments) !== "" || questionsOf(call).length > 0;
  return folded(call, actions, summary, () => drawBody(call, actions), preview);
}

/** @param {CallEntry} call */
function drawChangeCounts(call) {
  if (call.changes.length === 0) return null;
  let added = 0;
  let removed = 0;
  for (const change of call.changes) {
    const lines = changedLines(change.diff);
    added += lines.added;
    removed += lines.removed;
  }
  return drawCounts(added, removed);
}

/**
 * @param {CallEntry} call
 * @param {Actions} actions
 * @returns {Node[]}
 */
function drawBody(call, actions) {
  const nodes = [];
  const questions = questionsOf(call);
  if (call.plan) nodes.push(drawPlan(call.plan));
  else if (questions.length > 0) nodes.push(drawQuestions(questions));
  else nodes.push(...drawArguments(call));
  if (call.changes.length > 0) nodes.push(drawDiffs(call.changes.flatMap(filesOf)));
  if (call.error) nodes.push(h("p", { class: "bad" }, `Failed: ${call.error.replaceAll("_", " ")}${call.timeoutMs ? ` after ${duration(call.timeoutMs)}` : ""}`));
  nodes.push(...drawResult(call));
  nodes.push(...drawImages(call.images, actions));
  if (call.remarks.length > 0) nodes.push(h("ul", { class: "remarks" }, ...call.remarks.map((remark) => h("li", null, remark))));
  return nodes;
}

/** @param {import("./types.js").FileChange} change */
function filesOf(change) {
  const files = parseDiff(change.diff, change.path);
  if (files.length === 0) files.push({ path: change.path, change: change.kind, hunks: [] });
  const name = change.kind === "renamed" ? `renamed from ${change.from}` : change.kind;
  return files.map((file) => ({ ...file, path: change.path || file.path, change: name }));
}

/**
 * Draws the arguments: a command as code, an edit as a diff, a plan as text, everything else as JSON.
 * @param {CallEntry} call
 * @returns {Node[]}
 */
function drawArguments(call) {
  if (call.arguments === undefined) return call.argumentText ? [drawCode(call.argumentText, "json")] : [];
  if (call.kind === "edit") {
    if (call.changes.length > 0) return [];
    const files = diffOfArguments(call.arguments);
    if (files.length > 0) return [drawDiffs(files)];
  }
  return [drawValue(call.arguments)];
}

/**
 * Draws the arguments of any call.
 * @param {any} value
 * @returns {Node}
 */
export function drawValue(value) {
  if (typeof value === "string") return drawCode(value, "");
  const command = value?.command ?? value?.cmd;
  if (typeof command === "string") {
    const { command: _, cmd: __, description, ...rest } = value;
    const more = Object.keys(rest).length > 0 ? drawCode(JSON.stringify(rest, null, 2), "json") : null;
    return h("div", { class: "command" }, description ? h("p", { class: "dim" }, String(description)) : null, drawCode(command, "sh"), more);
  }
  const plan = proposedPlan(value);
  const steps = planOf(value);
  if (plan || steps) {
    const { plan: _, todos: __, ...rest } = value;
    const more = Object.keys(rest).length > 0 ? drawCode(JSON.stringify(rest, null, 2), "json") : null;
    return h("div", { class: "proposed-plan" }, plan ? drawMarkdown(plan) : drawPlan(steps ?? []), more);
  }
  const keys = Object.keys(value ?? {});
  if (keys.length === 0) return h("p", { class: "dim" }, "No arguments");
  return drawCode(JSON.stringify(value, null, 2), "json");
}

/**
 * @param {CallEntry} call
 * @returns {Node[]}
 */
function drawResult(call) {
  if (call.spooled) {
    const { head, tail, bytes: size, dropped = 0 } = call.spooled;
    const between = `${bytes(Math.max(0, size - head.length - tail.length))} are not shown${dropped > 0 ? `, ${bytes(dropped)} were dropped` : ""}`;
    return [drawOutput(head), h("p", { class: "dim" }, between), drawOutput(tail, true)];
  }
  if (!call.output) return call.status === "running" ? [h("p", { class: "dim" }, "No output yet")] : [];
  if (call.plan) return [];
  return [drawOutput(call.output, call.kind === "command")];
}

/**
 * Draws the steps of a plan.
 * @param {PlanStep[]} steps
 */
export function drawPlan(steps) {
  const words = { completed: "done", in_progress: "in progress", pending: "to do" };
  const items = steps.map(({ step, status }) => h("li", { class: status }, h("span", { class: "state" }, words[status]), " ", h("span", null, step)));
  return h("ol", { class: "plan", "aria-label": `Plan, ${counted(steps.length, "step")}` }, ...items);
}
