//! Parts of a change: its sources, the files beside them, and its changed lines.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::PathRules;
use crate::diff::{ChangeKind, ChangedFile, Diff};

/// Extensions of source files.
const SOURCES: [&str; 47] = [
    "bash", "c", "cc", "cjs", "clj", "cpp", "cs", "css", "cts", "cxx", "dart", "erl", "ex", "exs", "fs",
    "go", "h", "hpp", "hs", "html", "java", "js", "jsx", "kt", "kts", "lua", "m", "mjs", "ml", "mts", "php",
    "pl", "pm", "py", "r", "rb", "rs", "scala", "scss", "sh", "sql", "svelte", "swift", "ts", "tsx", "vue",
    "zig",
];

/// Names of files that have the extension of a source and configure a tool.
const CONFIGURATION: [&str; 12] = [
    "build.rs",
    "conftest.py",
    "jest.setup.js",
    "jest.setup.ts",
    "manage.py",
    "noxfile.py",
    "setup.py",
    "setupTests.js",
    "setupTests.ts",
    "sitecustomize.py",
    "usercustomize.py",
    "vitest.setup.ts",
];

/// Modules of runners and of the standard library that a file at an import root would replace.
const RUNNERS: [&str; 24] = [
    "_pytest",
    "assert",
    "ava",
    "chai",
    "doctest",
    "exceptiongroup",
    "faulthandler",
    "iniconfig",
    "jest",
    "json",
    "mocha",
    "nose",
    "os",
    "pluggy",
    "py",
    "pytest",
    "re",
    "site",
    "sys",
    "tap",
    "types",
    "typing",
    "unittest",
    "vitest",
];

/// Returns the files of a change that are not sources. A file that the scope names counts as a source, because the contract
/// expects the fix there. A new module that replaces a module of a runner is never a source.
pub(crate) fn non_sources(diff: &Diff, rules: &PathRules) -> Vec<String> {
    let is_other =
        |file: &&ChangedFile| shadows_runner(file) || !(is_source(&file.path) || rules.is_named(&file.path));
    diff.files.iter().filter(is_other).map(|file| file.path.clone()).collect()
}

/// Returns whether a change adds a file that replaces a module of a runner.
pub(crate) fn replaces_runner(diff: &Diff) -> bool {
    diff.files.iter().any(shadows_runner)
}

/// Returns whether a file is a source by its name, and not the configuration of a tool.
pub(crate) fn is_source(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default();
    let is_configuration = CONFIGURATION.contains(&name)
        || name.starts_with('.')
        || [".config.", ".conf."].iter().any(|part| name.contains(part))
        || path.split('/').any(|part| part.ends_with(".dist-info") || part.ends_with(".egg-info"));
    SOURCES.contains(&extension) && !is_configuration
}

/// Returns whether a file belongs to the configuration of tests and cannot be part of an anchor.
pub(crate) fn is_test_configuration(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_other_data = |extension: &str| matches!(extension, "ini" | "cfg" | "toml" | "pth");
    CONFIGURATION.contains(&name)
        || name.starts_with('.')
        || name.contains(".config.")
        || name == "package.json"
        || name.rsplit_once('.').is_some_and(|(stem, extension)| {
            is_other_data(extension) && ["pytest", "tox", "setup", "pyproject", "nextest"].contains(&stem)
                || extension == "pth"
        })
}

/// Returns whether a new file replaces a module of a runner or of the standard library, or registers a plugin.
fn shadows_runner(file: &ChangedFile) -> bool {
    let mut parts = file.path.split('/');
    let first = parts.next().unwrap_or_default();
    let module = match first {
        // The import roots of the usual layouts.
        "src" | "lib" => parts.next().unwrap_or_default(),
        _ => first,
    };
    let is_plugin = |part: &str| part.ends_with(".dist-info") || part.ends_with(".egg-info");
    let name = module.split('.').next().unwrap_or_default();
    let is_module = [".py", ".js", ".cjs", ".mjs"].iter().any(|extension| file.path.ends_with(extension));
    file.kind == ChangeKind::Added
        && (file.path.split('/').any(is_plugin)
            || file.path.ends_with(".pth")
            || is_module && RUNNERS.contains(&name))
}

/// Returns the lines that a patch adds or changes, from 1, by the path of their file. Renamed and binary files have none.
pub(crate) fn changed_lines(patch: &[u8]) -> BTreeMap<String, BTreeSet<u64>> {
    let text = String::from_utf8_lossy(patch);
    let mut lines: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    let (mut path, mut number, mut left) = (None::<String>, 0_u64, 0_u64);
    for line in text.split('\n') {
        if left == 0 {
            if let Some(named) = line.strip_prefix("+++ ") {
                path = named.trim_end().strip_prefix("b/").map(str::to_owned);
            } else if let Some(hunk) = line.strip_prefix("@@ ") {
                (number, left) = new_range(hunk).unwrap_or_default();
            }
            continue;
        }
        match line.as_bytes().first() {
            Some(b'+') => {
                if let Some(path) = &path {
                    lines.entry(path.clone()).or_default().insert(number);
                }
            }
            Some(b'-' | b'\\') => continue,
            _ => {}
        }
        number += 1;
        left -= 1;
    }
    lines
}

/// Returns first line and number of lines in the new file: `-1,2 +3,4 @@`.
fn new_range(hunk: &str) -> Option<(u64, u64)> {
    let range = hunk.split(' ').find_map(|part| part.strip_prefix('+'))?;
    let (first, count) = range.split_once(',').unwrap_or((range, "1"));
    Some((first.parse().ok()?, count.parse().ok()?))
}

/// Returns whether a new file is probably a renamed one: as many lines were removed with another file.
pub(crate) fn is_renamed(diff: &Diff, path: &str) -> bool {
    let added = diff.files.iter().find(|file| file.path == path && file.kind == ChangeKind::Added);
    let is_source =
        |lines: u64| diff.files.iter().any(|file| file.kind == ChangeKind::Deleted && file.removed == lines);
    added.is_some_and(|file| is_source(file.added))
}
