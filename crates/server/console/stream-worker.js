// The worker that all tabs of a browser share: it has their only connection for streams.

import { StreamHub } from "./stream-hub.js";

/** Time between two checks whether a tab is still there. */
const CHECK = 60_000;

/** Checks without an answer after which a tab is gone. */
const MISSES = 3;

// Addresses of the worker start at its own file.
const hub = new StreamHub({ open: (url) => new EventSource(`..${url}`) });

/**
 * Serves one tab.
 * @param {MessagePort} port
 */
function serve(port) {
  /** @type {Map<number, () => void>} */
  const ends = new Map();
  let missed = 0;
  const leave = () => {
    clearInterval(timer);
    for (const end of ends.values()) end();
    ends.clear();
  };
  const timer = setInterval(() => {
    missed += 1;
    if (missed > MISSES) leave();
    else port.postMessage({ type: "check" });
  }, CHECK);
  port.onmessage = ({ data }) => {
    missed = 0;
    if (data.type === "subscribe") {
      const { key } = data;
      const receive = (/** @type {string} */ name, /** @type {string|undefined} */ text, /** @type {string} */ id) => {
        if (name === "error") ends.delete(key);
        port.postMessage({ type: "message", key, name, text, id });
      };
      ends.set(key, hub.subscribe(data.source, data.lastId, receive));
    } else if (data.type === "close") {
      ends.get(data.key)?.();
      ends.delete(data.key);
    } else if (data.type === "leave") leave();
  };
  port.postMessage({ type: "hello" });
}

self.addEventListener("connect", (event) => serve(/** @type {MessageEvent} */ (event).ports[0]));
