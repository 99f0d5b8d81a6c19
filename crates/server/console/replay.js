// Steps through the events of a session. The state at a position is the reducer's state after that many events.

import { apply, fold, isDelta } from "./reducer.js";
import { initialState } from "./state.js";

/** @import { Event, SessionState } from "./types.js" */

/** Keeps the events of a session, without deltas, and its newest state. */
export class Log {
  /** @param {string} sessionId */
  constructor(sessionId) {
    this.sessionId = sessionId;
    /** @type {Event[]} */
    this.events = [];
    this.state = initialState(sessionId);
  }

  /**
   * Applies an event. Returns whether it was new.
   * @param {Event} event
   */
  add(event) {
    const changed = apply(this.state, event);
    if (changed && !isDelta(event)) this.events.push(event);
    return changed;
  }
}

/** A position in a log, with the state there. */
export class Replay {
  /** @param {Log} log */
  constructor(log) {
    this.log = log;
    this.position = log.events.length;
    this.state = fold(log.sessionId, log.events);
  }

  get length() {
    return this.log.events.length;
  }

  /**
   * Moves to the state after the first `position` events. Steps forward continue from here, steps back start over.
   * @param {number} position
   */
  seek(position) {
    const target = Math.max(0, Math.min(position, this.length));
    if (target < this.position) {
      this.state = fold(this.log.sessionId, this.log.events, target);
    } else {
      for (let i = this.position; i < target; i += 1) apply(this.state, this.log.events[i]);
    }
    this.position = target;
    return this.state;
  }

  /**
   * Moves to the next or previous event that a reader would stop at.
   * @param {1|-1} step
   */
  seekTurn(step) {
    const { events } = this.log;
    let at = this.position + step;
    while (at > 0 && at < events.length && !STOPS.has(events[at - 1].kind)) at += step;
    return this.seek(at);
  }
}

const STOPS = new Set(["USER_INPUT", "STEERING_INJECTED", "PROCESSING_END", "APPROVAL_REQUESTED", "ERROR", "REWOUND"]);

/**
 * Returns how long a replay waits before the next event. Long pauses are cut, so that a replay does not stop.
 * @param {Event} event
 * @param {Event} next
 * @param {number} speed
 */
export function pause(event, next, speed) {
  const between = Date.parse(next.timestamp) - Date.parse(event.timestamp);
  return Math.min(Math.max(between, 0), 1500) / speed;
}
