// Streams of this tab. They come through a worker that the tabs of the browser share, or through a connection of the tab where
// there are no such workers.

import { StreamHub, streamOf } from "./stream-hub.js";

const OPEN = 1;
const CLOSED = 2;

/** Time in which the worker has to answer. */
const PATIENCE = 3_000;

/** A stream in the form of an EventSource. */
class SharedSource {
  /** @param {(receive: import("./stream-hub.js").Receive) => () => void} subscribe */
  constructor(subscribe) {
    this.readyState = 0;
    /** @type {Map<string, (event: any) => void>} */
    this.listeners = new Map();
    this.end = subscribe((name, data, id) => this.receive(name, data, id));
  }

  /** @param {string} type @param {(event: any) => void} listener */
  addEventListener(type, listener) {
    this.listeners.set(type, listener);
  }

  close() {
    if (this.readyState === CLOSED) return;
    this.readyState = CLOSED;
    this.end();
  }

  /** @param {string} name @param {string|undefined} data @param {string} id */
  receive(name, data, id) {
    if (this.readyState === CLOSED) return;
    if (name === "open") this.readyState = OPEN;
    if (name === "error") this.readyState = CLOSED;
    this.listeners.get(name)?.({ data, lastEventId: id });
  }
}

/** The worker, as a tab uses it. */
class WorkerStreams {
  /** @param {() => void} failed called once if there is no worker */
  constructor(failed) {
    this.failed = failed;
    this.count = 0;
    /** @type {Map<number, import("./stream-hub.js").Receive>} */
    this.receivers = new Map();
    const worker = new SharedWorker("./console/stream-worker.js", { type: "module", name: "pintle streams 1" });
    this.port = worker.port;
    this.timer = setTimeout(() => this.fail(), PATIENCE);
    worker.addEventListener("error", () => this.fail());
    this.port.onmessage = ({ data }) => this.receive(data);
    addEventListener("pagehide", () => this.port.postMessage({ type: "leave" }));
    // The worker has left a page that comes back out of the browser's cache.
    addEventListener("pageshow", (event) => event.persisted && this.drop());
  }

  /** Ends all streams of the tab. They are opened again. */
  drop() {
    const receivers = [...this.receivers.values()];
    this.receivers.clear();
    for (const receive of receivers) receive("error", undefined, "");
  }

  fail() {
    clearTimeout(this.timer);
    this.port.close();
    this.failed();
    this.drop();
  }

  /** @param {any} message */
  receive(message) {
    if (message.type === "hello") clearTimeout(this.timer);
    if (message.type === "check") this.port.postMessage({ type: "here" });
    if (message.type !== "message") return;
    const receive = this.receivers.get(message.key);
    if (message.name === "error") this.receivers.delete(message.key);
    receive?.(message.name, message.text, message.id);
  }

  /**
   * @param {string} source
   * @param {string} lastId
   * @param {import("./stream-hub.js").Receive} receive
   */
  subscribe(source, lastId, receive) {
    this.count += 1;
    const key = this.count;
    this.receivers.set(key, receive);
    this.port.postMessage({ type: "subscribe", key, source, lastId });
    return () => {
      if (this.receivers.delete(key)) this.port.postMessage({ type: "close", key });
    };
  }
}

/** @type {WorkerStreams|StreamHub|null} */
let streams = null;

function own() {
  return new StreamHub({ open: (url) => new EventSource(`.${url}`) });
}

function start() {
  try {
    return new WorkerStreams(() => {
      streams = own();
    });
  } catch {
    // The browser has no such workers, or none of modules.
    return own();
  }
}

/** Returns whether the streams of all tabs are in one connection. */
export function isShared() {
  streams ??= start();
  return streams instanceof WorkerStreams;
}

/**
 * Opens a stream by its address.
 * @param {string} url
 * @returns {import("./stream.js").Source}
 */
export function openStream(url) {
  streams ??= start();
  const current = streams;
  const stream = streamOf(url);
  if (!stream) throw new Error(`no stream: ${url}`);
  return new SharedSource((receive) => current.subscribe(stream.source, stream.lastId, receive));
}
