//! `docs/project/attacks.md`, the table of attacks on a governed session.
//!
//! The last cell of each row names the test that makes the attack, which must exist.

use std::collections::BTreeSet;

use super::{Violation, test_names, tree::Tree};

const PAGE: &str = "docs/project/attacks.md";

/// Fewest attacks.
const LEAST: usize = 60;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let Some(page) = tree.file(PAGE) else {
        return vec![Violation::new(PAGE, "is missing")];
    };
    let tests: BTreeSet<String> = tree.rust_files().flat_map(test_names::of).collect();
    let mut violations = Vec::new();
    let mut rows = 0;
    for (number, line) in page.lines() {
        let Some(cell) = last_cell(line) else { continue };
        rows += 1;
        let mut names = cell.split('`').skip(1).step_by(2).peekable();
        if names.peek().is_none() {
            violations.push(Violation::at_line(PAGE, number, "the row names no test"));
        }
        let unknown = names.filter(|name| !tests.contains(*name));
        violations.extend(
            unknown.map(|name| Violation::at_line(PAGE, number, format!("there is no test `{name}`"))),
        );
    }
    if rows < LEAST {
        violations.push(Violation::new(PAGE, format!("has {rows} attacks, expected at least {LEAST}")));
    }
    violations
}

/// Returns the last cell of a row; `None` for other lines and for the header of a table.
fn last_cell(line: &str) -> Option<&str> {
    let cells = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let (_, last) = cells.rsplit_once('|')?;
    let is_header = last.trim() == "test" || last.trim().starts_with("--");
    (!is_header).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_an_existing_test_are_reported() {
        let header = "| attack | test |\n|---|---|\n";
        let rows = "| `a \\| b` | `holds` |\n".repeat(LEAST);
        let source = ("crates/a/src/lib.rs", "#[test]\nfn holds() {\n}\n");
        let found = |rows: &str| check(&Tree::of(&[(PAGE, &format!("{header}{rows}")), source]));
        assert_eq!(found(&rows), []);
        assert_eq!(found(&rows[1..]).len(), 1, "one row is none, so there are too few");
        let wrong = format!("{rows}| b | `leaks` |\n| c | later |\n");
        let at = |line: usize, message: &str| Violation::at_line(PAGE, line, message);
        let first = LEAST + 3;
        assert_eq!(
            found(&wrong),
            [at(first, "there is no test `leaks`"), at(first + 1, "the row names no test")]
        );
    }
}
