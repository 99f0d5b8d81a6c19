//! Files that commands must not read or change.

use std::path::{Path, PathBuf};

use pintle_store::Hash;

use crate::process_env::{self, ProcessEnv};

/// Files and directories below the home directory that hold keys of the user.
const SECRETS: [&str; 21] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".kube",
    ".docker/config.json",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".config/pip/pip.conf",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".git-credentials",
    ".config/git/credentials",
    ".password-store",
    ".local/share/keyrings",
    ".mozilla",
];

/// Files below `.git` whose content runs programs, or decides which.
const GIT: [&str; 4] = ["config", "config.worktree", "hooks", "info"];

/// Returns the secret files and directories of the user, and those of the command itself: its sessions hold what others
/// read.
pub(super) fn hidden(process_env: &ProcessEnv) -> Vec<PathBuf> {
    let home = process_env.variable("HOME").map(PathBuf::from);
    let below_home = home.iter().flat_map(|home| SECRETS.iter().map(|name| home.join(name)));
    let own = process_env.configuration_directory().into_iter();
    let sessions = process_env.state_directory().ok().map(|state| state.join("sessions"));
    let trust = process_env.state_directory().ok().map(|state| state.join("trust.json"));
    below_home.chain(own).chain(sessions).chain(trust).collect()
}

/// Returns what commands must not change in a workspace. What does not exist is left out: a command that makes a repository
/// may do so.
pub(super) fn protected(workspace: &Path, process_env: &ProcessEnv) -> Vec<PathBuf> {
    let git = workspace.join(".git");
    let is_repository = process_env.is_directory(&git);
    let of_git = GIT.iter().map(|name| git.join(name)).filter(|_| is_repository);
    let own = Some(workspace.join(".pintle")).filter(|path| process_env.is_directory(path));
    of_git.chain(own).collect()
}

/// Returns the directories outside of a workspace that git changes in it, if it is a worktree of a repository elsewhere: its
/// objects and branches, and what belongs to the worktree. Settings and hooks are not among them.
pub(super) fn of_repository(workspace: &Path, process_env: &ProcessEnv) -> Vec<PathBuf> {
    let read = |path: &Path| process_env::read_text_if_there("link to a repository", path).ok().flatten();
    let Some(link) = read(&workspace.join(".git")) else { return Vec::new() };
    let Some(own) = link.trim().strip_prefix("gitdir:").map(|path| workspace.join(path.trim())) else {
        return Vec::new();
    };
    let Some(common) = read(&own.join("commondir")).map(|path| own.join(path.trim())) else {
        return Vec::new();
    };
    let shared = ["objects", "refs", "logs"].map(|name| common.join(name));
    let all = std::iter::once(own).chain(shared);
    all.filter(|path| process_env.is_directory(path)).collect()
}

/// Returns the directory for caches of builds in a workspace, which lasts longer than a session; `None` if the command has
/// no place for its state.
pub(super) fn cache_directory(workspace: &Path, process_env: &ProcessEnv) -> Option<PathBuf> {
    let hash = Hash::of(workspace.as_os_str().as_encoded_bytes()).to_string();
    let state = process_env.state_directory().ok().filter(|state| state.is_absolute())?;
    Some(state.join("caches").join(hash.get(..16)?))
}
