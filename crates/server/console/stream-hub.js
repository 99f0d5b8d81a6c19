// Follows the streams of several readers in one connection. A browser opens six connections to a server for all its tabs.

/**
 * @typedef {(name: string, data: string|undefined, id: string) => void} Receive called for each message: its name, its data, and its id or an empty text
 *
 * @typedef {object} Subscription
 * @property {string} source `sessions`, `session:ID` or `task:ID`
 * @property {string} lastId
 * @property {Receive} receive
 * @property {boolean} isFollowed whether the newest connection has its stream
 *
 * @typedef {[name: string, subscription: Subscription]} Entry
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
    /** @type {import("./stream.js").Source|null} the newest connection */
    this.connection = null;
    /** @type {import("./stream.js").Source|null} the connection that is open: an older one until the newest is open */
    this.opened = null;
    /** @type {Map<string, string[]>} names of the subscriptions of each stream of the newest connection */
    this.streams = new Map();
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
    this.subscriptions.set(name, { source, lastId: source === "sessions" ? "" : lastId, receive, isFollowed: false });
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
    this.opened?.close();
    this.connection = null;
    this.opened = null;
    this.streams = new Map();
    this.timers.clear(this.timer);
    this.due = Infinity;
  }

  connect() {
    this.timers.clear(this.timer);
    this.due = Infinity;
    const all = this.group();
    for (const [name, { receive }] of all.slice(MAX_STREAMS).flat()) {
      this.subscriptions.delete(name);
      // Its reader tries again later. The streams of the others continue.
      receive("error", undefined, "");
    }
    if (this.isFollowed()) return;
    // One that is not open yet is not needed any more.
    if (this.connection !== this.opened) this.connection?.close();
    const groups = all.slice(0, MAX_STREAMS);
    const follow = groups.map(([[name, { source, lastId }]]) => `${name}:${source}${lastId ? `@${lastId}` : ""}`);
    const connection = this.options.open(`/v1/streams?follow=${encodeURIComponent(follow.join(","))}`);
    const streams = new Map(groups.map((group) => [group[0][0], group.map(([name]) => name)]));
    for (const [, subscription] of groups.flat()) subscription.isFollowed = true;
    this.connection = connection;
    this.streams = streams;
    /** @param {string} type @param {(event: any) => void} listener */
    const on = (type, listener) => connection.addEventListener(type, (event) => {
      if (this.connection === connection || this.opened === connection) listener(event);
    });
    on("open", () => {
      if (this.opened !== connection) this.opened?.close();
      this.opened = connection;
      this.broadcast("open");
    });
    on("heartbeat", () => this.broadcast("heartbeat"));
    on("followed", (event) => this.receive(streams, event.data, this.connection !== connection));
    // A connection that is opened again by the browser would begin at the events of its first opening.
    on("error", () => this.fail());
  }

  /**
   * Returns the subscriptions of each stream. Those of the same source that have the same events share one.
   * @returns {Entry[][]}
   */
  group() {
    /** @type {Map<string, Entry[]>} */
    const groups = new Map();
    for (const entry of this.subscriptions) {
      const [, { source, lastId }] = entry;
      const key = `${source}@${lastId}`;
      const group = groups.get(key);
      if (group) group.push(entry);
      else groups.set(key, [entry]);
    }
    return [...groups.values()];
  }

  /** Returns whether the newest connection has the streams of all subscriptions, and no others. */
  isFollowed() {
    const isRead = (/** @type {string[]} */ names) => names.some((name) => this.subscriptions.has(name));
    const isComplete = [...this.subscriptions.values()].every((subscription) => subscription.isFollowed);
    return this.connection !== null && isComplete && [...this.streams.values()].every(isRead);
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
   * Passes a message on to its readers. The first line of its data names the stream, the second one is the data of the message.
   * @param {Map<string, string[]>} streams those of the connection
   * @param {string} text
   * @param {boolean} isReplaced whether the connection is open until a newer one is
   */
  receive(streams, text, isReplaced) {
    const end = text.indexOf("\n");
    const head = JSON.parse(text.slice(0, end));
    for (const name of streams.get(head.stream) ?? []) {
      const subscription = this.subscriptions.get(name);
      if (!subscription) continue;
      // The newer connection sends events with ids again, but no changes of sessions.
      if (isReplaced && subscription.source !== "sessions") continue;
      if (head.id) subscription.lastId = head.id;
      if (head.name === "reset") subscription.lastId = "";
      subscription.receive(head.name, text.slice(end + 1), head.id ?? "");
    }
  }
}
