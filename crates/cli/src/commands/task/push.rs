//! `pintle task apply --push`: the user's own `git push`, and the user's `gh` for a pull request.
#![expect(clippy::disallowed_methods, reason = "git and gh of the user are no tools, and have the terminal")]

use std::process::{Command, Stdio};

use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_host::process_secrets::{is_provider_key, is_withheld};
use pintle_workflow::contract::BaseCommit;
use pintle_workflow::repository::UserRepository;

use crate::arguments::ApplyTaskArgs;

/// Remote that is used if there are several, as in git.
const ORIGIN: &str = "origin";

/// Maximum number of files in a message.
const MAX_FILES: usize = 10;

/// Push of a new branch.
pub(super) struct BranchPush<'a> {
    repository: &'a UserRepository,
    remote: String,
    opens_request: bool,
    process_env: &'a ProcessEnv,
}

/// Pull request for a pushed branch.
pub(super) struct PullRequest {
    pub(super) title: String,
    pub(super) body: String,
    /// Whether the change does not reach the goal.
    pub(super) is_draft: bool,
}

impl<'a> BranchPush<'a> {
    /// Checks the requirements of `--push`, before anything is changed. Returns `None` without the flag.
    pub(super) async fn prepare(
        args: &ApplyTaskArgs,
        base: &BaseCommit,
        repository: &'a UserRepository,
        process_env: &'a ProcessEnv,
    ) -> Result<Option<Self>, Failure> {
        if !args.push {
            return Ok(None);
        }
        if args.pr {
            require_gh(process_env)?;
        }
        if base.has_local_changes {
            return Err(refuse_local_changes(repository, base).await);
        }
        let failed = "cannot read the repository";
        let modified = repository.count_modified().await.or_failed(failed)?;
        if modified > 0 {
            let changes = pintle_tui::render::plural(modified as u64, "local change");
            return Err(Failure::usage(format!(
                "{} has {changes}, which the pushed branch would not contain",
                repository.root.display()
            ))
            .with_hint("commit or stash them first, or give `--branch` without `--push`"));
        }
        let remotes = repository.remotes().await.or_failed(failed)?;
        let remote = select_remote(args.remote.as_deref(), &remotes)?.to_owned();
        Ok(Some(Self { repository, remote, opens_request: args.pr, process_env }))
    }

    /// Pushes a branch, and opens a pull request if the flags ask for it. Returns the remote.
    ///
    /// Blocks until the programs have ended. They have the terminal, for questions about credentials.
    pub(super) fn push(&self, branch: &str, request: &PullRequest) -> Result<&str, Failure> {
        let Self { remote, .. } = self;
        let refspec = format!("refs/heads/{branch}:refs/heads/{branch}");
        let hint = format!("the commit is on {branch}: `git push {remote} {branch}` pushes it");
        self.run("git", &["push", remote, &refspec], "git push")
            .map_err(|failure| failure.with_hint(&hint))?;
        if self.opens_request {
            let PullRequest { title, body, is_draft } = request;
            let (title, body) = (title.as_str(), body.as_str());
            let mut create = vec!["pr", "create", "--head", branch, "--title", title, "--body", body];
            create.extend(is_draft.then_some("--draft"));
            let hint = format!(
                "{branch} is pushed to {remote}; the same command opens the pull request with its text"
            );
            self.run("gh", &create, "gh pr create").map_err(|failure| failure.with_hint(&hint))?;
        }
        Ok(remote)
    }

    fn run(&self, program: &str, arguments: &[&str], shown: &str) -> Result<(), Failure> {
        let mut command = user_program(program, self.process_env);
        command.args(arguments).current_dir(&self.repository.root);
        let status = command.status().or_failed(&format!("cannot start `{program}`"))?;
        if status.success() { Ok(()) } else { Err(Failure::failed(format!("`{shown}` failed ({status})"))) }
    }
}

/// Returns the failure of a push that would publish the local changes from which the task started.
async fn refuse_local_changes(repository: &UserRepository, base: &BaseCommit) -> Failure {
    // The files are named if git still has the commit.
    let files = repository.list_changes(&base.commit).await.unwrap_or_default();
    let named = files.iter().take(MAX_FILES).cloned().collect::<Vec<_>>().join(", ");
    let more = match files.len().saturating_sub(MAX_FILES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Failure::usage(format!(
        "the task started with `--changes`, and a push would publish these local changes: {named}{more}"
    ))
    .with_hint(
        "`--branch NAME` without `--push` commits locally, and `--patch` prints the change without them",
    )
}

/// Returns a program of the user, with the variables of the user that this process has removed from its own environment. Only
/// the keys of models and the settings of Pintle stay here.
fn user_program(program: &str, process_env: &ProcessEnv) -> Command {
    let mut command = Command::new(program);
    process_env.prepare_unsandboxed(&mut command);
    let withheld = process_env.variables().filter(|(name, value)| {
        is_withheld(name, value) && !is_provider_key(name) && !name.to_string_lossy().starts_with("PINTLE_")
    });
    command.envs(withheld);
    command
}

fn require_gh(process_env: &ProcessEnv) -> Result<(), Failure> {
    let mut command = user_program("gh", process_env);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.status().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    Err(Failure::failed("`--pr` needs the GitHub CLI, but `gh --version` failed")
        .with_hint("install it from https://cli.github.com and run `gh auth login`")
        .with_hint("without `--pr`, the branch is only pushed"))
}

/// Returns the remote to push to.
fn select_remote<'r>(wanted: Option<&'r str>, remotes: &'r [String]) -> Result<&'r str, Failure> {
    let listed = remotes.join(", ");
    let has = |name: &str| remotes.iter().any(|remote| remote == name);
    match (wanted, remotes) {
        (_, []) => Err(Failure::usage("the repository has no remote to push to").with_hint(
            "`git remote add origin URL` adds one; `--branch NAME` without `--push` commits locally",
        )),
        (Some(wanted), _) if has(wanted) => Ok(wanted),
        (Some(wanted), _) => Err(Failure::usage(format!(
            "--remote {wanted}: the repository has no such remote; expected {listed}"
        ))),
        (None, [only]) => Ok(only),
        (None, _) if has(ORIGIN) => Ok(ORIGIN),
        (None, _) => Err(Failure::usage(format!("the repository has several remotes: {listed}"))
            .with_hint("`--remote NAME` selects one")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_is_selected_without_a_guess() {
        let select = |wanted, names: &[&str]| {
            let remotes: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            select_remote(wanted, &remotes).map(str::to_owned).map_err(|failure| failure.message())
        };
        for (wanted, remotes, expected) in [
            (None, &["work"][..], Ok("work")),
            (None, &["fork", "origin"], Ok("origin")),
            (Some("fork"), &["fork", "origin"], Ok("fork")),
            (None, &["a", "b"], Err("several remotes: a, b")),
            (Some("c"), &["a"], Err("--remote c: the repository has no such remote; expected a")),
            (None, &[], Err("no remote to push to")),
            (Some("a"), &[], Err("no remote to push to")),
        ] {
            match (select(wanted, remotes), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
    }
}
