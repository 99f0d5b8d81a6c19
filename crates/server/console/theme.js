// Dark and light: the system's choice, unless the user has made another.

const KEY = "theme";
const ORDER = ["", "light", "dark"];
const NAMES = { "": "System colours", light: "Light", dark: "Dark" };

/** Applies the stored choice. */
export function startTheme() {
  apply(localStorage.getItem(KEY) ?? "");
}

/** Switches to the next choice and returns its name. */
export function nextTheme() {
  const now = document.documentElement.dataset.theme ?? "";
  const next = ORDER[(ORDER.indexOf(now) + 1) % ORDER.length];
  localStorage.setItem(KEY, next);
  apply(next);
  return themeName();
}

export function themeName() {
  return /** @type {Record<string, string>} */ (NAMES)[document.documentElement.dataset.theme ?? ""];
}

/** @param {string} theme */
function apply(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}
