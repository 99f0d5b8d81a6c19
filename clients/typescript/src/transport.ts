import { PintleError } from "./error.js";
import { delayAfter, sleep, Watchdog, type Backoff } from "./time.js";

/** Longest `retry-after` that is waited for, in milliseconds. */
export const LONGEST_RETRY_AFTER = 60_000;

/** Options of a client. */
export interface ClientOptions {
  /** Address of the server. The line that `pintle serve` prints will do: a token is read from its fragment. */
  baseUrl: string | URL;
  /**
   * Token, or a function that returns the present one and is called for each attempt: the token that `pintle serve` prints is a
   * new one at every start. A page that has logged in needs none.
   */
  token?: string | (() => string | Promise<string>);
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch;
  /**
   * Number of times that a request is repeated after a failure of the connection, a status 502, 503 or 504, or a status 429 with
   * `retry-after`. Default 4.
   */
  retries?: number;
  /** Delays between attempts, and before a stream reconnects. Default 500 ms to 15 s. */
  backoff?: Backoff;
  /** Time for a request, in milliseconds. Default 60 s. */
  timeout?: number;
  /** Time without a byte after which a stream reconnects, in milliseconds. The server sends a heartbeat every 15 s. Default 45 s. */
  silence?: number;
  /** Longest line of a stream or a journal, in UTF-16 code units. A longer one is an error. Default 64 Mi. */
  maxLine?: number;
}

/** Request to the server. */
export interface ApiRequest {
  method: string;
  /** Path with the values of its parameters in place. */
  path: string;
  query?: Record<string, string | number | null | undefined>;
  headers?: Record<string, string | undefined>;
  body?: unknown;
  signal?: AbortSignal | undefined;
}

/** Sends requests, and repeats those that failed on the way. */
export class Transport {
  readonly backoff: Backoff;
  readonly silence: number;
  readonly maxLine: number;
  readonly #retries: number;
  readonly #base: string;
  readonly #token: () => string | undefined | Promise<string>;
  readonly #fetch: typeof globalThis.fetch;
  readonly #timeout: number;

  constructor(options: ClientOptions) {
    const url = new URL(options.baseUrl);
    const token = options.token ?? new URLSearchParams(url.hash.slice(1)).get("token") ?? undefined;
    url.hash = "";
    url.search = "";
    this.#base = url.href.replace(/\/+$/, "");
    this.#token = typeof token === "function" ? token : () => token;
    // In browsers, `fetch` has to be called on the window.
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#retries = options.retries ?? 4;
    this.backoff = options.backoff ?? { first: 500, longest: 15_000 };
    this.#timeout = options.timeout ?? 60_000;
    this.silence = options.silence ?? 45_000;
    this.maxLine = options.maxLine ?? 64 * 1024 * 1024;
  }

  /**
   * Sends a request once.
   *
   * @throws {PintleError} without a successful response
   */
  async open(request: ApiRequest, signal: AbortSignal): Promise<Response> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined && value !== null) query.set(name, String(value));
    }
    const url = `${this.#base}${request.path}${query.size > 0 ? `?${query}` : ""}`;
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers ?? {})) {
      if (value !== undefined) headers.set(name, value);
    }
    const token = await this.#token();
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    const init: RequestInit = { method: request.method, headers, signal };
    if (request.body !== undefined) {
      headers.set("content-type", "application/json");
      init.body = JSON.stringify(request.body);
    }
    const response = await this.#fetch(url, init).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw PintleError.ofConnection(cause);
    });
    if (!response.ok) throw await PintleError.ofResponse(response);
    return response;
  }

  /** Returns the delay before a request is repeated, in milliseconds, or `undefined` if it has failed for good. */
  retryDelay(failure: PintleError, attempt: number): number | undefined {
    const { isRetryable, retryAfter = 0 } = failure;
    if (attempt > this.#retries || !isRetryable || retryAfter > LONGEST_RETRY_AFTER) return undefined;
    return delayAfter(attempt, this.backoff, retryAfter);
  }

  /**
   * Sends a request until a response has been read, or it has failed for good.
   *
   * @throws {PintleError} after the last attempt; the reason of the signal once it is aborted
   */
  async call<T>(request: ApiRequest, read: (response: Response) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      const watchdog = new Watchdog(this.#timeout, request.signal);
      let failure: PintleError;
      try {
        watchdog.start();
        const response = await this.open(request, watchdog.signal);
        return await read(response).catch((cause: unknown) => {
          watchdog.signal.throwIfAborted();
          throw PintleError.ofConnection(cause);
        });
      } catch (error) {
        request.signal?.throwIfAborted();
        if (!(error instanceof PintleError)) throw error;
        failure = error;
      } finally {
        watchdog.close();
      }
      failure.attempts = attempt;
      const delay = this.retryDelay(failure, attempt);
      if (delay === undefined) throw failure;
      await sleep(delay, request.signal);
    }
  }
}
