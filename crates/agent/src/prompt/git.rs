//! Git snapshot, taken with one command.

mod work_tree;

use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pintle_env::{ExecRequest, ExecResult, ExecutionEnvironment, Git, Output, OutputChunk, OutputStream};
use tokio::sync::Notify;

use self::work_tree::{WorkTree, WorkTreeSearch, logical_root, path_from_bytes};
use super::environment::GitContext;
use crate::sanitize::single_line;

/// Time-out of the git command.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Time that the first request of a large work tree waits for the status after the commits are known.
const STATUS_LIMIT: Duration = Duration::from_millis(10);

/// Maximum number of commits.
const COMMITS: usize = 10;

/// Maximum length of a branch name and of a commit line, in characters.
const MAX_LINE: usize = 120;

/// Bytes kept of one line of output. All relevant lines of git are shorter.
const MAX_RAW_LINE: usize = 8 << 10;

/// Bytes per read of the output.
const BLOCK: usize = 64 << 10;

/// Prints the root and the prefix below it. They end with a zero byte, because a path may contain a line break.
const LOCATION: &str = "git rev-parse --show-toplevel --show-prefix && printf '\\0'";

/// Runs both queries at once, since every process delays the first request. The script exits with the code of the status.
///
/// The commits are the standard error, which ends with a zero byte; the status is the standard output.
const QUERIES: &str = "{ { git log -n 10 '--format=* %h %s' >&2 2>/dev/null; printf '\\0' >&2; } & \
     git status --porcelain=v2 --branch --ignore-submodules=dirty --untracked-files=normal 2>/dev/null; \
     pintle_status=$?; wait; exit $pintle_status; }";

/// Takes the snapshot; `None` if the working directory is outside of a work tree or git did not report it in time.
///
/// Outside of a work tree no process runs. In a large one a late status is left out.
pub(super) async fn snapshot(env: &dyn ExecutionEnvironment) -> Option<GitContext> {
    let work_tree = match WorkTree::find(env).await {
        WorkTreeSearch::Found(work_tree) => work_tree,
        WorkTreeSearch::Outside => return None,
        WorkTreeSearch::Unknown => return locate_and_query(env).await,
    };
    let log = Arc::new(LogOutput::default());
    let collected = Arc::clone(&log);
    let request =
        request(QUERIES).with_on_output(Arc::new(move |chunk: OutputChunk| collected.collect(&chunk)));
    let status_limit = async {
        if !work_tree.is_large(env).await {
            pending::<()>().await;
        }
        log.complete.notified().await;
        tokio::time::sleep(STATUS_LIMIT).await;
    };
    let result = tokio::select! {
        biased;
        result = env.exec_command(request) => Some(result),
        () = status_limit => None,
    };
    let facts = Facts { branch: work_tree.branch, ..Facts::default() };
    match result {
        None => {
            tracing::debug!("git status was late");
            report(facts.with_outputs(&log.output(), None)).map(|facts| facts.into_context(work_tree.root))
        }
        Some(Err(error)) => {
            tracing::debug!(%error, "git could not be run");
            None
        }
        Some(Ok(result)) if result.success() || result.timed_out => {
            let facts = facts.with_outputs(&result.stderr, Some((&result, 0)));
            report(facts).map(|facts| facts.into_context(work_tree.root))
        }
        // Git refuses the work tree, or finds another one.
        Some(Ok(_)) => locate_and_query(env).await,
    }
}

/// Takes the snapshot of the work tree that git finds.
async fn locate_and_query(env: &dyn ExecutionEnvironment) -> Option<GitContext> {
    match env.exec_command(request(&format!("{LOCATION} && {QUERIES}"))).await {
        Ok(result) => report(parse(&result, env.working_directory())).flatten(),
        Err(error) => {
            tracing::debug!(%error, "git could not be run");
            None
        }
    }
}

fn request(script: &str) -> ExecRequest {
    // Prevents git from refreshing the index, which writes to the repository.
    Git::new().with_variable("GIT_OPTIONAL_LOCKS", "0").script(script).with_timeout(TIMEOUT).read_only()
}

/// Logs the error of an output that cannot be read.
fn report<T>(result: io::Result<T>) -> Option<T> {
    result.inspect_err(|error| tracing::debug!(%error, "the output of git could not be read")).ok()
}

/// Parses the output of [`LOCATION`] and [`QUERIES`].
fn parse(result: &ExecResult, working_directory: &Path) -> io::Result<Option<GitContext>> {
    let head = result.stdout.read_at(0, BLOCK)?;
    let end = head.iter().position(|byte| *byte == 0);
    let Some(location) = end.and_then(|end| head.get(..end)) else {
        return Ok(None);
    };
    let Some(root) = root_of(location, working_directory) else {
        return Ok(None);
    };
    let status = (result, location.len() as u64 + 1);
    let facts = Facts::default().with_outputs(&result.stderr, Some(status))?;
    Ok(Some(facts.into_context(root)))
}

/// Returns the root as an ancestor of `working_directory`, from git's root and the prefix below it.
fn root_of(location: &[u8], working_directory: &Path) -> Option<PathBuf> {
    let mut lines = location.split(|byte| *byte == b'\n');
    let (root, prefix) = (lines.next()?, lines.next()?);
    // A path with a line break is ambiguous.
    if lines.any(|line| !line.is_empty()) || !root.starts_with(b"/") {
        return None;
    }
    Some(logical_root(working_directory, &path_from_bytes(root), &path_from_bytes(prefix)))
}

/// The commits as they arrive. A status that is still running has no result to read them from.
#[derive(Debug, Default)]
struct LogOutput {
    bytes: Mutex<Vec<u8>>,
    /// Notified when all commits have arrived.
    complete: Notify,
}

impl LogOutput {
    fn collect(&self, chunk: &OutputChunk) {
        if chunk.stream != OutputStream::Stderr {
            return;
        }
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let room = (COMMITS * MAX_RAW_LINE).saturating_sub(bytes.len());
        bytes.extend(chunk.bytes.iter().take(room));
        if chunk.bytes.contains(&0) {
            self.complete.notify_one();
        }
    }

    fn output(&self) -> Output {
        Output::from(self.bytes.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// Facts from the lines of log and status.
#[derive(Debug, Default)]
struct Facts {
    branch: Option<String>,
    modified: usize,
    untracked: usize,
    /// Whether the status was read completely.
    is_counted: bool,
    commits: Vec<String>,
}

impl Facts {
    /// Adds the commits and, if git has reported it, the status in the standard output of a result from an offset on.
    fn with_outputs(mut self, commits: &Output, status: Option<(&ExecResult, u64)>) -> io::Result<Self> {
        each_line(commits, 0, |line| self.parse_commit(line))?;
        if let Some((result, offset)) = status {
            each_line(&result.stdout, offset, |line| self.parse_status(line))?;
            self.is_counted = result.success();
        }
        Ok(self)
    }

    /// Parses a commit in the format of [`QUERIES`].
    fn parse_commit(&mut self, line: &[u8]) {
        if let [b'*', b' ', commit @ ..] = line
            && self.commits.len() < COMMITS
        {
            self.commits.push(sanitized(commit));
        }
    }

    /// Parses a line of git's porcelain format, version 2.
    fn parse_status(&mut self, line: &[u8]) {
        match line {
            [b'1' | b'2' | b'u', b' ', ..] => self.modified += 1,
            [b'?', b' ', ..] => self.untracked += 1,
            _ => {
                if let Some(branch) = line.strip_prefix(b"# branch.head ") {
                    self.branch = Some(sanitized(branch));
                }
            }
        }
    }

    fn into_context(self, root: PathBuf) -> GitContext {
        let mut git = GitContext::new(root).with_recent_commits(self.commits);
        git.branch = self.branch;
        if self.is_counted {
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
