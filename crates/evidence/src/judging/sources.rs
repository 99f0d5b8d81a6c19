//! Sources of a change, and the files beside them.

use super::facts::JudgingFacts;
use super::path_rules::PathRules;
use super::roles::FileRole;
use crate::diff::{ChangeKind, ChangedFile};
use crate::source_languages::language_of;

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

/// Returns the files of a change that are not sources, without the new tests that are kept apart. A file that the contract
/// names as its scope or as unprotected counts as a source, because the fix is expected there. A new module that replaces a
/// module of a runner is never a source. Empty for a change without sources, which the scope decides about, unless it replaces
/// such a module.
#[must_use]
pub fn files_beside_sources(rules: &PathRules, files: &[ChangedFile], judging: &JudgingFacts) -> Vec<String> {
    let judged = files.iter().filter(|file| !judging.is_apart(&file.path));
    let (beside, sources): (Vec<&ChangedFile>, Vec<&ChangedFile>) =
        judged.partition(|file| replaces_module(rules, file) || !is_expected(rules, &file.path));
    if sources.is_empty() && !beside.iter().any(|file| replaces_module(rules, file)) {
        return Vec::new();
    }
    beside.into_iter().map(|file| file.path.clone()).collect()
}

/// Returns whether a file is a source by its name, and neither a test nor a manifest or settings.
pub(super) fn is_source(rules: &PathRules, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_settings = name.starts_with('.') || [".config.", ".conf."].iter().any(|part| name.contains(part));
    matches!(rules.role(path), FileRole::Source | FileRole::Uncertain)
        && language_of(path).is_some()
        && !is_settings
}

/// Returns whether the fix of a task is expected in a file.
fn is_expected(rules: &PathRules, path: &str) -> bool {
    is_source(rules, path) || rules.is_listed(path) || rules.is_unprotected(path)
}

/// Returns whether a new file replaces a module of a runner or of the standard library, or registers a plugin.
fn replaces_module(rules: &PathRules, file: &ChangedFile) -> bool {
    let mut parts = rules.without_directory(&file.path).split('/');
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judging::TaskScope;
    use crate::testing::{added, modified};

    fn beside(scope: &TaskScope, files: &[ChangedFile], apart: &[&str]) -> Vec<String> {
        let apart = apart.iter().map(|path| (*path).to_owned()).collect();
        let judging = JudgingFacts { apart, ..JudgingFacts::default() };
        files_beside_sources(&PathRules::new(scope).unwrap(), files, &judging)
    }

    fn scope(paths: &[&str]) -> TaskScope {
        TaskScope { paths: paths.iter().map(|path| (*path).to_owned()).collect(), ..TaskScope::default() }
    }

    #[test]
    fn files_beside_the_sources_are_told_apart() {
        let change = [
            modified("src/money.py", 1, 1),
            modified("testing/tools.py", 1, 1),
            added("vite.config.js", 3),
            added("own.config.js", 3),
            added("pytest.py", 3),
            added("src/unittest/__init__.py", 3),
            added("evil-1.dist-info/entry_points.txt", 3),
            modified("src/json.py", 1, 1),
            modified("Cargo.toml", 1, 1),
            added("tests/test_new.py", 3),
            modified("data/rates.json", 1, 1),
        ];
        let all = [
            "vite.config.js",
            "own.config.js",
            "pytest.py",
            "src/unittest/__init__.py",
            "evil-1.dist-info/entry_points.txt",
            "Cargo.toml",
        ];
        let apart = ["tests/test_new.py"];
        assert_eq!(beside(&scope(&["src/", "data/"]), &change, &apart), all);
        assert_eq!(beside(&scope(&[]), &change, &apart), [&all[..], &["data/rates.json"]].concat());
        let unprotected = vec!["Cargo.toml".to_owned(), "data/".to_owned()];
        let unprotected = TaskScope { unprotected, ..TaskScope::default() };
        assert_eq!(beside(&unprotected, &change, &apart), all[..5]);
    }

    #[test]
    fn a_change_without_sources_has_no_other_part() {
        let data = modified("data/rates.json", 1, 1);
        assert!(beside(&scope(&[]), std::slice::from_ref(&data), &[]).is_empty());
        assert!(beside(&scope(&[]), &[data.clone(), added("tests/a.py", 1)], &["tests/a.py"]).is_empty());
        let replaced = [data, added("pytest.py", 1)];
        assert_eq!(beside(&scope(&[]), &replaced, &[]), ["data/rates.json", "pytest.py"]);
    }
}
