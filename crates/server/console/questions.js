// Questions that a model asks with a tool, which end its turn: the next message is the answer.

import { h } from "./dom.js";

/**
 * @import { CallEntry } from "./types.js"
 * @typedef {{text: string, several: boolean, options: string[]}} Question
 */

const TOOLS = new Set(["ask_user", "AskUserQuestion", "request_user_input"]);

/**
 * Returns the questions of a call; none if it asks nothing.
 * @param {CallEntry} call
 * @returns {Question[]}
 */
export function questionsOf(call) {
  const { arguments: args } = call;
  if (!TOOLS.has(call.tool) || !args) return [];
  const list = Array.isArray(args.questions) ? args.questions : [args];
  return list.map((/** @type {any} */ item) => ({
    text: String(item?.question ?? ""),
    several: item?.multiSelect === true,
    options: Array.isArray(item?.options) ? item.options.map(optionText) : [],
  }));
}

/** @param {any} option */
function optionText(option) {
  if (typeof option === "string") return option;
  return [option?.label, option?.description].filter((part) => typeof part === "string" && part).join(": ");
}

/** @param {Question[]} questions */
export function drawQuestions(questions) {
  const parts = questions.map(({ text, several, options }) => {
    const list = options.length > 0 ? h("ol", null, ...options.map((option) => h("li", null, option))) : null;
    return h("div", null, h("p", null, text, several ? h("span", { class: "dim" }, " (several may be chosen)") : null), list);
  });
  return h("div", { class: "markdown questions" }, ...parts);
}
