// Says in a few words what a session does.

import { stateText } from "./filter.js";
import { counted, duration } from "./format.js";

/** @import { Session, SessionState } from "./types.js" */

/**
 * Returns the use of the context: as reported, or otherwise the size of the last request, if the model's window is known.
 * @param {SessionState} state
 * @param {number} window of the model, or 0
 * @returns {SessionState["context"]}
 */
export function contextOf(state, window) {
  if (state.context) return state.context;
  if (window <= 0 || state.lastUsed === 0) return null;
  return { window, used: state.lastUsed, system: 0, tools: 0, history: state.lastUsed };
}

/**
 * Returns the state of a session in words. Its events are newer than what the list knows.
 * @param {Session|null} session
 * @param {SessionState} state
 */
export function stateOf(session, state) {
  if (session) return stateText({ ...session, state: state.lastSeq >= 0 ? state.phase : session.state, pending_approvals: state.asking.size });
  return state.phase.toLowerCase();
}

/**
 * Returns what the session does right now, or an empty text.
 * @param {SessionState} state
 * @param {number} now
 */
export function activity(state, now) {
  if (state.phase !== "PROCESSING") return "";
  if (state.asking.size > 0) return `${counted(state.asking.size, "call waits", "calls wait")} for approval`;
  const since = (/** @type {number} */ at) => (now - at >= 1000 ? ` · ${duration(Math.floor((now - at) / 1000) * 1000)}` : "");
  for (const segment of state.segments.values()) {
    const { entry } = segment;
    if (entry.type === "call") return `${entry.tool} ${entry.status === "writing" ? "is being written" : "runs"}${since(entry.startedAt ?? entry.at)}`;
    if (entry.type === "reasoning") return `Reasoning${since(entry.at)}`;
    if (entry.type === "text") return `Writing${since(entry.at)}`;
  }
  if (state.round) return `Waiting for the model${since(state.round.at)}`;
  return "Working";
}
