// A card about something that waits for a decision: buttons, a form for words, and what went wrong.

import * as api from "./api.js";
import { announce, button, fill, h, toast } from "./dom.js";
import { may } from "./scopes.js";

/** @import { Child } from "./dom.js" */

/** @param {unknown} error */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

export class DecisionCard {
  /**
   * @param {string} label
   * @param {() => void} done called once it was decided on, here or elsewhere
   */
  constructor(label, done) {
    this.done = done;
    this.busy = false;
    this.error = h("p", { class: "bad", role: "alert" });
    this.form = h("div", { class: "form" });
    this.buttons = h("div", { class: "buttons" });
    this.element = h("article", { class: "card", tabindex: "-1", "aria-label": label });
  }

  /**
   * @param {Child[]} content
   * @param {HTMLElement[]} buttons
   */
  fill(content, buttons) {
    const lacking = h("p", { class: "dim" }, "This token cannot decide: it does not have the scope ", h("code", null, "approve"), ".");
    fill(this.buttons, ...(may("approve") ? buttons : [lacking]));
    fill(this.element, ...content, this.error, this.form, this.buttons);
  }

  /**
   * Shows a form in place of the buttons.
   * @param {HTMLElement} field
   * @param {string} name
   * @param {() => void} send
   * @param {HTMLTextAreaElement} input
   * @param {"danger"|"primary"} tone
   */
  showForm(field, name, send, input, tone = "primary") {
    if (!may("approve")) return;
    const cancel = () => {
      this.form.replaceChildren();
      this.buttons.hidden = false;
      this.element.focus();
    };
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
      if (event.key === "Escape") cancel();
      event.stopPropagation();
    });
    this.buttons.hidden = true;
    this.form.replaceChildren(field, h("div", { class: "buttons" }, button(name, send, { class: tone }), button("Cancel", cancel), h("span", { class: "dim keys" }, h("kbd", null, "Ctrl+Enter"), " sends")));
    input.focus();
  }

  /**
   * Sends the decision, once.
   * @param {() => Promise<unknown>} request
   * @param {string} said what is spoken afterwards
   */
  async send(request, said) {
    if (this.busy || !may("approve")) return;
    this.busy = true;
    this.setDisabled(true);
    fill(this.error, "");
    try {
      await request();
      announce(said);
      this.done();
    } catch (error) {
      if (error instanceof api.ApiError && (error.status === 409 || error.status === 404)) {
        toast(`Another client was first: ${error.message}`);
        this.done();
      } else {
        this.busy = false;
        this.setDisabled(false);
        fill(this.error, `The decision was not taken: ${messageOf(error)}`);
      }
    }
  }

  /** @param {boolean} disabled */
  setDisabled(disabled) {
    for (const element of this.element.querySelectorAll("button, textarea")) {
      if (element.closest(".subject-box")) continue;
      element.toggleAttribute("disabled", disabled);
    }
  }
}
