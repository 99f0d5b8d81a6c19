//! Doctests of Python.

use super::InlineTest;

/// Returns the examples in the text of a module, each with its expected output.
pub(super) fn doctests(text: &str) -> Vec<InlineTest> {
    let mut tests: Vec<InlineTest> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let line = line.trim();
        if let Some(source) = line.strip_prefix(">>> ") {
            let name = format!("doctest {}", source.trim());
            tests.push(InlineTest { name, tokens: line.to_owned() });
            is_open = true;
        } else if line.is_empty() || line.starts_with("\"\"\"") || line.starts_with("'''") {
            is_open = false;
        } else if let Some(test) = tests.last_mut().filter(|_| is_open) {
            test.tokens.push('\n');
            test.tokens.push_str(line);
        }
    }
    tests
}
