import { PintleError, type Problem } from "./error.js";
import type { components } from "./event-schema.js";
import { parseJson } from "./json.js";
import type { components as api } from "./schema.js";
import { Segments, type SegmentText } from "./segments.js";
import type { Message } from "./sse.js";
import type { Subscription } from "./subscription.js";
import type { ApiRequest } from "./transport.js";

/** Event of a session. Later servers may send kinds that are not listed here. */
export type SessionEvent = components["schemas"]["SessionEvent"];

/** Event of one kind. */
export type EventOf<Kind extends SessionEvent["kind"]> = Extract<SessionEvent, { kind: Kind }>;

/** More text of an open segment. */
export type DeltaEvent = EventOf<
  "ASSISTANT_TEXT_DELTA" | "REASONING_DELTA" | "TOOL_CALL_ARGUMENTS_DELTA" | "TOOL_CALL_OUTPUT_DELTA"
>;

/** Text of an open segment that the server no longer has. */
export type GapEvent = EventOf<"GAP">;

/** Event of the record. */
export type RecordedEvent = Exclude<SessionEvent, DeltaEvent | GapEvent>;

/** Item of the stream of a session. */
export type SessionItem =
  /** An event of the record. A stream with `after: id` continues behind it. */
  | { type: "event"; id: string; event: RecordedEvent }
  /** More text of an open segment, with its text so far. */
  | ({ type: "delta"; event: DeltaEvent } & SegmentText)
  /** Text that was missed. The event that ends the segment has all of it. */
  | { type: "gap"; event: GapEvent }
  /** Events that were received are not on record. Drop all of them: the stream restarts with the first event. */
  | { type: "reset"; reason: string }
  /** Everything that had happened before the connection was made has been received. Follows each reconnect, too. */
  | { type: "ready" };

/** Item of the stream of all sessions. */
export type ChangeItem =
  /** A session that was created or has changed, as it is now. */
  | { type: "session"; session: api["schemas"]["SessionView"] }
  /** A session that was deleted. */
  | { type: "deleted"; id: string }
  /** Changes may have been missed: read the list again. */
  | { type: "reset"; reason: string }
  /** A session could not be read. */
  | { type: "problem"; problem: Problem }
  /** All open sessions have been received. */
  | { type: "ready" };

/** Returns the reason in the data of a message. */
export function reasonOf(data: string): string {
  return parseJson<{ reason: string }>(data).reason;
}

/** Events of one session. */
export class SessionSubscription implements Subscription<SessionItem> {
  readonly #path: string;
  readonly #segments = new Segments();
  /** Id of the last event that was received. */
  #last: string | undefined;

  constructor(path: string, after?: string) {
    this.#path = path;
    this.#last = after;
  }

  request(): ApiRequest {
    return { method: "GET", path: this.#path, query: { after: this.#last } };
  }

  receive({ name, id, data }: Message): SessionItem | undefined {
    switch (name) {
      case "message":
        return this.#event(parseJson<SessionEvent>(data), id);
      case "reset":
        this.#last = undefined;
        this.#segments.clear();
        return { type: "reset", reason: reasonOf(data) };
      case "problem":
        throw PintleError.ofProblem(parseJson<Problem>(data));
      case "ready":
        return { type: "ready" };
      default:
        return undefined;
    }
  }

  #event(event: SessionEvent, id: string | undefined): SessionItem {
    if (isGap(event)) {
      this.#segments.skip(event);
      return { type: "gap", event };
    }
    if (isDelta(event)) return { type: "delta", event, ...this.#segments.add(event) };
    this.#segments.end(event);
    this.#last = id ?? String(event.seq);
    return { type: "event", id: this.#last, event };
  }
}

function isGap(event: SessionEvent): event is GapEvent {
  return event.kind === "GAP";
}

/** Deltas, also of kinds that are not known here, have an offset. */
function isDelta(event: Exclude<SessionEvent, GapEvent>): event is DeltaEvent {
  return typeof event.offset === "number";
}

/** Changes of all sessions. */
export class ChangeSubscription implements Subscription<ChangeItem> {
  request(): ApiRequest {
    return { method: "GET", path: "/v1/events" };
  }

  receive({ name, data }: Message): ChangeItem | undefined {
    switch (name) {
      case "session":
        return { type: "session", session: parseJson(data) };
      case "deleted":
        return { type: "deleted", id: parseJson<{ id: string }>(data).id };
      case "reset":
        return { type: "reset", reason: reasonOf(data) };
      case "problem":
        return { type: "problem", problem: parseJson(data) };
      case "ready":
        return { type: "ready" };
      default:
        return undefined;
    }
  }

  reconnected(): ChangeItem {
    return { type: "reset", reason: "the connection was lost" };
  }
}
