//! Puts the commit that the command is built from into its version.
#![expect(clippy::disallowed_methods, reason = "a build script asks git and reads its package")]

use std::path::Path;
use std::process::Command;

/// Where this crate is in its repository, as git writes it. In another repository the commit would be another one's.
const PREFIX: &str = "crates/cli/";

/// File in a packaged crate with the commit that it was made from.
const VCS_INFO: &str = ".cargo_vcs_info.json";

/// Digits of a commit.
const DIGITS: usize = 8;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = env!("CARGO_PKG_VERSION");
    match of_package().or_else(of_repository) {
        Some(commit) => println!("cargo::rustc-env=PINTLE_VERSION={version} ({commit})"),
        None => println!("cargo::rustc-env=PINTLE_VERSION={version}"),
    }
}

/// Returns the commit of a packaged crate, whose date is not known; `None` in a repository.
fn of_package() -> Option<String> {
    let info = std::fs::read_to_string(VCS_INFO).ok()?;
    let (_, rest) = info.split_once("\"sha1\"")?;
    let hash = rest.split('"').nth(1)?;
    let is_hash = hash.len() > DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    hash.get(..DIGITS).filter(|_| is_hash).map(str::to_owned)
}

/// Returns the commit of the repository with its date; `None` without git, or in another repository.
fn of_repository() -> Option<String> {
    if git(&["rev-parse", "--show-prefix"])? != PREFIX {
        return None;
    }
    // The log of HEAD grows with each commit and each change of branch. Without it, the branch itself does.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    let branch =
        git(&["symbolic-ref", "--quiet", "HEAD"]).and_then(|name| git(&["rev-parse", "--git-path", &name]));
    let watched = match log.filter(|path| Path::new(path).exists()) {
        Some(log) => vec![log],
        None => git(&["rev-parse", "--git-path", "HEAD"]).into_iter().chain(branch).collect(),
    };
    // A file that is missing would be changed in each build.
    for path in watched.iter().filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    git(&["log", "-1", "--format=%h %cs", &format!("--abbrev={DIGITS}")])
}

/// Runs git and returns the line that it prints; `None` without git or one.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let line = String::from_utf8(output.stdout).ok()?.trim_end().to_owned();
    (!line.is_empty()).then_some(line)
}
