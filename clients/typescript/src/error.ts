import type { components } from "./schema.js";

/** Problem details (RFC 9457). */
export type Problem = components["schemas"]["Problem"];

const RETRYABLE = [502, 503, 504];

interface PintleErrorOptions {
  status?: number;
  problem?: Problem | undefined;
  retryAfter?: number | undefined;
  isRetryable?: boolean;
  cause?: unknown;
}

/** A request that failed, or a stream that cannot continue. */
export class PintleError extends Error {
  override readonly name = "PintleError";
  /** HTTP status; `undefined` without a complete response. */
  readonly status: number | undefined;
  /** Problem details of the server; `undefined` without a response, and for a response of a proxy. */
  readonly problem: Problem | undefined;
  /** Time to wait before the next attempt, in milliseconds, if the response has a `retry-after`. */
  readonly retryAfter: number | undefined;
  /**
   * Whether the same request may succeed later: the connection failed, the status is 502, 503 or 504, or it is 429 and there is
   * a `retry-after`.
   */
  readonly isRetryable: boolean;
  /** Number of times that the request was sent. */
  attempts = 1;

  /** @internal */
  constructor(message: string, { status, problem, retryAfter, isRetryable, cause }: PintleErrorOptions = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    this.problem = problem;
    this.retryAfter = retryAfter;
    this.isRetryable = isRetryable ?? (status === 429 ? retryAfter !== undefined : RETRYABLE.includes(status ?? 0));
  }

  /** Kind of the problem, such as `not_found` or `conflict`. */
  get code(): string | undefined {
    return this.problem?.type.split("/").pop();
  }

  /** Creates the error of a failed connection. @internal */
  static ofConnection(cause: unknown): PintleError {
    return new PintleError("the connection to the server failed", { isRetryable: true, cause });
  }

  /** Creates the error of an unsuccessful response. @internal */
  static async ofResponse(response: Response): Promise<PintleError> {
    const { status, headers } = response;
    let problem: Problem | undefined;
    if (headers.get("content-type")?.startsWith("application/problem+json")) {
      const body: unknown = await response.json().catch(() => undefined);
      if (isProblem(body)) problem = body;
    } else {
      await response.body?.cancel().catch(() => {});
    }
    const message = problem?.detail ?? `the server responded with status ${status}`;
    return new PintleError(message, { status, problem, retryAfter: parseRetryAfter(headers.get("retry-after")) });
  }

  /** Creates the error of a problem within a stream. @internal */
  static ofProblem(problem: Problem): PintleError {
    return new PintleError(problem.detail, { status: problem.status, problem });
  }
}

/** Returns whether these are problem details of the server, rather than of a proxy. */
function isProblem(body: unknown): body is Problem {
  if (typeof body !== "object" || body === null) return false;
  return "type" in body && typeof body.type === "string" && "detail" in body && typeof body.detail === "string";
}

/** Parses seconds or a date to milliseconds from now. */
function parseRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  const time = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(time) ? undefined : Math.max(0, time);
}
