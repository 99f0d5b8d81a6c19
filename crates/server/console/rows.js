// Chooses the rows of the timeline and describes them in words.

import { questionsOf } from "./questions.js";
import { firstLine } from "./text.js";

/**
 * @import { CallEntry, Entry } from "./types.js"
 * @typedef {"all"|"talk"|"calls"|"changes"|"problems"} View
 */

/** @type {Record<View, (entry: Entry) => boolean>} */
const VIEWS = {
  all: () => true,
  talk: (entry) => entry.type === "input" || entry.type === "text" || entry.type === "end" || entry.type === "agent",
  calls: (entry) => entry.type === "call" || entry.type === "input" || entry.type === "agent",
  changes: (entry) => entry.type === "input" || (entry.type === "call" && (entry.changes.length > 0 || entry.kind === "edit")),
  problems: isProblem,
};

/** @param {Entry} entry */
function isProblem(entry) {
  if (entry.type === "call") return entry.error !== null || (entry.exitCode ?? 0) !== 0 || entry.status === "denied";
  if (entry.type === "notice") return entry.level !== "info";
  if (entry.type === "agent") return entry.status === "FAILED";
  if (entry.type === "round") return entry.moved !== null || entry.status === "failed";
  return false;
}

/**
 * Returns the entries that a view shows. Quiet notices are shown on request only.
 * @param {Entry[]} entries
 * @param {View} view
 * @param {boolean} quiet
 */
export function visibleEntries(entries, view, quiet) {
  const shows = VIEWS[view];
  return entries.filter((entry) => shows(entry) && (quiet || entry.type !== "notice" || !entry.quiet));
}

/**
 * Returns what a call is about: a command, a path, a pattern, an address.
 * @param {CallEntry} call
 */
export function subject(call) {
  const args = call.arguments;
  if (args === undefined) return firstLine(call.argumentText);
  if (typeof args === "string") return patchSubject(args);
  if (call.plan) return planSubject(call);
  const [question] = questionsOf(call);
  if (question) return firstLine(question.text);
  for (const name of ["command", "cmd", "file_path", "pattern", "query", "path", "url", "question", "task", "prompt", "plan", "id"]) {
    const value = args?.[name];
    if (typeof value === "string" && value) return firstLine(name === "pattern" && args.path ? `${value} in ${args.path}` : value);
    if (Array.isArray(value) && value.every((item) => typeof item === "string")) return firstLine(value.join(" "));
  }
  const patch = args?.patch ?? args?.input;
  if (typeof patch === "string") return patchSubject(patch);
  const text = JSON.stringify(args ?? {});
  return text === "{}" ? "" : firstLine(text);
}

/** @param {string} patch */
function patchSubject(patch) {
  const paths = [...patch.slice(0, 100_000).matchAll(/^\*\*\* (?:Add|Update|Delete) File: (.+)$/gm)].map((match) => match[1]);
  return firstLine(paths.length > 0 ? paths.join(", ") : patch);
}

/** @param {CallEntry} call */
function planSubject(call) {
  const steps = call.plan ?? [];
  const completed = steps.filter((step) => step.status === "completed").length;
  const next = steps.find((step) => step.status === "in_progress");
  return firstLine(`${completed} of ${steps.length}${next ? `: ${next.step}` : ""}`);
}

/** @type {Record<CallEntry["status"], string>} */
const STATUS = {
  writing: "is being written",
  written: "waits",
  asking: "waits for approval",
  running: "running",
  done: "done",
  failed: "failed",
  denied: "denied",
  cut: "did not run",
};

/**
 * Returns the result of a call in a few words.
 * @param {CallEntry} call
 */
export function outcome(call) {
  if (call.status === "failed" && call.error) return call.error.replaceAll("_", " ");
  if (call.status === "done" && call.exitCode !== null && call.exitCode !== 0) return `exit ${call.exitCode}`;
  return STATUS[call.status];
}

/**
 * Returns the added and removed lines of a unified diff.
 * @param {string} diff
 */
export function changedLines(diff) {
  let added = 0;
  let removed = 0;
  for (const line of diff.split("\n")) {
    if (line.startsWith("+") && !line.startsWith("+++ ")) added += 1;
    else if (line.startsWith("-") && !line.startsWith("--- ")) removed += 1;
  }
  return { added, removed };
}

/**
 * Returns the text of an entry, for the search in the timeline.
 * @param {Entry} entry
 */
export function searchText(entry) {
  switch (entry.type) {
    case "input":
    case "text":
    case "reasoning":
      return entry.text;
    case "call":
      return `${entry.tool} ${subject(entry)} ${entry.output} ${entry.spooled?.tail ?? ""} ${entry.changes.map((change) => `${change.path} ${change.diff}`).join(" ")}`;
    case "agent":
      return `${entry.agentId} ${entry.task}`;
    case "notice":
      return `${entry.title} ${entry.text}`;
    default:
      return "";
  }
}

/**
 * Returns the index of the next entry with the text, from `from` on and around the end, or -1.
 * @param {Entry[]} entries
 * @param {string} text
 * @param {number} from
 * @param {1|-1} step
 */
export function findEntry(entries, text, from, step) {
  const wanted = text.toLowerCase();
  if (!wanted || entries.length === 0) return -1;
  for (let i = 0; i < entries.length; i += 1) {
    const at = (((from + step * i) % entries.length) + entries.length) % entries.length;
    if (searchText(entries[at]).toLowerCase().includes(wanted)) return at;
  }
  return -1;
}
