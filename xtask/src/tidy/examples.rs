//! The types on the path of a first program have an example that runs.

use super::{Violation, readmes::has_running_example, tree::Tree};

/// Files and declarations.
const ITEMS: &[(&str, &str)] = &[
    ("crates/agent/src/approval.rs", "pub trait Approver: "),
    ("crates/agent/src/error/run_error.rs", "pub enum RunError {"),
    ("crates/agent/src/profile.rs", "pub struct ProviderProfile {"),
    ("crates/agent/src/protocol/budget.rs", "pub struct Limits {"),
    ("crates/agent/src/protocol/event.rs", "pub struct SessionEvent {"),
    ("crates/agent/src/protocol/outcome.rs", "pub struct Outcome {"),
    ("crates/agent/src/run.rs", "pub struct Run {"),
    ("crates/agent/src/session.rs", "pub struct Session {"),
    ("crates/agent/src/session/builder.rs", "pub struct SessionBuilder {"),
    ("crates/agent/src/session/handle.rs", "pub struct SessionHandle {"),
    ("crates/agent/src/subagent/subagent_type.rs", "pub struct SubagentType {"),
    ("crates/env/src/delegating.rs", "pub trait DelegatingEnvironment: "),
    ("crates/llm/src/generate/tool.rs", "pub struct ClientTool {"),
    ("crates/llm/src/money.rs", "pub struct Money("),
    ("crates/mcp/src/servers.rs", "pub struct McpServers {"),
    ("crates/server/src/serve.rs", "pub struct Server {"),
    ("crates/store/src/store.rs", "pub trait SessionStore: "),
    ("crates/tools/src/gate.rs", "pub trait Gate: "),
    ("crates/tools/src/tool/closure.rs", "pub fn tool_fn<"),
    ("crates/workflow/src/local.rs", "pub struct LocalTaskHost {"),
    ("crates/workflow/src/worker.rs", "pub struct Worker {"),
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let text = |path: &str| tree.file(path).map_or("", |file| file.text.as_str());
    let lacking = ITEMS.iter().filter(|(path, declaration)| !has_example(text(path), declaration));
    lacking
        .map(|(path, declaration)| {
            Violation::new(*path, format!("`{declaration}` is missing or has no example that runs"))
        })
        .collect()
}

/// Returns whether the doc comment of a declaration has an example that runs.
fn has_example(text: &str, declaration: &str) -> bool {
    let Some((before, _)) = text.split_once(&format!("\n{declaration}")) else { return false };
    let above = before.lines().rev().take_while(|line| !line.is_empty());
    let mut docs: Vec<&str> = above.filter_map(|line| line.strip_prefix("///")).collect();
    docs.reverse();
    has_running_example(&docs.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::has_example;

    #[test]
    fn only_the_doc_comment_of_the_declaration_counts() {
        let example = "/// ```\n/// f();\n/// ```\n";
        let cases = [
            (format!("\n/// A.\n///\n{example}#[derive(Debug)]\npub struct A {{\n"), true),
            (format!("\n{example}pub struct B;\n\n/// A.\npub struct A {{\n"), false),
            ("\n/// ```no_run\n/// f();\n/// ```\npub struct A {\n".to_owned(), false),
            (format!("\n{example}pub struct B {{\n"), false),
        ];
        for (text, expected) in cases {
            assert_eq!(has_example(&text, "pub struct A {"), expected, "{text}");
        }
    }
}
