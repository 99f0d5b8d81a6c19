import type { DeltaEvent, GapEvent, RecordedEvent } from "./events.js";

/** Open segments whose text is kept. More than a session runs calls at once. */
const MAX_SEGMENTS = 64;

/** Longest text of a segment, in UTF-16 code units. Then its older half is dropped. */
const MAX_TEXT = 2 * 1024 * 1024;

/** Kind of the deltas that an event ends. */
const ENDS: Partial<Record<RecordedEvent["kind"], DeltaEvent["kind"]>> = {
  ASSISTANT_TEXT_END: "ASSISTANT_TEXT_DELTA",
  REASONING_END: "REASONING_DELTA",
  TOOL_CALL_ARGUMENTS_END: "TOOL_CALL_ARGUMENTS_DELTA",
  TOOL_CALL_END: "TOOL_CALL_OUTPUT_DELTA",
};

/** Text of an open segment. */
export interface SegmentText {
  /** The text so far, from `start` on. */
  text: string;
  /** Offset of the text in the segment, in bytes: 0 unless its beginning was dropped or missed. */
  start: number;
}

interface Segment extends SegmentText {
  kind: string;
  callId: string | undefined;
  /** Offset of the end of the text. */
  end: number;
}

const encoder = new TextEncoder();

function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** Joins deltas to the text so far of their segments. */
export class Segments {
  readonly #maxText: number;
  /** By the numbers of their start events. */
  readonly #open = new Map<number, Segment>();

  constructor(maxText = MAX_TEXT) {
    this.#maxText = maxText;
  }

  /** Adds a delta. One that does not continue the text replaces it, as after a reconnect or a gap. */
  add(event: DeltaEvent): SegmentText {
    const { seq, kind, data } = event;
    const offset = event.offset ?? 0;
    let segment = this.#open.get(seq);
    if (segment?.end !== offset) segment = this.#begin(seq, offset);
    segment.kind = kind;
    segment.callId = "call_id" in data ? data.call_id : undefined;
    segment.text += data.delta;
    segment.end += byteLength(data.delta);
    this.#trim(segment);
    return { text: segment.text, start: segment.start };
  }

  /** Skips text that the server no longer has. */
  skip(event: GapEvent): void {
    this.#begin(event.seq, (event.offset ?? 0) + event.data.skipped);
  }

  /** Drops the segment that an event ends. */
  end(event: RecordedEvent): void {
    const kind = ENDS[event.kind];
    if (kind === undefined) return;
    const callId = "call_id" in event.data ? event.data.call_id : undefined;
    for (const [seq, segment] of this.#open) {
      if (segment.kind === kind && segment.callId === callId) this.#open.delete(seq);
    }
  }

  clear(): void {
    this.#open.clear();
  }

  #begin(seq: number, offset: number): Segment {
    const segment: Segment = { kind: "", callId: undefined, text: "", start: offset, end: offset };
    this.#open.delete(seq);
    this.#open.set(seq, segment);
    if (this.#open.size > MAX_SEGMENTS) {
      const [oldest] = this.#open.keys();
      if (oldest !== undefined) this.#open.delete(oldest);
    }
    return segment;
  }

  #trim(segment: Segment): void {
    const { text } = segment;
    if (text.length <= this.#maxText) return;
    let cut = text.length - Math.floor(this.#maxText / 2);
    // Not within a surrogate pair.
    if (/^[\uDC00-\uDFFF]/.test(text.slice(cut, cut + 1))) cut += 1;
    segment.start += byteLength(text.slice(0, cut));
    segment.text = text.slice(cut);
  }
}
