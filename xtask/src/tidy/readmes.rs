//! The README of a library is its front page and has an example that runs.

use super::{Violation, tree::Tree};

/// Attributes of a code block that rustdoc does not run.
const NOT_RUN: &[&str] = &["ignore", "no_run", "compile_fail", "should_panic"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for library in tree.libraries() {
        let path = format!("{}/README.md", library.directory);
        match tree.file(&path) {
            None => violations.push(Violation::new(path, "is missing")),
            Some(file) if !has_running_example(&file.text) => {
                violations.push(Violation::new(path, "has no Rust example that runs as a test"));
            }
            Some(_) => {}
        }
    }
    violations
}

/// Returns whether a page has a Rust example that rustdoc runs.
pub(super) fn has_running_example(text: &str) -> bool {
    let mut inside = false;
    for line in text.lines() {
        let Some(fence) = line.trim_start().strip_prefix("```") else { continue };
        if !inside && runs(fence.trim()) {
            return true;
        }
        inside = !inside;
    }
    false
}

fn runs(fence: &str) -> bool {
    let mut words = fence.split([',', ' ']).filter(|word| !word.is_empty());
    words.all(|word| (word == "rust" || word.starts_with("edition")) && !NOT_RUN.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::has_running_example;

    #[test]
    fn an_example_counts_if_rustdoc_runs_it() {
        let cases = [
            ("```rust\nf();\n```\n", true),
            ("```\nf();\n```\n", true),
            ("```toml\na = 1\n```\n\n```rust\nf();\n```\n", true),
            ("```rust,no_run\nf();\n```\n", false),
            ("```rust,ignore\nf();\n```\n", false),
            ("```text\nhello\n```\n", false),
            ("no example\n", false),
        ];
        for (text, expected) in cases {
            assert_eq!(has_running_example(text), expected, "{text}");
        }
    }
}
