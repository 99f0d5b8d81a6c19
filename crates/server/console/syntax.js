// Splits a line of code into coloured tokens. It knows one line at a time, and just enough of each language.

/**
 * @typedef {{text: string, type: "plain"|"keyword"|"string"|"number"|"comment"|"name"}} Token
 * @typedef {{comment: string, strings: string, keywords: Set<string>}} Language
 */

/**
 * @param {string} comment
 * @param {string} strings
 * @param {string} keywords
 * @returns {Language}
 */
function language(comment, strings, keywords) {
  return { comment, strings, keywords: new Set(keywords.split(" ")) };
}

const RUST = language(
  "//|/\\*.*?(?:\\*/|$)|^\\s*\\*.*",
  "\"",
  "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
);
const SCRIPT = language(
  "//|/\\*.*?(?:\\*/|$)|^\\s*\\*.*",
  "\"'`",
  "async await break case catch class const continue default delete do else export extends false finally for from function if implements import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield",
);
const PYTHON = language(
  "#",
  "\"'",
  "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield",
);
const C = language(
  "//|/\\*.*?(?:\\*/|$)|^\\s*\\*.*",
  "\"'",
  "auto bool break case catch char class const constexpr continue default delete do double else enum extern false final float for func go goto if import int interface long map namespace new nil null nullptr override package private protected public range return select short signed sizeof static struct switch template this throw true try type typedef union unsigned using var virtual void volatile while",
);
const SHELL = language("#", "\"'", "case cd do done echo elif else esac exit export fi for function if in local return set then unset while");
const DATA = language("#", "\"'", "true false null yes no");
const SQL = language("--", "'", "select from where insert into values update set delete create table index drop alter join left right inner outer on as and or not null primary key references group by order having limit union begin commit rollback SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE INDEX DROP ALTER JOIN LEFT RIGHT INNER OUTER ON AS AND OR NOT NULL PRIMARY KEY REFERENCES GROUP BY ORDER HAVING LIMIT UNION BEGIN COMMIT ROLLBACK");

/** @type {Record<string, Language>} */
const BY_NAME = {
  rs: RUST, rust: RUST,
  js: SCRIPT, mjs: SCRIPT, cjs: SCRIPT, ts: SCRIPT, tsx: SCRIPT, jsx: SCRIPT, javascript: SCRIPT, typescript: SCRIPT,
  py: PYTHON, python: PYTHON, pyi: PYTHON,
  c: C, h: C, cc: C, cpp: C, hpp: C, java: C, kt: C, go: C, cs: C, swift: C, css: C,
  sh: SHELL, bash: SHELL, zsh: SHELL, shell: SHELL, dockerfile: SHELL, makefile: SHELL,
  json: DATA, jsonl: DATA, toml: DATA, yaml: DATA, yml: DATA, ini: DATA, rb: PYTHON,
  sql: SQL,
};

const MAX_LINE = 2000;

/**
 * Returns the language of a file or of a fenced block, or null.
 * @param {string} name a path, or the name of a language
 */
export function languageOf(name) {
  const key = (name.split("/").at(-1) ?? "").split(".").at(-1)?.toLowerCase() ?? "";
  return Object.hasOwn(BY_NAME, key) ? BY_NAME[key] : null;
}

/** @type {WeakMap<Language, RegExp>} */
const PATTERNS = new WeakMap();

/** @param {Language} language */
function patternOf(language) {
  let pattern = PATTERNS.get(language);
  if (!pattern) {
    const comments = language.comment.split("|").map((start) => (start.length <= 2 ? `${start.replace(/[-/]/g, "\\$&")}.*` : start));
    const strings = [...language.strings].map((quote) => `${quote}(?:\\\\.|[^${quote}\\\\])*(?:${quote}|$)`);
    pattern = new RegExp(`(${comments.join("|")})|(${strings.join("|")})|(\\b\\d[\\w.]*)|([A-Za-z_$][\\w$]*)`, "g");
    PATTERNS.set(language, pattern);
  }
  pattern.lastIndex = 0;
  return pattern;
}

/**
 * Splits a line into tokens. Very long lines are left as they are.
 * @param {string} line
 * @param {Language|null} language
 * @returns {Token[]}
 */
export function highlight(line, language) {
  if (!language || line.length > MAX_LINE || line === "") return [{ text: line, type: "plain" }];
  /** @type {Token[]} */
  const tokens = [];
  let end = 0;
  for (const match of line.matchAll(patternOf(language))) {
    const type = typeOf(match, language, line);
    if (type === "plain") continue;
    if (match.index > end) tokens.push({ text: line.slice(end, match.index), type: "plain" });
    tokens.push({ text: match[0], type });
    end = match.index + match[0].length;
  }
  if (end < line.length) tokens.push({ text: line.slice(end), type: "plain" });
  return tokens;
}

/**
 * @param {RegExpMatchArray} match
 * @param {Language} language
 * @param {string} line
 * @returns {Token["type"]}
 */
function typeOf(match, language, line) {
  if (match[1]) return "comment";
  if (match[2]) return "string";
  if (match[3]) return "number";
  if (language.keywords.has(match[0])) return "keyword";
  return line[(match.index ?? 0) + match[0].length] === "(" ? "name" : "plain";
}
