// Shows the calls that wait for a decision, each as a card with its diff.

import * as api from "./api.js";
import { drawValue } from "./call-view.js";
import { DecisionCard, messageOf } from "./card.js";
import { diffOfArguments, parseDiff } from "./diff.js";
import { drawDiffs } from "./diff-view.js";
import { announce, button, fill, h, labelled, toast } from "./dom.js";
import { counted } from "./format.js";
import { letterHint } from "./keys.js";
import { escapedJson } from "./text.js";

/** @import { Approval, Decision } from "./types.js" */

export class Approvals {
  /** @param {string} session */
  constructor(session) {
    this.session = session;
    this.element = h("section", { class: "approvals", "aria-label": "Approvals", hidden: true });
    /** @type {Map<string, Card>} */
    this.cards = new Map();
    this.loading = false;
    this.again = false;
    this.destroyed = false;
  }

  /** Asks the server which calls wait. Requests that come meanwhile lead to one more. */
  async load() {
    if (this.loading) {
      this.again = true;
      return;
    }
    this.loading = true;
    try {
      do {
        this.again = false;
        this.show(await api.approvals(this.session));
      } while (this.again && !this.destroyed);
    } catch (error) {
      // The stream reports a connection that is cut.
      const isCut = error instanceof api.ApiError && (error.status === 0 || error.status === 401);
      if (!this.destroyed && !isCut) toast(`Approvals: ${messageOf(error)}`, "error");
    } finally {
      this.loading = false;
    }
  }

  /** @param {Approval[]} approvals */
  show(approvals) {
    const keys = new Set();
    let fresh = 0;
    for (const approval of approvals) {
      const key = `${approval.session} ${approval.call_id} ${approval.fingerprint}`;
      keys.add(key);
      if (this.cards.has(key)) continue;
      const card = new Card(approval, approval.session !== this.session, () => this.load());
      this.cards.set(key, card);
      fresh += 1;
    }
    const order = [...this.cards.values()];
    let focused = -1;
    for (const [key, card] of this.cards) {
      if (keys.has(key)) continue;
      if (card.element.contains(document.activeElement)) focused = order.indexOf(card);
      card.element.remove();
      this.cards.delete(key);
    }
    this.arrange([...keys]);
    if (focused >= 0) this.focusAfter(order, focused);
    this.element.hidden = this.cards.size === 0;
    if (fresh > 0) announce(`${counted(this.cards.size, "call waits", "calls wait")} for your approval.${letterHint(" Press a to go there.")}`, true);
  }

  /**
   * Puts the cards into the order of the calls in the timeline. Cards that are in their place are not moved:
   * a move takes the focus away.
   * @param {string[]} keys
   */
  arrange(keys) {
    this.cards = new Map(keys.flatMap((key) => {
      const card = this.cards.get(key);
      return card ? [[key, card]] : [];
    }));
    let next = this.element.firstElementChild;
    for (const { element } of this.cards.values()) {
      if (next === element) next = next.nextElementSibling;
      else this.element.insertBefore(element, next);
    }
  }

  /** Focuses the next card, or the first one. Returns whether there is one. */
  focusNext() {
    return this.step(1);
  }

  /**
   * Focuses the next or the previous card. Returns whether there is one.
   * @param {1|-1} step
   */
  step(step) {
    const cards = [...this.cards.values()];
    if (cards.length === 0) return false;
    const at = cards.findIndex((card) => card.element.contains(document.activeElement));
    const next = at < 0 ? 0 : (at + step + cards.length) % cards.length;
    cards[next].element.focus();
    return true;
  }

  /**
   * Returns the card of a call of this session.
   * @param {string} callId
   */
  cardOf(callId) {
    return [...this.cards.values()].find(({ approval }) => approval.session === this.session && approval.call_id === callId) ?? null;
  }

  /**
   * Focuses the card that followed one that is gone, or else the first one.
   * @param {Card[]} order
   * @param {number} at
   */
  focusAfter(order, at) {
    const next = order.slice(at + 1).find((card) => card.element.isConnected) ?? [...this.cards.values()][0];
    next?.element.focus();
  }

  /** Returns the card that has the focus. */
  current() {
    return [...this.cards.values()].find((card) => card.element.contains(document.activeElement)) ?? null;
  }
}

class Card extends DecisionCard {
  /**
   * @param {Approval} approval
   * @param {boolean} below whether a subagent makes the call
   * @param {() => void} done
   */
  constructor(approval, below, done) {
    super(`Approval of ${approval.tool_name}`, done);
    this.approval = approval;
    this.below = below;
    this.fill(this.content(), [
      button("Approve", () => this.approve(), { class: "primary" }),
      button("Deny …", () => this.showDeny(), { class: "danger" }),
      button("Change …", () => this.showChange(), { data: { needs: "run" } }),
      h("span", { class: "dim keys letters" }, h("kbd", null, "y"), " approves, ", h("kbd", null, "n"), " denies"),
    ]);
  }

  content() {
    const { tool_name: tool, reason, sandbox, writes = [], suggested_rules: rules = [] } = this.approval;
    const title = h("h2", null, h("span", { class: "dot asks" }), h("span", { class: "name" }, tool), h("span", null, " needs your approval"));
    const facts = h("dl", { class: "facts" });
    /** @param {string} name @param {Node|string} value */
    const fact = (name, value) => facts.append(h("div", null, h("dt", null, name), h("dd", null, value)));
    if (this.below) fact("Subagent", h("a", { href: `#/s/${encodeURIComponent(this.approval.session)}` }, this.approval.session));
    if (reason) fact("Why", reason);
    if (sandbox) fact("Runs", `${sandbox} the sandbox`);
    if (writes.length > 0) fact("Writes", writes.join(", "));
    if (rules.length > 0) fact("Rule", h("code", null, rules.join(", ")));
    return [title, facts, this.subject()];
  }

  /** Draws what would happen: the diff if there is one, otherwise the arguments. */
  subject() {
    const { diff, arguments: args } = this.approval;
    const files = diff ? parseDiff(diff) : diffOfArguments(args);
    if (files.length === 0) return h("div", { class: "subject-box" }, drawValue(args));
    const raw = h("details", null, h("summary", null, "Arguments"), drawValue(args));
    return h("div", { class: "subject-box" }, drawDiffs(files), raw);
  }

  approve() {
    void this.decide({ decision: "approve" });
  }

  showDeny() {
    const words = h("textarea", { rows: 2, placeholder: "What should the model do instead? (optional)" });
    const send = () => void this.decide({ decision: "deny", ...(words.value.trim() ? { reason: words.value.trim() } : {}) });
    this.showForm(labelled("Reason, which the model reads", words), "Deny", send, words, "danger");
  }

  showChange() {
    const text = h("textarea", { rows: 8, class: "code", spellcheck: "false" });
    text.value = escapedJson(this.approval.arguments);
    const send = () => {
      try {
        void this.decide({ decision: "change", arguments: JSON.parse(text.value) });
      } catch (error) {
        fill(this.error, `The arguments are no JSON: ${messageOf(error)}`);
      }
    };
    this.showForm(labelled("Arguments that the call runs with instead", text), "Run with these arguments", send, text);
  }

  /** @param {Decision} decision */
  decide(decision) {
    return this.send(() => api.decide(this.approval, decision), { approve: "Approved", deny: "Denied", change: "Changed and approved" }[decision.decision]);
  }
}
