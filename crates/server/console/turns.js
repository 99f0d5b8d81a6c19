// Relates the timeline to the entries of a session's history, at which it can be forked and rewound.

/** @import { Entry, HistoryTurn, SessionState } from "./types.js" */

/**
 * Returns the number of history entries before an entry of the timeline.
 * @param {HistoryTurn[]} turns
 * @param {Entry} entry
 */
export function turnsBefore(turns, entry) {
  return turns.filter((turn) => turn.event < entry.seq).length;
}

/**
 * Returns the number of history entries up to and including what an entry belongs to: the response of a text, or the input itself.
 * @param {HistoryTurn[]} turns
 * @param {Entry} entry
 */
export function turnsThrough(turns, entry) {
  const round = entry.type === "text" || entry.type === "reasoning" ? entry.round : null;
  const end = Math.max(entry.lastSeq, round?.lastSeq ?? 0);
  return turns.filter((turn) => turn.event <= end).length;
}

/**
 * Returns the ranges of events, without their ends, that rewinds have removed from the conversation. The history has what
 * is left; what a later rewind brought back is in it again.
 * @param {HistoryTurn[]} turns
 * @param {number[]} rewinds numbers of the events of the rewinds
 */
export function droppedRanges(turns, rewinds) {
  return rewinds.map((to) => ({ from: Math.max(-1, ...turns.filter((turn) => turn.event < to).map((turn) => turn.event)), to }));
}

/**
 * Returns what a rewind would remove: the turns after the first `count`, and the files that calls changed since then.
 * @param {HistoryTurn[]} turns
 * @param {SessionState} state
 * @param {number} count
 */
export function rewindPreview(turns, state, count) {
  const removed = turns.slice(count);
  const from = removed.length > 0 ? removed[0].event : Infinity;
  /** @type {Map<string, number>} */
  const files = new Map();
  for (const entry of state.entries) {
    if (entry.type !== "call" || entry.lastSeq < from) continue;
    for (const change of entry.changes) files.set(change.path, (files.get(change.path) ?? 0) + 1);
  }
  return { removed, files: [...files].map(([path, changes]) => ({ path, changes })) };
}
