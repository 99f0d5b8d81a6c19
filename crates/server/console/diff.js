// Parses unified diffs, and shows an edit as a diff before the tool has made one.

/**
 * @typedef {"context"|"add"|"remove"} LineKind
 * @typedef {{kind: LineKind, text: string, oldLine: number|null, newLine: number|null}} DiffLine
 * @typedef {{header: string, lines: DiffLine[]}} Hunk
 * @typedef {{path: string, change: string, hunks: Hunk[]}} FileDiff
 */

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)$/;

/** Lines of a file without text that changed, and what they say of it. */
const HEADERS = /** @type {const} */ ([
  ["new file mode ", "added"],
  ["deleted file mode ", "removed"],
  ["rename to ", "renamed"],
  ["copy to ", "copied"],
  ["new mode 100755", "made executable"],
  ["new mode 100644", "no longer executable"],
]);

/**
 * Parses a unified diff, of git or of another program. Lines outside of hunks only name files and say what happened to them.
 * @param {string} text
 * @param {string} [path] name of the file if the diff has no header
 * @returns {FileDiff[]}
 */
export function parseDiff(text, path = "") {
  /** @type {FileDiff[]} */
  const files = [];
  /** @type {FileDiff|null} */
  let file = null;
  /** @type {Hunk|null} */
  let hunk = null;
  let oldLeft = 0;
  let newLeft = 0;
  let oldLine = 0;
  let newLine = 0;
  let oldName = "";
  /** Whether git has named the file already. */
  let named = false;
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) {
    if (hunk && (oldLeft > 0 || newLeft > 0) && !line.startsWith("\\")) {
      const kind = line[0] === "+" ? "add" : line[0] === "-" ? "remove" : "context";
      const body = line.slice(1);
      hunk.lines.push({ kind, text: body, oldLine: kind === "add" ? null : oldLine, newLine: kind === "remove" ? null : newLine });
      if (kind !== "add") (oldLine += 1), (oldLeft -= 1);
      if (kind !== "remove") (newLine += 1), (newLeft -= 1);
      continue;
    }
    const match = HUNK.exec(line);
    if (match) {
      file ??= push(files, path);
      oldLine = Number(match[1]);
      newLine = Number(match[3]);
      oldLeft = match[2] === undefined ? 1 : Number(match[2]);
      newLeft = match[4] === undefined ? 1 : Number(match[4]);
      hunk = { header: line, lines: [] };
      file.hunks.push(hunk);
    } else if (line.startsWith("diff --git ")) {
      file = push(files, nameOf(line));
      named = true;
      hunk = null;
    } else if (line.startsWith("--- ")) {
      oldName = nameIn(line.slice(4), "a/");
      hunk = null;
    } else if (line.startsWith("+++ ")) {
      const name = nameIn(line.slice(4), "b/");
      const path = name === "/dev/null" ? oldName : name;
      if (named && file) {
        file.path = path;
        named = false;
        continue;
      }
      file = push(files, path);
      file.change = name === "/dev/null" ? "removed" : oldName === "/dev/null" ? "added" : "modified";
    } else if (named && file) {
      const header = HEADERS.find(([begin]) => line.startsWith(begin));
      if (header) file.change = header[1];
    } else if (line.startsWith("\\") && hunk) {
      hunk.lines.push({ kind: "context", text: "No newline at end of file", oldLine: null, newLine: null });
    }
  }
  return files;
}

/**
 * @param {FileDiff[]} files
 * @param {string} path
 */
function push(files, path) {
  /** @type {FileDiff} */
  const file = { path, change: "modified", hunks: [] };
  files.push(file);
  return file;
}

/**
 * Returns the name in a line that begins with `diff --git`, where both names are the same, or else the second one.
 * @param {string} line
 */
function nameOf(line) {
  const names = line.slice("diff --git ".length);
  const half = (names.length - 1) / 2;
  const [old, now] = [names.slice(0, half), names.slice(half + 1)];
  if (old.slice(2) === now.slice(2)) return nameIn(now, "b/");
  return nameIn(names.slice(names.lastIndexOf(" b/") + 1), "b/");
}

/**
 * @param {string} name
 * @param {string} prefix
 */
function nameIn(name, prefix) {
  const end = name.indexOf("\t");
  const path = end < 0 ? name : name.slice(0, end);
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

/**
 * Returns the hunks of the interface's workspace diff in the form of `parseDiff`.
 * @param {any} file
 * @returns {FileDiff}
 */
export function fromHunks(file) {
  const hunks = (file.hunks ?? []).map((/** @type {any} */ hunk) => {
    let oldLine = hunk.old_start ?? 1;
    let newLine = hunk.new_start ?? 1;
    const lines = (hunk.lines ?? []).map((/** @type {any} */ line) => ({
      kind: /** @type {LineKind} */ (line.kind),
      text: String(line.text ?? ""),
      oldLine: line.kind === "add" ? null : oldLine++,
      newLine: line.kind === "remove" ? null : newLine++,
    }));
    const olds = lines.filter((/** @type {DiffLine} */ line) => line.kind !== "add").length;
    const news = lines.filter((/** @type {DiffLine} */ line) => line.kind !== "remove").length;
    return { header: `@@ -${hunk.old_start ?? 1},${olds} +${hunk.new_start ?? 1},${news} @@`, lines };
  });
  return { path: String(file.path), change: String(file.change ?? "modified"), hunks };
}

/**
 * Returns the diffs that the arguments of an edit describe, as far as they say so: a replacement, a new file or a patch.
 * @param {any} args
 * @returns {FileDiff[]}
 */
export function diffOfArguments(args) {
  const patch = typeof args === "string" ? args : (args?.patch ?? args?.input);
  if (typeof patch === "string") return patch.includes("*** ") ? parsePatch(patch) : parseDiff(patch);
  const path = String(args?.file_path ?? args?.path ?? "");
  if (!path) return [];
  const before = args.old_string ?? args.old_str;
  const after = args.new_string ?? args.new_str;
  if (typeof before === "string" && typeof after === "string") {
    return [{ path, change: "modified", hunks: [{ header: "", lines: replacement(before, after) }] }];
  }
  if (typeof args.content === "string") {
    return [{ path, change: "added", hunks: [{ header: "", lines: linesOf(args.content, "add") }] }];
  }
  return [];
}

/**
 * Returns the lines of a replacement. Equal lines at both ends are context.
 * @param {string} before
 * @param {string} after
 * @returns {DiffLine[]}
 */
export function replacement(before, after) {
  const olds = before.split("\n");
  const news = after.split("\n");
  let start = 0;
  while (start < olds.length && start < news.length && olds[start] === news[start]) start += 1;
  let end = 0;
  while (end < olds.length - start && end < news.length - start && olds[olds.length - 1 - end] === news[news.length - 1 - end]) end += 1;
  return [
    ...linesOf(olds.slice(0, start), "context"),
    ...linesOf(olds.slice(start, olds.length - end), "remove"),
    ...linesOf(news.slice(start, news.length - end), "add"),
    ...linesOf(end > 0 ? olds.slice(-end) : [], "context"),
  ];
}

/**
 * @param {string|string[]} text
 * @param {LineKind} kind
 * @returns {DiffLine[]}
 */
function linesOf(text, kind) {
  const lines = typeof text === "string" ? text.replace(/\n$/, "").split("\n") : text;
  return lines.map((line) => ({ kind, text: line, oldLine: null, newLine: null }));
}

/**
 * Parses a patch in the V4A format as far as it is needed to show it.
 * @param {string} patch
 */
function parsePatch(patch) {
  /** @type {FileDiff[]} */
  const files = [];
  for (const line of patch.split("\n")) {
    const header = /^\*\*\* (Add|Update|Delete) File: (.+)$/.exec(line);
    if (header) {
      push(files, header[2]).change = header[1] === "Add" ? "added" : header[1] === "Delete" ? "removed" : "modified";
      continue;
    }
    const file = files.at(-1);
    if (!file || line.startsWith("*** ")) continue;
    if (line.startsWith("@@")) file.hunks.push({ header: line, lines: [] });
    else {
      if (file.hunks.length === 0) file.hunks.push({ header: "", lines: [] });
      const kind = line[0] === "+" ? "add" : line[0] === "-" ? "remove" : "context";
      file.hunks.at(-1)?.lines.push({ kind, text: line.slice(1), oldLine: null, newLine: null });
    }
  }
  return files;
}
