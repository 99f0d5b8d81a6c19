// Tests of the steps of tasks, which need no page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { pageOf } from "../../crates/server/console/routes.js";
import { applyInput, attemptsOf, hasEnded, initialTask, proofStep, standing, stepName, toneOf } from "../../crates/server/console/tasks.js";

const DIFF = { patch: { hash: "ab", bytes: 9 }, files: [{ path: "src/a.rs", kind: "modified", added: 3, removed: 1 }] };

/** Inputs of a task, in the form of the stream. */
const INPUTS = [
  { began: { kind: "baseline", attempt: 1 } },
  { finished: { step: { kind: "baseline", attempt: 1 }, found: { baseline: { checks: {} } }, spent: {} } },
  { began: { kind: "work", candidate: 0, attempt: 1 } },
  { began: { kind: "work", candidate: 1, attempt: 1 } },
  { said: { steer: { candidate: 1, text: "Use integers." } } },
  { finished: { step: { kind: "work", candidate: 1, attempt: 1 }, found: { failed: { reason: "no model" } }, spent: {} } },
  { finished: { step: { kind: "work", candidate: 0, attempt: 1 }, found: { work: { session: "s", end: "limit", diff: DIFF } }, spent: {} } },
  { began: { kind: "evidence", candidate: 0, attempt: 1 } },
  { finished: { step: { kind: "evidence", candidate: 0, attempt: 1 }, found: { evidence: { diff: DIFF } }, spent: {} } },
  { began: { kind: "work", candidate: 1, attempt: 2 } },
  { said: { decide: { gate: "result", is_approved: false, words: "Handle zero." } } },
  { said: { cancel: { reason: "enough" } } },
];

function task(inputs = INPUTS) {
  const state = initialTask();
  // The contract is the second line of the journal.
  for (const [index, input] of inputs.entries()) assert.ok(applyInput(state, input, `${index + 3}-${1000 * (index + 1)}`));
  return state;
}

const shown = ({ key, status, text }) => [key, status, text];

test("inputs become steps, each with what it found", () => {
  const state = task();
  assert.deepEqual(state.steps.map(shown), [
    ["baseline-1", "done", ""],
    ["work-0-1", "done", "at its limit, 1 file, 4 lines"],
    ["work-1-1", "failed", "no model"],
    ["evidence-0-1", "done", "1 file, 4 lines"],
    ["work-1-2", "running", ""],
  ]);
  assert.deepEqual(state.steps.filter((step) => step.changed).map((step) => step.key), ["work-0-1"]);
  const [, work] = state.steps;
  assert.deepEqual([work.startedAt, work.endedAt], [3000, 7000]);
  assert.deepEqual(state.words.map(({ candidate, text }) => [candidate, text]), [
    [1, "Use integers."],
    [null, "A person refused the result: Handle zero."],
    [null, "Cancelled: enough"],
  ]);
});

test("a step has its cost once it has ended", () => {
  const step = { kind: "work", candidate: 0, attempt: 1 };
  const spent = { usd: 0.25, is_price_unknown: false, tokens: 100, millis: 10 };
  const found = { work: { session: "s", end: "finished" } };
  assert.deepEqual(task([{ began: step }]).steps[0].spent, null);
  assert.deepEqual(task([{ began: step }, { finished: { step, found, spent } }]).steps[0].spent, spent);
});

test("steps of a plan are apart from the attempts of a candidate", () => {
  const planned = { kind: "plan", attempt: 1, round: 1 };
  const work = { kind: "work", candidate: 1, attempt: 1, round: 1 };
  const evidence = { kind: "evidence", candidate: 0, attempt: 1 };
  const state = task([
    { began: planned },
    { finished: { step: planned, found: { plan: { session: "p", next: { goal: "Rename it.", size: "small" } } }, spent: {} } },
    { began: work },
    { finished: { step: work, found: { work: { session: "s", end: "finished", diff: DIFF } }, spent: {} } },
    { finished: { step: { ...work, kind: "evidence" }, found: { step_evidence: { change: { diff: DIFF }, files: DIFF.files } }, spent: {} } },
    { said: { plan: { backlog: ["Rename its callers."] } } },
    { began: evidence },
    { finished: { step: evidence, found: { evidence: { diff: DIFF } }, spent: {} } },
  ]);
  assert.deepEqual(state.steps.map(shown), [
    ["r1-plan-1", "done", "Rename it."],
    ["r1-work-1-1", "done", "1 file, 4 lines"],
    ["r1-evidence-1-1", "done", "1 file, 4 lines"],
    ["evidence-0-1", "done", "1 file, 4 lines"],
  ]);
  assert.deepEqual(state.steps.map(stepName), ["step 1: plan", "step 1: work, candidate 1", "step 1: evidence, candidate 1", "evidence"]);
  assert.deepEqual(attemptsOf(state, 0, []).map((attempt) => attempt.steps.length), [1]);
  assert.deepEqual(attemptsOf(state, 1, []), []);
  // The whole change is shown, although no session worked on it.
  assert.deepEqual(state.steps.filter((step) => step.changed).map((step) => step.key), ["evidence-0-1"]);
  assert.equal(state.words[0].text, "A person edited the remaining steps: Rename its callers.");
});

test("a step whose session stops at its budget has failed", () => {
  const step = { kind: "anchor", attempt: 1 };
  const state = task([{ began: step }, { finished: { step, found: { at_limit: { session: "t-anchor" } }, spent: {} } }]);
  assert.deepEqual(state.steps.map(shown), [["anchor-1", "failed", "at its limit"]]);
});

test("an input that comes twice changes nothing", () => {
  const state = task();
  const before = structuredClone(state);
  for (const [index, input] of INPUTS.entries()) assert.equal(applyInput(state, input, `${index + 3}-1`), false);
  assert.deepEqual(state, before);
});

test("a step of a process that died begins again as itself", () => {
  const state = task([...INPUTS.slice(0, 4), INPUTS[2]]);
  assert.deepEqual(state.steps.map((step) => step.key), ["baseline-1", "work-0-1", "work-1-1"]);
  const late = task([INPUTS[6]]);
  assert.deepEqual(late.steps.map(shown), [["work-0-1", "done", "at its limit, 1 file, 4 lines"]]);
});

test("attempts have their steps, and what was judged", () => {
  const state = task();
  const reported = [{ findings: [{ step: { check: "tests" }, what: "exited with 1" }] }];
  const attempts = attemptsOf(state, 1, reported);
  assert.deepEqual(attempts.map(({ number, steps, report }) => [number, steps.map((step) => step.key), report]), [
    [1, ["work-1-1"], reported[0]],
    [2, ["work-1-2"], null],
  ]);
  assert.deepEqual(attemptsOf(initialTask(), 0, []), []);
  assert.deepEqual([{ check: "tests" }, "scope"].map(proofStep), ["check tests", "scope"]);
});

test("a candidate stands where the report says", () => {
  const proved = { state: "has its evidence", out: null, attempts: [{ proof: {}, sent_back: [] }] };
  const sentBack = { state: "works on attempt 2", out: null, attempts: [{ proof: {}, sent_back: ["again"] }] };
  const out = { state: "it has no attempt left", out: "it has no attempt left", attempts: [] };
  const waits = { state: "waits: another candidate has its evidence", out: null, waits: true, attempts: [{ proof: null, sent_back: [] }] };
  const going = { running: true, report: { outcome: null, candidates: [proved, sentBack, out, waits] } };
  const states = [0, 1, 2, 3].map((index) => standing(going, index));
  assert.deepEqual(states.map(({ text }) => text), going.report.candidates.map(({ state }) => state));
  assert.deepEqual(states.map(({ tone }) => tone), ["good", "busy", "bad", "idle"]);
  const done = { running: false, report: { outcome: { done: { candidate: 0 } }, candidates: [proved, sentBack] } };
  assert.deepEqual([0, 1].map((index) => standing(done, index).tone), ["good", "dim"]);
});

test("states that end a task are known, and have a tone", () => {
  const states = ["under way", "waits for a person", "done", "blocked", "at its limit", "cancelled", "failed"];
  assert.deepEqual(states.filter(hasEnded), states.slice(2));
  assert.deepEqual(states.map((state) => toneOf({ state, running: false })), ["idle", "asks", "good", "bad", "bad", "dim", "bad"]);
  assert.equal(toneOf({ state: "under way", running: true }), "busy");
});

test("addresses name sessions, tasks and lists", () => {
  assert.deepEqual(pageOf("#/s/a%2Fb"), { kind: "session", id: "a/b" });
  assert.deepEqual(pageOf("#/t/t1"), { kind: "task", id: "t1" });
  assert.deepEqual(pageOf("#/t"), { kind: "tasks", id: "" });
  for (const hash of ["", "#/", "#/x/1", "#/s/a/b"]) assert.deepEqual(pageOf(hash), { kind: "none", id: "" }, hash);
});
