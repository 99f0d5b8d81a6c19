// Makes elements. All text goes through `visible` and becomes a text node; nothing is parsed as HTML.

import { visible } from "./text.js";

/**
 * @typedef {Node|string|number|null|undefined|false} Child
 * @typedef {Record<string, any>} Properties `class`, `on` (listeners), `data` (data attributes), and attributes
 */

/** Attributes that people read or hear. */
const SPOKEN = new Set(["alt", "aria-label", "placeholder", "title"]);

/**
 * Creates an element.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Properties|null} [properties]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
    } else if (name === "data") {
      for (const [key, item] of Object.entries(value)) element.dataset[key] = String(item);
    } else element.setAttribute(name, value === true ? "" : SPOKEN.has(name) ? visible(String(value)) : String(value));
  }
  for (const child of children) add(element, child);
  return element;
}

/**
 * @param {Node} parent
 * @param {Child} child
 */
export function add(parent, child) {
  if (child === null || child === undefined || child === false) return;
  parent.appendChild(child instanceof Node ? child : t(String(child)));
}

/**
 * Creates a text node in which hidden marks are visible.
 * @param {string} text
 */
export function t(text) {
  return document.createTextNode(visible(text));
}

/**
 * Replaces the children of an element.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  for (const child of children) add(element, child);
}

/**
 * Creates a button.
 * @param {string} label
 * @param {(event: Event) => void} run
 * @param {Properties} [properties]
 */
export function button(label, run, properties = {}) {
  return h("button", { type: "button", ...properties, on: { click: run } }, label);
}

/**
 * Creates a field with a label above it.
 * @param {string} label
 * @param {HTMLElement} field
 * @param {string} [more] class names
 */
export function labelled(label, field, more = "") {
  return h("label", { class: `field ${more}` }, h("span", { class: "label" }, label), field);
}

/**
 * Creates a select.
 * @param {{value: string, text: string}[]} options
 * @param {string} value
 * @param {(value: string) => void} changed
 * @param {Properties} [properties]
 */
export function select(options, value, changed, properties = {}) {
  const element = h("select", properties, ...options.map((option) => h("option", { value: option.value }, option.text)));
  element.value = value;
  element.addEventListener("change", () => changed(element.value));
  return element;
}

/**
 * Speaks a text to a screen reader.
 * @param {string} text
 * @param {boolean} [urgent]
 */
export function announce(text, urgent = false) {
  const region = document.getElementById(urgent ? "alarm" : "announce");
  if (region) fill(region, text);
}

/**
 * Opens a modal dialog. It is removed when it closes, and the focus returns.
 * @param {string} title
 * @param {Child[]} content
 * @param {string} [more] class names
 */
export function dialog(title, content, more = "") {
  const before = document.activeElement;
  const close = button("Close", () => element.close(), { class: "quiet" });
  const heading = h("h2", { id: "dialog-title" }, title);
  const element = h("dialog", { "aria-labelledby": "dialog-title", class: more }, h("header", null, heading, close), ...content);
  element.addEventListener("close", () => {
    element.remove();
    if (before instanceof HTMLElement && before.isConnected) before.focus();
  });
  document.body.append(element);
  element.showModal();
  return element;
}

/**
 * Shows a message for a while.
 * @param {string} text
 * @param {"info"|"error"} [level]
 */
export function toast(text, level = "info") {
  document.querySelector(".toast")?.remove();
  const close = button("Dismiss", () => element.remove(), { class: "quiet" });
  const element = h("div", { class: `toast ${level}` }, h("p", null, text), close);
  document.body.append(element);
  announce(text, level === "error");
  setTimeout(() => element.remove(), level === "error" ? 12_000 : 4_000);
}
