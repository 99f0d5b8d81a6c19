// State of a session, and the helpers that change it. The reducer in `reducer.js` is the only caller.

/**
 * @import { Entry, Event, SessionState, Usage, RoundEntry, Segment } from "./types.js"
 */

/** @returns {Usage} */
export function noUsage() {
  return { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
}

/**
 * Returns the counts of a response in our terms.
 * @param {any} usage
 * @returns {Usage}
 */
export function usageOf(usage) {
  return {
    input: usage?.input_tokens ?? 0,
    output: usage?.output_tokens ?? 0,
    cacheRead: usage?.cache_read_tokens ?? 0,
    cacheWrite: usage?.cache_write_tokens ?? 0,
    reasoning: usage?.reasoning_tokens ?? 0,
  };
}

/**
 * Adds `more` to `sum`.
 * @param {Usage} sum
 * @param {Usage} more
 */
export function addUsage(sum, more) {
  sum.input += more.input;
  sum.output += more.output;
  sum.cacheRead += more.cacheRead;
  sum.cacheWrite += more.cacheWrite;
  sum.reasoning += more.reasoning;
}

/**
 * Returns the state of a session before its first event.
 * @param {string} sessionId
 * @returns {SessionState}
 */
export function initialState(sessionId) {
  return {
    sessionId,
    lastSeq: -1, revision: 0, phase: "IDLE", startedAt: 0, lastAt: 0,
    provider: "", model: "", directory: "", mode: null, forkedFrom: null,
    entries: [], calls: new Map(), segments: new Map(), agents: new Map(), asking: new Set(), rewinds: [],
    round: null, run: null, plan: null, context: null,
    usage: noUsage(), rounds: 0, misses: 0, lastUsed: 0,
  };
}

/**
 * Returns the fields that all entries have.
 * @param {Event} event
 */
export function base(event) {
  return { seq: event.seq, lastSeq: event.seq, at: timeOf(event), revision: 0 };
}

/**
 * @param {Event} event
 */
export function timeOf(event) {
  return Date.parse(event.timestamp) || 0;
}

/**
 * Appends an entry and returns it.
 * @template {Entry} T
 * @param {SessionState} state
 * @param {T} entry
 * @returns {T}
 */
export function append(state, entry) {
  state.entries.push(entry);
  return entry;
}

/**
 * Notes that an entry has changed.
 * @param {Entry} entry
 * @param {Event} [event]
 */
export function touch(entry, event) {
  entry.revision += 1;
  if (event) entry.lastSeq = Math.max(entry.lastSeq, event.seq);
}

/**
 * Appends a notice.
 * @param {SessionState} state
 * @param {Event} event
 * @param {"info"|"warning"|"error"} level
 * @param {string} title
 * @param {string} [text]
 * @param {{quiet?: boolean, detail?: any}} [more]
 */
export function notice(state, event, level, title, text = "", more = {}) {
  append(state, { ...base(event), type: "notice", level, title, text, quiet: more.quiet ?? false, detail: more.detail ?? null });
}

/**
 * Ends the model call that is open, if there is one.
 * @param {SessionState} state
 * @param {Event} event
 * @param {"done"|"failed"} status
 * @returns {RoundEntry|null}
 */
export function endRound(state, event, status) {
  const round = state.round;
  if (!round) return null;
  round.status = status;
  round.endedAt = timeOf(event);
  touch(round, event);
  state.round = null;
  return round;
}

/**
 * Returns the newest open segment that fits.
 * @param {SessionState} state
 * @param {(segment: Segment) => boolean} fits
 * @returns {[number, Segment]|null}
 */
export function openSegment(state, fits) {
  /** @type {[number, Segment]|null} */
  let found = null;
  for (const [seq, segment] of state.segments) {
    if (fits(segment)) found = [seq, segment];
  }
  return found;
}
