// Steps of a task, derived from its inputs. Verdicts come from the report of the server.

/**
 * @typedef {object} Task
 * @property {string} id
 * @property {string} title
 * @property {string} state in words
 * @property {boolean} running whether a process has it open
 * @property {string} created_at
 * @property {string} updated_at
 *
 * @typedef {{name: "anchor"|"result", place: number, candidate?: number}} Gate
 * @typedef {Task & {gate?: Gate, report: any}} TaskDetail
 *
 * @typedef {{usd: number, is_price_unknown: boolean, tokens: number, millis: number}} Spent
 *
 * @typedef {object} Step
 * @property {string} key
 * @property {"baseline"|"anchor"|"work"|"evidence"|"review"|"plan"} kind
 * @property {number} round of the plan, from 1; 0 outside of rounds
 * @property {number|null} candidate
 * @property {number} attempt
 * @property {"running"|"done"|"failed"} status
 * @property {number} startedAt milliseconds since 1970
 * @property {number|null} endedAt
 * @property {string} text what was found, in words
 * @property {boolean} changed whether there is a patch
 * @property {Spent|null} spent its cost; nothing before its end and without calls of models
 *
 * @typedef {{at: number, candidate: number|null, text: string}} Words
 *
 * @typedef {object} TaskState
 * @property {number} place that of the newest input
 * @property {Step[]} steps in the order in which they began
 * @property {Words[]} words of people
 */

import { counted } from "./format.js";

/** States in which a task takes nothing any more. */
const ENDED = new Set(["done", "blocked", "at its limit", "cancelled", "failed"]);

/** @param {string} state */
export function hasEnded(state) {
  return ENDED.has(state);
}

/**
 * Returns the tone of a state: that of its dot.
 * @param {Task} task
 */
export function toneOf({ state, running }) {
  if (state === "waits for a person") return "asks";
  if (state === "done") return "good";
  if (state === "under way") return running ? "busy" : "idle";
  return state === "cancelled" ? "dim" : "bad";
}

/** @returns {TaskState} */
export function initialTask() {
  return { place: 0, steps: [], words: [] };
}

/**
 * Applies an input. Returns whether it is new.
 * @param {TaskState} state
 * @param {any} input
 * @param {string} id place and time, as the stream has them
 */
export function applyInput(state, input, id) {
  const [place, at] = id.split("-").map(Number);
  if (!(place > state.place)) return false;
  state.place = place;
  if (input.began) begin(state, input.began, at);
  else if (input.finished) finish(state, input.finished, at);
  else if (input.said) state.words.push(wordsOf(input.said, at));
  return true;
}

/** @param {any} step */
function keyOf({ kind, candidate, attempt, round }) {
  return [round ? `r${round}` : undefined, kind, candidate, attempt].filter((part) => part !== undefined).join("-");
}

/**
 * Returns the step, which a process that died may have begun before.
 * @param {TaskState} state
 * @param {any} id
 * @param {number} at
 */
function begin(state, id, at) {
  const key = keyOf(id);
  let step = state.steps.find((known) => known.key === key);
  if (!step) {
    step = { key, kind: id.kind, round: id.round ?? 0, candidate: id.candidate ?? null, attempt: id.attempt, status: "running", startedAt: at, endedAt: null, text: "", changed: false, spent: null };
    state.steps.push(step);
  }
  return step;
}

/**
 * @param {TaskState} state
 * @param {any} result
 * @param {number} at
 */
function finish(state, { step: id, found, spent }, at) {
  const step = begin(state, id, at);
  step.status = found?.failed || found?.at_limit ? "failed" : "done";
  step.endedAt = at;
  step.text = foundText(found ?? {});
  // The whole change of a plan is judged without a session that works on it.
  const isPlanned = state.steps.some((known) => known.round > 0);
  step.changed = step.round === 0 && Boolean(found?.work?.diff ?? (isPlanned && found?.evidence?.diff));
  step.spent = spent?.tokens > 0 ? spent : null;
}

/** @param {any} found */
function foundText({ failed, at_limit, anchor, work, evidence, review, plan, step_evidence }) {
  if (failed) return String(failed.reason);
  if (at_limit) return "at its limit";
  if (plan) return String(plan.next?.goal ?? "nothing is left to do");
  if (step_evidence) return step_evidence.change.not_applied ?? diffText(step_evidence);
  if (anchor) return String(anchor.command);
  if (review) return review.findings.length === 0 ? "no findings" : counted(review.findings.length, "finding");
  if (evidence) return evidence.not_applied ?? diffText(evidence.diff);
  if (work) return [{ finished: "", limit: "at its limit", failed: "with an error" }[/** @type {string} */ (work.end)], work.unfit, diffText(work.diff)].filter(Boolean).join(", ");
  return "";
}

/** @param {any} diff */
export function diffText(diff) {
  if (!diff) return "";
  const lines = diff.files.reduce((/** @type {number} */ sum, /** @type {any} */ file) => sum + file.added + file.removed, 0);
  return `${counted(diff.files.length, "file")}, ${counted(lines, "line")}`;
}

/**
 * @param {any} said
 * @param {number} at
 * @returns {Words}
 */
function wordsOf({ steer, decide, cancel, plan }, at) {
  if (steer) return { at, candidate: steer.candidate ?? null, text: steer.text };
  if (decide) {
    const decided = `A person ${decide.is_approved ? "approved" : "refused"} the ${decide.gate}`;
    return { at, candidate: null, text: decide.words ? `${decided}: ${decide.words}` : decided };
  }
  if (plan) return { at, candidate: null, text: `A person edited the remaining steps: ${plan.backlog.join("; ") || "none"}` };
  return { at, candidate: null, text: `Cancelled: ${cancel?.reason ?? ""}` };
}

/**
 * Returns the attempts of a candidate: steps of the stream, with what the report says about them.
 * @param {TaskState} state
 * @param {number} candidate
 * @param {any[]} reported attempts of the report
 */
export function attemptsOf(state, candidate, reported) {
  const own = state.steps.filter((step) => step.candidate === candidate && step.round === 0);
  const count = Math.max(reported.length, ...own.map((step) => step.attempt), 0);
  return Array.from({ length: count }, (_, index) => ({
    number: index + 1,
    steps: own.filter((step) => step.attempt === index + 1),
    report: reported[index] ?? null,
  }));
}

/**
 * Returns the name of a step, with its round and with its candidate unless it is the first.
 * @param {Step} step
 */
export function stepName({ kind, round, candidate }) {
  if (round === 0) return kind;
  return `step ${round}: ${kind}${candidate ? `, candidate ${candidate}` : ""}`;
}

/**
 * Returns a step of the evidence in words, such as `check tests`.
 * @param {any} step
 */
export function proofStep(step) {
  return typeof step === "string" ? step : `check ${step?.check ?? ""}`;
}

/**
 * Returns the state of a candidate, as the report names it, and its tone.
 * @param {TaskDetail} task
 * @param {number} candidate
 */
export function standing(task, candidate) {
  const { state, out, waits, attempts } = task.report.candidates[candidate];
  const { outcome } = task.report;
  const text = String(state);
  if (outcome?.done?.candidate === candidate) return { text, tone: "good" };
  if (out) return { text, tone: "bad" };
  const newest = attempts.at(-1);
  if (newest?.proof && newest.sent_back.length === 0) return { text, tone: "good" };
  if (waits) return { text, tone: "idle" };
  if (outcome) return { text, tone: "dim" };
  return { text, tone: task.running ? "busy" : "idle" };
}
