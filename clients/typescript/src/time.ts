import { PintleError } from "./error.js";

/** Delays between attempts, in milliseconds. Each is up to twice as long as the one before. */
export interface Backoff {
  /** Delay after the first failure. */
  first: number;
  /** Longest delay. */
  longest: number;
}

/**
 * Returns the delay after a number of failures in a row, from 1. It is random, so that clients do not come all at once.
 *
 * @param retryAfter time that the server asks for, which is added
 */
export function delayAfter(failures: number, { first, longest }: Backoff, retryAfter = 0): number {
  const delay = Math.min(longest, first * 2 ** Math.min(failures - 1, 30));
  return retryAfter + delay * (0.5 + Math.random() / 2);
}

/** Waits. Rejects with the reason of the signal once it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Aborts a request with its caller's signal, or if nothing arrives for a while. */
export class Watchdog {
  readonly #controller = new AbortController();
  readonly #ms: number;
  readonly #outer: AbortSignal | undefined;
  readonly #abort = () => this.#controller.abort(this.#outer?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ms: number, outer?: AbortSignal) {
    this.#ms = ms;
    this.#outer = outer;
    if (outer?.aborted) this.#abort();
    else outer?.addEventListener("abort", this.#abort);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Starts the timer, again if it runs. */
  start(): void {
    this.stop();
    const error = new PintleError(`nothing arrived for ${this.#ms / 1000} s`, { isRetryable: true });
    this.#timer = setTimeout(() => this.#controller.abort(error), this.#ms);
  }

  /** Stops the timer. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Ends the request, if it has not ended, and releases the caller's signal. */
  close(): void {
    this.stop();
    this.#outer?.removeEventListener("abort", this.#abort);
    this.#controller.abort();
  }
}
