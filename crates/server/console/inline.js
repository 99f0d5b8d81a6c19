// Parses the text inside of a Markdown block: code, emphasis, links. Everything else is text.

/**
 * @typedef {{type: "text", text: string}} Text
 * @typedef {{type: "code", text: string}} CodeSpan
 * @typedef {{type: "break"}} Break
 * @typedef {{type: "strong"|"em"|"del", content: Inline[]}} Emphasis
 * @typedef {{type: "link", href: string, content: Inline[]}} Link
 * @typedef {Text|CodeSpan|Break|Emphasis|Link} Inline
 */

const MAX_TEXT = 20_000;
const MAX_DEPTH = 8;
// Emphasis does not reach further, so that many open marks take no quadratic time.
const MAX_EMPHASIS = 2000;
const SPECIAL = /[`*_~[<\\\n!]|https?:\/\//g;
const AUTOLINK = /^https?:\/\/[^\s<>"'`⟨⟩]+/;

/**
 * Returns an address that a link may have, or null. Only http, https and mailto are allowed.
 * @param {string} address
 */
export function safeHref(address) {
  const text = address.trim();
  if (!/^(?:https?:\/\/|mailto:)/i.test(text)) return null;
  if (/[\u0000-\u0020\u007f-\u00a0\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/.test(text)) return null;
  try {
    const { protocol } = new URL(text);
    return protocol === "http:" || protocol === "https:" || protocol === "mailto:" ? text : null;
  } catch {
    return null;
  }
}

/**
 * Parses the text of a block. Very long texts stay as they are.
 * @param {string} text
 * @param {number} [depth]
 * @returns {Inline[]}
 */
export function parseInline(text, depth = 0) {
  if (text.length > MAX_TEXT || depth > MAX_DEPTH) return [{ type: "text", text }];
  /** @type {Inline[]} */
  const out = [];
  const special = new RegExp(SPECIAL);
  let at = 0;
  for (let match = special.exec(text); match; match = special.exec(text)) {
    const found = parseAt(text, match.index, depth);
    if (!found) continue;
    addText(out, text.slice(at, match.index));
    out.push(...found.nodes);
    at = found.end;
    special.lastIndex = at;
  }
  addText(out, text.slice(at));
  return joined(out);
}

/**
 * @param {Inline[]} out
 * @param {string} text
 */
function addText(out, text) {
  if (text) out.push({ type: "text", text });
}

/**
 * Joins neighbouring texts.
 * @param {Inline[]} nodes
 */
function joined(nodes) {
  /** @type {Inline[]} */
  const out = [];
  for (const node of nodes) {
    const last = out.at(-1);
    if (node.type === "text" && last?.type === "text") last.text += node.text;
    else out.push(node);
  }
  return out;
}

/**
 * Parses what begins at a special character. Returns null if it is text.
 * @param {string} text
 * @param {number} at
 * @param {number} depth
 * @returns {{nodes: Inline[], end: number}|null}
 */
function parseAt(text, at, depth) {
  switch (text[at]) {
    case "\\":
      if (/[\\`*_{}[\]()#+\-.!|<>~]/.test(text[at + 1] ?? "")) return { nodes: [{ type: "text", text: text[at + 1] }], end: at + 2 };
      return null;
    case "\n":
      return /(?: {2}|\\)$/.test(text.slice(Math.max(0, at - 2), at)) ? { nodes: [{ type: "break" }], end: at + 1 } : null;
    case "`":
      return parseCode(text, at);
    case "*":
    case "_":
    case "~":
      return parseEmphasis(text, at, depth);
    case "[":
      return parseLink(text, at, depth);
    case "!":
      return text[at + 1] === "[" ? parseImage(text, at) : null;
    case "<":
      return parseAngle(text, at);
    default:
      return parseAddress(text, at);
  }
}

/**
 * @param {string} text
 * @param {number} at
 * @returns {{nodes: Inline[], end: number}}
 */
function parseCode(text, at) {
  const mark = /^`+/.exec(text.slice(at, at + 20))?.[0] ?? "`";
  let end = text.indexOf(mark, at + mark.length);
  while (end >= 0 && text[end + mark.length] === "`") {
    let run = end;
    while (text[run] === "`") run += 1;
    end = text.indexOf(mark, run);
  }
  if (end < 0) return { nodes: [{ type: "text", text: mark }], end: at + mark.length };
  let code = text.slice(at + mark.length, end).replaceAll("\n", " ");
  if (code.startsWith(" ") && code.endsWith(" ") && code.trim()) code = code.slice(1, -1);
  return { nodes: [{ type: "code", text: code }], end: end + mark.length };
}

/**
 * @param {string} text
 * @param {number} at
 * @param {number} depth
 * @returns {{nodes: Inline[], end: number}|null}
 */
function parseEmphasis(text, at, depth) {
  const mark = text[at];
  const double = text[at + 1] === mark;
  if (mark === "~" && !double) return null;
  const token = double ? mark + mark : mark;
  const start = at + token.length;
  if (start >= text.length || /\s/.test(text[start])) return null;
  if (mark === "_" && /\w/.test(text[at - 1] ?? "")) return null;
  let end = text.indexOf(token, start + 1);
  while (end >= 0 && end - start < MAX_EMPHASIS) {
    const closes = !/\s/.test(text[end - 1]) && (double || (text[end + 1] !== mark && text[end - 1] !== mark));
    if (closes && !(mark === "_" && /\w/.test(text[end + token.length] ?? ""))) break;
    end = text.indexOf(token, end + 1);
  }
  if (end < 0 || end - start >= MAX_EMPHASIS) return null;
  const type = mark === "~" ? "del" : double ? "strong" : "em";
  return { nodes: [{ type, content: parseInline(text.slice(start, end), depth + 1) }], end: end + token.length };
}

/**
 * @param {string} text
 * @param {number} at
 * @param {number} depth
 * @returns {{nodes: Inline[], end: number}|null}
 */
function parseLink(text, at, depth) {
  const match = /^\[((?:[^[\]\\]|\\.){0,500})\]\(\s*([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+"[^"]*")?\s*\)/.exec(text.slice(at, at + 3000));
  if (!match) return null;
  const href = safeHref(match[2]);
  if (!href) return { nodes: [{ type: "text", text: match[0] }], end: at + match[0].length };
  return { nodes: [{ type: "link", href, content: parseInline(match[1], depth + 1) }], end: at + match[0].length };
}

/**
 * Images of other hosts are not loaded: they become links.
 * @param {string} text
 * @param {number} at
 */
function parseImage(text, at) {
  const link = parseLink(text, at + 1, MAX_DEPTH);
  if (!link) return null;
  return link;
}

/**
 * @param {string} text
 * @param {number} at
 * @returns {{nodes: Inline[], end: number}|null}
 */
function parseAngle(text, at) {
  const match = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/.exec(text.slice(at, at + 2000));
  const href = match && safeHref(match[1]);
  if (!match || !href) return null;
  return { nodes: [{ type: "link", href, content: [{ type: "text", text: match[1] }] }], end: at + match[0].length };
}

/**
 * @param {string} text
 * @param {number} at
 * @returns {{nodes: Inline[], end: number}|null}
 */
function parseAddress(text, at) {
  const address = AUTOLINK.exec(text.slice(at, at + 2000))?.[0].replace(/[.,;:!?)\]}*_]+$/, "");
  const href = address && safeHref(address);
  if (!address || !href) return null;
  return { nodes: [{ type: "link", href, content: [{ type: "text", text: address }] }], end: at + address.length };
}
