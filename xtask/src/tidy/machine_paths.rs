//! Absolute paths of the machine on which a file was written.

use super::{Violation, tree::Tree};

/// First components of paths that are specific to a machine.
const HOMES: &[&str] = &["home", "root", "work", "Users"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in &tree.files {
        for (number, line) in file.lines() {
            if let Some(home) = HOMES.iter().find(|home| names(line, home)) {
                let message = format!("contains a path below /{home} of one machine");
                violations.push(Violation::at_line(&file.path, number, message));
            }
        }
    }
    violations
}

/// Returns whether `line` contains an absolute path to something below `home`.
fn names(line: &str, home: &str) -> bool {
    let needle = format!("/{home}/");
    line.match_indices(&needle).any(|(index, found)| {
        let before = line.get(..index).and_then(|before| before.chars().next_back());
        let after = line.get(index + found.len()..).and_then(|after| after.chars().next());
        let starts =
            !before.is_some_and(|character| character.is_alphanumeric() || "_-.}/*".contains(character));
        starts && after.is_some_and(|character| character.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn an_absolute_path_below_a_home_is_found() {
        let path = |rest: &str| format!("/{}/{rest}", "home");
        let cases = [
            (format!("see {}", path("anna/x")), true),
            (path("anna"), true),
            (format!("\"{}\"", path("anna")), true),
            (format!("src{}", path("screen.rs")), false),
            (format!("example.org{}", path("anna")), false),
            (path(""), false),
            (String::from("at home"), false),
        ];
        for (line, expected) in cases {
            assert_eq!(names(&line, "home"), expected, "{line}");
        }
    }
}
