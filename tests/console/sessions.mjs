// Scripted sessions of the double.

import { Script } from "./events.mjs";
import * as scripts from "./scripts.mjs";

const WORDS = "The test expects IX for nine, and the function returns VIIII, because the table of values has no entry for nine. I add **IX** and the other subtractive pairs, then run the tests again.\n\n```rust\nconst VALUES: [(u32, &str); 13] = [(1000, \"M\"), (900, \"CM\")];\n```\n\nDone.".split(/(?<= )/);

class DoubleSession {
  constructor(all, script, more) {
    this.all = all;
    this.script = script;
    this.id = script.sessionId;
    this.readers = new Set();
    this.approvals = [];
    this.diff = [];
    this.queue = [];
    this.live = true;
    this.mode = "edit";
    this.effort = "medium";
    this.model = "claude-opus-4-6";
    this.directory = "/project/roman";
    this.blob = scripts.PNG;
    this.speed = 25;
    this.cuts = [];
    Object.assign(this, more);
    this.updated = Math.max(script.now, more.updated ?? 0);
  }

  view() {
    const { events } = this.script;
    const usage = events.filter((event) => event.kind === "MODEL_RESPONSE").map((event) => event.data.usage);
    const tokens = usage.reduce((sum, { total_tokens }) => sum + total_tokens, 0);
    return {
      id: this.id,
      title: this.title ?? this.id,
      created_at: events[0]?.timestamp ?? new Date(this.updated).toISOString(),
      updated_at: new Date(this.updated).toISOString(),
      ...(this.parent ? { parent: this.parent } : {}),
      state: this.state(),
      live: this.live,
      pending_approvals: this.approvals.length,
      cost_usd: Math.round(tokens * 4) / 1e6,
      tokens,
      directory: this.directory,
      model: this.model,
      mode: this.mode,
      effort: this.effort,
    };
  }

  state() {
    let state = "IDLE";
    for (const { kind, data } of this.script.events) {
      if (kind === "USER_INPUT") state = "PROCESSING";
      else if (kind === "PROCESSING_END" || kind === "SESSION_END") state = data.state;
    }
    return state;
  }

  /** The entries of the history: inputs, steering messages, responses, and results after them. */
  history() {
    const turns = [];
    let results = null;
    let text = "";
    const push = (kind, content, event) => turns.push({ index: turns.length, kind, text: content, event: event.seq });
    for (const event of this.script.events) {
      if (event.kind === "TOOL_CALL_END") results = event;
      else if (event.kind === "ASSISTANT_TEXT_END") text = event.data.text;
      else if (["REQUEST_PREPARED", "PROCESSING_END", "USER_INPUT"].includes(event.kind) && results) {
        push("tool_results", String(results.data.output).slice(0, 200), results);
        results = null;
      }
      if (event.kind === "USER_INPUT") push("user", event.data.content, event);
      else if (event.kind === "STEERING_INJECTED") push("steering", event.data.content, event);
      else if (event.kind === "MODEL_RESPONSE") {
        push("assistant", text, event);
        text = "";
      } else if (event.kind === "REWOUND") turns.length = event.data.turns;
    }
    return turns;
  }

  checkpoints() {
    return this.script.events.filter((event) => event.kind === "CHECKPOINT_TAKEN").map((event) => ({ id: event.data.checkpoint.id, at: event.timestamp, reason: event.data.reason }));
  }

  message(event) {
    const id = event.offset === undefined ? `id: e-${event.seq}\n` : "";
    return `${id}data: ${JSON.stringify(event)}\n\n`;
  }

  /** The open text, as one delta. */
  openText() {
    return this.streaming ? [this.script.delta(this.streaming.start, 0, this.streaming.text)] : [];
  }

  send(event) {
    for (const reader of this.readers) reader.write(this.message(event));
  }

  add(...args) {
    this.script.now = Math.max(this.script.now, Date.now() - 50);
    const event = this.script.add(...args);
    this.send(event);
    this.changed();
    return event;
  }

  changed() {
    this.updated = Math.max(Date.now(), this.updated + 1);
    this.all.announce(this);
  }

  submit({ text, images }) {
    const summary = (images ?? []).map((image) => ({ media_type: image.media_type, bytes: Math.floor(image.data.length * 0.75) }));
    this.add("USER_INPUT", { content: text, ...(summary.length > 0 ? { images: summary } : {}) });
    this.respond();
  }

  respond() {
    this.add("REQUEST_PREPARED", { fingerprint: "0".repeat(32), messages: 2 });
    const start = this.add("ASSISTANT_TEXT_START", {});
    this.streaming = { start, text: "", words: [...WORDS], bytes: 0 };
    this.timer = setInterval(() => this.word(), this.speed);
  }

  word() {
    const { streaming } = this;
    const word = streaming.words.shift();
    if (word === undefined) return this.finish(false);
    this.send(this.script.delta(streaming.start, streaming.bytes, word));
    streaming.text += word;
    streaming.bytes += Buffer.byteLength(word);
    return undefined;
  }

  finish(interrupted) {
    clearInterval(this.timer);
    if (!this.streaming) return;
    const { text } = this.streaming;
    this.streaming = null;
    this.add("ASSISTANT_TEXT_END", { text, interrupted });
    if (!interrupted) this.add("MODEL_RESPONSE", { response_id: "m", model: this.model, finish_reason: { reason: "stop" }, usage: { input_tokens: 1800, output_tokens: 80, total_tokens: 1880, cache_read_tokens: 1500 } });
    const next = interrupted ? undefined : this.queue.shift();
    if (next) this.submit(next);
    else this.add("PROCESSING_END", { state: "IDLE" });
  }

  steer({ text }) {
    this.add("STEERING_INJECTED", { content: text });
  }

  interrupt() {
    if (this.streaming) this.finish(true);
    else if (this.state() === "PROCESSING") {
      this.approvals = [];
      this.add("PROCESSING_END", { state: "IDLE" });
    }
  }

  rewind(turns) {
    this.add("REWOUND", { turns });
  }

  decide(callId, body) {
    const at = this.approvals.findIndex((approval) => approval.call_id === callId && approval.fingerprint === body.fingerprint);
    if (at < 0 || this.taken) return [409, { type: "/problems/decided", title: "already decided", status: 409, detail: "this call was decided on before" }];
    const [approval] = this.approvals.splice(at, 1);
    const approved = body.decision !== "deny";
    this.add("APPROVAL_DECIDED", { call_id: callId, approved, ending: approved ? "allowed" : "denied", ...(body.reason ? { reason: body.reason } : {}), by: "console" });
    this.add("TOOL_CALL_START", { call_id: callId, tool_name: approval.tool_name, call_kind: "edit", arguments: body.arguments ?? approval.arguments });
    this.add("TOOL_CALL_END", { call_id: callId, tool_name: approval.tool_name, output: approved ? "Replaced 1 occurrence." : `Denied: ${body.reason ?? ""}`, ...(approved ? {} : { error: "denied" }), duration_ms: 3 });
    this.respond();
    return [202, {}];
  }

  destroy() {
    clearInterval(this.timer);
  }
}

/** Makes all sessions of the double. */
export function makeSessions(announce) {
  const sessions = new Map();
  sessions.announce = announce;
  const put = (script, more) => {
    const session = new DoubleSession(sessions, script, more);
    sessions.set(session.id, session);
    return session;
  };
  sessions.make = (more) => {
    const script = new Script(`s-new-${sessions.size}`, { at: Date.now() });
    script.start(more.model ?? "claude-opus-4-6");
    const session = put(script, Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined)));
    announce(session);
    return session;
  };
  sessions.fork = (origin, turns) => {
    const script = new Script(`s-fork-${sessions.size}`, { at: Date.now() });
    script.start(origin.model, { forked_from: { session_id: origin.id, turns } });
    const session = put(script, { title: `Fork of ${origin.title}`, speed: 5 });
    announce(session);
    return session;
  };
  for (const make of scripts.ALL) for (const [script, more] of make()) put(script, more);
  return sessions;
}
