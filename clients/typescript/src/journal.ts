import { PintleError } from "./error.js";
import { parseJson } from "./json.js";
import { readLines } from "./lines.js";
import { sleep, Watchdog } from "./time.js";
import type { Transport } from "./transport.js";

/** Line of a journal. */
export interface JournalLine {
  /** Number of the line, from 1. */
  seq: number;
  [name: string]: unknown;
}

/** Lines of a journal, both ends included. */
export interface JournalRange {
  /** Number of the first line, from 1. */
  from?: number;
  /** Number of the last line. */
  to?: number;
}

/** Reads lines, and continues after the last one if the connection fails. */
export async function* readJournal(
  transport: Transport,
  path: string,
  { from = 1, to, signal }: JournalRange & { signal?: AbortSignal | undefined },
): AsyncGenerator<JournalLine, void, undefined> {
  let next = from;
  let failures = 0;
  while (to === undefined || next <= to) {
    signal?.throwIfAborted();
    const watchdog = new Watchdog(transport.silence, signal);
    let failure: PintleError;
    try {
      watchdog.start();
      const response = await transport.open({ method: "GET", path, query: { from: next, to } }, watchdog.signal);
      for await (const text of readLines(response, watchdog, transport.maxLine)) {
        const line = parseJson<JournalLine>(text);
        next = line.seq + 1;
        failures = 0;
        yield line;
      }
      return;
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof PintleError)) throw error;
      failure = error;
    } finally {
      watchdog.close();
    }
    failures += 1;
    failure.attempts = failures;
    const delay = transport.retryDelay(failure, failures);
    if (delay === undefined) throw failure;
    await sleep(delay, signal);
  }
}
