//! Git snapshot, taken with one command.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use pintle_env::{ExecResult, ExecutionEnvironment, Git, Output};

use super::environment::GitContext;
use crate::sanitize::single_line;

/// Time-out of the git command.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of commits.
const COMMITS: usize = 10;

/// Maximum length of a branch name and of a commit line, in characters.
const MAX_LINE: usize = 120;

/// Bytes kept of one line of output. All relevant lines of git are shorter.
const MAX_RAW_LINE: usize = 8 << 10;

/// Bytes per read of the output.
const BLOCK: usize = 64 << 10;

/// All queries in one shell line, since every process delays the first request.
///
/// The root and the prefix below it end with a zero byte, because a path may contain a line break. The status is last:
/// only it can be slow, so that a time-out loses nothing else.
const QUERIES: &str = "git rev-parse --show-toplevel --show-prefix && printf '\\0' && { \
     git log -n 10 '--format=* %h %s'; \
     git status --porcelain=v2 --branch --ignore-submodules=dirty --untracked-files=normal; }";

/// Takes the snapshot; `None` if the working directory is outside of a work tree or git did not report it in time.
pub(super) async fn snapshot(env: &dyn ExecutionEnvironment) -> Option<GitContext> {
    // Prevents git from refreshing the index, which writes to the repository.
    let git = Git::new().with_variable("GIT_OPTIONAL_LOCKS", "0");
    let result = match env.exec_command(git.script(QUERIES).with_timeout(TIMEOUT).read_only()).await {
        Ok(result) => result,
        Err(error) => {
            tracing::debug!(%error, "git could not be run");
            return None;
        }
    };
    if result.timed_out {
        tracing::debug!("git timed out");
    }
    parse(&result, env.working_directory()).unwrap_or_else(|error| {
        tracing::debug!(%error, "the output of git could not be read");
        None
    })
}

fn parse(result: &ExecResult, working_directory: &Path) -> io::Result<Option<GitContext>> {
    let head = result.stdout.read_at(0, BLOCK)?;
    let end = head.iter().position(|byte| *byte == 0);
    let Some(location) = end.and_then(|end| head.get(..end)) else {
        return Ok(None);
    };
    let Some(root) = root_of(location, working_directory) else {
        return Ok(None);
    };
    let mut facts = Facts::default();
    each_line(&result.stdout, location.len() as u64 + 1, |line| facts.parse_line(line))?;
    Ok(Some(facts.into_context(root, result.success())))
}

/// Returns the root as an ancestor of `working_directory`, from git's root and the prefix below it.
///
/// Git resolves links: if `/tmp` is a link to `/private/tmp`, git's root is not an ancestor of `/tmp/project` by name.
/// If the working directory ends with the prefix, its path without the prefix is the root.
fn root_of(location: &[u8], working_directory: &Path) -> Option<PathBuf> {
    let mut lines = location.split(|byte| *byte == b'\n');
    let (root, prefix) = (lines.next()?, lines.next()?);
    // A path with a line break is ambiguous.
    if lines.any(|line| !line.is_empty()) || !root.starts_with(b"/") {
        return None;
    }
    let (root, prefix) = (path(root), path(prefix));
    if working_directory.starts_with(&root) || !working_directory.ends_with(&prefix) {
        return Some(root);
    }
    let steps = prefix.components().filter(|step| matches!(step, Component::Normal(_))).count();
    working_directory.ancestors().nth(steps).map(Path::to_path_buf)
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Facts from the lines of log and status.
#[derive(Default)]
struct Facts {
    branch: Option<String>,
    modified: usize,
    untracked: usize,
    commits: Vec<String>,
}

impl Facts {
    /// Parses one line: a commit in the format of [`QUERIES`], or a line of git's porcelain format, version 2.
    fn parse_line(&mut self, line: &[u8]) {
        match line {
            [b'*', b' ', commit @ ..] if self.commits.len() < COMMITS => self.commits.push(sanitized(commit)),
            [b'1' | b'2' | b'u', b' ', ..] => self.modified += 1,
            [b'?', b' ', ..] => self.untracked += 1,
            _ => {
                if let Some(branch) = line.strip_prefix(b"# branch.head ") {
                    self.branch = Some(sanitized(branch));
                }
            }
        }
    }

    fn into_context(self, root: PathBuf, complete: bool) -> GitContext {
        let mut git = GitContext::new(root).with_recent_commits(self.commits);
        git.branch = self.branch;
        if complete {
            git = git.with_status(self.modified, self.untracked);
        }
        git
    }
}

fn sanitized(bytes: &[u8]) -> String {
    single_line(&String::from_utf8_lossy(bytes), MAX_LINE)
}

/// Calls `take` with each line from `offset` on, in bounded memory. Long lines are truncated.
fn each_line(output: &Output, mut offset: u64, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        let block = output.read_at(offset, BLOCK)?;
        if block.is_empty() {
            break;
        }
        offset += block.len() as u64;
        for byte in block {
            if byte == b'\n' {
                take(&line);
                line.clear();
            } else if line.len() < MAX_RAW_LINE {
                line.push(byte);
            }
        }
    }
    take(&line);
    Ok(())
}

#[cfg(test)]
mod tests;
