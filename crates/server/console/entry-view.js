// Draws the entries of the timeline.

import { button, fill, h } from "./dom.js";
import { bytes, clock, counted, duration, percent, tokens } from "./format.js";
import { drawCall } from "./call-view.js";
import { MarkdownView, drawOutput } from "./text-view.js";
import { firstLine, visible } from "./text.js";

/**
 * @import { AgentEntry, EndEntry, Entry, Image, InputEntry, NoticeEntry, RoundEntry, TextEntry } from "./types.js"
 * @import { Row } from "./timeline.js"
 *
 * @typedef {object} Actions what the rows need from the session
 * @property {Map<number, boolean>} folds whether an entry is open, by its number, once it was opened or closed
 * @property {(entry: InputEntry) => void} [edit]
 * @property {(entry: Entry) => void} [fork]
 * @property {(entry: Entry) => void} [rewind]
 * @property {(entry: AgentEntry) => Node} [lane]
 * @property {(image: Image) => string|null} imageUrl
 */

/**
 * Draws an entry.
 * @param {Entry} entry
 * @param {Actions} actions
 * @returns {Row}
 */
export function drawEntry(entry, actions) {
  if (entry.type === "text") return new TextRow(entry, actions);
  const element = h("article", null);
  const update = (/** @type {Entry} */ next) => {
    element.className = `row ${next.type}`;
    element.setAttribute("aria-label", visible(labelOf(next)));
    fill(element, ...contentOf(next, actions));
  };
  update(entry);
  return { element, update };
}

/** @param {Entry} entry */
function labelOf(entry) {
  switch (entry.type) {
    case "input":
      return `${entry.steering ? "Steering message" : "Input"}${entry.author ? ` by ${entry.author}` : ""}`;
    case "text":
      return "Response";
    case "reasoning":
      return "Reasoning";
    case "round":
      return "Model call";
    case "call":
      return `Call of ${entry.tool}`;
    case "agent":
      return `Subagent ${entry.agentId}`;
    case "notice":
      return entry.title;
    default:
      return "End of the run";
  }
}

/**
 * @param {Entry} entry
 * @param {Actions} actions
 * @returns {Node[]}
 */
function contentOf(entry, actions) {
  switch (entry.type) {
    case "input":
      return drawInput(entry, actions);
    case "reasoning":
      return [drawReasoning(entry, actions)];
    case "round":
      return [drawRound(entry)];
    case "call":
      return [drawCall(entry, actions)];
    case "agent":
      return [drawAgent(entry, actions)];
    case "notice":
      return [drawNotice(entry, actions)];
    case "end":
      return [drawEnd(entry)];
    default:
      return [];
  }
}

/** A response of the model, which may still grow. */
class TextRow {
  /**
   * @param {TextEntry} entry
   * @param {Actions} actions
   */
  constructor(entry, actions) {
    this.markdown = new MarkdownView();
    this.mark = h("p", { class: "dim" }, "The response was cut off here.");
    const tools = actions.fork ? h("div", { class: "tools" }, button("Fork after this", () => actions.fork?.(this.entry), { class: "quiet", data: { focus: "fork" } })) : null;
    this.element = h("article", { class: "row text", "aria-label": "Response" }, this.markdown.element, this.mark, tools);
    this.entry = entry;
    this.update(entry);
  }

  /** @param {Entry} entry */
  update(entry) {
    if (entry.type !== "text") return;
    this.entry = entry;
    this.markdown.update(entry.text);
    this.mark.hidden = !entry.interrupted;
    this.element.classList.toggle("open", entry.open);
    this.element.setAttribute("aria-busy", String(entry.open));
  }
}

/**
 * @param {InputEntry} entry
 * @param {Actions} actions
 */
function drawInput(entry, actions) {
  const tools = h("div", { class: "tools" });
  if (actions.edit && !entry.steering) tools.append(button("Edit and resend", () => actions.edit?.(entry), { class: "quiet", data: { focus: "edit" } }));
  if (actions.fork) tools.append(button("Fork after this", () => actions.fork?.(entry), { class: "quiet", data: { focus: "fork" } }));
  if (actions.rewind) tools.append(button("Rewind to before", () => actions.rewind?.(entry), { class: "quiet", data: { focus: "rewind" } }));
  const head = h("div", { class: "head" }, h("span", { class: "who" }, visible(`${entry.author ?? "You"}${entry.steering ? ", steering" : ""}`)), " ", h("time", { class: "dim", datetime: new Date(entry.at).toISOString() }, clock(entry.at)));
  return [head, drawOutput(entry.text), ...drawImages(entry.images, actions), tools];
}

/**
 * Draws images, or what is known about them.
 * @param {Image[]} images
 * @param {Actions} actions
 * @returns {Node[]}
 */
export function drawImages(images, actions) {
  if (images.length === 0) return [];
  const items = images.map((image, index) => {
    const label = `Image ${index + 1}: ${image.media_type ?? "unknown type"}${image.bytes ? `, ${bytes(image.bytes)}` : ""}`;
    const url = actions.imageUrl(image);
    return h("li", null, url ? h("img", { src: url, alt: label, loading: "lazy" }) : h("span", { class: "placeholder" }, label));
  });
  return [h("ul", { class: "images" }, ...items)];
}

/**
 * Creates a `details` element whose content is drawn when it is opened, and whose state outlives the row.
 * @param {Entry} entry
 * @param {Actions} actions
 * @param {HTMLElement} summary
 * @param {() => Node[]} content
 * @param {boolean} [open]
 */
export function folded(entry, actions, summary, content, open = false) {
  summary.dataset.focus = "summary";
  const element = h("details", { open: actions.folds.get(entry.seq) ?? open }, summary);
  let drawn = false;
  const draw = () => {
    if (!element.open || drawn) return;
    drawn = true;
    element.append(h("div", { class: "body" }, ...content()));
  };
  element.addEventListener("toggle", () => {
    actions.folds.set(entry.seq, element.open);
    draw();
  });
  draw();
  return element;
}

/**
 * @param {TextEntry} entry
 * @param {Actions} actions
 */
function drawReasoning(entry, actions) {
  const summary = h("summary", null, h("span", { class: "name" }, entry.open ? "Reasoning …" : "Reasoning"), " ", h("span", { class: "dim cut" }, entry.open ? firstLine(entry.text.slice(-120)) : firstLine(entry.text)));
  return folded(entry, actions, summary, () => {
    const view = new MarkdownView();
    view.update(entry.text);
    return [view.element];
  });
}

/** @param {RoundEntry} entry */
function drawRound(entry) {
  const parts = [entry.model ?? (entry.status === "waiting" ? "Waiting for the model" : entry.status === "failed" ? "No response" : "Summary")];
  if (entry.endedAt !== null) parts.push(duration(entry.endedAt - entry.at));
  const { usage } = entry;
  if (usage) {
    parts.push(`${tokens(usage.input)} in`, `${tokens(usage.output)} out`);
    if (usage.reasoning > 0) parts.push(`${tokens(usage.reasoning)} reasoning`);
  }
  const line = h("div", { class: "meta" }, h("span", null, parts.join(" · ")));
  if (usage) line.append(" · ", h("span", { class: usage.cacheRead > 0 ? "hit" : "dim" }, `${percent(usage.cacheRead, usage.input)} from cache`));
  if (entry.moved) line.append(" ", h("span", { class: "badge warning" }, `cache missed: ${entry.moved} changed`));
  if (entry.finish === "length" || entry.finish === "content_filter") line.append(" ", h("span", { class: "badge warning" }, entry.finish.replace("_", " ")));
  if (entry.purpose) line.append(" ", h("span", { class: "badge" }, "for the summary"));
  return line;
}

/**
 * @param {AgentEntry} entry
 * @param {Actions} actions
 */
function drawAgent(entry, actions) {
  const status = entry.status.toLowerCase();
  const took = entry.endedAt === null ? "" : duration(entry.endedAt - entry.at);
  const turns = entry.turns === null ? "" : counted(entry.turns, "turn");
  const summary = h(
    "summary",
    null,
    h("span", { class: `dot ${status}` }),
    h("span", { class: "name" }, entry.agentId),
    " ",
    h("span", { class: "cut" }, firstLine(entry.task)),
    " ",
    h("span", { class: "dim end" }, [status, turns, took].filter(Boolean).join(" · ")),
  );
  return folded(entry, actions, summary, () => [actions.lane?.(entry) ?? drawOutput(entry.task)]);
}

/**
 * @param {NoticeEntry} entry
 * @param {Actions} actions
 */
function drawNotice(entry, actions) {
  const line = [h("span", { class: `name ${entry.level}` }, entry.title), " ", h("span", { class: "cut" }, firstLine(entry.text, 400))];
  const long = entry.text.length > 400 || entry.text.includes("\n");
  if (!entry.detail && !long) return h("div", { class: `notice-line ${entry.level}` }, ...line);
  return folded(entry, actions, h("summary", { class: entry.level }, ...line), () => {
    const nodes = long ? [drawOutput(entry.text)] : [];
    if (entry.detail) nodes.push(drawOutput(JSON.stringify(entry.detail, null, 2)));
    return nodes;
  });
}

/** @param {EndEntry} entry */
function drawEnd(entry) {
  const names = { IDLE: "Done", AWAITING_INPUT: "Waits for your answer", CLOSED: "Closed" };
  const name = /** @type {Record<string, string>} */ (names)[entry.state] ?? entry.state;
  const isDone = entry.state !== "IDLE" || entry.outcome === null || entry.outcome === "completed";
  const parts = [isDone ? name : `Ended: ${entry.outcome?.replaceAll("_", " ")}`];
  if (entry.startedAt !== null) parts.push(duration(entry.at - entry.startedAt));
  parts.push(counted(entry.calls, "call"), `${tokens(entry.usage.input + entry.usage.output)} tokens`);
  return h("div", { class: `meta ending ${entry.state === "AWAITING_INPUT" ? "asks" : ""}` }, parts.join(" · "));
}
