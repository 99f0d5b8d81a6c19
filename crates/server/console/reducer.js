// Turns the events of a session into the state of its timeline. A replay uses the same reducer on a prefix of the events.

import { counted } from "./format.js";
import { dropBytes, utf8Length } from "./text.js";
import { callHandlers } from "./reduce-calls.js";
import { noticeHandlers } from "./reduce-notices.js";
import { addUsage, append, base, endRound, initialState, notice, noUsage, openSegment, timeOf, touch, usageOf } from "./state.js";

/**
 * @import { Entry, Event, RoundEntry, SessionState, TextEntry } from "./types.js"
 * @typedef {(state: SessionState, event: Event) => void} Handler
 */

/** @type {Record<string, Handler>} */
const HANDLERS = {
  SESSION_START: startSession,
  SESSION_END: endSession,
  USER_INPUT: (state, event) => input(state, event, false),
  STEERING_INJECTED: (state, event) => input(state, event, true),
  PROCESSING_END: endRun,
  REQUEST_PREPARED: startRound,
  MODEL_RESPONSE: respond,
  ASSISTANT_TEXT_START: (state, event) => startText(state, event, "text"),
  ASSISTANT_TEXT_END: (state, event) => endText(state, event, "text"),
  REASONING_START: (state, event) => startText(state, event, "reasoning"),
  REASONING_END: (state, event) => endText(state, event, "reasoning"),
  ...callHandlers,
  ...noticeHandlers,
};

const DELTAS = new Set(["ASSISTANT_TEXT_DELTA", "REASONING_DELTA", "TOOL_CALL_ARGUMENTS_DELTA", "TOOL_CALL_OUTPUT_DELTA"]);

/**
 * Returns whether an event is a part of a segment, which a later event makes superfluous.
 * @param {Event} event
 */
export function isDelta(event) {
  return DELTAS.has(event.kind) || event.kind === "GAP";
}

/**
 * Applies one event. Returns whether it changed the state: an event that has been applied before does not.
 * @param {SessionState} state
 * @param {Event} event
 */
export function apply(state, event) {
  if (event.session_id !== state.sessionId) return false;
  if (isDelta(event)) return applyDelta(state, event);
  if (event.seq <= state.lastSeq) return false;
  state.lastSeq = event.seq;
  state.lastAt = timeOf(event);
  state.revision += 1;
  HANDLERS[event.kind]?.(state, event);
  return true;
}

/**
 * Returns the state after the first `count` events.
 * @param {string} sessionId
 * @param {Event[]} events
 * @param {number} [count]
 */
export function fold(sessionId, events, count = events.length) {
  const state = initialState(sessionId);
  for (let i = 0; i < count; i += 1) apply(state, events[i]);
  return state;
}

/**
 * Adds a delta to its segment. A delta at offset 0 has all of the text so far, and replaces what was there.
 * @param {SessionState} state
 * @param {Event} event
 */
function applyDelta(state, event) {
  const segment = state.segments.get(event.seq);
  if (!segment) return false;
  const { entry, field } = segment;
  const target = /** @type {Record<string, any>} */ (entry);
  const offset = event.offset ?? 0;
  if (event.kind === "GAP") {
    const skipped = event.data.skipped ?? 0;
    target[field] += `\n[${skipped} bytes are missing here]\n`;
    segment.bytes = offset + skipped;
  } else {
    let text = String(event.data.delta ?? "");
    const end = offset + utf8Length(text);
    if (offset === 0) target[field] = text;
    else {
      if (end <= segment.bytes) return false;
      if (offset < segment.bytes) text = dropBytes(text, segment.bytes - offset);
      target[field] += text;
    }
    segment.bytes = end;
  }
  touch(entry);
  state.revision += 1;
  return true;
}

/** @type {Handler} */
function startSession(state, event) {
  const { provider, model, working_directory: directory, forked_from: origin } = event.data;
  state.provider = provider ?? "";
  state.model = model ?? "";
  state.directory = directory ?? "";
  state.startedAt = timeOf(event);
  if (!origin) return;
  const turns = origin.turns ?? 0;
  state.forkedFrom = { session: String(origin.session_id), turns };
  notice(state, event, "info", "Fork", `It begins with the first ${counted(turns, "entry", "entries")} of ${state.forkedFrom.session}.`);
}

/** @type {Handler} */
function endSession(state, event) {
  state.phase = "CLOSED";
  endRound(state, event, "failed");
  notice(state, event, "info", "Session closed");
}

/**
 * @param {SessionState} state
 * @param {Event} event
 * @param {boolean} steering
 */
function input(state, event, steering) {
  const { content, images, author } = event.data;
  append(state, { ...base(event), type: "input", text: String(content ?? ""), images: images ?? [], steering, author: author ?? null });
  if (steering) return;
  state.phase = "PROCESSING";
  state.run ??= { at: timeOf(event), calls: 0, usage: noUsage() };
}

/** @type {Handler} */
function endRun(state, event) {
  state.phase = event.data.state ?? "IDLE";
  endRound(state, event, "failed");
  for (const call of state.calls.values()) {
    if (call.status !== "writing" && call.status !== "written") continue;
    call.status = "cut";
    touch(call);
  }
  state.asking.clear();
  const run = state.run;
  state.run = null;
  append(state, { ...base(event), type: "end", state: state.phase, outcome: event.data.outcome ?? null, startedAt: run?.at ?? null, calls: run?.calls ?? 0, usage: run?.usage ?? noUsage() });
}

/** @type {Handler} */
function startRound(state, event) {
  endRound(state, event, "failed");
  const compacting = state.entries.at(-1);
  const summary = compacting?.type === "notice" && compacting.title === "Compaction";
  const moved = movedPart(event.data.moved);
  if (moved && !summary) state.misses += 1;
  state.round = append(
    state,
    /** @type {RoundEntry} */ ({
      ...base(event),
      type: "round",
      messages: event.data.messages ?? 0,
      moved: summary ? null : moved,
      purpose: summary ? "summary" : null,
      status: "waiting", model: null, finish: null, usage: null, endedAt: null,
    }),
  );
}

/**
 * Returns the part of a request that differs from the previous one, in words.
 * @param {any} moved
 */
function movedPart(moved) {
  if (moved === undefined || moved === null) return null;
  if (moved === "tools") return "the tool definitions";
  if (moved === "system") return "the system prompt";
  if (typeof moved === "object" && "message" in moved) return `message ${moved.message}`;
  return String(moved);
}

/** @type {Handler} */
function respond(state, event) {
  const round = endRound(state, event, "done");
  const usage = usageOf(event.data.usage);
  addUsage(state.usage, usage);
  if (state.run) addUsage(state.run.usage, usage);
  state.rounds += 1;
  state.lastUsed = usage.input + usage.output;
  if (!round) return;
  round.model = event.data.model ?? null;
  round.finish = event.data.finish_reason?.reason ?? null;
  round.usage = usage;
}

/**
 * @param {SessionState} state
 * @param {Event} event
 * @param {"text"|"reasoning"} type
 */
function startText(state, event, type) {
  const entry = append(state, /** @type {TextEntry} */ ({ ...base(event), type, text: "", open: true, interrupted: false, round: state.round }));
  state.segments.set(event.seq, { entry, field: "text", bytes: 0 });
}

/**
 * @param {SessionState} state
 * @param {Event} event
 * @param {"text"|"reasoning"} type
 */
function endText(state, event, type) {
  const found = openSegment(state, ({ entry }) => entry.type === type);
  if (!found) return;
  const [seq, segment] = found;
  const entry = /** @type {TextEntry} */ (segment.entry);
  entry.text = String(event.data.text ?? "");
  entry.interrupted = event.data.interrupted === true;
  entry.open = false;
  state.segments.delete(seq);
  touch(entry, event);
}
