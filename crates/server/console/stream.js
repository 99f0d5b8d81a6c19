// Follows a stream of server-sent events through cuts, restarts and resets.

/**
 * @typedef {object} Source the part of an EventSource that is used here
 * @property {number} readyState
 * @property {(type: string, listener: (event: any) => void) => void} addEventListener
 * @property {() => void} close
 *
 * @typedef {object} Options
 * @property {string} url
 * @property {(url: string) => Source} open
 * @property {(type: string, data: any) => void} receive called for each message with its name: for an unnamed one "message" and its text, for the others their parsed data
 * @property {(status: "connecting"|"open"|"waiting"|"closed") => void} [changed]
 * @property {() => void} [restored] called when a stream that was not connected is ready
 * @property {() => Promise<boolean>} [allowed] asked before a closed stream is opened again; false stops it
 * @property {string[]} [names] named events besides `ready`, `reset` and `heartbeat`
 * @property {{set: (run: () => void, ms: number) => any, clear: (timer: any) => void}} [timers]
 */

const CLOSED = 2;
const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;
const SILENCE = 45_000;
const NAMES = ["message", "ready", "heartbeat", "reset", "problem"];

/**
 * Returns how long to wait before a number of attempts in a row.
 * @param {number} attempt from 0
 */
export function delayOf(attempt) {
  return Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** Math.min(attempt, 10));
}

/**
 * Returns the address that continues a stream after an event.
 * @param {string} url
 * @param {string} lastId
 */
export function continued(url, lastId) {
  if (lastId === "") return url;
  return `${url}${url.includes("?") ? "&" : "?"}after=${encodeURIComponent(lastId)}`;
}

export class Stream {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    this.timers = options.timers ?? {
      set: (run, ms) => setTimeout(run, ms),
      clear: (timer) => clearTimeout(timer),
    };
    this.lastId = "";
    this.attempt = 0;
    this.stopped = true;
    /** @type {Source|null} */
    this.source = null;
    this.retry = null;
    this.watchdog = null;
    this.heard = false;
    this.isLost = true;
  }

  start() {
    if (!this.stopped) return;
    this.stopped = false;
    this.connect();
  }

  stop() {
    this.stopped = true;
    this.disconnect();
    this.options.changed?.("closed");
  }

  /** Closes the source and forgets its timers. */
  disconnect() {
    this.source?.close();
    this.source = null;
    this.timers.clear(this.retry);
    this.timers.clear(this.watchdog);
  }

  connect() {
    this.disconnect();
    this.isLost = true;
    this.options.changed?.("connecting");
    const source = this.options.open(continued(this.options.url, this.lastId));
    this.source = source;
    for (const name of [...NAMES, ...(this.options.names ?? [])]) {
      source.addEventListener(name, (event) => {
        if (this.source === source) this.receive(name, event);
      });
    }
    source.addEventListener("open", () => {
      if (this.source === source) this.opened();
    });
    source.addEventListener("error", () => {
      if (this.source === source) this.failed(source);
    });
    this.watch();
  }

  opened() {
    this.options.changed?.("open");
    this.heard = true;
  }

  /**
   * @param {string} name
   * @param {any} event
   */
  receive(name, event) {
    // A connection that brings nothing but a problem has failed.
    if (name !== "problem") this.attempt = 0;
    this.heard = true;
    if (name === "heartbeat") return;
    if (name === "message") {
      if (event.lastEventId) this.lastId = event.lastEventId;
      if (event.data) this.options.receive(name, event.data);
      return;
    }
    if (name === "reset") this.lastId = "";
    this.options.receive(name, parsed(event.data));
    if (name === "ready" && this.isLost) {
      this.isLost = false;
      this.options.restored?.();
    }
    if (name === "reset" || name === "problem") this.replace();
  }

  /**
   * An open source connects again by itself; one that is closed has to be replaced.
   * @param {Source} source
   */
  failed(source) {
    if (source.readyState !== CLOSED) {
      this.isLost = true;
      this.options.changed?.("connecting");
      return;
    }
    this.replace();
  }

  replace() {
    this.disconnect();
    if (this.stopped) return;
    this.options.changed?.("waiting");
    this.retry = this.timers.set(() => void this.again(), delayOf(this.attempt));
    this.attempt += 1;
  }

  async again() {
    const allowed = this.options.allowed ? await this.options.allowed().catch(() => true) : true;
    if (this.stopped) return;
    if (allowed) this.connect();
    else this.stop();
  }

  /** Replaces the source if nothing arrives for a while, not even a heartbeat. A timer for each message would cost too much. */
  watch() {
    this.heard = false;
    this.watchdog = this.timers.set(() => (this.heard ? this.watch() : this.replace()), SILENCE);
  }
}

/**
 * Returns the value of a JSON text, or undefined if it is none.
 * @param {unknown} data
 */
export function parsed(data) {
  if (typeof data !== "string" || data === "") return undefined;
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
