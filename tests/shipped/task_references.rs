//! References, worktrees and settings that a task leaves in the repository of its user: none.

use std::process::Output;

use pintle_testkit::Dialect;
use serde_json::Value;

use super::task_queue::{Worker, wait_until};
use super::tasks::{GOAL, checked_task, git, shell_user};
use super::user::User;
use super::worktrees::is_confined;

/// Creates a user with a local change, so that a task with `--changes` has a separate commit.
fn user_with_changes(more: &str) -> User {
    let user = shell_user(more);
    std::fs::write(user.project().join("notes.md"), "local\n").unwrap();
    user
}

/// Returns the references, worktrees and settings of the repository.
fn state(user: &User) -> String {
    [
        git(user, &["for-each-ref"]),
        git(user, &["worktree", "list", "--porcelain"]),
        git(user, &["config", "--local", "--list"]),
    ]
    .concat()
}

/// Returns the only task and its state.
pub(super) fn only(user: &User) -> (String, String) {
    let tasks: Value = serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
    let text = |name: &str| tasks[0][name].as_str().unwrap().to_owned();
    (text("id"), text("state"))
}

fn assert_exit(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
}

#[test]
fn a_task_that_is_done_blocked_or_cancelled_leaves_nothing() {
    if !is_confined() {
        return;
    }
    for (more, code, expected) in [("true", 0, "done"), ("sed -i s/+/-/ add.sh", 1, "blocked")] {
        let user = user_with_changes(more);
        let before = state(&user);
        assert_exit(&checked_task(&user, "", &["--changes"]).output().unwrap(), code);
        assert_eq!((only(&user).1.as_str(), state(&user)), (expected, before), "{more}");
    }
    let user = user_with_changes("true");
    let before = state(&user);
    user.pintle(&["task", "add", GOAL, "--check", "sh check.sh", "--changes"]);
    assert_ne!(state(&user), before, "the queued task keeps its commit");
    let (id, _) = only(&user);
    assert_eq!(user.pintle(&["task", "cancel", &id]), format!("cancelled task {id}\n"));
    assert_eq!((only(&user).1.as_str(), state(&user)), ("cancelled", before));
}

/// The branch of a task with `--changes` has a commit with local files, which a push would publish.
#[test]
fn local_changes_are_not_pushed() {
    if !is_confined() {
        return;
    }
    let user = user_with_changes("true");
    assert_exit(&checked_task(&user, "", &["--changes"]).output().unwrap(), 0);
    let (id, _) = only(&user);
    let report = user.pintle(&["task", "report", &id]);
    assert!(report.contains(", with local changes that no branch has\n"), "{report}");
    let remote = user.at("remote.git");
    git(&user, &["init", "--quiet", "--bare", remote.to_str().unwrap()]);
    git(&user, &["remote", "add", "origin", remote.to_str().unwrap()]);
    let refused = user.command(&["task", "apply", &id, "--push"]).output().unwrap();
    assert_exit(&refused, 2);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("a push would publish these local changes: notes.md"), "{error}");
    assert_eq!(git(&user, &["for-each-ref", "refs/heads/pintle"]), "");
    let applied = user.command(&["task", "apply", &id, "--branch", "fix/sums"]).output().unwrap();
    assert_exit(&applied, 0);
    let notice = String::from_utf8_lossy(&applied.stderr);
    assert!(notice.contains("has the local changes of `--changes`"), "{notice}");
}

#[test]
fn a_task_that_was_killed_and_resumed_leaves_nothing() {
    if !is_confined() {
        return;
    }
    let user = user_with_changes("true");
    let before = state(&user);
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let run = ["task", "run", "--provider", "anthropic", "--base-url", &url];
    let mut killed = checked_task(&user, "gates = ['anchor']\n", &["--changes"]).spawn().unwrap();
    let is_waiting = || user.pintle(&["task", "list"]).contains("waits for a person");
    wait_until("the task waits for a decision", is_waiting);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let (id, _) = only(&user);
    assert!(state(&user).contains(&format!("refs/pintle/tasks/{id}")));
    user.pintle(&["task", "decide", &id, "approve"]);
    let resumed = user.command(&[&run[..], &["--task", &id]].concat()).output().unwrap();
    assert_exit(&resumed, 0);
    assert_eq!(state(&user), before);

    // As if the process had died between the end of the task and the removal, or as if a server had ended it.
    let reference = format!("refs/pintle/tasks/{id}");
    git(&user, &["update-ref", &reference, "HEAD"]);
    user.pintle(&["task", "add", GOAL, "--check", "sh check.sh"]);
    assert_eq!(state(&user), before, "a new task removes what an ended one has left");
    git(&user, &["update-ref", &reference, "HEAD"]);
    let _worker = Worker::start(&user);
    wait_until("the worker removes the reference", || state(&user) == before);
}
