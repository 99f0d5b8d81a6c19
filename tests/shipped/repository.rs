//! The history of a repository, and commands that remove it.

use std::process::Command;

use pintle_test_conditions::cases;

use super::user::User;

fn turns(command: &str) -> String {
    format!(
        "[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = {{ command = '''{command}''' }}\n[[turn]]\ntext = \"Done.\"\n"
    )
}

pub(super) fn git(user: &User, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(user.project()).env("HOME", user.at(""));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Creates a user with a history, and a model that runs the command.
fn user_with_history(command: &str) -> User {
    let user = User::new(&turns(command));
    add_history(&user);
    user
}

/// Adds two commits of a file to the project, the first of them packed.
pub(super) fn add_history(user: &User) {
    for (number, pack) in [("one", true), ("two", false)] {
        std::fs::write(user.project().join("file"), number).unwrap();
        git(user, &["add", "file"]);
        git(user, &["commit", "--quiet", "--message", number]);
        if pack {
            git(user, &["repack", "-adq"]);
        }
    }
}

fn backups(user: &User) -> Vec<std::path::PathBuf> {
    let workspaces = std::fs::read_dir(user.at(".local/state/pintle/repositories")).into_iter().flatten();
    let sessions = workspaces.flat_map(|workspace| std::fs::read_dir(workspace.unwrap().path()).unwrap());
    sessions.map(|session| session.unwrap().path()).collect()
}

#[test]
fn a_removed_history_is_restored() {
    for (level, condition) in [
        ("full", Some(pintle_test_conditions::BUBBLEWRAP)),
        ("writes", Some(pintle_test_conditions::LANDLOCK)),
        ("off", None),
    ] {
        if condition.is_some_and(|condition| !condition.is_present()) {
            continue;
        }
        // By default, the weaker levels have two removals: the kinds do not depend on the level.
        let number = if level == "full" { usize::MAX } else { cases(2, usize::MAX) };
        let removals = [
            "rm -rf .git; true",
            "git branch other; rm .git/refs/heads/$(git branch --show-current)",
            "find .git -type f -delete 2>/dev/null; true",
            "rm -rf .git/objects",
            "rm -rf .git/objects/pack",
            "rm -f .git/objects/??/*",
            "rm -f .git/objects/pack/*.idx; touch .git/objects/pack/x.pack",
            "for d in .git/objects/??; do touch -r $d t; rm -f $d/*; touch -r t $d; done",
            "rm -rf .git/refs .git/logs",
            "rm -rf .git/refs/heads",
            "mv .git/objects moved",
            "echo three >file; git commit -qam three; rm -rf .git; true",
        ];
        for removal in removals.into_iter().take(number) {
            let user = user_with_history(removal);
            let output = user.run_command("Go").args(["--sandbox", level]).output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(!errors.contains("changed the protected file"), "{level}, {removal}: {errors}");
            let history = git(&user, &["log", "--format=%s"]);
            assert!(history.ends_with("two\none\n"), "{level}, {removal}: {history} {output:?}");
            git(&user, &["fsck", "--connectivity-only"]);
            assert_eq!(backups(&user), Vec::<std::path::PathBuf>::new(), "{level}, {removal}");
        }
    }
}

/// Returns a script that starts a removal in the background, and then runs the commands.
fn in_background(removal: &str, commands: &[&str]) -> String {
    let call = |arguments: String| {
        format!("[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = {{ {arguments} }}\n")
    };
    let mut script = call(format!("command = '''{removal}''', run_in_background = true"));
    script.extend(commands.iter().map(|command| call(format!("command = '''{command}'''"))));
    script + "[[turn]]\ntext = \"Done.\"\n"
}

/// A later command finds the damage, and must not take it for the state to keep.
#[test]
fn a_history_is_restored_that_is_removed_in_the_background() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let wait = "until [ -e removed ]; do sleep 0.05; done";
    for (removal, commands) in [
        ("rm -rf .git/objects .git/refs; touch removed", &[wait][..]),
        ("rm -rf .git/objects .git/refs; touch removed", &[wait, "true", "git status >/dev/null; true"]),
        ("rm -rf .git; touch removed; sleep 60", &["true", wait, "true"]),
        ("sleep 0.3; rm -rf .git/objects", &[]),
    ] {
        let user = user_with_history("true").with_turns(&in_background(removal, commands));
        let output = user.run_command("Go").output().unwrap();
        let history = git(&user, &["log", "--format=%s"]);
        assert_eq!(history, "two\none\n", "{removal}, {commands:?}: {output:?}");
        git(&user, &["fsck", "--connectivity-only"]);
        assert_eq!(backups(&user), Vec::<std::path::PathBuf>::new(), "{removal}, {commands:?}");
    }
}

#[test]
fn a_history_is_restored_by_the_session_after_one_that_was_killed() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = user_with_history("rm -rf .git/objects .git/refs; touch removed; sleep 60");
    let mut running = user.run_command("Go").spawn().unwrap();
    user.wait_for_file("removed");
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(backups(&user).len(), 1);
    let user = user.with_turns(&turns("true"));
    let output = user.run_command("Go").output().unwrap();
    let notices = String::from_utf8(output.stderr).unwrap();
    assert!(notices.contains("an earlier session ended after a command removed"), "{notices}");
    assert_eq!(git(&user, &["log", "--format=%s"]), "two\none\n");
    assert_eq!(backups(&user), Vec::<std::path::PathBuf>::new());
}

#[test]
fn the_run_ends_with_what_was_restored() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = user_with_history("rm -rf .git; true");
    let output = user.run_command("Go").output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && errors.contains("removed part of the git history"), "{errors}");
    assert!(
        errors.contains("remove it outside of the session or allow the command to run outside"),
        "{errors}"
    );
    assert_eq!(git(&user, &["status", "--porcelain"]), "", "the index is restored as well");
}

#[test]
fn worktrees_of_a_removed_repository_are_restored() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = user_with_history("rm -rf .git; true");
    git(&user, &["worktree", "add", "--quiet", "../linked"]);
    let output = user.run_command("Go").output().unwrap();
    let listed = git(&user, &["worktree", "list"]);
    assert!(listed.contains("/linked"), "{listed} {output:?}");
    git(&user, &["-C", "../linked", "status"]);
}

/// A repository below the project may be removed with its working tree, where the sandbox lets commands do so.
#[test]
fn a_clone_that_is_removed_with_its_files_is_not_restored() {
    if !pintle_test_conditions::LANDLOCK.is_present() {
        return;
    }
    let user = user_with_history("rm -rf clone; git worktree remove linked");
    git(&user, &["clone", "--quiet", ".", "clone"]);
    git(&user, &["worktree", "add", "--quiet", "linked"]);
    let output = user.run_command("Go").args(["--sandbox", "writes"]).output().unwrap();
    assert!(!user.project().join("clone").exists() && !user.project().join("linked").exists(), "{output:?}");
    assert_eq!(git(&user, &["worktree", "list"]).lines().count(), 1, "{output:?}");
}

/// What git itself removes is no damage.
#[test]
fn maintenance_of_a_repository_does_not_end_the_run() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    for command in [
        "git gc --quiet --prune=now",
        "git repack -adq && git prune-packed",
        "git branch b && git branch -D b && git pack-refs --all && git prune --expire=now",
        "git checkout --quiet -b feature/a && git branch -m feature/a feature && git checkout --quiet -",
        "git hash-object -w file >/dev/null && git prune --expire=now",
        "git commit --quiet --allow-empty --message three && git reset --quiet --hard HEAD~1",
    ] {
        let user = user_with_history(command);
        let output = user.run_command("Go").output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
        assert_eq!(git(&user, &["log", "--format=%s"]), "two\none\n", "{command}");
        assert_eq!(git(&user, &["branch", "--list", "b"]), "", "{command}");
    }
}

/// A file in place of a directory, which is not overwritten.
#[test]
fn a_history_that_cannot_be_restored_is_kept() {
    if !pintle_test_conditions::BUBBLEWRAP.is_present() {
        return;
    }
    let user = user_with_history("true").with_turns(&in_background(
        "rm -rf .git/refs .git/objects; echo x >.git/objects; touch removed",
        &["until [ -e removed ]; do sleep 0.05; done; sleep 0.3", "true", "true"],
    ));
    let output = user.run_command("Go").output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("cannot be restored") && errors.contains("the backup is in"), "{errors}");
    let [kept] = &backups(&user)[..] else { panic!("{errors}") };
    // As its user would.
    std::fs::remove_file(user.project().join(".git/objects")).unwrap();
    for name in ["objects", "refs"] {
        let copy = Command::new("cp")
            .args(["-r", "-T", "-n"])
            .arg(kept.join("0").join(name))
            .arg(user.project().join(".git").join(name))
            .status();
        assert!(copy.unwrap().success());
    }
    assert_eq!(git(&user, &["log", "--format=%s"]), "two\none\n");
}

/// Commands can write in their working directory, so a protected directory cannot be one.
#[test]
fn no_session_works_in_a_protected_directory() {
    let user = user_with_history("echo evil >pre-commit; chmod +x pre-commit");
    std::fs::create_dir_all(user.project().join(".pintle/agents")).unwrap();
    git(&user, &["init", "--quiet", "--bare", "bare.git"]);
    git(&user, &["worktree", "add", "--quiet", "bare.git/tree"]);
    for (directory, is_refused) in [
        (".git", true),
        (".git/hooks", true),
        (".git/worktrees/tree", true),
        (".pintle", true),
        (".pintle/agents", true),
        ("bare.git", true),
        ("bare.git/hooks", true),
        ("bare.git/tree", false),
    ] {
        for sandbox in ["auto", "off"] {
            let mut command = user.run_command("Go");
            let output = command.args(["--dir", directory, "--sandbox", sandbox]).output().unwrap();
            let printed = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code() == Some(2), is_refused, "{directory}: {printed}");
            assert!(!is_refused || printed.contains("is in the protected directory"), "{printed}");
            assert_eq!(
                user.project().join(directory).join("pre-commit").exists(),
                !is_refused,
                "{directory}"
            );
        }
    }
}
