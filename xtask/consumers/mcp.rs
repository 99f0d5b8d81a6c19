//! Declares a server as a file has it, whose tools a model can search without its being started.

use std::sync::Arc;

use pintle_env::{ExecutionEnvironment, LocalEnvironment};
use pintle_mcp::{McpServers, declared_servers};
use pintle_tools::ToolRegistry;

fn main() {
    let file = r#"{"mcpServers": {"files": {"command": "npx", "args": ["${PACKAGE:-server}"]}}}"#;
    let declared = declared_servers(file, |name| std::env::var(name).ok());
    assert!(declared.problems.is_empty());
    let env: Arc<dyn ExecutionEnvironment> = Arc::new(LocalEnvironment::builder("/").build().unwrap());
    let mut registry = ToolRegistry::new();
    let refused = McpServers::new(env, declared.servers).register(&mut registry, 20_000);
    assert!(refused.is_empty() && registry.names().eq(["search_tools", "call_tool"]));
}
