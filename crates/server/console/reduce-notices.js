// Handles the events about the session around its turns: subagents, limits, compaction, checkpoints, warnings, errors.

import { cost, counted, duration, tokens } from "./format.js";
import { addUsage, append, base, endRound, notice, timeOf, touch, usageOf } from "./state.js";

/**
 * @import { AgentEntry, Event, SessionState } from "./types.js"
 * @typedef {(state: SessionState, event: Event) => void} Handler
 */

/** @type {Record<string, Handler>} */
export const noticeHandlers = {
  SESSION_RESUMED: resumed,
  PROJECT_LOADED: projectLoaded,
  POLICY_CHANGED: policyChanged,
  CHECKPOINT_TAKEN: checkpointTaken,
  REWOUND: rewound,
  SUBAGENT_SPAWNED: spawned,
  SUBAGENT_ENDED: ended,
  TURN_LIMIT: turnLimit,
  BUDGET_REACHED: budgetReached,
  CONTEXT_FULL: contextFull,
  CONTEXT_USAGE: contextUsage,
  COMPACTION_START: compactionStart,
  COMPACTION_END: compactionEnd,
  LOOP_DETECTION: (state, event) => notice(state, event, "warning", "Loop detected", event.data.message),
  HISTORY_REPAIRED: (state, event) => notice(state, event, "info", "History repaired", event.data.message),
  WARNING: (state, event) => notice(state, event, "warning", "Warning", event.data.message),
  MODEL_RETRYING: retrying,
  ERROR: failed,
};

/** @type {Handler} */
function resumed(state, event) {
  const { interrupted = [], repeated = [], reconciled = [] } = event.data;
  const parts = [];
  if (interrupted.length > 0) parts.push(`not repeated: ${interrupted.join(", ")}`);
  if (repeated.length > 0) parts.push(`repeated: ${repeated.join(", ")}`);
  if (reconciled.length > 0) parts.push(`${counted(reconciled.length, "call")} checked against the files`);
  notice(state, event, "info", "Resumed after the process died", parts.join("; "));
}

/** @type {Handler} */
function projectLoaded(state, event) {
  const { documents = [], skills = [], skipped = [] } = event.data;
  const parts = [];
  if (documents.length > 0) parts.push(documents.map((/** @type {any} */ d) => d.path).join(", "));
  if (skills.length > 0) parts.push(counted(skills.length, "skill"));
  if (skipped.length > 0) parts.push(`${skipped.length} skipped`);
  notice(state, event, "info", "Project loaded", parts.join("; "), { quiet: true, detail: event.data });
}

/** @type {Handler} */
function policyChanged(state, event) {
  const { mode, rules = [], sandbox, by } = event.data;
  const parts = [];
  if (mode) parts.push(`mode ${mode}`);
  for (const rule of rules) parts.push(`${rule.permission} ${rule.rule}`);
  if (sandbox) parts.push(`sandbox ${sandbox}`);
  if (by) parts.push(`by ${by}`);
  if (mode) state.mode = mode;
  // The first policy is what the session begins with.
  notice(state, event, "info", "Policy changed", parts.join("; "), { detail: event.data, quiet: state.entries.length === 0 });
}

/** @type {Handler} */
function checkpointTaken(state, event) {
  const { reason, checkpoint, turns } = event.data;
  const text = `${String(reason).replaceAll("_", " ")}, ${counted(checkpoint?.entries ?? 0, "file")}, ${counted(turns ?? 0, "history entry", "history entries")}`;
  notice(state, event, checkpoint?.partial ? "warning" : "info", "Checkpoint", text, { quiet: true, detail: event.data });
}

/** @type {Handler} */
function rewound(state, event) {
  const turns = event.data.turns ?? 0;
  state.rewinds.push(event.seq);
  notice(state, event, "info", "Rewound", `The conversation continues after its first ${counted(turns, "entry", "entries")}.`);
}

/** @type {Handler} */
function spawned(state, event) {
  const { agent_id: agentId, child, task } = event.data;
  const ids = { agentId: String(agentId), child: String(child), task: String(task ?? "") };
  const entry = append(state, /** @type {AgentEntry} */ ({ ...base(event), type: "agent", ...ids, status: "RUNNING", endedAt: null, turns: null }));
  state.agents.set(entry.child, entry);
}

/** @type {Handler} */
function ended(state, event) {
  const entry = state.agents.get(String(event.data.child));
  if (!entry) return;
  entry.status = event.data.status ?? "COMPLETED";
  entry.turns = event.data.turns_used ?? null;
  entry.endedAt = timeOf(event);
  touch(entry, event);
}

/** @type {Handler} */
function turnLimit(state, event) {
  const { round, total_turns: total } = event.data;
  const text = round !== undefined ? `after ${counted(round, "round")} of this input` : `after ${counted(total, "turn")} of the session`;
  notice(state, event, "warning", "Turn limit reached", text);
}

/** @type {Handler} */
function budgetReached(state, event) {
  const { budget, limit, spent, needed, scope } = event.data;
  const amount = amountOf(budget);
  let text = `${amount(spent ?? 0)} of ${amount(limit ?? 0)} spent`;
  if (scope) text += ` by the ${scope}`;
  if (needed) text += `; the next call needs ${amount(needed)}`;
  notice(state, event, "warning", "Budget reached", text);
}

/**
 * @param {string} budget
 * @returns {(value: number) => string}
 */
function amountOf(budget) {
  if (budget === "cost_micros") return (value) => cost(value / 1e6);
  if (budget === "wall_time_ms") return duration;
  if (budget === "tool_calls") return (value) => counted(value, "call");
  return (value) => `${tokens(value)} tokens`;
}

/** @type {Handler} */
function contextFull(state, event) {
  const { least_tokens: least, context_window: window } = event.data;
  notice(state, event, "error", "Context full", `The request needs at least ${tokens(least ?? 0)} of ${tokens(window ?? 0)} tokens.`);
}

/** @type {Handler} */
function contextUsage(state, event) {
  const { window = 0, used = 0, system = 0, tools = 0, history = 0 } = event.data;
  state.context = { window, used, system, tools, history };
}

/** @type {Handler} */
function compactionStart(state, event) {
  notice(state, event, "info", "Compaction", `A summary of the first ${counted(event.data.through ?? 0, "entry", "entries")} is requested.`);
}

/** @type {Handler} */
function compactionEnd(state, event) {
  const { through = 0, from = 0, tokens_before: before, tokens_after: after, usage } = event.data;
  const round = endRound(state, event, "done");
  const counts = usageOf(usage);
  addUsage(state.usage, counts);
  if (state.run) addUsage(state.run.usage, counts);
  if (round) round.usage = counts;
  if (state.context && after) state.context = { ...state.context, used: after };
  notice(state, event, "info", "Compacted", `${counted(through - from, "entry", "entries")}, ${tokens(before ?? 0)} to ${tokens(after ?? 0)} tokens.`);
}

/** @type {Handler} */
function retrying(state, event) {
  const { attempt, delay_ms: delay, error } = event.data;
  const text = `Attempt ${attempt} in ${duration(delay ?? 0)}: ${error?.message ?? error?.kind ?? ""}`;
  notice(state, event, "warning", "Model call is retried", text, { detail: error });
}

/** @type {Handler} */
function failed(state, event) {
  const { error } = event.data;
  endRound(state, event, "failed");
  const kind = String(error?.kind ?? "error").replaceAll("_", " ");
  notice(state, event, "error", `Error: ${kind}`, String(error?.message ?? ""), { detail: error });
}
