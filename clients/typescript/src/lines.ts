import { PintleError } from "./error.js";
import type { Watchdog } from "./time.js";

/** Splits text into lines, however it is cut into chunks. Holds at most one line, up to a limit. */
export class LineSplitter {
  readonly #limit: number;
  #parts: string[] = [];
  #length = 0;
  #endsWithReturn = false;

  /** @param limit longest line, in UTF-16 code units */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Returns the lines that a chunk completes, without their ends. */
  push(chunk: string): string[] {
    if (chunk === "") return [];
    const lines: string[] = [];
    // The line feed of an end that was cut in two.
    let from = this.#endsWithReturn && chunk.startsWith("\n") ? 1 : 0;
    this.#endsWithReturn = chunk.endsWith("\r");
    const end = /\r\n|\r|\n/g;
    end.lastIndex = from;
    for (let match = end.exec(chunk); match; match = end.exec(chunk)) {
      this.#hold(chunk.slice(from, match.index));
      lines.push(this.#parts.join(""));
      this.#parts = [];
      this.#length = 0;
      from = end.lastIndex;
    }
    this.#hold(chunk.slice(from));
    return lines;
  }

  #hold(part: string): void {
    this.#length += part.length;
    if (this.#length > this.#limit) throw new PintleError(`a line is longer than the limit of ${this.#limit} characters`);
    if (part !== "") this.#parts.push(part);
  }
}

/**
 * Yields the complete lines of a body. What follows the last line end is dropped.
 *
 * @throws {PintleError} if the connection fails, the watchdog fires, or a line is longer than the limit
 */
export async function* readLines(response: Response, watchdog: Watchdog, limit: number): AsyncGenerator<string, void> {
  const reader = response.body?.getReader();
  if (!reader) return;
  const splitter = new LineSplitter(limit);
  const decoder = new TextDecoder();
  const cancel = () => void reader.cancel().catch(() => {});
  // The signal of the request may not reach its body.
  watchdog.signal.addEventListener("abort", cancel);
  try {
    for (;;) {
      watchdog.start();
      const { done, value } = await reader.read().catch((cause: unknown) => {
        watchdog.signal.throwIfAborted();
        throw PintleError.ofConnection(cause);
      });
      watchdog.stop();
      watchdog.signal.throwIfAborted();
      if (done) return;
      yield* splitter.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    watchdog.signal.removeEventListener("abort", cancel);
    cancel();
  }
}
