// The head of a session: title, search, choice of entries, and a menu.

import { journalUrl } from "./api.js";
import { button, fill, h, select } from "./dom.js";

/**
 * @import { Session, SessionState } from "./types.js"
 * @import { View } from "./rows.js"
 *
 * @typedef {object} Target the session that the head belongs to
 * @property {string} id
 * @property {import("./session-actions.js").SessionActions} acts
 * @property {(view: View) => void} setView
 * @property {(quiet: boolean) => void} setQuiet
 * @property {(text: string, step: 1|-1) => string} find returns what was found, in words
 * @property {() => void} toggleReplay
 * @property {() => void} togglePanel
 */

const VIEWS = [
  { value: "all", text: "Everything" },
  { value: "talk", text: "Conversation" },
  { value: "calls", text: "Calls" },
  { value: "changes", text: "Changes" },
  { value: "problems", text: "Problems" },
];

export class SessionHead {
  /** @param {Target} target */
  constructor(target) {
    const { id, acts } = target;
    this.target = target;
    this.title = h("h1", { class: "cut" }, "…");
    this.subtitle = h("p", { class: "dim cut" });
    this.search = h("input", { type: "search", "aria-label": "Search the timeline", placeholder: "Find" });
    this.search.addEventListener("keydown", (event) => this.key(event));
    this.found = h("span", { class: "dim found", role: "status" });
    const views = select(VIEWS, "all", (value) => target.setView(/** @type {View} */ (value)), { "aria-label": "Entries that are shown" });
    const quiet = h("input", { type: "checkbox" });
    quiet.addEventListener("change", () => target.setQuiet(quiet.checked));
    /** Actions on the whole session, which a subagent has none of its own of. */
    this.whole = [
      button("End the session …", () => acts.end(), { class: "danger", data: { needs: "run" } }),
      button("Delete the session …", () => acts.remove(), { class: "danger", data: { needs: "admin" } }),
    ];
    this.more = h("details", { class: "menu" }, h("summary", null, "More"), h(
      "div",
      { class: "menu-body" },
      h("label", null, quiet, " Setup and checkpoints"),
      button("Export as HTML", () => void acts.export()),
      h("a", { href: journalUrl(id), download: `${id}.jsonl` }, "Journal as JSON lines"),
      ...this.whole,
    ));
    const { more } = this;
    more.addEventListener("focusout", (event) => {
      if (!(event.relatedTarget instanceof Node && more.contains(event.relatedTarget))) more.open = false;
    });
    const tools = h("div", { class: "head-tools" }, this.search, this.found, views, button("Replay", () => target.toggleReplay(), { title: "r" }), button("Panel", () => target.togglePanel(), { title: "i", class: "panel-toggle" }), more);
    this.element = h("header", { class: "session-head" }, h("a", { href: "#/", class: "back" }, "Sessions"), h("div", { class: "titles" }, this.title, this.subtitle), tools);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== "Enter") return;
    event.preventDefault();
    fill(this.found, this.target.find(this.search.value, event.shiftKey ? -1 : 1));
  }

  /** @param {Session} session */
  update(session) {
    fill(this.title, session.title || "Untitled");
    for (const element of this.whole) element.hidden = session.parent !== undefined;
  }

  /**
   * @param {Session|null} session
   * @param {SessionState} state
   */
  draw(session, state) {
    const text = [session?.directory || state.directory, session?.model ?? state.model].filter(Boolean).join(" · ");
    if (this.subtitle.textContent !== text) fill(this.subtitle, text);
  }
}
