//! Grants of sessions.

use std::path::PathBuf;
use std::process::Output;

use super::user::User;

/// Creates a file, and answers again if the session is resumed.
const WRITING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "echo made >made" }
    [[turn]]
    text = "Done."
    [[turn]]
    text = "Done again."
    "#;

/// Writes a grant with changes below a directory, and returns its file.
fn grant(user: &User, name: &str, writes: &str, network: bool) -> PathBuf {
    let file = user.at(name);
    let text = format!(
        r#"{{"version": 1, "id": "{name}", "tools": ["*"], "reads": {{"roots": ["/"]}}, "writes": {{"roots": ["{writes}"]}},
            "effect": "execute", "network": {network}, "environments": ["local"]}}"#
    );
    std::fs::write(&file, text).unwrap();
    file
}

fn run(user: &User, flags: &[&str], grant: &std::path::Path) -> Output {
    user.run_command("Go").args(flags).arg("--grant").arg(grant).output().unwrap()
}

#[test]
fn a_grant_without_network_holds_commands_or_starts_nothing() {
    for flags in [&["--no-sandbox"][..], &["--network", "on"]] {
        let user = User::new(WRITING);
        let granted = grant(&user, "g.json", "/", false);
        let output = run(&user, flags, &granted);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
        assert!(said.contains("no network, and nothing holds commands to that"), "{flags:?}: {said}");
        assert_eq!(user.model.requests().len(), 0, "{flags:?}");
        let with_network = grant(&user, "n.json", "/", true);
        assert!(run(&user, flags, &with_network).status.success(), "{flags:?}");
    }
    if pintle_test_conditions::BUBBLEWRAP.is_present() {
        let user = User::new(WRITING);
        let granted = grant(&user, "g.json", "/", false);
        assert!(run(&user, &[], &granted).status.success());
        assert!(user.project().join("made").exists());
    }
}

#[test]
fn what_goes_on_under_another_grant_can_only_narrow() {
    let user = User::new("[[turn]]\ntext = \"Done.\"\n".repeat(4).as_str());
    let narrow = grant(&user, "narrow.json", &user.project().join("src").to_string_lossy(), true);
    let narrower = grant(&user, "narrower.json", &user.project().join("src/a").to_string_lossy(), true);
    let wide = grant(&user, "wide.json", "/", true);
    assert!(run(&user, &[], &narrow).status.success());
    let listed = user.pintle(&["sessions", "list"]);
    let id = listed.split_whitespace().next().unwrap().to_owned();
    for flags in [&["--continue"][..], &["--fork", &id]] {
        let output = run(&user, flags, &wide);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
        assert!(said.contains("allows more than the grant of the session: writes"), "{flags:?}: {said}");
        assert!(run(&user, flags, &narrower).status.success(), "{flags:?}");
    }
}
