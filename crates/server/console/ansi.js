// Reads terminal output: colours become spans, other control sequences are dropped, an overwritten line shows its last state.

import { firstLine } from "./text.js";

/**
 * @typedef {{text: string, style: string}} Span `style` is a list of class names
 */

// Control sequences, operating system commands, and other escapes of two characters.
const ESCAPE = /\u001b(?:\[([0-?]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])/g;

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/**
 * Splits terminal output into spans of one style.
 * @param {string} text
 * @returns {Span[]}
 */
export function parseTerminal(text) {
  const clean = overwritten(text);
  /** @type {Span[]} */
  const spans = [];
  const pen = { bold: false, dim: false, italic: false, underline: false, colour: "" };
  let end = 0;
  for (const match of clean.matchAll(ESCAPE)) {
    add(spans, clean.slice(end, match.index), styleOf(pen));
    end = match.index + match[0].length;
    if (match[2] === "m") turn(pen, match[1] ?? "");
  }
  add(spans, clean.slice(end), styleOf(pen));
  return spans;
}

/**
 * Returns the first line of terminal output without control sequences.
 * @param {string} text
 * @param {number} max
 */
export function plainLine(text, max) {
  return firstLine(text.slice(0, max * 20).replace(ESCAPE, ""), max);
}

/**
 * @param {Span[]} spans
 * @param {string} text
 * @param {string} style
 */
function add(spans, text, style) {
  if (!text) return;
  const last = spans.at(-1);
  if (last && last.style === style) last.text += text;
  else spans.push({ text, style });
}

/**
 * Keeps the last state of lines that were overwritten after a carriage return.
 * @param {string} text
 */
function overwritten(text) {
  if (!text.includes("\r")) return text;
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  return lines.map((line) => (line.includes("\r") ? line.slice(line.replace(/\r+$/, "").lastIndexOf("\r") + 1).replace(/\r+$/, "") : line)).join("\n");
}

/**
 * @typedef {{bold: boolean, dim: boolean, italic: boolean, underline: boolean, colour: string}} Pen
 * @param {Pen} pen
 */
function styleOf(pen) {
  const styles = [];
  if (pen.bold) styles.push("t-bold");
  if (pen.dim) styles.push("t-dim");
  if (pen.italic) styles.push("t-italic");
  if (pen.underline) styles.push("t-underline");
  if (pen.colour) styles.push(`t-${pen.colour}`);
  return styles.join(" ");
}

/**
 * Applies the numbers of a colour sequence. Colours of the large palettes become the default colour.
 * @param {Pen} pen
 * @param {string} list
 */
function turn(pen, list) {
  const codes = list.split(/[;:]/).map(Number);
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i];
    if (code === 0) Object.assign(pen, { bold: false, dim: false, italic: false, underline: false, colour: "" });
    else if (code === 1) pen.bold = true;
    else if (code === 2) pen.dim = true;
    else if (code === 3) pen.italic = true;
    else if (code === 4) pen.underline = true;
    else if (code === 22) pen.bold = pen.dim = false;
    else if (code === 23) pen.italic = false;
    else if (code === 24) pen.underline = false;
    else if (code >= 30 && code <= 37) pen.colour = COLOURS[code - 30];
    else if (code >= 90 && code <= 97) pen.colour = COLOURS[code - 90];
    else if (code === 39) pen.colour = "";
    else if (code === 38 || code === 48) {
      if (code === 38) pen.colour = codes[i + 1] === 5 && codes[i + 2] < 16 ? COLOURS[codes[i + 2] % 8] : "";
      i += codes[i + 1] === 5 ? 2 : 4;
    }
  }
}
