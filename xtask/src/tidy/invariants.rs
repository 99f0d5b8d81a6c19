//! The numbered invariants of `docs/project/architecture.md`. Each names an existing check.
//!
//! A line reads `**I-07** Sentence. Check: `name`, `name`.` where a name is
//! `xtask::COMMAND`, `xtask::tidy::RULE`, `xtask::ci::STEP`, or a test as named in the conformance data:
//! `PACKAGE::module::tests::function`, with `*` for a module that a macro generates per provider.

use super::{Violation, rule_names, test_names, tree::Tree};
use crate::{ci, command_names};

const PAGE: &str = "docs/project/architecture.md";
const CHECK: &str = "Check:";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let Some(page) = tree.file(PAGE) else {
        return vec![Violation::new(PAGE, "is missing")];
    };
    let mut violations = Vec::new();
    let mut expected = 1;
    for (number, line) in page.lines() {
        let Some((id, text)) = invariant(line) else { continue };
        let mut report = |message| violations.push(Violation::at_line(PAGE, number, message));
        if id.parse() != Ok(expected) {
            report(format!("the invariant after I-{:02} is I-{id}", expected - 1));
        }
        expected += 1;
        let names: Vec<&str> = checks(text).collect();
        if names.is_empty() {
            report(format!("I-{id} names no check; end the line with {CHECK} `name`"));
        }
        for name in names.into_iter().filter(|name| !exists(tree, name)) {
            report(format!("I-{id} names `{name}`, which is neither a test nor an xtask check"));
        }
    }
    if expected == 1 {
        violations.push(Violation::new(PAGE, "has no invariant (`**I-01** ...`)"));
    }
    violations
}

/// Returns the number and the text of an invariant's line, with or without a list marker.
fn invariant(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let line = line.strip_prefix("* ").or_else(|| line.strip_prefix("- ")).unwrap_or(line);
    line.strip_prefix("**I-")?.split_once("**")
}

/// Returns the names in backticks after the last `Check:`.
fn checks(text: &str) -> impl Iterator<Item = &str> {
    let named = text.rsplit_once(CHECK).map_or("", |(_, named)| named);
    named.split('`').skip(1).step_by(2)
}

fn exists(tree: &Tree, name: &str) -> bool {
    match name.split("::").collect::<Vec<_>>().as_slice() {
        ["xtask", "tidy", rule] => rule_names().any(|known| known == *rule),
        ["xtask", "ci", step] => ci::step_names().any(|known| known == *step),
        ["xtask", command] => command_names().any(|known| known == *command),
        [package, .., function] => is_test(tree, package, function),
        _ => false,
    }
}

/// Returns whether a Rust file of `package` has a test function named `function`.
fn is_test(tree: &Tree, package: &str, function: &str) -> bool {
    let Some(package) = tree.packages.iter().find(|found| found.name == package) else {
        return false;
    };
    tree.files_under(&package.directory)
        .filter(|file| file.path.ends_with(".rs"))
        .any(|file| test_names::of(file).iter().any(|name| name == function))
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tree::Tree;

    const SOURCE: &str = "#[test]\nfn holds() {}\n\n#[tokio::test]\nasync fn waits() {}\n\nfn helper() {}\nper_provider!(each, other);\n";

    fn messages(page: &str) -> Vec<String> {
        let tree = Tree::of(&[("docs/project/architecture.md", page), ("crates/a/src/tests.rs", SOURCE)])
            .with_library("a", "crates/a");
        check(&tree).into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn an_invariant_may_name_tests_and_checks() {
        let page = "**I-01** A rule. Check: `a::tests::holds`, `a::tests::waits`, `a::*::other`.\n\
                    * **I-02** Another `word`. Check: `xtask::tidy::arrows`, `xtask::consumers`, `xtask::ci::build`.\n";
        assert_eq!(messages(page), [""; 0]);
    }

    #[test]
    fn an_invariant_without_an_existing_check_is_refused() {
        let cases = [
            ("**I-01** A rule.", "I-01 names no check; end the line with Check: `name`"),
            ("**I-02** A. Check: `a::tests::holds`.", "the invariant after I-00 is I-02"),
            (
                "**I-01** A. Check: `a::tests::helper`.",
                "I-01 names `a::tests::helper`, which is neither a test nor an xtask check",
            ),
            (
                "**I-01** A. Check: `a::tests::gone`.",
                "I-01 names `a::tests::gone`, which is neither a test nor an xtask check",
            ),
            (
                "**I-01** A. Check: `b::tests::holds`.",
                "I-01 names `b::tests::holds`, which is neither a test nor an xtask check",
            ),
            (
                "**I-01** A. Check: `xtask::tidy::nothing`.",
                "I-01 names `xtask::tidy::nothing`, which is neither a test nor an xtask check",
            ),
            ("No rule.", "has no invariant (`**I-01** ...`)"),
        ];
        for (page, message) in cases {
            assert_eq!(messages(page), [message], "{page}");
        }
    }
}
