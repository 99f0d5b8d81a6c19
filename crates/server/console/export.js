// Exports a session as one HTML file that needs nothing else.

import { h } from "./dom.js";
import { drawEntry } from "./entry-view.js";
import { cost, counted, percent, tokens } from "./format.js";
import { htmlDocument, serialize } from "./serialize.js";

/** @import { Entry, Image, Session, SessionState } from "./types.js" */

const AT_ONCE = 200;

/** Opens everything, so that every row draws its content. */
class Everything extends Map {
  get() {
    return true;
  }
}

/**
 * Makes the file and offers it for download.
 * @param {Session|null} session
 * @param {SessionState} state
 * @param {(image: Image) => string|null} imageUrl
 */
export async function exportSession(session, state, imageUrl) {
  const title = session?.title || state.sessionId;
  const images = await loadImages(state, imageUrl);
  const head = h("header", { class: "export-head" }, h("h1", null, title), h("p", { class: "dim" }, summary(session, state)));
  const parts = [serialize(head), "<main>"];
  for (let i = 0; i < state.entries.length; i += AT_ONCE) {
    for (const entry of state.entries.slice(i, i + AT_ONCE)) parts.push(serialize(drawForExport(entry, images)));
    await new Promise((resolve) => setTimeout(resolve));
  }
  parts.push("</main>");
  const style = await (await fetch("./console/style.css")).text();
  const text = htmlDocument(title, style, parts.join("\n"), document.documentElement.dataset.theme ?? "");
  download(`${fileName(title)}.html`, text);
}

/**
 * @param {Entry} entry
 * @param {Map<string, string>} images
 */
function drawForExport(entry, images) {
  const row = drawEntry(entry, { folds: new Everything(), imageUrl: (image) => (image.hash ? (images.get(image.hash) ?? null) : null) });
  unfoldAll(row.element);
  for (const element of row.element.querySelectorAll("[tabindex]")) {
    if (element.tagName !== "PRE" && !element.classList.contains("wide")) element.removeAttribute("tabindex");
  }
  // Unfolded details are drawn but closed, except diffs and plans.
  for (const details of row.element.querySelectorAll(":scope > details")) {
    if (entry.type !== "call" || (entry.changes.length === 0 && !entry.plan)) details.removeAttribute("open");
  }
  return row.element;
}

/**
 * Shows all pages of long texts, as a file has no buttons.
 * @param {HTMLElement} element
 */
function unfoldAll(element) {
  for (let more = element.querySelector("button.more"); more; more = element.querySelector("button.more")) {
    /** @type {HTMLButtonElement} */ (more).click();
  }
}

/**
 * Loads the images of a session as data addresses.
 * @param {SessionState} state
 * @param {(image: Image) => string|null} imageUrl
 */
async function loadImages(state, imageUrl) {
  /** @type {Map<string, string>} */
  const loaded = new Map();
  for (const entry of state.entries) {
    if (entry.type !== "input" && entry.type !== "call") continue;
    for (const image of entry.images) {
      const url = imageUrl(image);
      if (!url || !image.hash || loaded.has(image.hash)) continue;
      const response = await fetch(url).catch(() => null);
      if (response?.ok) loaded.set(image.hash, await dataUrl(await response.blob(), image.media_type ?? "image/png"));
    }
  }
  return loaded;
}

/**
 * @param {Blob} blob
 * @param {string} type
 * @returns {Promise<string>}
 */
function dataUrl(blob, type) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(new Blob([blob], { type }));
  });
}

/**
 * @param {Session|null} session
 * @param {SessionState} state
 */
function summary(session, state) {
  const { usage } = state;
  const parts = [session?.model ?? state.model, state.directory, session?.created_at, counted(state.rounds, "model call"), `${tokens(usage.input)} tokens in, ${percent(usage.cacheRead, usage.input)} from cache`, `${tokens(usage.output)} out`];
  if (session?.cost_usd !== undefined) parts.push(cost(session.cost_usd));
  return parts.filter(Boolean).join(" · ");
}

/** @param {string} title */
function fileName(title) {
  const name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  return name.slice(0, 60) || "session";
}

/**
 * @param {string} name
 * @param {string} text
 */
function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/html" }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
