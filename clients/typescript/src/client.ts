import { PintleError } from "./error.js";
import { ChangeSubscription, SessionSubscription, type ChangeItem, type SessionItem } from "./events.js";
import { TaskSubscription, type TaskItem } from "./tasks.js";
import { readJournal, type JournalLine, type JournalRange } from "./journal.js";
import { parseJson } from "./json.js";
import type { components, operations } from "./schema.js";
import { subscribe, type StreamOptions } from "./subscription.js";
import { Transport, type ApiRequest, type ClientOptions } from "./transport.js";

type Schemas = components["schemas"];

/** A session. */
export type Session = Schemas["SessionView"];
/** A page of a list of sessions. */
export type SessionList = Schemas["SessionList"];
/** A session to create. */
export type NewSession = Schemas["CreateBody"];
/** Settings to change. */
export type SettingsChange = Schemas["ChangeBody"];
/** A message, with text or images. */
export type UserMessage = Schemas["MessageBody"];
/** A call that waits for a decision. */
export type Approval = Schemas["ApprovalView"];
/** A decision on a call. */
export type Decision = Schemas["DecisionBody"];
/** An entry of the conversation. */
export type Turn = Schemas["TurnView"];
/** A state of the files that can be restored. */
export type Checkpoint = Schemas["CheckpointView"];
/** Changes of files. */
export type Diff = Schemas["DiffView"];
/** Changes of one file. */
export type FileDiff = Schemas["FileView"];
/** Point with which files are compared: before the changes after so many entries of the history, or a checkpoint. */
export type DiffQuery = NonNullable<operations["diff"]["parameters"]["query"]>;
/** A restore of files. */
export type Restore = Schemas["RestoreBody"];
/** Effects of a restore. */
export type RestoreReport = Schemas["RestoreReport"];
/** Format of an exported session. */
export type ExportFormat = NonNullable<NonNullable<operations["exportSession"]["parameters"]["query"]>["format"]>;
/** Format of an audit. */
export type AuditFormat = NonNullable<NonNullable<operations["auditSession"]["parameters"]["query"]>["format"]>;
/** A model that sessions can use. */
export type Model = Schemas["ModelSummary"];
/** A tool that the model of a session is offered. */
export type Tool = Schemas["ToolView"];
/** Cost by day and model. */
export type CostReport = Schemas["CostReport"];
/** A task with evidence. */
export type Task = Schemas["TaskView"];
/** A page of a list of tasks. */
export type TaskList = Schemas["TaskList"];
/** A task, with its report and the gate that waits for a person. */
export type TaskDetail = Schemas["TaskDetail"];
/** Words to the candidates of a task. */
export type TaskSteer = Schemas["SteerBody"];
/** A decision on a gate of a task. */
export type GateDecision = Schemas["DecideBody"];
/** Part of the list of tasks. */
export type TaskListQuery = NonNullable<operations["listTasks"]["parameters"]["query"]>;
/** Which sessions a list has. */
export type ListQuery = NonNullable<operations["listSessions"]["parameters"]["query"]>;

/** Options of a request. */
export interface CallOptions {
  /** Aborts the request, and its repetitions. */
  signal?: AbortSignal | undefined;
}

/** Options of a request that changes something. */
export interface ChangeOptions extends CallOptions {
  /** Key by which the server knows a request that is sent again. Default: a new one for each call of a method. */
  idempotencyKey?: string | undefined;
}

/** Range of bytes, both ends included. */
export interface ByteRange {
  first: number;
  last?: number;
}

/** Body of the response of an operation. */
type Result<Name extends keyof operations> = operations[Name]["responses"] extends Record<
  200,
  { content: { "application/json": infer Body } }
>
  ? Body
  : undefined;

/** Puts the values of parameters into a path. */
function pathOf(template: string, parameters: Record<string, string>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = parameters[name] ?? "";
    // These would name another path.
    if (value === "" || value === "." || value === "..") throw new TypeError(`${name}: expected an id, not "${value}"`);
    return encodeURIComponent(value);
  });
}

/** Returns a key that no other request has. `crypto.randomUUID` needs HTTPS in browsers. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Client of a server of sessions.
 *
 * All methods throw a {@link PintleError} for a failure, and the reason of the signal if it is aborted. Requests are repeated
 * after a failure of the connection, a status 502, 503 or 504, and a status 429 with `retry-after`. Those that change something
 * keep their idempotency key.
 */
export class PintleClient {
  readonly #transport: Transport;

  constructor(options: ClientOptions) {
    this.#transport = new Transport(options);
  }

  /** Lists sessions, the newest change first. */
  listSessions(query: ListQuery = {}, options?: CallOptions): Promise<SessionList> {
    return this.#get<"listSessions">({ path: "/v1/sessions", query, ...options });
  }

  /** Creates a session. */
  createSession(session: NewSession = {}, options?: ChangeOptions): Promise<Session> {
    return this.#change<"createSession">("POST", "/v1/sessions", session, options);
  }

  /** Reads a session. */
  readSession(id: string, options?: CallOptions): Promise<Session> {
    return this.#get<"readSession">({ path: pathOf("/v1/sessions/{id}", { id }), ...options });
  }

  /** Changes the settings of a session. */
  changeSession(id: string, change: SettingsChange, options?: ChangeOptions): Promise<Session> {
    return this.#change<"changeSession">("PATCH", pathOf("/v1/sessions/{id}", { id }), change, options);
  }

  /** Deletes a session with its record. */
  async deleteSession(id: string, options?: ChangeOptions): Promise<void> {
    try {
      await this.#change<"deleteSession">("DELETE", pathOf("/v1/sessions/{id}", { id }), undefined, options);
    } catch (error) {
      // An earlier attempt has deleted it, its response was lost, and the server was restarted since.
      if (!(error instanceof PintleError && error.code === "not_found" && error.attempts > 1)) throw error;
    }
  }

  /** Creates a session that begins with the first `turns` entries of the history of another. */
  forkSession(id: string, turns: number, options?: ChangeOptions): Promise<Session> {
    return this.#change<"forkSession">("POST", pathOf("/v1/sessions/{id}/fork", { id }), { turns }, options);
  }

  /** Sends the next message. During a run, it waits for the end of the run. */
  submit(id: string, message: UserMessage, options?: ChangeOptions): Promise<void> {
    return this.#change<"submit">("POST", pathOf("/v1/sessions/{id}/submit", { id }), message, options);
  }

  /** Sends a message that waits for the end of the run. */
  followUp(id: string, message: UserMessage, options?: ChangeOptions): Promise<void> {
    return this.#change<"followUp">("POST", pathOf("/v1/sessions/{id}/follow-up", { id }), message, options);
  }

  /** Sends a message into the current run, or as the beginning of one. */
  say(id: string, message: UserMessage, options?: ChangeOptions): Promise<void> {
    return this.#change<"say">("POST", pathOf("/v1/sessions/{id}/say", { id }), message, options);
  }

  /** Sends a message into the current run. Without one, it goes with the next message. */
  steer(id: string, message: UserMessage, options?: ChangeOptions): Promise<void> {
    return this.#change<"steer">("POST", pathOf("/v1/sessions/{id}/steer", { id }), message, options);
  }

  /** Stops the run and keeps the session. */
  interrupt(id: string, options?: ChangeOptions): Promise<void> {
    return this.#change<"interrupt">("POST", pathOf("/v1/sessions/{id}/interrupt", { id }), undefined, options);
  }

  /** Stops everything and closes the session for good. */
  abort(id: string, options?: ChangeOptions): Promise<void> {
    return this.#change<"abort">("POST", pathOf("/v1/sessions/{id}/abort", { id }), undefined, options);
  }

  /** Summarizes the older part of the conversation. */
  compact(id: string, options?: ChangeOptions): Promise<void> {
    return this.#change<"compact">("POST", pathOf("/v1/sessions/{id}/compact", { id }), undefined, options);
  }

  /** Goes back to the first `turns` entries of the history. */
  rewind(id: string, turns: number, options?: ChangeOptions): Promise<void> {
    return this.#change<"rewind">("POST", pathOf("/v1/sessions/{id}/rewind", { id }), { turns }, options);
  }

  /** Lists the calls that wait for a decision. */
  listApprovals(id: string, options?: CallOptions): Promise<{ approvals: Approval[] }> {
    return this.#get<"listApprovals">({ path: pathOf("/v1/sessions/{id}/approvals", { id }), ...options });
  }

  /** Decides on a call. Only the first decision counts; a later one fails with the status 409. */
  decide(id: string, callId: string, decision: Decision, options?: ChangeOptions): Promise<void> {
    const path = pathOf("/v1/sessions/{id}/approvals/{call_id}", { id, call_id: callId });
    return this.#change<"decide">("POST", path, decision, options);
  }

  /** Reads the conversation. */
  readHistory(id: string, options?: CallOptions): Promise<{ turns: Turn[] }> {
    return this.#get<"readHistory">({ path: pathOf("/v1/sessions/{id}/history", { id }), ...options });
  }

  /** Reads the lines of the journal. Continues after the last line if the connection fails. */
  readJournal(id: string, options: JournalRange & CallOptions = {}): AsyncGenerator<JournalLine, void, undefined> {
    return readJournal(this.#transport, pathOf("/v1/sessions/{id}/journal", { id }), options);
  }

  /** Reads a large value of the journal, or a range of its bytes. */
  readBlob(id: string, hash: string, options: { range?: ByteRange } & CallOptions = {}): Promise<Uint8Array> {
    const { range, signal } = options;
    const path = pathOf("/v1/sessions/{id}/blobs/{hash}", { id, hash });
    const headers = range ? { range: `bytes=${range.first}-${range.last ?? ""}` } : {};
    const request = { method: "GET", path, headers, signal };
    return this.#transport.call(request, async (response) => new Uint8Array(await response.arrayBuffer()));
  }

  /** Lists the states of the files that can be restored. */
  listCheckpoints(id: string, options?: CallOptions): Promise<{ checkpoints: Checkpoint[] }> {
    return this.#get<"listCheckpoints">({ path: pathOf("/v1/sessions/{id}/checkpoints", { id }), ...options });
  }

  /** Compares the files with an earlier state: by default, that before all changes. */
  diff(id: string, since: DiffQuery = {}, options?: CallOptions): Promise<Diff> {
    return this.#get<"diff">({ path: pathOf("/v1/sessions/{id}/diff", { id }), query: since, ...options });
  }

  /** Restores files, or reports what a restore would do. */
  restore(id: string, restore: Restore, options?: ChangeOptions): Promise<RestoreReport> {
    return this.#change<"restore">("POST", pathOf("/v1/sessions/{id}/restore", { id }), restore, options);
  }

  /** Reads the session as one document. The default format is `jsonl`. */
  exportSession(id: string, { format, signal }: { format?: ExportFormat | undefined } & CallOptions = {}): Promise<string> {
    return this.#text({ method: "GET", path: pathOf("/v1/sessions/{id}/export", { id }), query: { format }, signal });
  }

  /** Reads who asked for each call, who allowed it, and what it did. The default format is `json`. */
  auditSession(id: string, { format, signal }: { format?: AuditFormat | undefined } & CallOptions = {}): Promise<string> {
    return this.#text({ method: "GET", path: pathOf("/v1/sessions/{id}/audit", { id }), query: { format }, signal });
  }

  /** Lists models that sessions can use. */
  listModels(options?: CallOptions): Promise<{ models: Model[] }> {
    return this.#get<"listModels">({ path: "/v1/models", ...options });
  }

  /** Lists the tools that the model of a session is offered. */
  listTools(id: string, options?: CallOptions): Promise<{ tools: Tool[] }> {
    return this.#get<"listTools">({ path: pathOf("/v1/sessions/{id}/tools", { id }), ...options });
  }

  /** Reads the cost of the last days, today among them: 1 to 366, and 30 by default. */
  readCosts(days?: number, options?: CallOptions): Promise<CostReport> {
    return this.#get<"readCosts">({ path: "/v1/costs", query: { days }, ...options });
  }

  /** Reads measurements of the server, in the text format of Prometheus. */
  readMetrics(options?: CallOptions): Promise<string> {
    return this.#text({ method: "GET", path: "/v1/metrics", ...options });
  }

  /**
   * Follows the events of a session: from the first one, or behind the one with the id `after`. Reconnects by itself, and ends
   * once the session is deleted or the signal is aborted.
   */
  events(id: string, options: { after?: string } & StreamOptions = {}): AsyncGenerator<SessionItem, void, undefined> {
    const subscription = new SessionSubscription(pathOf("/v1/sessions/{id}/events", { id }), options.after);
    return subscribe(this.#transport, subscription, options);
  }

  /**
   * Follows the changes and deletions of all sessions. Begins with the open ones, reconnects by itself, and ends once the signal
   * is aborted.
   */
  sessionChanges(options: StreamOptions = {}): AsyncGenerator<ChangeItem, void, undefined> {
    return subscribe(this.#transport, new ChangeSubscription(), options);
  }

  /** Lists tasks with evidence, the newest first. */
  listTasks(query: TaskListQuery = {}, options?: CallOptions): Promise<TaskList> {
    return this.#get<"listTasks">({ path: "/v1/tasks", query, ...options });
  }

  /** Reads a task, with its report. */
  readTask(id: string, options?: CallOptions): Promise<TaskDetail> {
    return this.#get<"readTask">({ path: pathOf("/v1/tasks/{id}", { id }), ...options });
  }

  /** Reads the report about a task as Markdown. */
  reportTask(id: string, options?: CallOptions): Promise<string> {
    return this.#text({ method: "GET", path: pathOf("/v1/tasks/{id}/report", { id }), ...options });
  }

  /** Reads the newest changes of a candidate as a patch, on top of the anchor. Fails with 404 as long as there are none. */
  diffCandidate(id: string, candidate: number | string, options?: CallOptions): Promise<string> {
    const path = pathOf("/v1/tasks/{id}/candidates/{candidate}/diff", { id, candidate: String(candidate) });
    return this.#text({ method: "GET", path, ...options });
  }

  /** Says something to one candidate of a task, or to all. */
  steerTask(id: string, steer: TaskSteer, options?: ChangeOptions): Promise<void> {
    return this.#change<"steerTask">("POST", pathOf("/v1/tasks/{id}/steer", { id }), steer, options);
  }

  /** Decides on the gate at which a task waits. Only the first decision counts; a later one fails with the status 409. */
  decideTask(id: string, decision: GateDecision, options?: ChangeOptions): Promise<void> {
    return this.#change<"decideTask">("POST", pathOf("/v1/tasks/{id}/decide", { id }), decision, options);
  }

  /** Stops everything and ends a task for good. The reason is for its report. */
  cancelTask(id: string, reason?: string, options?: ChangeOptions): Promise<void> {
    const body: Schemas["CancelBody"] = reason === undefined ? {} : { reason };
    return this.#change<"cancelTask">("POST", pathOf("/v1/tasks/{id}/cancel", { id }), body, options);
  }

  /**
   * Follows the inputs of a task until it has ended: from the first one, or behind the one with the id `after`. Reconnects by
   * itself, and ends earlier if the signal is aborted.
   */
  taskEvents(id: string, options: { after?: string } & StreamOptions = {}): AsyncGenerator<TaskItem, void, undefined> {
    const subscription = new TaskSubscription(pathOf("/v1/tasks/{id}/events", { id }), options.after);
    return subscribe(this.#transport, subscription, options);
  }

  #get<Name extends keyof operations>(request: Omit<ApiRequest, "method">): Promise<Result<Name>> {
    return this.#call({ method: "GET", ...request });
  }

  #change<Name extends keyof operations>(
    method: string,
    path: string,
    body: unknown,
    { signal, idempotencyKey = newKey() }: ChangeOptions = {},
  ): Promise<Result<Name>> {
    return this.#call({ method, path, headers: { "idempotency-key": idempotencyKey }, body, signal });
  }

  async #call<T>(request: ApiRequest): Promise<T> {
    const text = await this.#text(request);
    return (text === "" ? undefined : parseJson(text)) as T;
  }

  #text(request: ApiRequest): Promise<string> {
    return this.#transport.call(request, (response) => response.text());
  }
}
