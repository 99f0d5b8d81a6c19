//! MCP servers.

use super::user::User;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/mcp/src/tests/server.py");

/// Looks for the tools of a server.
const SEARCHING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "search_tools"
    arguments = { query = "echo" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn a_server_that_the_sandbox_hides_is_explained() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(SEARCHING);
    let downloads = tempfile::tempdir_in("/tmp").unwrap();
    let server = downloads.path().join("server.py");
    std::fs::copy(SERVER, &server).unwrap();
    let server = server.display().to_string();
    user.pintle(&["mcp", "add", "test", "--", "python3", &server]);
    user.run("Find a tool");
    let reason = format!("`{server}` exists, but the sandbox hides it: move it to another directory");
    assert!(user.request(1).contains(&reason), "{}", user.request(1));
}
