// The dialogs of the page: keys, confirmations, the preview of a rewind, a changed input.

import { plainLine } from "./ansi.js";
import { button, dialog, fill, h, labelled } from "./dom.js";
import { counted } from "./format.js";
import { BINDINGS, lettersAreOn, setLetters } from "./keys.js";
import { drawOutput } from "./text-view.js";

/** @import { HistoryTurn } from "./types.js" */

/** Shows the keys, and lets those without a modifier be turned off. */
export function showKeys() {
  const letters = h("input", { type: "checkbox" });
  letters.checked = lettersAreOn();
  letters.addEventListener("change", () => setLetters(letters.checked));
  const groups = [...new Set(BINDINGS.map((binding) => binding.group))];
  const sections = groups.map((group) => {
    const rows = BINDINGS.filter((binding) => binding.group === group).map(({ keys, text }) => {
      const names = keys.flatMap((key, index) => [...(index > 0 ? [h("span", null, " or ")] : []), h("kbd", null, key)]);
      return h("div", null, h("dt", null, ...names), h("dd", null, text));
    });
    return h("section", null, h("h3", null, group), h("dl", { class: "keys-list" }, ...rows));
  });
  dialog("Keys", [h("label", null, letters, " Keys that are one character"), h("div", { class: "key-groups" }, ...sections)], "wide-dialog");
}

/**
 * Asks before something that cannot be undone.
 * @param {string} title
 * @param {string} text
 * @param {string} name
 * @param {() => void} run
 */
export function confirm(title, text, name, run) {
  const yes = button(name, () => {
    element.close();
    run();
  }, { class: "danger" });
  const element = dialog(title, [h("p", null, text), h("div", { class: "buttons" }, yes, button("Cancel", () => element.close()))]);
  yes.focus();
}

/**
 * Shows the changes of a restore of files, before they are made.
 * @param {import("./types.js").RestoreReport} plan
 * @param {(force: boolean) => void} run called with whether files are restored that others may have changed
 */
export function previewRestore(plan, run) {
  const { files, changed_by_others: foreign, left_alone: left } = plan;
  const force = foreign.length > 0;
  const yes = button(force ? "Restore these as well" : "Restore", () => {
    element.close();
    run(force);
  }, { class: "danger" });
  const steps = files.map(({ path, action }) => h("li", null, h("span", { class: "name" }, action), " ", h("code", null, path), foreign.includes(path) ? h("span", { class: "bad" }, " another process may have changed it") : null));
  const stay = left.map(({ path, reason }) => h("li", null, h("code", null, path), ` ${reason}`));
  const cancel = button(files.length > 0 ? "Cancel" : "Close", () => element.close());
  const element = dialog(
    "Restore files",
    [
      files.length > 0 ? h("ul", { class: "preview" }, ...steps) : h("p", { class: "dim" }, "The files are as they were."),
      stay.length > 0 ? h("h3", null, "Files that stay as they are") : null,
      stay.length > 0 ? h("ul", { class: "preview" }, ...stay) : null,
      h("div", { class: "buttons" }, files.length > 0 ? yes : null, cancel),
    ],
    "wide-dialog",
  );
  cancel.focus();
}

/**
 * Shows what a rewind would remove, before it does.
 * @param {number} count
 * @param {{removed: HistoryTurn[], files: {path: string, changes: number}[]}} preview
 * @param {() => void} run
 */
export function previewRewind(count, preview, run) {
  const { removed, files } = preview;
  const yes = button("Rewind", () => {
    element.close();
    run();
  }, { class: "danger" });
  const turns = h("ol", { class: "preview", start: count + 1 }, ...removed.slice(0, 50).map((turn) => h("li", null, h("span", { class: "name" }, turn.kind.replaceAll("_", " ")), " ", plainLine(turn.text, 100))));
  const more = removed.length > 50 ? h("p", { class: "dim" }, `and ${removed.length - 50} more`) : null;
  const changed = files.length === 0
    ? h("p", { class: "dim" }, "The calls after this point have changed no files.")
    : h("ul", { class: "preview" }, ...files.map(({ path, changes }) => h("li", null, h("code", null, path), ` ${counted(changes, "change")}`)));
  const element = dialog(
    "Rewind the conversation",
    [
      h("p", null, `The conversation continues after its first ${counted(count, "entry", "entries")}. It loses ${counted(removed.length, "entry", "entries")}:`),
      turns,
      more,
      h("h3", null, "Files that the removed calls have changed"),
      changed,
      h("div", { class: "buttons" }, yes, button("Cancel", () => element.close())),
    ],
    "wide-dialog",
  );
  yes.focus();
}

/**
 * Lets the user change an input before it is sent again.
 * @param {string} before
 * @param {(text: string, how: "fork"|"rewind") => Promise<void>} send
 */
export function editInput(before, send) {
  const text = h("textarea", { rows: 8 });
  text.value = before;
  const error = h("p", { class: "bad", role: "alert" });
  const run = async (/** @type {"fork"|"rewind"} */ how) => {
    try {
      await send(text.value, how);
      element.close();
    } catch (problem) {
      fill(error, problem instanceof Error ? problem.message : String(problem));
    }
  };
  const element = dialog("Edit and resend", [
    labelled("Input", text),
    h("details", null, h("summary", null, "The input as it was"), drawOutput(before)),
    h("p", { class: "dim" }, "A fork leaves this session as it is. A rewind removes what followed from the conversation."),
    error,
    h("div", { class: "buttons" }, button("Send in a fork", () => void run("fork"), { class: "primary" }), button("Rewind and send here", () => void run("rewind"), { class: "danger" })),
  ], "wide-dialog");
  text.focus();
}

/**
 * Draws the form for the token.
 * @param {(token: string) => Promise<void>} login
 */
export function loginForm(login) {
  const token = h("input", { type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
  const error = h("p", { class: "bad", role: "alert" });
  const form = h("form", { class: "stack alone" }, h("h1", null, "Pintle"), h("p", null, "The server shows a token when it starts."), labelled("Token", token), error, h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Sign in")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    error.textContent = "";
    try {
      await login(token.value.trim());
    } catch (problem) {
      fill(error, problem instanceof Error ? problem.message : String(problem));
      token.focus();
    }
  });
  return form;
}
