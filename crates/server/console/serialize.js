// Writes a tree of elements as HTML text. It escapes all text, so that a parser reads back the same tree.

/**
 * @typedef {object} NodeLike the part of a DOM node that is used here
 * @property {number} nodeType
 * @property {string} nodeName
 * @property {string|null} nodeValue
 * @property {ArrayLike<NodeLike>} [childNodes]
 * @property {ArrayLike<{name: string, value: string}>} [attributes]
 */

const ELEMENT = 1;
const TEXT = 3;
const EMPTY = new Set(["BR", "COL", "HR", "IMG", "INPUT", "LINK", "META"]);
const NAME = /^[a-z][a-z0-9-]*$/i;

/**
 * @param {string} text
 */
export function escapeText(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** @param {string} text */
function escapeAttribute(text) {
  return escapeText(text).replaceAll('"', "&quot;");
}

/**
 * Returns a node and its children as HTML. Scripts are left out.
 * @param {NodeLike} node
 * @returns {string}
 */
export function serialize(node) {
  if (node.nodeType === TEXT) return escapeText(node.nodeValue ?? "");
  if (node.nodeType !== ELEMENT) return "";
  const name = node.nodeName.toLowerCase();
  if (name === "script" || name === "button") return "";
  let out = `<${name}`;
  for (const attribute of Array.from(node.attributes ?? [])) {
    if (!NAME.test(attribute.name) || attribute.name.toLowerCase().startsWith("on")) continue;
    out += attribute.value === "" ? ` ${attribute.name}` : ` ${attribute.name}="${escapeAttribute(attribute.value)}"`;
  }
  out += ">";
  if (EMPTY.has(node.nodeName.toUpperCase())) return out;
  // A parser drops a line feed right after <pre>.
  if (name === "pre") out += "\n";
  for (const child of Array.from(node.childNodes ?? [])) out += serialize(child);
  return `${out}</${name}>`;
}

/**
 * Returns a complete document.
 * @param {string} title
 * @param {string} style
 * @param {string} body HTML that `serialize` has made
 * @param {string} theme
 */
export function htmlDocument(title, style, body, theme) {
  const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
  // Nothing but the end tag ends a style sheet.
  const safeStyle = style.replaceAll("</", "<\\/");
  return `<!doctype html>
<html lang="en"${theme ? ` data-theme="${escapeAttribute(theme)}"` : ""}>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeText(title)}</title>
<style>
${safeStyle}
</style>
</head>
<body class="exported">
${body}
</body>
</html>
`;
}
