// Pages, as the part of the address behind `#` names them.

/**
 * @typedef {{kind: "session"|"task"|"tasks"|"none", id: string}} Page
 */

/**
 * Returns the page that an address names.
 * @param {string} hash
 * @returns {Page}
 */
export function pageOf(hash) {
  if (hash === "#/t") return { kind: "tasks", id: "" };
  const match = /^#\/([st])\/([^/]+)$/.exec(hash);
  if (!match) return { kind: "none", id: "" };
  return { kind: match[1] === "s" ? "session" : "task", id: decodeURIComponent(match[2]) };
}
