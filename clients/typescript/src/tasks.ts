import { PintleError, type Problem } from "./error.js";
import { reasonOf } from "./events.js";
import { parseJson } from "./json.js";
import type { Message } from "./sse.js";
import type { Subscription } from "./subscription.js";
import type { ApiRequest } from "./transport.js";

/** Identity of a step of a task. */
export interface TaskStep {
  kind: "baseline" | "anchor" | "work" | "evidence" | "review" | "plan";
  /** Number of the candidate, from 0. */
  candidate?: number;
  /** Number of the attempt, from 1. */
  attempt: number;
  /** Number of the round of the plan, from 1. Absent outside of rounds. */
  round?: number;
}

/** Input of a task. What a step has found is in the form of the journal. */
export type TaskInput =
  | { began: TaskStep }
  | {
      finished: {
        step: TaskStep;
        found: Record<string, unknown>;
        spent: {
          usd: number;
          is_price_unknown: boolean;
          tokens: number;
          millis: number;
          /** Costs of each model, by its name. */
          models?: Record<string, { usd: number; is_price_unknown: boolean; tokens: number }>;
        };
      };
    }
  | { said: Record<string, unknown> };

/** Item of the stream of a task. */
export type TaskItem =
  /** An input. A stream with `after: id` continues behind it. */
  | { type: "input"; id: string; input: TaskInput }
  /** Inputs that were received are not on record. Drop all of them: the stream restarts with the first one. */
  | { type: "reset"; reason: string }
  /** Everything that had happened before the connection was made has been received. Follows each reconnect, too. */
  | { type: "ready" }
  /** The task has ended, in this state, such as `done`. The stream ends. */
  | { type: "end"; state: string };

/** Inputs of one task. */
export class TaskSubscription implements Subscription<TaskItem> {
  readonly #path: string;
  /** Id of the last input that was received. */
  #last: string | undefined;
  #hasEnded = false;

  constructor(path: string, after?: string) {
    this.#path = path;
    this.#last = after;
  }

  request(): ApiRequest {
    return { method: "GET", path: this.#path, query: { after: this.#last } };
  }

  receive({ name, id, data }: Message): TaskItem | undefined {
    switch (name) {
      case "message":
        this.#last = id ?? "";
        return { type: "input", id: this.#last, input: parseJson(data) };
      case "reset":
        this.#last = undefined;
        return { type: "reset", reason: reasonOf(data) };
      case "problem":
        throw PintleError.ofProblem(parseJson<Problem>(data));
      case "ready":
        return { type: "ready" };
      case "end":
        this.#hasEnded = true;
        return { type: "end", state: parseJson<{ state: string }>(data).state };
      default:
        return undefined;
    }
  }

  hasEnded(): boolean {
    return this.#hasEnded;
  }
}
