//! Files of the user and of the project that cannot be understood.

use super::user::User;

const ANSWER: &str = "[[turn]]\ntext = \"Done.\"";

/// The missing file could contain a denial.
#[test]
fn a_link_that_leads_nowhere_stops_the_run() {
    for file in [
        ".config/pintle/rules.toml",
        ".config/pintle/hooks.toml",
        ".config/pintle/budget.toml",
        ".config/pintle/config.toml",
        ".config/pintle/mcp.json",
        "project/.pintle/rules.toml",
        "project/.pintle/hooks.toml",
    ] {
        let user = User::new(ANSWER);
        std::fs::create_dir_all(user.at(file).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/nonexistent-volume/file", user.at(file)).unwrap();
        let output = user.run_command("Go").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let name = file.rsplit('/').next().unwrap();
        assert!(!output.status.success() && said.contains(name), "{file}: {said}");
        assert_eq!(user.model.requests().len(), 0, "{file}: the model is not asked");
    }
}

/// Rules for one server would apply to the other.
#[test]
fn a_server_of_a_project_never_has_the_names_of_one_of_the_user() {
    let user = User::new(ANSWER);
    let server =
        |name: &str, program: &str| format!(r#"{{"mcpServers": {{"{name}": {{"command": "{program}"}}}}}}"#);
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    std::fs::write(user.at(".config/pintle/mcp.json"), server("my-server", "mine")).unwrap();
    std::fs::write(user.project().join(".mcp.json"), server("my_server", "theirs")).unwrap();
    user.pintle(&["trust"]);
    let listed = user.pintle(&["mcp", "list"]);
    assert!(listed.contains("mine") && !listed.contains("theirs"), "{listed}");
    let left_out = listed.lines().find(|line| line.starts_with("left out")).unwrap();
    for named in [".mcp.json", "my_server", "my-server", ".config/pintle/mcp.json"] {
        assert!(left_out.contains(named), "{left_out}");
    }
}
