// Chooses and orders the sessions of the list.

/**
 * @import { Session } from "./types.js"
 * @typedef {"all"|"waiting"|"PROCESSING"|"IDLE"|"AWAITING_INPUT"|"CLOSED"} Filter
 */

/**
 * Returns whether a session waits for a person: for a decision, or for an answer.
 * @param {Session} session
 */
export function waits(session) {
  return session.pending_approvals > 0 || session.state === "AWAITING_INPUT";
}

/**
 * Returns why a session waits, or its state, in words.
 * @param {Session} session
 */
export function stateText(session) {
  if (session.pending_approvals > 0) return session.pending_approvals === 1 ? "1 approval" : `${session.pending_approvals} approvals`;
  if (session.queue_position) return `waits for room, place ${session.queue_position}`;
  switch (session.state) {
    case "PROCESSING":
      return session.live ? "running" : "interrupted";
    case "AWAITING_INPUT":
      return "asks you";
    case "CLOSED":
      return "closed";
    default:
      return "idle";
  }
}

/**
 * Returns the sessions that fit, those that wait first, then those that changed last.
 * @param {Iterable<Session>} sessions
 * @param {Filter} filter
 * @param {string} search
 * @param {Set<string>} [hits] ids that the server has found for the search
 */
export function choose(sessions, filter, search, hits = new Set()) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = [...sessions].filter((session) => {
    if (session.parent) return false;
    if (filter === "waiting" ? !waits(session) : filter !== "all" && session.state !== filter) return false;
    if (hits.has(session.id)) return true;
    const text = `${session.title} ${session.directory ?? ""} ${session.model ?? ""} ${session.id}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return fits.sort((a, b) => Number(waits(b)) - Number(waits(a)) || Date.parse(b.updated_at) - Date.parse(a.updated_at) || a.id.localeCompare(b.id));
}
