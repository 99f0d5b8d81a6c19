// Follows the streams of several readers in one connection. A browser opens six connections to a server for all its tabs.

/**
 * @typedef {(name: string, data: string|undefined, id: string) => void} Receive called for each message: its name, its data, and its id or an empty text
 *
 * @typedef {object} Subscription
 * @property {string} source `sessions`, `session:ID` or `task:ID`
 * @property {string} lastId
 * @property {Receive} receive
 *
 * @typedef {object} Options
 * @property {(url: string) => import("./stream.js").Source} open
 * @property {{set: (run: () => void, ms: number) => any, clear: (timer: any) => void}} [timers]
 */

/** Most streams that the server takes in one connection. */
const MAX_STREAMS = 100;

/** Time in which subscriptions are gathered before the connection is replaced. */
const GATHER = 20;

/** Time for which the connection keeps streams that have no reader. */
const KEEP = 5_000;

/**
 * Returns the stream that an address names, and the event after which it begins.
 * @param {string} url
 * @returns {{source: string, lastId: string}|null}
 */
export function streamOf(url) {
  const [path, query] = url.split("?");
  const lastId = new URLSearchParams(query ?? "").get("after") ?? "";
  if (path === "/v1/events") return { source: "sessions", lastId };
  const match = /^\/v1\/(session|task)s\/([^/]+)\/events$/.exec(path);
  return match ? { source: `${match[1]}:${decodeURIComponent(match[2])}`, lastId } : null;
}

export class StreamHub {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    this.timers = options.timers ?? {
      set: (run, ms) => setTimeout(run, ms),
      clear: (timer) => clearTimeout(timer),
    };
    /** @type {Map<string, Subscription>} */
    this.subscriptions = new Map();
    this.count = 0;
    /** @type {import("./stream.js").Source|null} */
    this.connection = null;
    this.timer = null;
    this.due = Infinity;
  }

  /**
   * Follows a stream after an event. Returns a function that ends the subscription.
   * @param {string} source
   * @param {string} lastId
   * @param {Receive} receive
   */
  subscribe(source, lastId, receive) {
    this.count += 1;
    const name = String(this.count);
    this.subscriptions.set(name, { source, lastId, receive });
    this.schedule(GATHER);
    return () => {
      if (!this.subscriptions.delete(name)) return;
      if (this.subscriptions.size === 0) this.disconnect();
      else this.schedule(KEEP);
    };
  }

  /**
   * Replaces the connection after a time, or earlier if that is planned.
   * @param {number} ms
   */
  schedule(ms) {
    if (ms >= this.due) return;
    this.timers.clear(this.timer);
    this.due = ms;
    this.timer = this.timers.set(() => this.connect(), ms);
  }

  disconnect() {
    this.connection?.close();
    this.connection = null;
    this.timers.clear(this.timer);
    this.due = Infinity;
  }

  connect() {
    this.disconnect();
    if (this.subscriptions.size === 0) return;
    const newest = [...this.subscriptions].slice(-MAX_STREAMS);
    const follow = newest.map(([name, { source, lastId }]) => `${name}:${source}${lastId && source !== "sessions" ? `@${lastId}` : ""}`);
    const connection = this.options.open(`/v1/streams?follow=${encodeURIComponent(follow.join(","))}`);
    this.connection = connection;
    /** @param {string} type @param {(event: any) => void} listener */
    const on = (type, listener) => connection.addEventListener(type, (event) => {
      if (this.connection === connection) listener(event);
    });
    on("open", () => this.broadcast("open"));
    on("heartbeat", () => this.broadcast("heartbeat"));
    on("followed", (event) => this.receive(event.data));
    // A connection that is opened again by the browser would begin at the events of its first opening.
    on("error", () => this.fail());
  }

  /** Ends all subscriptions. Their readers subscribe again. */
  fail() {
    const failed = [...this.subscriptions.values()];
    this.subscriptions.clear();
    this.disconnect();
    for (const { receive } of failed) receive("error", undefined, "");
  }

  /** @param {string} name */
  broadcast(name) {
    for (const { receive } of [...this.subscriptions.values()]) receive(name, undefined, "");
  }

  /**
   * Passes a message on to its reader. The first line of its data names the stream, the second one is the data of the message.
   * @param {string} text
   */
  receive(text) {
    const end = text.indexOf("\n");
    const head = JSON.parse(text.slice(0, end));
    const subscription = this.subscriptions.get(head.stream);
    if (!subscription) return;
    if (head.id) subscription.lastId = head.id;
    if (head.name === "reset") subscription.lastId = "";
    subscription.receive(head.name, text.slice(end + 1), head.id ?? "");
  }
}
