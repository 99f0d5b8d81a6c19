// Handles the events of tool calls and of decisions about them.

import { append, base, openSegment, timeOf, touch } from "./state.js";

/**
 * @import { AgentEntry, CallEntry, Event, FileChange, PlanStep, SessionState } from "./types.js"
 * @typedef {(state: SessionState, event: Event) => void} Handler
 */

/** @type {Record<string, Handler>} */
export const callHandlers = {
  TOOL_CALL_ARGUMENTS_START: startArguments,
  TOOL_CALL_ARGUMENTS_END: endArguments,
  TOOL_CALL_REPAIRED: repaired,
  CALL_JUDGED: judged,
  TOOL_CALL_START: startCall,
  TOOL_CALL_END: endCall,
  APPROVAL_REQUESTED: asked,
  APPROVAL_DECIDED: decided,
  APPROVAL_LATE: late,
};

/**
 * Appends a call that has no result yet.
 * @param {SessionState} state
 * @param {Event} event
 * @param {CallEntry["status"]} status
 */
function newCall(state, event, status) {
  const { call_id: callId, tool_name: tool, call_kind: kind } = event.data;
  const call = append(
    state,
    /** @type {CallEntry} */ ({
      ...base(event),
      type: "call",
      callId: String(callId),
      tool: String(tool ?? ""),
      kind: kind ?? "other",
      status,
      argumentText: "", arguments: undefined, plan: null, remarks: [],
      output: "", spooled: null, changes: [], images: [],
      error: null, exitCode: null, timeoutMs: null, startedAt: null, durationMs: null,
    }),
  );
  state.calls.set(call.callId, call);
  return call;
}

/**
 * Returns the call of an event; appends it if the event is the first that names it.
 * @param {SessionState} state
 * @param {Event} event
 */
function callOf(state, event) {
  return state.calls.get(String(event.data.call_id)) ?? newCall(state, event, "written");
}

/** @type {Handler} */
function startArguments(state, event) {
  const call = newCall(state, event, "writing");
  state.segments.set(event.seq, { entry: call, field: "argumentText", bytes: 0 });
}

/** @type {Handler} */
function endArguments(state, event) {
  const call = callOf(state, event);
  closeSegment(state, call, "argumentText");
  if (call.status === "writing") call.status = event.data.interrupted ? "cut" : "written";
  touch(call, event);
}

/**
 * @param {SessionState} state
 * @param {CallEntry} call
 * @param {"argumentText"|"output"} field
 */
function closeSegment(state, call, field) {
  const found = openSegment(state, (segment) => segment.entry === call && segment.field === field);
  if (found) state.segments.delete(found[0]);
}

/** @type {Handler} */
function repaired(state, event) {
  const call = callOf(state, event);
  for (const { argument, kind } of event.data.repairs ?? []) {
    const how = typeof kind === "string" ? kind.replaceAll("_", " ") : `renamed from ${kind?.renamed?.from}`;
    call.remarks.push(`Argument ${argument || "list"} repaired: ${how}`);
  }
  touch(call, event);
}

/** @type {Handler} */
function judged(state, event) {
  const call = callOf(state, event);
  for (const step of event.data.steps ?? []) {
    if (step.permission === "allow" && (step.by_default || (!step.rule && !step.reason))) continue;
    const parts = [`${step.gate}: ${step.permission}`];
    if (step.rule) parts.push(`by ${step.rule}`);
    if (step.reason) parts.push(`because ${step.reason}`);
    call.remarks.push(parts.join(" "));
  }
  const by = event.data.changed?.by;
  if (event.data.changed) call.remarks.push(`Arguments changed${by ? ` by ${by}` : ""}`);
  touch(call, event);
}

/** @type {Handler} */
function startCall(state, event) {
  let call = callOf(state, event);
  if (call.startedAt !== null) call = newCall(state, event, "running");
  call.status = "running";
  call.kind = event.data.call_kind ?? call.kind;
  call.arguments = event.data.arguments;
  call.argumentText = "";
  call.startedAt = timeOf(event);
  state.asking.delete(call.callId);
  closeSegment(state, call, "argumentText");
  state.segments.set(event.seq, { entry: call, field: "output", bytes: 0 });
  call.plan = planOf(call.arguments);
  if (call.plan) state.plan = call.plan;
  if (state.run) state.run.calls += 1;
  const agent = agentOf(state, call);
  if (agent) setAgent(agent, "RUNNING", null, event);
  touch(call, event);
}

/**
 * Returns the subagent that a call of `Task` waits for, once it is known. Such a call ends when its subagent rests, which can
 * then be resumed by another call.
 * @param {SessionState} state
 * @param {CallEntry} call
 */
function agentOf(state, call) {
  if (call.tool !== "Task") return undefined;
  const { resume, prompt } = call.arguments ?? {};
  return [...state.agents.values()].find((agent) => (resume ? agent.agentId === resume : agent.task === prompt && agent.endedAt === null));
}

/**
 * @param {AgentEntry} agent
 * @param {string} status
 * @param {number|null} endedAt
 * @param {Event} event
 */
function setAgent(agent, status, endedAt, event) {
  agent.status = status;
  agent.endedAt = endedAt;
  touch(agent, event);
}

/**
 * Returns the steps of a plan, if the arguments have one: `plan` with `step`, or `todos` with `content`.
 * @param {any} args
 * @returns {PlanStep[]|null}
 */
export function planOf(args) {
  const list = Array.isArray(args?.plan) ? args.plan : Array.isArray(args?.todos) ? args.todos : null;
  if (!list) return null;
  const steps = [];
  for (const item of list) {
    const step = item?.step ?? item?.content;
    if (typeof step !== "string") return null;
    const status = item.status === "completed" || item.status === "in_progress" ? item.status : "pending";
    steps.push({ step, status });
  }
  return steps.length > 0 ? steps : null;
}

/**
 * Returns the plan in Markdown that a call presents, or an empty text.
 * @param {any} args
 * @returns {string}
 */
export function proposedPlan(args) {
  return typeof args?.plan === "string" ? args.plan : "";
}

/** @type {Handler} */
function endCall(state, event) {
  const call = callOf(state, event);
  const { output, error, exit_code: exit, timeout_ms: timeout, duration_ms: took, changes, images } = event.data;
  if (output && typeof output === "object" && output.spooled) call.spooled = output;
  else call.output = typeof output === "string" ? output : output === undefined || output === null ? call.output : JSON.stringify(output, null, 2);
  call.error = error ?? null;
  call.exitCode = exit ?? null;
  call.timeoutMs = timeout ?? null;
  call.durationMs = took ?? null;
  call.changes = (changes ?? []).map(changeOf);
  call.images = images ?? [];
  call.status = error === "denied" ? "denied" : error ? "failed" : "done";
  const agent = agentOf(state, call);
  if (agent && agent.endedAt === null) setAgent(agent, "RESTING", timeOf(event), event);
  state.asking.delete(call.callId);
  closeSegment(state, call, "output");
  closeSegment(state, call, "argumentText");
  touch(call, event);
}

/**
 * @param {any} change
 * @returns {FileChange}
 */
function changeOf(change) {
  const kind = change?.kind;
  const from = typeof kind === "object" ? String(kind?.renamed?.from ?? "") : null;
  return { path: String(change?.path ?? ""), kind: from === null ? String(kind) : "renamed", from, diff: String(change?.diff ?? "") };
}

/** @type {Handler} */
function asked(state, event) {
  const call = callOf(state, event);
  call.status = "asking";
  call.kind = event.data.call_kind ?? call.kind;
  call.arguments = event.data.arguments;
  if (event.data.reason) call.remarks.push(`Asks for approval: ${event.data.reason}`);
  state.asking.add(call.callId);
  touch(call, event);
}

/** @type {Handler} */
function decided(state, event) {
  const call = callOf(state, event);
  const { approved, ending, reason, by } = event.data;
  const how = ending ?? (approved ? "allowed" : "denied");
  call.remarks.push(`Approval ${how}${by ? ` by ${by}` : ""}${reason ? `: ${reason}` : ""}`);
  if (call.status === "asking") call.status = approved || how === "superseded" ? "written" : "denied";
  state.asking.delete(call.callId);
  touch(call, event);
}

/** @type {Handler} */
function late(state, event) {
  const call = state.calls.get(String(event.data.call_id));
  if (!call) return;
  call.remarks.push(`A decision came too late: ${event.data.reason ?? ""}`);
  touch(call, event);
}
