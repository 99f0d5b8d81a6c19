import { PintleError } from "./error.js";
import { readLines } from "./lines.js";
import { MessageParser, type Message } from "./sse.js";
import { delayAfter, sleep, Watchdog } from "./time.js";
import { LONGEST_RETRY_AFTER, type ApiRequest, type Transport } from "./transport.js";

/** Lost connection of a stream, which is about to be restored. */
export interface Reconnect {
  /** Reason why the connection was lost, or not made. */
  error: PintleError;
  /** Number of failures in a row, from 1. */
  failures: number;
  /** Time until the next attempt, in milliseconds. */
  delay: number;
}

/** Options of all streams. */
export interface StreamOptions {
  /** Ends the stream. */
  signal?: AbortSignal | undefined;
  /** Called before each reconnect. */
  onReconnect?: (reconnect: Reconnect) => void;
}

/** One kind of stream. */
export interface Subscription<Item> {
  /** Returns the request that continues the stream. */
  request(): ApiRequest;
  /** Returns the item of a message. Throws the error that ends the connection. */
  receive(message: Message): Item | undefined;
  /** Returns the item that follows a reconnect. */
  reconnected?(): Item;
  /** Returns whether nothing follows what was received. */
  hasEnded?(): boolean;
}

/**
 * Follows a stream across lost connections. Ends once its subject has ended or is deleted, or the signal is aborted.
 *
 * @throws {PintleError} for a failure that a reconnect does not mend
 */
export async function* subscribe<Item>(
  transport: Transport,
  subscription: Subscription<Item>,
  { signal, onReconnect }: StreamOptions,
): AsyncGenerator<Item, void, undefined> {
  let failures = 0;
  let hasConnected = false;
  while (!signal?.aborted) {
    const watchdog = new Watchdog(transport.silence, signal);
    let error: PintleError;
    try {
      watchdog.start();
      const response = await transport.open(subscription.request(), watchdog.signal);
      checkType(response);
      if (hasConnected && subscription.reconnected) yield subscription.reconnected();
      hasConnected = true;
      const parser = new MessageParser(transport.maxLine);
      for await (const line of readLines(response, watchdog, transport.maxLine)) {
        const message = parser.push(line);
        if (!message) continue;
        const item = subscription.receive(message);
        // Only now: a connection that brings nothing but a problem has failed.
        failures = 0;
        if (item !== undefined) yield item;
        if (signal?.aborted || subscription.hasEnded?.()) return;
      }
      error = new PintleError("the server ended the stream", { isRetryable: true });
    } catch (caught) {
      if (signal?.aborted) return;
      if (!(caught instanceof PintleError)) throw caught;
      // A subject that was there before.
      if (caught.code === "not_found" && hasConnected) return;
      if (!isTransient(caught)) throw caught;
      error = caught;
    } finally {
      watchdog.close();
    }
    failures += 1;
    const delay = delayAfter(failures, transport.backoff, Math.min(error.retryAfter ?? 0, LONGEST_RETRY_AFTER));
    onReconnect?.({ error, failures, delay });
    await sleep(delay, signal).catch(() => {});
  }
}

/** Returns whether a stream may continue later. */
function isTransient({ status, isRetryable }: PintleError): boolean {
  return status === undefined ? isRetryable : status >= 500 || status === 408 || status === 429;
}

function checkType(response: Response): void {
  const type = response.headers.get("content-type");
  if (type?.startsWith("text/event-stream")) return;
  throw new PintleError(`expected a stream of events, not ${type ?? "a response without a type"}`, { status: response.status });
}
