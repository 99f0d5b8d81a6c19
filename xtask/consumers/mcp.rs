//! Reads the declarations of servers, and names the mistakes in them.

use pintle_mcp::{ServerTransport, parse_declared_servers};

fn main() {
    let file = r#"{"mcpServers": {
        "files": {"command": "npx", "args": ["${PACKAGE}"]},
        "web": {"url": "https://example.com/mcp"},
        "bad": {"comand": "npx"}
    }}"#;
    let declared = parse_declared_servers(file, |name| (name == "PACKAGE").then(|| "server".to_owned()));
    let [files, web] = declared.servers.as_slice() else { panic!("{declared:?}") };
    assert!(files.name.as_str() == "files" && matches!(web.transport, ServerTransport::Http(_)));
    assert!(declared.problems.iter().any(|problem| problem.contains("did you mean `command`?")));
}
