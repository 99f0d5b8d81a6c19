// Shows a long list of entries. Only the rows near the viewport are in the document.

import { h } from "./dom.js";
import { Heights } from "./heights.js";

/**
 * @import { Entry } from "./types.js"
 * @typedef {{element: HTMLElement, update: (entry: Entry) => void}} Row
 * @typedef {{row: Row, entry: Entry, revision: number}} Shown
 */

const MARGIN = 600;

/** @type {Record<Entry["type"], number>} */
const ESTIMATES = { input: 70, text: 90, reasoning: 34, round: 26, call: 34, agent: 50, notice: 30, end: 34 };

export class Timeline {
  /**
   * @param {(entry: Entry) => Row} draw
   * @param {(following: boolean, below: number) => void} moved called when the position changes
   */
  constructor(draw, moved) {
    this.draw = draw;
    this.moved = moved;
    /** @type {Entry[]} */
    this.entries = [];
    this.heights = new Heights();
    /** @type {Map<number, Shown>} */
    this.shown = new Map();
    this.follow = true;
    this.lastTop = 0;
    this.selected = -1;
    /** Returns whether a rewind has removed an entry from the conversation. */
    this.dropped = (/** @type {Entry} */ _entry) => false;
    this.window = h("div", { class: "window" });
    this.canvas = h("div", { class: "canvas" }, this.window);
    this.element = h("div", { class: "timeline", tabindex: "0", role: "region", "aria-label": "Timeline" }, this.canvas);
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.resizes = new ResizeObserver((changes) => this.measured(changes));
    this.resizes.observe(this.element);
    this.window.addEventListener("focusin", (event) => this.focused(event));
  }

  destroy() {
    this.resizes.disconnect();
  }

  /**
   * Shows other entries. Those that are the same at the beginning keep their heights.
   * @param {Entry[]} entries
   */
  show(entries) {
    const before = this.entries;
    let same = 0;
    while (same < before.length && same < entries.length && before[same].seq === entries[same].seq) same += 1;
    this.heights.truncate(same);
    for (let i = same; i < entries.length; i += 1) this.heights.push(ESTIMATES[entries[i].type]);
    this.entries = entries;
    this.render();
    if (this.follow) this.toEnd();
  }

  toEnd() {
    this.follow = true;
    this.element.scrollTop = this.element.scrollHeight;
    this.lastTop = this.element.scrollTop;
    this.render();
  }

  scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.element;
    const atEnd = scrollTop + clientHeight >= scrollHeight - 12;
    if (atEnd && scrollTop > this.lastTop) this.follow = true;
    else if (!atEnd && scrollTop < this.lastTop - 1) this.follow = false;
    this.lastTop = scrollTop;
    this.render();
  }

  /** Puts the rows near the viewport into the document, in order, and removes all others. */
  render() {
    const { scrollTop, clientHeight } = this.element;
    const { from, to } = this.heights.range(scrollTop, clientHeight, MARGIN);
    this.canvas.style.height = `${this.heights.total()}px`;
    this.window.style.transform = `translateY(${this.heights.offset(from)}px)`;
    if (this.entries.length > 0) {
      this.window.setAttribute("role", "feed");
      this.window.setAttribute("aria-label", "Entries");
    } else {
      this.window.removeAttribute("role");
      this.window.removeAttribute("aria-label");
    }
    const keep = new Set();
    let next = this.window.firstChild;
    for (let index = from; index < to; index += 1) {
      const shown = this.rowAt(index);
      keep.add(shown.entry.seq);
      if (next === shown.row.element) next = next.nextSibling;
      else this.window.insertBefore(shown.row.element, next);
    }
    for (const [seq, shown] of this.shown) if (!keep.has(seq)) this.removeRow(seq, shown);
    this.moved(this.follow, this.entries.length - to);
  }

  /**
   * @param {number} seq
   * @param {Shown} shown
   */
  removeRow(seq, shown) {
    this.resizes.unobserve(shown.row.element);
    if (shown.row.element.contains(document.activeElement)) this.element.focus({ preventScroll: true });
    shown.row.element.remove();
    this.shown.delete(seq);
  }

  /**
   * Returns the row of an entry, drawn in its newest state.
   * @param {number} index
   */
  rowAt(index) {
    const entry = this.entries[index];
    let shown = this.shown.get(entry.seq);
    // A replay has other objects for the same entries.
    if (shown && shown.entry.type !== entry.type) {
      this.removeRow(entry.seq, shown);
      shown = undefined;
    }
    if (!shown) {
      const row = this.draw(entry);
      row.element.dataset.seq = String(entry.seq);
      row.element.setAttribute("tabindex", "-1");
      shown = { row, entry, revision: entry.revision };
      this.shown.set(entry.seq, shown);
      this.resizes.observe(row.element);
    } else if (shown.entry !== entry || shown.revision !== entry.revision) {
      const focus = focusWithin(shown.row.element);
      shown.row.update(entry);
      shown.entry = entry;
      shown.revision = entry.revision;
      restoreFocus(shown.row.element, focus);
    }
    shown.row.element.setAttribute("aria-posinset", String(index + 1));
    shown.row.element.setAttribute("aria-setsize", String(this.entries.length));
    shown.row.element.classList.toggle("selected", entry.seq === this.selected);
    const dropped = this.dropped(entry);
    shown.row.element.classList.toggle("dropped", dropped);
    shown.row.element.title = dropped ? "A rewind has removed this from the conversation" : "";
    return shown;
  }

  /** Redraws the rows of all entries that are shown. */
  redraw() {
    for (const shown of this.shown.values()) shown.revision = -1;
    this.render();
  }

  /**
   * Stores the measured heights of rows. The first row in view keeps its position.
   * @param {ResizeObserverEntry[]} changes
   */
  measured(changes) {
    const top = this.element.scrollTop;
    let above = 0;
    let changed = false;
    for (const { target } of changes) {
      if (target === this.element) {
        changed = true;
        continue;
      }
      const element = /** @type {HTMLElement} */ (target);
      const index = this.indexOf(Number(element.dataset.seq));
      if (index < 0 || !element.isConnected) continue;
      const bottom = this.heights.offset(index + 1);
      const difference = this.heights.set(index, element.offsetHeight);
      if (difference === 0) continue;
      changed = true;
      if (bottom <= top) above += difference;
    }
    if (!changed) return;
    this.render();
    if (this.follow) this.toEnd();
    else if (above !== 0) {
      this.element.scrollTop = top + above;
      this.lastTop = this.element.scrollTop;
    }
  }

  /**
   * Returns the index of an entry by its number. Entries are in the order of their numbers.
   * @param {number} seq
   */
  indexOf(seq) {
    let low = 0;
    let high = this.entries.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = this.entries[middle].seq;
      if (found === seq) return middle;
      if (found < seq) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** @param {FocusEvent} event */
  focused(event) {
    const row = event.target instanceof Element ? event.target.closest("[data-seq]") : null;
    if (row instanceof HTMLElement) this.mark(Number(row.dataset.seq));
  }

  /** @param {number} seq */
  mark(seq) {
    if (this.selected === seq) return;
    this.shown.get(this.selected)?.row.element.classList.remove("selected");
    this.selected = seq;
    this.shown.get(seq)?.row.element.classList.add("selected");
  }

  /** Returns the selected entry, or the first one in view. */
  current() {
    const index = this.indexOf(this.selected);
    return this.entries[index >= 0 ? index : this.heights.at(this.element.scrollTop)];
  }

  /**
   * Selects an entry, brings it into view and focuses it.
   * @param {number} index
   */
  select(index) {
    const at = Math.max(0, Math.min(index, this.entries.length - 1));
    const entry = this.entries[at];
    if (!entry) return;
    if (at < this.entries.length - 1) this.follow = false;
    this.mark(entry.seq);
    this.reveal(at);
    const row = this.shown.get(entry.seq)?.row.element;
    row?.focus({ preventScroll: true });
    this.settle(at);
  }

  /** @param {number} at */
  reveal(at) {
    const { scrollTop, clientHeight } = this.element;
    const top = this.heights.offset(at);
    const bottom = this.heights.offset(at + 1);
    if (top < scrollTop || bottom - top > clientHeight) this.element.scrollTop = Math.max(0, top - 8);
    else if (bottom > scrollTop + clientHeight) this.element.scrollTop = bottom - clientHeight + 8;
    this.scrolled();
  }

  /**
   * Corrects the position once the real heights are known.
   * @param {number} at
   */
  settle(at) {
    requestAnimationFrame(() => {
      if (this.entries[at]?.seq === this.selected) this.reveal(at);
    });
  }

  /**
   * Moves the selection, optionally to the next entry that fits.
   * @param {1|-1} step
   * @param {(entry: Entry) => boolean} [fits]
   */
  step(step, fits = () => true) {
    const selected = this.indexOf(this.selected);
    let at = selected >= 0 ? selected + step : this.heights.at(this.element.scrollTop);
    while (at >= 0 && at < this.entries.length && !fits(this.entries[at])) at += step;
    if (at >= 0 && at < this.entries.length) this.select(at);
  }
}

/**
 * Returns the name of the part of a row that has the focus.
 * @param {HTMLElement} row
 */
function focusWithin(row) {
  const active = document.activeElement;
  return active instanceof HTMLElement && active !== row && row.contains(active) ? (active.dataset.focus ?? "") : null;
}

/**
 * @param {HTMLElement} row
 * @param {string|null} name
 */
function restoreFocus(row, name) {
  if (name === null || row.contains(document.activeElement)) return;
  const part = name ? row.querySelector(`[data-focus="${CSS.escape(name)}"]`) : null;
  /** @type {HTMLElement} */ (part instanceof HTMLElement ? part : row).focus({ preventScroll: true });
}
