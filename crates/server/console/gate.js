// The gate at which a task waits for a person.

import * as api from "./api.js";
import { DecisionCard } from "./card.js";
import { button, h, labelled } from "./dom.js";
import { confirm } from "./dialogs.js";
import { may } from "./scopes.js";

/** @import { Gate, TaskDetail } from "./tasks.js" */

export class GateCard extends DecisionCard {
  /**
   * @param {TaskDetail} task
   * @param {Gate} gate
   * @param {() => void} done
   */
  constructor(task, gate, done) {
    super(`Gate: ${gate.name}`, done);
    this.id = task.id;
    this.gate = gate;
    const what = gate.name === "anchor" ? "The anchor waits for your decision" : "The result waits for your decision";
    // Words change only an anchor that a model wrote.
    this.takesWords = gate.name !== "anchor" || task.report.contract.anchor.kind === "test";
    const title = h("h2", null, h("span", { class: "dot asks" }), what);
    const keys = h("span", { class: "dim keys letters" }, h("kbd", null, "y"), " approves, ", h("kbd", null, "n"), this.takesWords ? " asks for changes" : " refuses");
    this.fill([title, gate.name === "anchor" ? drawAnchor(task.report.anchor) : drawResult(gate)], [
      button("Approve", () => this.approve(), { class: "primary" }),
      ...(this.takesWords ? [button("Ask for changes …", () => this.showDeny())] : []),
      button("Refuse for good …", () => this.refuse(), { class: "danger" }),
      keys,
    ]);
  }

  approve() {
    void this.send(() => api.decideTask(this.id, this.gate, { decision: "approve" }), "Approved");
  }

  showDeny() {
    if (!this.takesWords) {
      this.refuse();
      return;
    }
    const words = h("textarea", { rows: 3, required: true });
    const send = () => {
      const text = words.value.trim();
      if (text) void this.send(() => api.decideTask(this.id, this.gate, { decision: "refuse", words: text }), "Changes were asked for");
      else words.focus();
    };
    this.showForm(labelled("Required changes, which the model reads", words), "Ask for changes", send, words);
  }

  refuse() {
    if (!may("approve")) return;
    confirm("Refuse for good", "The task ends, and cannot go on.", "Refuse", () => void this.send(() => api.decideTask(this.id, this.gate, { decision: "refuse" }), "Refused"));
  }
}

/** @param {any} anchor */
function drawAnchor(anchor) {
  if (!anchor) return h("p", { class: "dim" }, "The contract has no anchor.");
  const facts = h("dl", { class: "facts" }, h("div", null, h("dt", null, "Command"), h("dd", null, h("code", null, anchor.command))));
  if (anchor.tests.length > 0) facts.append(h("div", null, h("dt", null, "Fails"), h("dd", null, anchor.tests.join(", "))));
  return facts;
}

/** @param {Gate} gate */
function drawResult(gate) {
  return h("p", null, gate.candidate === undefined ? "No candidate is chosen." : `Candidate ${gate.candidate} was chosen. Its evidence and changes are in its column.`);
}
