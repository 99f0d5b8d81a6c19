//! Worktrees of sessions, with the user's own settings and in a hook of git.

use std::path::PathBuf;
use std::process::Command;

use pintle_test_conditions::cases;
use pintle_testkit::Dialect;
use serde_json::Value;

use super::user::User;

const WRITES: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "Bash"
    arguments = { command = "git rev-parse --show-toplevel && echo x=2 >src/conf && echo new >'src/ä.rs'" }
    [[turn]]
    text = "Done."
    "#;

/// Settings of a user that change diffs, patches or other output of git, or start programs.
const SETTINGS: &str = "[apply]\n\twhitespace = error-all\n[branch]\n\tautoSetupMerge = always\n[color]\n\tui = always\n\
    \tdiff = always\n[column]\n\tui = always\n[commit]\n\tgpgSign = true\n[core]\n\tfsmonitor = /bin/false\n\
    \thooksPath = ~/hooks\n\tpager = /bin/false\n\tquotePath = true\n\tsplitIndex = true\n[diff]\n\tcontext = 0\n\
    \texternal = /bin/false\n\tignoreSubmodules = all\n\trelative = true\n\trenames = copies\n\tsubmodule = log\n\
    \talgorithm = patience\n[log]\n\tshowSignature = true\n[status]\n\tbranch = true\n\tshowUntrackedFiles = no\n";

pub(super) fn is_confined() -> bool {
    pintle_test_conditions::BUBBLEWRAP.is_present() || pintle_test_conditions::LANDLOCK.is_present()
}

/// Creates a user with a file in a directory, and another one of the same name above it.
fn user() -> User {
    let user = User::new(WRITES);
    std::fs::create_dir(user.project().join("src")).unwrap();
    for name in ["conf", "src/conf"] {
        std::fs::write(user.project().join(name), "x=1\n").unwrap();
    }
    git(&user, &["add", "--all"]);
    git(&user, &["commit", "--quiet", "--message=first"]);
    user
}

/// Runs git with the variables of the user.
fn git(user: &User, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(user.project()).env_clear();
    let variables = user.command(&[]);
    command.envs(variables.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(user: &User, arguments: &[&str]) -> Value {
    serde_json::from_str(&user.pintle(&[arguments, &["--output", "json"]].concat())).unwrap()
}

/// Changes of a session in a worktree, as listed and as a patch, which are merged or dropped.
fn changes(user: &User, end: &[&str]) -> (Value, Value) {
    let output = user.run_command("Go").arg("--worktree").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let listed = json(user, &["worktree", "list"]);
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    let patch = json(user, &["worktree", "diff", &id])["patch"].clone();
    json(user, &[&["worktree"][..], end, &[id.as_str()]].concat());
    assert_eq!(json(user, &["worktree", "list"]), serde_json::json!([]));
    (listed[0]["files"].clone(), patch)
}

#[test]
fn settings_of_the_user_change_no_merge() {
    if !is_confined() {
        return;
    }
    let expected = changes(&user(), &["merge"]);
    assert_eq!(expected.0, serde_json::json!(["M\tsrc/conf", "A\tsrc/ä.rs"]));
    let all = [
        SETTINGS,
        "[diff]\n\tnoprefix = true\n",
        "[diff]\n\tmnemonicPrefix = true\n",
        "[diff]\n\tsrcPrefix = x/\n\tdstPrefix = y/z/\n",
    ];
    for settings in all.into_iter().take(cases(2, 4)) {
        for end in [&["merge"][..], &["drop", "--force"]] {
            let user = user();
            let identity = std::fs::read_to_string(user.at(".gitconfig")).unwrap();
            std::fs::write(user.at(".gitconfig"), format!("{identity}{settings}")).unwrap();
            assert_eq!(changes(&user, end), expected, "{settings}");
            let read = |name: &str| std::fs::read_to_string(user.project().join(name)).ok();
            let merged = if end == ["merge"] { ("x=2\n", Some("new\n")) } else { ("x=1\n", None) };
            assert_eq!(read("conf").as_deref(), Some("x=1\n"), "{settings}");
            assert_eq!(read("src/conf").as_deref(), Some(merged.0), "{settings}");
            assert_eq!(read("src/ä.rs").as_deref(), merged.1, "{settings}");
            assert!(!user.project().join("ä.rs").exists(), "{settings}");
            let references = std::fs::read_to_string(user.project().join(".git/config")).unwrap();
            assert!(!references.contains("pintle"), "{settings}: {references}");
        }
    }
}

#[test]
fn a_hook_of_git_starts_a_session_in_a_worktree() {
    if !is_confined() {
        return;
    }
    let user = user();
    let program = PathBuf::from(user.command(&[]).get_program());
    let hook = user.project().join(".git/hooks/pre-commit");
    std::fs::create_dir_all(user.project().join(".git/hooks")).unwrap();
    let script = format!(
        "#!/bin/sh\nexec '{}' run --provider anthropic --base-url '{}' --worktree Go </dev/null >\"$HOME/out\" 2>&1\n",
        program.display(),
        user.model.base_url(Dialect::AnthropicMessages)
    );
    std::fs::write(&hook, script).unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(user.project().join("conf"), "x=3\n").unwrap();
    git(&user, &["commit", "--quiet", "--message=second", "--", "conf"]);
    let output = std::fs::read_to_string(user.at("out")).unwrap();
    let listed = json(&user, &["worktree", "list"]);
    let worktree = listed[0]["directory"].as_str().unwrap_or_else(|| panic!("{listed} {output}"));
    assert!(user.request(1).contains(worktree), "git of the model works in the worktree: {output}");
    assert_eq!(git(&user, &["show", "--format=", "--name-only", "HEAD"]), "conf\n");
    assert_eq!(git(&user, &["branch", "--list", "pintle/*"]).lines().count(), 1, "{output}");
}

#[test]
fn work_that_no_merge_can_take_over_is_never_deleted() {
    if !is_confined() {
        return;
    }
    let user = user().with_turns(
        r#"
        [[turn]]
        [[turn.call]]
        tool = "Bash"
        arguments = { command = "git init -q ignored/repository && echo new >ignored/repository/file" }
        [[turn]]
        text = "Done."
        "#,
    );
    let library = user.at("library");
    let library = library.to_str().unwrap();
    std::fs::write(user.project().join(".gitignore"), "ignored/\n").unwrap();
    git(&user, &["add", "--all"]);
    git(&user, &["commit", "--quiet", "--message=ignored"]);
    git(&user, &["clone", "--quiet", ".", library]);
    git(&user, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library, "sub"]);
    git(&user, &["add", "--all"]);
    git(&user, &["commit", "--quiet", "--message=second"]);
    let output = user.run_command("Go").arg("--worktree").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let listed = json(&user, &["worktree", "list"]);
    assert_eq!(listed[0]["files"], serde_json::json!(["A\tignored/repository/"]), "{output:?}");
    let (id, directory) = (listed[0]["id"].as_str().unwrap(), listed[0]["directory"].as_str().unwrap());
    let update = ["submodule", "--quiet", "update", "--init"];
    git(&user, &[&["-C", directory, "-c", "protocol.file.allow=always"][..], &update].concat());
    let directory = PathBuf::from(directory);
    std::fs::write(directory.join("sub/conf"), "x=2\n").unwrap();
    let bare = directory.join("ignored/bare.git");
    git(&user, &["init", "--quiet", "--bare", bare.to_str().unwrap()]);
    let is_refused = |names: &str| {
        for (end, part) in [("merge", "changed: "), ("drop", "not in the patch: ")] {
            let output = user.command(&["worktree", end, id]).output().unwrap();
            let errors = String::from_utf8(output.stderr).unwrap();
            let expected = format!("{part}{names};");
            assert!(!output.status.success() && errors.contains(&expected), "{end}: {errors}");
        }
    };
    // The submodule ignores this directory as well.
    let inner = directory.join("sub/ignored/inner");
    git(&user, &["init", "--quiet", inner.to_str().unwrap()]);
    is_refused("ignored/repository/, ignored/bare.git/, sub/ignored/inner/, sub");
    std::fs::remove_dir_all(inner).unwrap();
    assert_eq!(std::fs::read_to_string(directory.join("sub/conf")).unwrap(), "x=2\n");
    std::fs::remove_dir_all(directory.join("ignored/repository/.git")).unwrap();
    std::fs::remove_dir_all(bare).unwrap();
    is_refused("sub");
    assert_eq!(std::fs::read_to_string(directory.join("ignored/repository/file")).unwrap(), "new\n");
    let sub = directory.join("sub");
    let in_sub = |arguments: &[&str]| git(&user, &[&["-C", sub.to_str().unwrap()][..], arguments].concat());
    in_sub(&["stash", "push", "--quiet"]);
    is_refused("sub");
    let diff = user.command(&["worktree", "diff", id]).output().unwrap();
    assert!(String::from_utf8_lossy(&diff.stderr).contains("not in the patch: sub"), "{diff:?}");
    in_sub(&["stash", "drop", "--quiet"]);
    let merged = user.pintle(&["worktree", "merge", id]);
    assert!(merged.contains("removed 1 ignored file with the worktree: ignored/\n"), "{merged}");
}

#[test]
fn a_session_without_its_worktree_names_it_and_the_way_out() {
    if !is_confined() {
        return;
    }
    let user = user().with_turns(&format!("{WRITES}[[turn]]\ntext = \"Resumed.\"\n"));
    let output = user.run_command("Go").arg("--worktree").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let listed = json(&user, &["worktree", "list"]);
    let (id, directory) = (listed[0]["id"].as_str().unwrap(), listed[0]["directory"].as_str().unwrap());
    git(&user, &["worktree", "remove", "--force", directory]);
    let way_out = format!("`pintle run --resume {id} --dir ");
    let resumed = user.run_command("Go").args(["--resume", id]).output().unwrap();
    let continued = user.run_command("Go").args(["--continue", "--dir", directory]).output().unwrap();
    let diff = user.command(&["sessions", "diff", id]).output().unwrap();
    let merge = user.command(&["worktree", "merge", id]).output().unwrap();
    let shown = user.command(&["sessions", "show", id]).output().unwrap();
    for (name, output, code) in [
        ("resume", resumed, 2),
        ("continue", continued, 2),
        ("diff", diff, 2),
        ("merge", merge, 2),
        ("show", shown, 0),
    ] {
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{name}: {error}");
        assert!(error.contains(&format!("{directory} does not exist")), "{name}: {error}");
        assert!(error.contains(&way_out), "{name}: {error}");
    }
    let output = user.run_command("Go").args(["--resume", id, "--dir", "."]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
