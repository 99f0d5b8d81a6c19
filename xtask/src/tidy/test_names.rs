//! Names of the test functions in a Rust file, found in its text.

use super::tree::File;

/// Macros of this repository that generate tests from the functions or names in their arguments.
const MACROS: [&str; 3] = ["per_provider!", "in_each_dialect!", "each_pair!"];

/// Returns the names of the tests in `file`, without their modules.
pub(super) fn of(file: &File) -> Vec<String> {
    let (mut marked, mut in_macro) = (false, false);
    let mut names = Vec::new();
    for (_, line) in file.code_lines() {
        let line = line.trim();
        marked = marked || is_marker(line);
        in_macro = in_macro || MACROS.iter().any(|name| line.starts_with(name));
        if in_macro {
            names.extend(words(line).map(str::to_owned));
            in_macro = !line.ends_with([';', '}']);
        } else if marked && let Some(name) = function(line) {
            names.push(name.to_owned());
        }
        // An attribute applies to the next item: a statement or block in between ends its scope.
        marked = marked && !line.ends_with(['{', '}', ';']);
    }
    names
}

/// Returns whether a line is `#[test]`, `#[tokio::test(...)]` or similar.
fn is_marker(line: &str) -> bool {
    line.starts_with("#[") && line.contains("test") && !line.contains("cfg(")
}

fn function(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("fn ")?;
    rest.split_once('(').map(|(name, _)| name)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|character: char| character != '_' && !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
}
