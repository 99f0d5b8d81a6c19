// Builds events of a session, for the tests and for the double of the server.

const START = Date.parse("2025-11-22T10:00:00.000Z");

/** Events of one session, numbered and timed. */
export class Script {
  constructor(sessionId, { at = START, parent, depth } = {}) {
    this.sessionId = sessionId;
    this.now = at;
    this.events = [];
    this.more = parent ? { parent, depth: depth ?? 1 } : {};
  }

  /** Adds a durable event, `ms` after the previous one. */
  add(kind, data = {}, ms = 10) {
    this.now += ms;
    const event = {
      seq: this.events.length,
      timestamp: new Date(this.now).toISOString(),
      session_id: this.sessionId,
      ...this.more,
      kind,
      data,
    };
    this.events.push(event);
    return event;
  }

  /** A delta of the segment that a start event began. It is not added: it has no number of its own. */
  delta(start, offset, delta) {
    const kind = {
      ASSISTANT_TEXT_START: "ASSISTANT_TEXT_DELTA",
      REASONING_START: "REASONING_DELTA",
      TOOL_CALL_ARGUMENTS_START: "TOOL_CALL_ARGUMENTS_DELTA",
      TOOL_CALL_START: "TOOL_CALL_OUTPUT_DELTA",
    }[start.kind];
    const { call_id } = start.data;
    return { ...start, offset, kind, data: call_id ? { call_id, delta } : { delta } };
  }

  start(model = "claude-opus-4-6", more = {}) {
    return this.add("SESSION_START", { provider: "anthropic", model, working_directory: "/project/roman", ...more }, 0);
  }

  input(content, more = {}) {
    return this.add("USER_INPUT", { content, ...more }, 100);
  }

  request(messages, moved) {
    return this.add("REQUEST_PREPARED", { fingerprint: "0f1e2d3c4b5a69788796a5b4c3d2e1f0", messages, ...(moved ? { moved } : {}) }, 5);
  }

  text(text, ms = 400) {
    this.add("ASSISTANT_TEXT_START", {}, 700);
    return this.add("ASSISTANT_TEXT_END", { text, interrupted: false }, ms);
  }

  reasoning(text) {
    this.add("REASONING_START", {}, 500);
    return this.add("REASONING_END", { text, interrupted: false }, 900);
  }

  response(input, output, cached, reason = "stop") {
    return this.add("MODEL_RESPONSE", {
      response_id: `msg_${this.events.length}`,
      model: "claude-opus-4-6",
      finish_reason: { reason },
      usage: { input_tokens: input, output_tokens: output, total_tokens: input + output, cache_read_tokens: cached },
    });
  }

  call(callId, tool, kind, args) {
    return this.add("TOOL_CALL_START", { call_id: callId, tool_name: tool, call_kind: kind, arguments: args });
  }

  result(callId, tool, output, more = {}) {
    const ms = more.duration_ms ?? 12;
    return this.add("TOOL_CALL_END", { call_id: callId, tool_name: tool, output, duration_ms: ms, ...more }, ms);
  }

  end(state = "IDLE") {
    return this.add("PROCESSING_END", { state }, 20);
  }
}
