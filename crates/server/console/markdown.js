// Parses a subset of Markdown into a plain tree. HTML has no meaning in it: it stays text.

import { parseInline } from "./inline.js";

/**
 * @import { Inline } from "./inline.js"
 * @typedef {{type: "heading", level: number, content: Inline[]}} Heading
 * @typedef {{type: "paragraph", content: Inline[]}} Paragraph
 * @typedef {{type: "code", language: string, text: string}} Code
 * @typedef {{type: "quote", blocks: Block[]}} Quote
 * @typedef {{type: "list", ordered: boolean, start: number, items: {checked: boolean|null, blocks: Block[]}[]}} List
 * @typedef {{type: "table", head: Inline[][], rows: Inline[][][]}} Table
 * @typedef {{type: "rule"}} Rule
 * @typedef {Heading|Paragraph|Code|Quote|List|Table|Rule} Block
 * @typedef {{source: string, block: Block}} Piece a block of the top level with its source
 */

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_LINE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const MAX_DEPTH = 12;

/**
 * Parses a text into the pieces of its top level. A piece whose source is the same has the same block.
 * @param {string} text
 * @returns {Piece[]}
 */
export function parseMarkdown(text) {
  return parseLines(text.replaceAll("\r\n", "\n").split("\n"), 0);
}

/**
 * @param {string[]} lines
 * @param {number} depth
 * @returns {Piece[]}
 */
function parseLines(lines, depth) {
  /** @type {Piece[]} */
  const pieces = [];
  let at = 0;
  while (at < lines.length) {
    if (lines[at].trim() === "") {
      at += 1;
      continue;
    }
    const [block, end] = parseBlock(lines, at, depth);
    pieces.push({ source: lines.slice(at, end).join("\n"), block });
    at = end;
  }
  return pieces;
}

/**
 * Parses the block that begins at a line. Returns it with the line after its end.
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {[Block, number]}
 */
function parseBlock(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return parseFence(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) return [{ type: "heading", level: heading[1].length, content: parseInline(heading[2] ?? "") }, at + 1];
  if (RULE.test(line)) return [{ type: "rule" }, at + 1];
  if (depth < MAX_DEPTH && QUOTE.test(line)) return parseQuote(lines, at, depth);
  if (depth < MAX_DEPTH && ITEM.test(line)) return parseList(lines, at, depth);
  if (line.includes("|") && TABLE_LINE.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) return parseTable(lines, at);
  return parseParagraph(lines, at, depth);
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {RegExpExecArray} fence
 * @returns {[Block, number]}
 */
function parseFence(lines, at, fence) {
  const [, indent, mark, language] = fence;
  const close = new RegExp(`^ {0,3}\\${mark[0]}{${mark.length},}\\s*$`);
  let end = at + 1;
  while (end < lines.length && !close.test(lines[end])) end += 1;
  const body = lines.slice(at + 1, end).map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line));
  return [{ type: "code", language, text: body.join("\n") }, Math.min(end + 1, lines.length)];
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {[Block, number]}
 */
function parseQuote(lines, at, depth) {
  const body = [];
  let end = at;
  for (; end < lines.length; end += 1) {
    const match = QUOTE.exec(lines[end]);
    if (!match) break;
    body.push(match[1]);
  }
  return [{ type: "quote", blocks: parseLines(body, depth + 1).map((piece) => piece.block) }, end];
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {[Block, number]}
 */
function parseList(lines, at, depth) {
  const first = /** @type {RegExpExecArray} */ (ITEM.exec(lines[at]));
  const ordered = /\d/.test(first[2]);
  const indent = first[1].length;
  /** @type {List["items"]} */
  const items = [];
  let end = at;
  while (end < lines.length) {
    const match = ITEM.exec(lines[end]);
    if (!match || match[1].length !== indent || /\d/.test(match[2]) !== ordered || RULE.test(lines[end])) break;
    const inner = indent + match[2].length + Math.max(1, Math.min(match[3].length, 4));
    const task = /^\[([ xX])\]\s+(.*)$/.exec(match[4]);
    const body = [task ? task[2] : match[4]];
    end = itemEnd(lines, end + 1, indent, inner, body);
    items.push({ checked: task ? task[1] !== " " : null, blocks: parseLines(body, depth + 1).map((piece) => piece.block) });
  }
  return [{ type: "list", ordered, start: ordered ? Number.parseInt(first[2], 10) : 1, items }, end];
}

/**
 * Collects the lines of an item. Returns the line after its end.
 * @param {string[]} lines
 * @param {number} at
 * @param {number} indent
 * @param {number} inner
 * @param {string[]} body
 */
function itemEnd(lines, at, indent, inner, body) {
  let end = at;
  for (; end < lines.length; end += 1) {
    const line = lines[end];
    const lead = line.length - line.trimStart().length;
    if (line.trim() === "") {
      const next = lines[end + 1] ?? "";
      const nextLead = next.length - next.trimStart().length;
      if (next.trim() === "" || nextLead <= indent) {
        if (ITEM.test(next) && nextLead === indent) return end + 1;
        return end;
      }
      body.push("");
    } else if (lead > indent) body.push(line.slice(Math.min(lead, inner)));
    else if (ITEM.test(line) || isStart(line)) break;
    else body.push(line);
  }
  return end;
}

/** @param {string} line */
function isStart(line) {
  return FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || RULE.test(line);
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @returns {[Block, number]}
 */
function parseTable(lines, at) {
  const head = cells(lines[at]);
  const rows = [];
  let end = at + 2;
  for (; end < lines.length && lines[end].includes("|"); end += 1) {
    const row = cells(lines[end]).slice(0, head.length);
    while (row.length < head.length) row.push("");
    rows.push(row.map(parseInline));
  }
  return [{ type: "table", head: head.map(parseInline), rows }, end];
}

/**
 * Splits a row of a table at its bars. Bars in code and after a backslash do not count.
 * @param {string} line
 */
function cells(line) {
  const parts = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "").match(/(?:\\.|`[^`]*`|[^|])+|(?<=\|)(?=\|)/g) ?? [];
  return parts.map((part) => part.trim().replaceAll("\\|", "|"));
}

/**
 * @param {string[]} lines
 * @param {number} at
 * @param {number} depth
 * @returns {[Block, number]}
 */
function parseParagraph(lines, at, depth) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== "" && !isStart(lines[end]) && !(depth < MAX_DEPTH && ITEM.test(lines[end]))) end += 1;
  return [{ type: "paragraph", content: parseInline(lines.slice(at, end).join("\n")) }, end];
}
