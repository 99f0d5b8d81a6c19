//! Doctests of Python.

use super::InlineTest;

/// Returns the examples in the text of a module, each with its expected output.
pub(super) fn doctests(text: &str) -> Vec<InlineTest> {
    let mut tests: Vec<InlineTest> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let line = line.trim();
        if let Some(source) = line.strip_prefix(">>> ") {
            tests.push(InlineTest { name: name_of(source), tokens: line.to_owned() });
            is_open = true;
        } else if ends_output(line) {
            is_open = false;
        } else if let Some(test) = tests.last_mut().filter(|_| is_open) {
            test.tokens.push('\n');
            test.tokens.push_str(line);
        }
    }
    tests
}

/// Returns the text of a module in which examples have the expected output of the same examples in another text.
pub(super) fn replace_outputs(text: &str, outputs_of: &str) -> String {
    let mut expected = doctests(outputs_of);
    let mut replaced = String::new();
    let mut rest = text.lines().peekable();
    while let Some(line) = rest.next() {
        replaced.push_str(line);
        replaced.push('\n');
        let Some(source) = line.trim().strip_prefix(">>> ") else { continue };
        let name = name_of(source);
        let Some(index) = expected.iter().position(|test| test.name == name) else { continue };
        let indent = line.get(..line.len() - line.trim_start().len()).unwrap_or_default();
        for output in expected.remove(index).tokens.lines().skip(1) {
            replaced.push_str(&format!("{indent}{output}\n"));
        }
        while rest.next_if(|next| !ends_output(next.trim())).is_some() {}
    }
    replaced
}

/// Returns whether a line follows the expected output of an example.
fn ends_output(line: &str) -> bool {
    line.starts_with(">>> ") || line.is_empty() || line.starts_with("\"\"\"") || line.starts_with("'''")
}

fn name_of(source: &str) -> String {
    format!("doctest {}", source.trim())
}
