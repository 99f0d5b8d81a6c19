// Keys of the console: one table, which the help lists.

/**
 * @typedef {{id: string, keys: string[], text: string, group: "Everywhere"|"Sessions"|"Timeline"|"Approvals"|"Composer"|"Replay"}} Binding
 */

/** @type {Binding[]} */
export const BINDINGS = [
  { id: "help", keys: ["?"], text: "Show these keys", group: "Everywhere" },
  { id: "search", keys: ["/"], text: "Search the timeline, or the sessions if none is open", group: "Everywhere" },
  { id: "compose", keys: ["c"], text: "Write a message", group: "Everywhere" },
  { id: "new", keys: ["n"], text: "Start a session", group: "Everywhere" },
  { id: "theme", keys: ["t"], text: "Switch between dark, light and the system's colours", group: "Everywhere" },
  { id: "leave", keys: ["Escape"], text: "Leave a field, a dialog or the replay", group: "Everywhere" },
  { id: "sessions", keys: ["s"], text: "Go to the sessions", group: "Sessions" },
  { id: "tasks", keys: ["g"], text: "Go to the tasks", group: "Sessions" },
  { id: "waiting", keys: ["w"], text: "Open the next session that waits for you", group: "Sessions" },
  { id: "next", keys: ["j", "ArrowDown"], text: "Next entry", group: "Timeline" },
  { id: "previous", keys: ["k", "ArrowUp"], text: "Previous entry", group: "Timeline" },
  { id: "nextTurn", keys: ["]"], text: "Next input", group: "Timeline" },
  { id: "previousTurn", keys: ["["], text: "Previous input", group: "Timeline" },
  { id: "first", keys: ["Home"], text: "First entry", group: "Timeline" },
  { id: "last", keys: ["End"], text: "Newest entry, and follow", group: "Timeline" },
  { id: "unfold", keys: ["o", "Enter"], text: "Unfold the entry", group: "Timeline" },
  { id: "edit", keys: ["e"], text: "Edit the input and send it again, in a fork", group: "Timeline" },
  { id: "fork", keys: ["f"], text: "Fork after the entry", group: "Timeline" },
  { id: "inspect", keys: ["i"], text: "Show or hide the side panel", group: "Timeline" },
  { id: "diff", keys: ["d"], text: "Show the changes of the workspace", group: "Timeline" },
  { id: "export", keys: ["x"], text: "Export the session as an HTML file", group: "Timeline" },
  { id: "interrupt", keys: ["Ctrl+."], text: "Interrupt the run", group: "Timeline" },
  { id: "approvals", keys: ["a"], text: "Go to the next approval, or the gate of a task", group: "Approvals" },
  { id: "approve", keys: ["y"], text: "Approve the selected call or gate", group: "Approvals" },
  { id: "deny", keys: ["n"], text: "Deny the selected call, or ask for changes at a gate, with words", group: "Approvals" },
  { id: "send", keys: ["Enter"], text: "Send; steer while a run works", group: "Composer" },
  { id: "queue", keys: ["Alt+Enter"], text: "Queue behind the run", group: "Composer" },
  { id: "newline", keys: ["Shift+Enter"], text: "New line", group: "Composer" },
  { id: "replay", keys: ["r"], text: "Start or leave the replay", group: "Replay" },
  { id: "stepBack", keys: [","], text: "One event back", group: "Replay" },
  { id: "step", keys: ["."], text: "One event forward", group: "Replay" },
  { id: "play", keys: ["p"], text: "Play or pause", group: "Replay" },
];

const OFF = "letters off";

/** Returns whether keys without a modifier are on. People who speak to their computer turn them off. */
export function lettersAreOn() {
  return localStorage.getItem(OFF) === null;
}

/** @param {boolean} on */
export function setLetters(on) {
  if (on) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, "");
  startLetters();
}

/** Shows or hides what the page says about these keys. */
export function startLetters() {
  document.documentElement.classList.toggle("no-letters", !lettersAreOn());
}

/**
 * Returns a text about a key, or nothing if these keys are off.
 * @param {string} text
 */
export function letterHint(text) {
  return lettersAreOn() ? text : "";
}

/**
 * Returns the name of a key with its modifiers, in the form of the table.
 * @param {{key: string, ctrlKey: boolean, metaKey: boolean, altKey: boolean, shiftKey: boolean}} event
 */
export function keyName(event) {
  const parts = [];
  if (event.ctrlKey || event.metaKey) parts.push("Ctrl");
  if (event.altKey) parts.push("Alt");
  if (event.shiftKey && event.key.length > 1) parts.push("Shift");
  parts.push(event.key);
  return parts.join("+");
}

/**
 * Returns the id of the binding of a key within some groups.
 * @param {string} name
 * @param {Binding["group"][]} groups in the order of precedence
 */
export function bindingOf(name, groups) {
  for (const group of groups) {
    const binding = BINDINGS.find((candidate) => candidate.group === group && candidate.keys.includes(name));
    if (binding) return binding.id;
  }
  return null;
}
