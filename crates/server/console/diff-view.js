// Draws diffs with line numbers and colours.

import { button, h } from "./dom.js";
import { counted } from "./format.js";
import { languageOf } from "./syntax.js";
import { drawTokens } from "./text-view.js";

/** @import { DiffLine, FileDiff } from "./diff.js" */

const FIRST_LINES = 300;

/**
 * Draws the diffs of some files.
 * @param {FileDiff[]} files
 * @param {{folded?: boolean}} [options]
 */
export function drawDiffs(files, options = {}) {
  return h("div", { class: "diffs" }, ...files.map((file) => drawFile(file, options.folded ?? false)));
}

/**
 * @param {FileDiff} file
 * @param {boolean} folded
 */
function drawFile(file, folded) {
  let added = 0;
  let removed = 0;
  for (const hunk of file.hunks) {
    for (const line of hunk.lines) {
      if (line.kind === "add") added += 1;
      else if (line.kind === "remove") removed += 1;
    }
  }
  const head = h("summary", { data: { focus: file.path } }, h("span", { class: "path" }, file.path), " ", h("span", { class: "change" }, file.change), " ", drawCounts(added, removed));
  const box = h("details", { class: "file", open: !folded }, head);
  let drawn = false;
  const draw = () => {
    if (drawn || !box.open) return;
    drawn = true;
    box.append(file.hunks.length === 0 ? h("p", { class: "dim" }, "There is no text to show.") : drawHunks(file));
  };
  box.addEventListener("toggle", draw);
  draw();
  return box;
}

/**
 * Draws how many lines were added and removed.
 * @param {number} added
 * @param {number} removed
 */
export function drawCounts(added, removed) {
  return h("span", { class: "counts" }, h("span", { class: "added" }, `+${added}`), " ", h("span", { class: "removed" }, `−${removed}`));
}

/** @param {FileDiff} file */
function drawHunks(file) {
  const language = languageOf(file.path);
  const body = h("tbody");
  const table = h("table", { class: "diff" }, h("caption", { class: "hidden-text" }, `Changes of ${file.path}`), body);
  const box = h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": `Changes of ${file.path}` }, table);
  /** @type {HTMLTableRowElement[]} */
  const rows = [];
  /** @type {(() => HTMLTableRowElement)[]} */
  const later = [];
  for (const hunk of file.hunks) {
    const makers = hunk.lines.map((line) => () => drawLine(line, language));
    if (hunk.header) makers.unshift(() => h("tr", { class: "hunk" }, h("td", { colspan: 4 }, hunk.header)));
    for (const make of makers) {
      if (rows.length < FIRST_LINES) rows.push(make());
      else later.push(make);
    }
  }
  body.append(...rows);
  if (later.length > 0) addMore(box, body, later);
  return box;
}

/**
 * @param {HTMLElement} box
 * @param {HTMLElement} body
 * @param {(() => HTMLTableRowElement)[]} later
 */
function addMore(box, body, later) {
  const more = button(`Show more (${counted(later.length, "line")})`, () => {
    more.remove();
    body.append(...later.splice(0, FIRST_LINES * 10).map((make) => make()));
    if (later.length > 0) addMore(box, body, later);
    box.focus();
  }, { class: "more", data: { focus: "more" } });
  box.append(more);
}

const MARKS = { add: "+", remove: "−", context: "" };

/**
 * @param {DiffLine} line
 * @param {ReturnType<typeof languageOf>} language
 */
function drawLine(line, language) {
  const code = h("td", { class: "code" });
  drawTokens(code, line.text.length > 4000 ? `${line.text.slice(0, 4000)} … (${counted(line.text.length - 4000, "more character")})` : line.text, language);
  return h(
    "tr",
    { class: line.kind },
    h("td", { class: "number" }, line.oldLine ?? ""),
    h("td", { class: "number" }, line.newLine ?? ""),
    h("td", { class: "mark" }, MARKS[line.kind]),
    code,
  );
}
