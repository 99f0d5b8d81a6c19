// Scopes of the token that this page has. What needs another one is not shown.

/** @typedef {"read"|"run"|"approve"|"admin"} Scope */

/** @type {Scope[]} */
const ALL = ["read", "run", "approve", "admin"];

/** @type {Scope[]} */
let scopes = ALL;

/**
 * Sets the scopes, and hides the elements that need others: those whose `data-needs` names one.
 * @param {Scope[]} found
 */
export function setScopes(found) {
  scopes = found;
  document.documentElement.dataset.lacks = ALL.filter((scope) => !may(scope)).join(" ");
}

/**
 * Returns whether the token has a scope.
 * @param {Scope} scope
 */
export function may(scope) {
  return scopes.includes(scope);
}
