//! The git snapshot, by one command.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use pintle_env::{ExecRequest, ExecResult, ExecutionEnvironment, Output};

use super::environment::GitContext;
use super::plain::single_line;

/// How long git may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// How many commits are shown.
const COMMITS: usize = 10;

/// The longest branch name, and the longest line of a commit, in characters.
const SHOWN: usize = 120;

/// What is read of one line; git's lines that matter here are shorter.
const LINE_LIMIT: usize = 8 << 10;

/// The size of one read of a long output.
const BLOCK: usize = 64 << 10;

/// One shell line for everything, since each start of a program delays the first request.
///
/// The root and the way down from it end with a zero byte, because a path may hold a line break. The status comes
/// last: it is the only part that can be slow, so a time-out loses nothing else. A file system monitor named in the
/// repository's configuration would be a program that nobody asked to run, and one that stays.
const QUERIES: &str = "git rev-parse --show-toplevel --show-prefix && printf '\\0' && { \
     git log -n 10 --no-show-signature --no-color '--format=* %h %s'; \
     git -c core.fsmonitor=false status --porcelain=v2 --branch --ignore-submodules=dirty --untracked-files=normal; }";

/// What git says of the working directory; `None` if it is in no work tree, or git could not say so in time.
pub(super) async fn snapshot(env: &dyn ExecutionEnvironment) -> Option<GitContext> {
    let request = ExecRequest::new(QUERIES)
        .with_timeout(TIMEOUT)
        // Refreshing the index would write to the repository.
        .with_env("GIT_OPTIONAL_LOCKS", "0")
        .with_env("GIT_TERMINAL_PROMPT", "0")
        .with_env("LC_ALL", "C");
    let result = match env.exec_command(request).await {
        Ok(result) => result,
        Err(error) => {
            tracing::debug!(%error, "git could not be asked");
            return None;
        }
    };
    if result.timed_out {
        tracing::debug!("git did not answer in time");
    }
    read(&result, env.working_directory()).unwrap_or_else(|error| {
        tracing::debug!(%error, "what git said could not be read");
        None
    })
}

fn read(result: &ExecResult, working_directory: &Path) -> io::Result<Option<GitContext>> {
    let head = result.stdout.read_at(0, BLOCK)?;
    let Some(place) = head.split(|byte| *byte == 0).next().filter(|place| place.len() < head.len()) else {
        return Ok(None);
    };
    let Some(root) = root_of(place, working_directory) else {
        return Ok(None);
    };
    let mut facts = Facts::default();
    each_line(&result.stdout, place.len() as u64 + 1, |line| facts.take(line))?;
    Ok(Some(facts.into_context(root, result.success())))
}

/// The root, by the name under which the working directory is known.
///
/// Git resolves links: with `/tmp` a link to `/private/tmp` its root is not above `/tmp/project` by name. Where the way
/// down from the root ends the working directory's name, what is left of that name is the root.
fn root_of(place: &[u8], working_directory: &Path) -> Option<PathBuf> {
    let mut lines = place.split(|byte| *byte == b'\n');
    let (root, prefix) = (lines.next()?, lines.next()?);
    // A line break in the path makes more lines: then it is not known where the root ends.
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

/// What the lines of log and status add up to.
#[derive(Default)]
struct Facts {
    branch: Option<String>,
    modified: usize,
    untracked: usize,
    commits: Vec<String>,
}

impl Facts {
    /// One line: a commit as our format has it, else a line of git's porcelain format, version 2.
    fn take(&mut self, line: &[u8]) {
        match line {
            [b'*', b' ', commit @ ..] if self.commits.len() < COMMITS => self.commits.push(shown(commit)),
            [b'1' | b'2' | b'u', b' ', ..] => self.modified += 1,
            [b'?', b' ', ..] => self.untracked += 1,
            _ => {
                if let Some(branch) = line.strip_prefix(b"# branch.head ") {
                    self.branch = Some(shown(branch));
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

fn shown(bytes: &[u8]) -> String {
    single_line(&String::from_utf8_lossy(bytes), SHOWN)
}

/// Calls `take` with each line from `offset` on, of long ones with the start, in bounded memory.
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
            } else if line.len() < LINE_LIMIT {
                line.push(byte);
            }
        }
    }
    take(&line);
    Ok(())
}

#[cfg(test)]
mod tests;
