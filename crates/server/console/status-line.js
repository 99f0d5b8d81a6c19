// The line above the composer: what the session does, whether its stream is open, and what it has used.

import { activity, stateOf } from "./activity.js";
import { fill, h } from "./dom.js";
import { cost, percent, tokens } from "./format.js";

/** @import { Session, SessionState } from "./types.js" */

export class StatusLine {
  constructor() {
    this.element = h("div", { class: "status" });
    this.signature = "";
  }

  /**
   * @param {Session|null} session
   * @param {SessionState} state
   * @param {SessionState["context"]} context
   * @param {number} now
   * @param {string} connection what is wrong with the stream, if anything is
   */
  draw(session, state, context, now, connection) {
    const { usage } = state;
    const parts = [];
    if (context && context.window > 0) parts.push(`context ${percent(context.used, context.window)}`);
    parts.push(`${tokens(usage.input + usage.output)} tokens`, `${percent(usage.cacheRead, usage.input)} cached`);
    if (session?.cost_usd !== undefined) parts.push(cost(session.cost_usd));
    const doing = activity(state, now);
    const text = doing || stateOf(session, state);
    const signature = JSON.stringify([text, parts, connection]);
    if (this.signature === signature) return;
    this.signature = signature;
    fill(this.element, h("span", { class: `dot ${doing ? "busy" : "idle"}` }), h("span", { class: "doing cut" }, text), connection ? h("span", { class: "badge warning" }, connection) : null, h("span", { class: "space" }), h("span", { class: "dim numbers" }, parts.join(" · ")));
  }
}
