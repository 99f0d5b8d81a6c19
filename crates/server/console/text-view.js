// Draws text: Markdown as elements, long texts in pages, terminal output with its colours, code with its tokens.

import { parseTerminal } from "./ansi.js";
import { button, h, t } from "./dom.js";
import { bytes } from "./format.js";
import { parseMarkdown } from "./markdown.js";
import { highlight, languageOf } from "./syntax.js";
import { endOfPage, startOfPage } from "./text.js";

/**
 * @import { Block, Piece } from "./markdown.js"
 * @import { Inline } from "./inline.js"
 */

const MARKDOWN_PAGE = 60_000;
const PAGE_LINES = 400;
const PAGE_CHARS = 20_000;
const TAIL_LINES = 30;
const MORE = 10;

/** A text in Markdown that may still grow. Blocks that have not changed keep their elements. */
export class MarkdownView {
  constructor() {
    this.element = h("div", { class: "markdown" });
    /** @type {{source: string, node: Node}[]} */
    this.blocks = [];
    this.limit = MARKDOWN_PAGE;
    this.text = "";
    /** @type {HTMLElement|null} */
    this.more = null;
  }

  /** @param {string} text */
  update(text) {
    this.text = text;
    const end = endOfPage(text, 0, Infinity, this.limit);
    const pieces = parseMarkdown(end < text.length ? text.slice(0, end) : text);
    let same = 0;
    while (same < pieces.length && same < this.blocks.length && pieces[same].source === this.blocks[same].source) same += 1;
    for (const { node } of this.blocks.splice(same)) node.parentNode?.removeChild(node);
    this.more?.remove();
    for (const { source, block } of pieces.slice(same)) {
      const node = drawBlock(block);
      this.element.append(node);
      this.blocks.push({ source, node });
    }
    if (end < text.length) this.element.append((this.more = this.moreButton(text.length - end)));
  }

  /** @param {number} left */
  moreButton(left) {
    return button(`Show more (${bytes(left)} left)`, () => {
      this.limit *= MORE;
      this.update(this.text);
    }, { class: "more", data: { focus: "more" } });
  }
}

/**
 * @param {Block} block
 * @returns {Node}
 */
function drawBlock(block) {
  switch (block.type) {
    case "heading":
      // Headings of the page end at level 2, so those of texts are below.
      return h(/** @type {"h3"} */ (`h${Math.min(6, block.level + 2)}`), null, ...block.content.map(drawInline));
    case "paragraph":
      return h("p", null, ...block.content.map(drawInline));
    case "code":
      return drawCode(block.text, block.language);
    case "quote":
      return h("blockquote", null, ...block.blocks.map(drawBlock));
    case "list":
      return drawList(block);
    case "table":
      return drawTable(block);
    default:
      return h("hr");
  }
}

/** @param {import("./markdown.js").List} list */
function drawList(list) {
  const items = list.items.map(({ checked, blocks }) => {
    const content = blocks.length === 1 && blocks[0].type === "paragraph" ? blocks[0].content.map(drawInline) : blocks.map(drawBlock);
    const box = checked === null ? null : h("span", { class: "box" }, checked ? "[x] " : "[ ] ");
    return h("li", { class: checked === null ? undefined : "task" }, box, ...content);
  });
  return list.ordered ? h("ol", { start: list.start === 1 ? undefined : list.start }, ...items) : h("ul", null, ...items);
}

/** @param {import("./markdown.js").Table} table */
function drawTable(table) {
  const head = h("tr", null, ...table.head.map((cell) => h("th", { scope: "col" }, ...cell.map(drawInline))));
  const rows = table.rows.map((row) => h("tr", null, ...row.map((cell) => h("td", null, ...cell.map(drawInline)))));
  return scrollable(h("table", null, h("thead", null, head), h("tbody", null, ...rows)), "Table");
}

/**
 * Puts wide content into a box that scrolls, also by keyboard.
 * @param {HTMLElement} content
 * @param {string} label
 */
export function scrollable(content, label) {
  return h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": label }, content);
}

/**
 * @param {Inline} node
 * @returns {Node}
 */
function drawInline(node) {
  switch (node.type) {
    case "text":
      return t(node.text);
    case "code":
      return h("code", null, node.text);
    case "break":
      return h("br");
    case "link":
      return h("a", { href: node.href, rel: "noopener noreferrer", target: "_blank", title: node.href }, ...node.content.map(drawInline));
    default:
      return h(node.type, null, ...node.content.map(drawInline));
  }
}

/**
 * Draws a block of code.
 * @param {string} text
 * @param {string} language
 */
export function drawCode(text, language) {
  const known = languageOf(language);
  return paged(text, "head", (part) => {
    const code = h("code");
    part.split("\n").forEach((line, index) => {
      if (index > 0) code.append("\n");
      drawTokens(code, line, known);
    });
    return code;
  }, language ? `Code, ${language}` : "Code");
}

/**
 * @param {Element} parent
 * @param {string} line
 * @param {ReturnType<typeof languageOf>} language
 */
export function drawTokens(parent, line, language) {
  for (const { text, type } of highlight(line, language)) {
    parent.append(type === "plain" ? t(text) : h("span", { class: `k-${type}` }, text));
  }
}

/**
 * Draws the output of a command. Of a long one, the end is shown first.
 * @param {string} text
 * @param {boolean} [tail]
 */
export function drawOutput(text, tail = false) {
  return paged(text, tail ? "tail" : "head", (part) => {
    const code = h("code");
    for (const span of parseTerminal(part)) code.append(span.style ? h("span", { class: span.style }, span.text) : t(span.text));
    return code;
  }, "Output");
}

/**
 * Draws a long text in pages, which buttons add.
 * @param {string} text
 * @param {"head"|"tail"} first
 * @param {(part: string) => Node} draw
 * @param {string} label
 */
function paged(text, first, draw, label) {
  const pre = h("pre", { tabindex: "0", role: "group", "aria-label": label });
  const box = h("div", { class: "paged" }, pre);
  if (first === "head") showHead(box, pre, text, 0, draw);
  else showTail(box, pre, text, text.length, draw, TAIL_LINES);
  return box;
}

/**
 * @param {HTMLElement} box
 * @param {HTMLElement} pre
 * @param {string} text
 * @param {number} from
 * @param {(part: string) => Node} draw
 */
function showHead(box, pre, text, from, draw) {
  const scale = from === 0 ? 1 : MORE;
  const end = endOfPage(text, from, PAGE_LINES * scale, PAGE_CHARS * scale);
  pre.append(draw(text.slice(from, end)));
  if (end >= text.length) return;
  const more = button(`Show more (${bytes(text.length - end)} left)`, () => {
    more.remove();
    showHead(box, pre, text, end, draw);
    pre.focus();
  }, { class: "more", data: { focus: "more" } });
  box.append(more);
}

/**
 * @param {HTMLElement} box
 * @param {HTMLElement} pre
 * @param {string} text
 * @param {number} to
 * @param {(part: string) => Node} draw
 * @param {number} lines
 */
function showTail(box, pre, text, to, draw, lines) {
  const start = startOfPage(text, to, lines, lines === TAIL_LINES ? PAGE_CHARS : PAGE_CHARS * MORE);
  pre.prepend(draw(text.slice(start, to)));
  if (start <= 0) return;
  const more = button(`Show earlier output (${bytes(start)})`, () => {
    more.remove();
    showTail(box, pre, text, start, draw, PAGE_LINES * MORE);
    pre.focus();
  }, { class: "more", data: { focus: "more" } });
  box.prepend(more);
}

/**
 * Draws a text in Markdown.
 * @param {string} text
 */
export function drawMarkdown(text) {
  const view = new MarkdownView();
  view.update(text);
  return view.element;
}
