//! Commands of a run.

use super::user::User;

/// Writes within the project and in the home.
const WRITING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "git config user.name; echo within >within.txt; echo beyond >../beyond.txt" }
    [[turn]]
    text = "Done."
    "#;

#[test]
fn a_run_is_confined_to_its_project_and_kept() {
    // Each of them confines commands.
    if !pintle_test_conditions::BUBBLEWRAP.is_present() && !pintle_test_conditions::LANDLOCK.is_present() {
        return;
    }
    let user = User::new(WRITING);
    let ran = user.run("Write two files");
    assert!(ran.contains("Done."), "{ran}");
    assert_eq!(std::fs::read_to_string(user.project().join("within.txt")).unwrap(), "within\n");
    assert!(!user.at("beyond.txt").exists(), "{ran}");
    // The command has the git configuration of its user.
    let result = user.request(1);
    assert!(result.contains("A User"), "{result}");
    let listed = user.pintle(&["sessions", "list"]);
    assert!(listed.contains("Write two files"), "{listed}");
    assert!(user.at(".local/state/pintle/sessions").is_dir());
}
