//! Tests in the files of the code that they test. They are compared as token streams: tests that were there have to stay
//! as they are, in any of the changed files, and new ones may be added.

mod python;
mod rust;
mod rust_tokens;

use std::collections::{BTreeMap, BTreeSet};

use super::assess::ChangedText;
use super::facts::JudgingPart;

/// A test beside code, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InlineTest {
    /// Name in messages.
    name: String,
    /// Its tokens, after the attributes of all modules around it.
    tokens: String,
}

/// Inline tests of a file.
#[derive(Debug, Default)]
struct InlineTests {
    tests: Vec<InlineTest>,
    /// Macros and functions that replace known assertions.
    shadows: Vec<String>,
    /// Names that items beside tests define or import.
    definitions: Vec<String>,
}

/// Returns the inline tests of a file, if its language has such tests.
fn inline_tests(path: &str, text: &str) -> Option<InlineTests> {
    match path.rsplit_once('.')?.1 {
        "rs" => Some(rust::inline_tests(text)),
        "py" | "pyi" => Some(InlineTests { tests: python::doctests(text), ..InlineTests::default() }),
        _ => None,
    }
}

/// Returns the inline tests that a change deletes, alters or shadows. A test that moves to another file is unchanged.
pub(super) fn changed_tests(files: &[ChangedText]) -> Vec<JudgingPart> {
    let mut after: BTreeMap<String, usize> = BTreeMap::new();
    let mut before = Vec::new();
    let mut parts = Vec::new();
    for file in files {
        let (old, new) = (file.before.as_deref(), file.after.as_deref());
        if old.is_some() && old == new {
            continue;
        }
        let old = old.and_then(|text| inline_tests(&file.path, text)).unwrap_or_default();
        let new = new.and_then(|text| inline_tests(&file.path, text)).unwrap_or_default();
        for test in new.tests {
            *after.entry(test.tokens).or_default() += 1;
        }
        let mut shadows = new_names(&old.shadows, &new.shadows);
        // A new item beside tests replaces an item of the module above that existing tests use.
        let used: BTreeSet<&str> = old.tests.iter().flat_map(|test| test.tokens.split(' ')).collect();
        let defined = new_names(&old.definitions, &new.definitions);
        shadows.extend(defined.into_iter().filter(|name| used.contains(name.as_str())));
        let shadows = shadows.into_iter().map(|name| format!("{name} (a new definition)")).collect();
        add_part(&mut parts, &file.path, shadows);
        before.push((file.path.clone(), old.tests));
    }
    for (path, tests) in before {
        let mut missing = Vec::new();
        for test in tests {
            match after.get_mut(&test.tokens) {
                Some(count) if *count > 0 => *count -= 1,
                _ => missing.push(test.name),
            }
        }
        missing.dedup();
        add_part(&mut parts, &path, missing);
    }
    parts
}

/// Returns the names that occur more often than before.
fn new_names(before: &[String], after: &[String]) -> Vec<String> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    for name in before {
        *counts.entry(name).or_default() += 1;
    }
    let mut new = Vec::new();
    for name in after {
        match counts.get_mut(name) {
            Some(count) if *count > 0 => *count -= 1,
            _ => new.push(name.clone()),
        }
    }
    new
}

fn add_part(parts: &mut Vec<JudgingPart>, path: &str, names: Vec<String>) {
    if names.is_empty() {
        return;
    }
    match parts.iter_mut().find(|part| part.path == path) {
        Some(part) => part.parts.extend(names),
        None => parts.push(JudgingPart { path: path.to_owned(), parts: names }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUST: &str = r#"
//! Statistics.

/// Returns the largest number.
///
/// ```
/// assert_eq!(stats::max(&[1, 2]), 2);
/// ```
pub fn max(a: &[i32]) -> i32 { *a.iter().max().unwrap() }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest() {
        assert_eq!(max(&[1, 2]), 2); // "comment"
    }

    #[test]
    fn one() { assert_eq!(max(&[1]), 1); }
}
"#;

    fn text(path: &str, before: &str, after: &str) -> ChangedText {
        ChangedText { path: path.to_owned(), before: Some(before.to_owned()), after: Some(after.to_owned()) }
    }

    fn found(files: &[ChangedText]) -> String {
        let parts = changed_tests(files);
        let shown = parts.iter().map(|part| format!("{}: {}", part.path, part.parts.join(", ")));
        shown.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn rust_tests_may_be_added_and_not_weakened() {
        for (from, to, expected) in [
            // The code, formatting, comments and new tests.
            ("*a.iter().max().unwrap()", "*a.iter().rev().max().unwrap()", ""),
            (
                "{ assert_eq!(max(&[1]), 1); }",
                "{\n        // One.\n        assert_eq!(max(&[1]), 1);\n    }",
                "",
            ),
            ("#[test]\n    fn one", "#[test]\n    fn two() {}\n\n    #[test]\n    fn one", ""),
            ("/// Returns the", "/// Finds the", ""),
            ("//! Statistics.", "//! Statistics.\n#![allow(dead_code)]", ""),
            (
                "//! Statistics.",
                "//! Statistics.\n#![cfg(no)]",
                "src/lib.rs: use super::*, test largest, test one",
            ),
            ("use super::*;", "use super::{*, deep::{a, b}};", ""),
            // Values, bodies, attributes, modules.
            ("&[1, 2]), 2); //", "&[1, 2]), 1); //", "src/lib.rs: test largest"),
            (
                "&[1, 2]), 2);\n/// ```",
                "&[1, 2]), 1);\n/// ```",
                "src/lib.rs: doctest assert_eq ! ( stats::max ( & [ 1 , 2 ] ) , 2 )",
            ),
            (
                "/// ```\n/// assert",
                "/// ```ignore\n/// assert",
                "src/lib.rs: doctest assert_eq ! ( stats::max ( & [ 1 , 2 ] ) , 2 )",
            ),
            ("#[test]\n    fn one", "#[test]\n    #[ignore]\n    fn one", "src/lib.rs: test one"),
            ("#[test]\n    fn one", "fn one", "src/lib.rs: one (a new definition), test one"),
            ("    fn one() { assert_eq!(max(&[1]), 1); }\n", "    fn one() {}\n", "src/lib.rs: test one"),
            ("#[cfg(test)]", "#[cfg(all(test, no))]", "src/lib.rs: use super::*, test largest, test one"),
            (
                "    use super::*;",
                "    use super::{fake as max};",
                "src/lib.rs: max (a new definition), use super::*",
            ),
            (
                "    #[test]\n    fn one",
                "    fn max(_: &[i32]) -> i32 { 1 }\n\n    #[test]\n    fn one",
                "src/lib.rs: max (a new definition)",
            ),
            ("    use super::*;", "    use super::*;\n    use super::max;", ""),
            (
                "    use super::*;",
                "    use super::*;\n    use crate::fake::max;",
                "src/lib.rs: max (a new definition)",
            ),
            ("    use super::*;", "    use super::*;\n\n    fn helper() {}", ""),
            (
                "//! Statistics.",
                "//! Statistics.\nmacro_rules! assert_eq { ($($t:tt)*) => {} }",
                "src/lib.rs: assert_eq (a new definition)",
            ),
            (
                "//! Statistics.",
                "//! Statistics.\nuse fake::nothing as assert_eq;",
                "src/lib.rs: assert_eq (a new definition)",
            ),
        ] {
            let after = RUST.replacen(from, to, 1);
            assert_ne!(after, RUST, "{from}");
            assert_eq!(found(&[text("src/lib.rs", RUST, &after)]), expected, "{to}");
        }
    }

    #[test]
    fn conditions_beside_test_keep_a_module_of_tests() {
        for (condition, expected) in [
            ("test", "src/a.rs: fn check ( ) { assert"),
            ("all(test, not(loom))", "src/a.rs: fn check ( ) { assert"),
            ("any(not(windows), test)", "src/a.rs: fn check ( ) { assert"),
            ("not(test)", ""),
            ("all(not(test), unix)", ""),
        ] {
            let with = |body: &str| format!("#[cfg({condition})]\nmod a {{ fn check() {{ {body} }} }}\n");
            let file = text("src/a.rs", &with("assert!(b());"), &with(""));
            assert_eq!(found(&[file]), expected, "{condition}");
        }
    }

    #[test]
    fn tests_may_move() {
        let (code, tests) = RUST.split_at(RUST.find("#[cfg(test)]").unwrap());
        let moved = ChangedText { path: "src/b.rs".to_owned(), before: None, after: Some(tests.to_owned()) };
        assert_eq!(found(&[text("src/lib.rs", RUST, code), moved]), "");
        let expected = "src/lib.rs: use super::*, test largest, test one";
        assert_eq!(found(&[text("src/lib.rs", RUST, code)]), expected);
        let deleted = ChangedText { after: None, ..text("src/lib.rs", tests, "") };
        assert_eq!(found(&[deleted]), expected);
    }

    #[test]
    fn doctests_of_python_may_be_added_and_not_weakened() {
        let before = "def add(a, b):\n    \"\"\"Adds.\n\n    >>> add(1, 2)\n    3\n    >>> add(0, 0)\n    0\n    \"\"\"\n    return a + b\n";
        for (from, to, expected) in [
            ("return a + b", "return b + a", ""),
            ("    >>> add(0", "    >>> add(3, 3)\n    6\n    >>> add(0", ""),
            ("    3\n", "    4\n", "sums.py: doctest add(1, 2)"),
            (">>> add(1, 2)", ">>> add(1, 2)  # doctest: +SKIP", "sums.py: doctest add(1, 2)"),
            ("    >>> add(0, 0)\n    0\n", "", "sums.py: doctest add(0, 0)"),
        ] {
            let after = before.replacen(from, to, 1);
            assert_eq!(found(&[text("sums.py", before, &after)]), expected, "{to}");
        }
    }
}
