//! Caches of package managers in the sandbox.

use std::path::Path;

use super::user::User;

/// Reads a package of the user, tries to change it, and leaves a program in the caches of the project.
const BUILDING: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "cat $CARGO_HOME/registry/index/i/.cache/a; echo x >$CARGO_HOME/registry/index/i/.cache/a; echo x >$CARGO_HOME/registry/index/i/new; test -e $CARGO_HOME/bin/left-behind && echo found-$((40+2)); mkdir -p $CARGO_HOME/bin; touch $CARGO_HOME/bin/left-behind" }
    [[turn]]
    text = "Done."
    "#;

/// Returns the number of entries below a directory.
fn count(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| 1 + if entry.file_type().unwrap().is_dir() { count(&entry.path()) } else { 0 }).sum()
}

/// Creates a user with packages, whose model builds `runs` times.
fn user_with_packages(runs: usize) -> User {
    let user = User::new(&BUILDING.repeat(runs));
    let index = user.at(".cargo/registry/index/i/.cache");
    let packages = user.at(".npm/_cacache/index-v5/ab");
    for directory in [&index, &packages] {
        std::fs::create_dir_all(directory).unwrap();
    }
    std::fs::write(index.join("a"), "entry-of-the-user").unwrap();
    for number in 0..500 {
        std::fs::write(packages.join(number.to_string()), "package").unwrap();
    }
    user
}

#[test]
fn packages_of_the_user_are_read_and_neither_copied_nor_changed() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = user_with_packages(1);
    user.run("Build");
    assert!(user.request(1).contains("entry-of-the-user"), "{}", user.request(1));
    let index = user.at(".cargo/registry/index/i");
    assert_eq!(std::fs::read_to_string(index.join(".cache/a")).unwrap(), "entry-of-the-user");
    assert!(!index.join("new").exists());
    let caches = user.at(".local/state/pintle/caches");
    assert!(count(&caches) <= 40, "{}", count(&caches));
    let report = user.pintle(&["doctor", "--offline"]);
    assert!(report.contains("state"), "{report}");
}

#[test]
fn runs_without_a_session_use_the_caches_of_their_project() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = user_with_packages(3);
    let caches = user.at(".local/state/pintle/caches");
    // The first run leaves nothing, and the second one leaves a file for the third one.
    for (flag, finds_file, has_caches) in
        [(Some("--no-session"), false, false), (None, false, true), (Some("--no-session"), true, true)]
    {
        let output = user.run_command("Build").args(flag).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let requests = user.model.requests();
        let result = requests.last().unwrap().body.to_string();
        assert_eq!(result.contains("found-42"), finds_file, "{flag:?}: {result}");
        assert_eq!(caches.exists(), has_caches, "{flag:?}");
    }
}

#[test]
fn prune_removes_the_caches_of_a_project_that_is_gone() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = user_with_packages(1);
    let other = user.at("other");
    std::fs::create_dir(&other).unwrap();
    let output = user.run_command("Build").arg("--dir").arg(&other).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let prune = ["sessions", "prune", "--older-than", "1d"];
    let counts = format!("deleted 0 of 0 sessions of {}\n", user.project().display());
    assert_eq!(user.pintle(&prune), counts, "the project exists");
    std::fs::remove_dir_all(&other).unwrap();
    let removed = user.pintle(&prune);
    let name = other.file_name().unwrap().to_str().unwrap();
    assert!(removed.starts_with("deleted the package caches of "), "{removed}");
    let (caches, rest) = removed.split_once('\n').unwrap();
    assert!(caches.ends_with(name) && rest == counts, "{removed}");
    assert_eq!(count(&user.at(".local/state/pintle/caches")), 0);
}
