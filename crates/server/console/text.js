// Handles text that nobody has checked: invisible characters, long lines, byte lengths.

const HIDDEN = new RegExp(
  "[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f" +
    "\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]|[\\u{e0000}-\\u{e007f}]",
  "gu",
);

/**
 * Makes characters visible that change the order of text or that cannot be seen: `⟨U+202E⟩`.
 * A carriage return before a line feed is dropped.
 * @param {string} text
 */
export function visible(text) {
  return text
    .replace(/\r\n/g, "\n")
    .replace(/\r/g, "⟨U+000D⟩")
    .replace(HIDDEN, (mark) => {
      const code = mark.codePointAt(0) ?? 0;
      return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
    });
}

/**
 * Returns a value as JSON for an editor. Hidden characters are escaped, so that they are seen and stay what they are.
 * @param {unknown} value
 */
export function escapedJson(value) {
  const text = JSON.stringify(value, null, 2) ?? "null";
  return text.replace(HIDDEN, (mark) => mark.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""));
}

/**
 * Returns the length of a text in UTF-8. A lone surrogate counts like its replacement character.
 * @param {string} text
 */
export function utf8Length(text) {
  let length = 0;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) length += 1;
    else if (unit < 0x800) length += 2;
    else if (isHigh(unit) && isLow(text.charCodeAt(i + 1))) {
      length += 4;
      i += 1;
    } else length += 3;
  }
  return length;
}

/** @param {number} unit */
function isHigh(unit) {
  return unit >= 0xd800 && unit < 0xdc00;
}

/** @param {number} unit */
function isLow(unit) {
  return unit >= 0xdc00 && unit < 0xe000;
}

/**
 * Removes the first bytes of a text in UTF-8. A character that is cut in two is removed.
 * @param {string} text
 * @param {number} count
 */
export function dropBytes(text, count) {
  let dropped = 0;
  let i = 0;
  while (dropped < count && i < text.length) {
    const size = isHigh(text.charCodeAt(i)) && isLow(text.charCodeAt(i + 1)) ? 2 : 1;
    dropped += utf8Length(text.slice(i, i + size));
    i += size;
  }
  return text.slice(i);
}

/**
 * Returns the end of the part of a text that is shown first: at most so many lines and characters.
 * @param {string} text
 * @param {number} from
 * @param {number} maxLines
 * @param {number} maxChars
 */
export function endOfPage(text, from, maxLines, maxChars) {
  const limit = Math.min(text.length, from + maxChars);
  let end = from;
  for (let line = 0; line < maxLines; line += 1) {
    const next = text.indexOf("\n", end);
    if (next < 0 || next >= limit) return whole(text, limit);
    end = next + 1;
  }
  return end;
}

/**
 * Returns the start of the part of a text that is shown first if its end matters most.
 * @param {string} text
 * @param {number} to
 * @param {number} maxLines
 * @param {number} maxChars
 */
export function startOfPage(text, to, maxLines, maxChars) {
  const limit = Math.max(0, to - maxChars);
  let start = to;
  if (text[to - 1] === "\n") start = to - 1;
  for (let line = 0; line < maxLines; line += 1) {
    const previous = start > 0 ? text.lastIndexOf("\n", start - 1) : -1;
    if (previous < limit) return limit === 0 ? 0 : whole(text, limit);
    start = previous;
  }
  return start + 1;
}

/**
 * Returns a position that does not separate a pair of surrogates.
 * @param {string} text
 * @param {number} at
 */
function whole(text, at) {
  return at > 0 && at < text.length && isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1)) ? at + 1 : at;
}

/**
 * Returns the first line of a text, cut to a number of characters.
 * @param {string} text
 * @param {number} [max]
 */
export function firstLine(text, max = 160) {
  const start = text.slice(0, max * 4).trimStart();
  const end = start.indexOf("\n");
  const line = end < 0 ? start : start.slice(0, end);
  const cut = line.length > max;
  const more = cut || end >= 0 || text.length > max * 4;
  return cut ? `${line.slice(0, whole(line, max - 1))}…` : more && end >= 0 && start.slice(end).trim() ? `${line} …` : line;
}
