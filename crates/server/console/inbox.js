// Applies what a stream has sent in slices of a frame, so that a long past does not block the page.

import { parsed } from "./stream.js";

/** @import { Event } from "./types.js" */

const SLICE_MS = 10;
const AT_ONCE = 32;

export class Inbox {
  /**
   * @param {(event: Event|null) => void} apply called for each event, and with null where the past ends
   * @param {(empty: boolean) => void} applied called after each slice
   */
  constructor(apply, applied) {
    this.apply = apply;
    this.applied = applied;
    this.frame = 0;
    this.timer = 0;
    /** @type {(string|null)[]} texts of events, which are parsed in their slice */
    this.texts = [];
    this.next = 0;
  }

  clear() {
    this.texts = [];
    this.next = 0;
  }

  destroy() {
    this.clear();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
  }

  /** @param {string|null} text */
  push(text) {
    this.texts.push(text);
    this.schedule();
  }

  schedule() {
    // A hidden page has no frames.
    if (document.hidden) this.timer ||= window.setTimeout(() => this.work(), 200);
    else this.frame ||= requestAnimationFrame(() => this.work());
  }

  work() {
    this.frame = 0;
    this.timer = 0;
    const until = performance.now() + SLICE_MS;
    for (let done = 0; this.next < this.texts.length; done += 1) {
      if (done > 0 && done % AT_ONCE === 0 && performance.now() >= until) break;
      const text = this.texts[this.next];
      this.next += 1;
      const event = text === null ? null : parsed(text);
      if (event !== undefined) this.apply(event);
    }
    const empty = this.next === this.texts.length;
    if (empty) this.clear();
    else this.schedule();
    this.applied(empty);
  }
}
