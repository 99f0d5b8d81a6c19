// Calls the interface of the server. Its paths start at the page, which an application can mount under any path.

/**
 * @import { Task, TaskDetail } from "./tasks.js"
 * @import { Approval, Checkpoint, Decision, HistoryTurn, Message, Model, Session } from "./types.js"
 */

export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {any} problem problem details
   */
  constructor(status, problem) {
    super(problem?.detail || problem?.title || (status === 0 ? "the server does not answer" : `the server answered ${status}`));
    this.status = status;
    this.problem = problem;
  }
}

const RETRIES = 3;

/** Returns a key that no other request has. `crypto.randomUUID` needs HTTPS, this does not. */
function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Called when the server does not know who we are. */
let unauthorized = () => {};

/** @param {() => void} run */
export function onUnauthorized(run) {
  unauthorized = run;
}

/**
 * Sends a request. One that changes something is repeated with the same key if the connection fails.
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<Response>}
 */
async function send(method, path, body) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  if (method !== "GET") headers["Idempotency-Key"] = newKey();
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const init = { method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: /** @type {const} */ ("same-origin") };
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await fetch(`.${path}`, init);
      if (response.ok) return response;
      if (response.status === 401 && path !== "/v1/login") unauthorized();
      throw new ApiError(response.status, await response.json().catch(() => null));
    } catch (error) {
      const again = !(error instanceof ApiError) || [502, 503, 504].includes(error.status);
      if (!again) throw error;
      if (attempt === RETRIES) throw error instanceof ApiError ? error : new ApiError(0, null);
      await new Promise((resolve) => setTimeout(resolve, 300 * 3 ** attempt));
    }
  }
}

/** @param {string} path */
async function get(path) {
  return (await send("GET", path)).json();
}

/**
 * Returns the value that the server has at a path, or null if it has none: that of a session without a record, or of a part
 * of the interface that this server lacks.
 * @param {string} path
 */
function getIfThere(path) {
  return get(path).catch((error) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });
}

/** @param {string} id */
function at(id) {
  return `/v1/sessions/${encodeURIComponent(id)}`;
}

/** @param {string} token */
export async function login(token) {
  await send("POST", "/v1/login", { token });
}

/** @returns {Promise<import("./scopes.js").Scope[]|null>} null if the server does not name them */
export const scopes = async () => (await getIfThere("/v1/token"))?.scopes ?? null;

/**
 * @param {{cursor?: string, search?: string, state?: string}} query
 * @returns {Promise<{sessions: Session[], next?: string}>}
 */
export function sessions(query) {
  const parameters = new URLSearchParams({ limit: "50" });
  for (const [name, value] of Object.entries(query)) if (value) parameters.set(name, value);
  return get(`/v1/sessions?${parameters}`);
}

/** @param {string} id @returns {Promise<Session>} */
export const session = (id) => get(at(id));

/** @param {Record<string, unknown>} options @returns {Promise<Session>} */
export const create = async (options) => (await send("POST", "/v1/sessions", options)).json();

/** @param {string} id */
export const remove = (id) => send("DELETE", at(id));

/** @param {string} id @param {"submit"|"say"|"follow-up"} how @param {Message} message */
export const say = (id, how, message) => send("POST", `${at(id)}/${how}`, message);

/** @param {string} id @param {"interrupt"|"abort"|"compact"} what */
export const control = (id, what) => send("POST", `${at(id)}/${what}`);

/** @param {string} id @param {{model?: string, mode?: string, effort?: string}} change @returns {Promise<Session>} */
export const patch = async (id, change) => (await send("PATCH", at(id), change)).json();

/** @param {string} id @param {number} turns @returns {Promise<Session>} */
export const fork = async (id, turns) => (await send("POST", `${at(id)}/fork`, { turns })).json();

/** @param {string} id @param {number} turns */
export const rewind = (id, turns) => send("POST", `${at(id)}/rewind`, { turns });

/** @param {string} id @returns {Promise<{turns: HistoryTurn[], damage?: string}>} */
export const wholeHistory = async (id) => (await getIfThere(`${at(id)}/history`)) ?? { turns: [] };

/** @param {string} id @returns {Promise<HistoryTurn[]>} */
export const history = async (id) => (await wholeHistory(id)).turns;

/** @param {string} id @returns {Promise<Approval[]>} */
export const approvals = async (id) => (await getIfThere(`${at(id)}/approvals`))?.approvals ?? [];

/** @param {Approval} approval @param {Decision} decision */
export const decide = (approval, decision) =>
  send("POST", `${at(approval.session)}/approvals/${encodeURIComponent(approval.call_id)}`, { fingerprint: approval.fingerprint, ...decision });

/** @param {string} id @returns {Promise<any[]|null>} null if the server does not compare the workspace */
export const diff = async (id) => (await getIfThere(`${at(id)}/diff`))?.files ?? null;

/** @param {string} id @returns {Promise<Checkpoint[]>} */
export const checkpoints = async (id) => (await getIfThere(`${at(id)}/checkpoints`))?.checkpoints ?? [];

/**
 * Restores the files of a session as they were at a checkpoint.
 * @param {string} id
 * @param {{checkpoint: string, force?: boolean, dry_run?: boolean}} request
 * @returns {Promise<import("./types.js").RestoreReport>}
 */
export const restore = async (id, request) => (await send("POST", `${at(id)}/restore`, request)).json();

/** @param {string} id */
const ofTask = (id) => `/v1/tasks/${encodeURIComponent(id)}`;

/** @param {string} [cursor] @returns {Promise<{tasks: Task[], next?: string}|null>} null if the server shows no tasks */
export const tasks = (cursor) => getIfThere(`/v1/tasks${cursor ? `?cursor=${encodeURIComponent(cursor)}` : ""}`);

/** @param {string} id @returns {Promise<TaskDetail>} */
export const task = (id) => get(ofTask(id));

/** @param {string} id @param {number} candidate */
export const taskDiff = async (id, candidate) => (await send("GET", `${ofTask(id)}/candidates/${candidate}/diff`)).text();

/** @param {string} id @param {string} text @param {number|null} candidate null for all */
export const steerTask = (id, text, candidate) => send("POST", `${ofTask(id)}/steer`, { text, candidate: candidate ?? undefined });

/** @param {string} id @param {{name: string, place: number}} gate @param {{decision: "approve"|"refuse", words?: string}} decision */
export const decideTask = (id, { name, place }, decision) => send("POST", `${ofTask(id)}/decide`, { gate: name, place, ...decision });

/** @param {string} id */
export const cancelTask = (id) => send("POST", `${ofTask(id)}/cancel`, {});

/** @param {string} id */
export const taskEventsUrl = (id) => `${ofTask(id)}/events`;

/** @param {string} id */
export const taskReportUrl = (id) => `.${ofTask(id)}/report`;

/** @returns {Promise<Model[]>} */
export const models = async () => (await get("/v1/models")).models ?? [];

/** @param {string} id */
export const eventsUrl = (id) => `${at(id)}/events`;

/** @param {string} id @param {string} hash */
export const blobUrl = (id, hash) => `.${at(id)}/blobs/${encodeURIComponent(hash)}`;

/** @param {string} id */
export const journalUrl = (id) => `.${at(id)}/journal`;
