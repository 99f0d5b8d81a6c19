//! The logging wrapper.

mod process;

use std::{
    borrow::Cow,
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use tokio::time::Instant;

use self::process::LoggedProcess;
use crate::{
    command::{Command, ExecRequest, ExecResult, Program},
    environment::{ExecutionEnvironment, IntoEnvironment},
    error::EnvError,
    file::{DirEntry, Metadata},
    forward::forward,
    process::Process,
    search::{GlobRequest, GrepOutput, GrepRequest},
    walk::{FileContent, ReadLimits, WalkOutput, WalkRequest},
};

/// Logs every operation through `tracing`: its name, its path, its duration and its outcome. For a
/// spawned process it logs the start, and the exit once it is awaited.
///
/// Contents are omitted, as are command lines, patterns and outputs, which may contain secrets:
/// only their sizes are logged. [`with_contents`](Self::with_contents) adds them for debugging.
/// Values of variables and the input of commands are never logged.
///
/// All events have the level `debug` and the target `pintle_env::logging`. Failed operations, and
/// those dropped before completion, say so in `outcome`.
#[derive(Clone, Debug)]
pub struct Logging {
    inner: Arc<dyn ExecutionEnvironment>,
    contents: usize,
}

impl Logging {
    /// Creates a wrapper that logs the operations of `inner`.
    #[must_use]
    pub fn new(inner: impl IntoEnvironment) -> Self {
        Self { inner: inner.into_environment(), contents: 0 }
    }

    /// Logs up to `max_bytes` of each content too; default 0.
    #[must_use]
    pub fn with_contents(mut self, max_bytes: usize) -> Self {
        self.contents = max_bytes;
        self
    }

    /// Returns the start of a content if contents are logged, else an empty string.
    fn content<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        String::from_utf8_lossy(bytes.get(..self.contents.min(bytes.len())).unwrap_or_default())
    }

    /// Describes a search: its path and, if contents are logged, its pattern.
    fn search_subject(&self, pattern: &str, path: &Path) -> String {
        match self.contents {
            0 => path.display().to_string(),
            _ => format!("{:?} in {}", self.content(pattern.as_bytes()), path.display()),
        }
    }

    /// Describes a command, with its command line only if contents are logged.
    fn command_subject(&self, program: &Program) -> String {
        match program {
            Program::Shell(line) if self.contents > 0 => self.content(line.as_bytes()).into_owned(),
            Program::Shell(line) => format!("a shell line of {} bytes", line.len()),
            Program::Argv { program, arguments } if self.contents > 0 => format!("{program:?} {arguments:?}"),
            Program::Argv { program, arguments } => {
                format!("{program:?} with {} arguments", arguments.len())
            }
        }
    }
}

#[async_trait]
impl ExecutionEnvironment for Logging {
    forward! { inner: working_directory, home_directory, platform, os_version, output_limits, command_limits, place, resolve }

    fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
        let inner = self.inner.outside_sandbox()?;
        Some(Arc::new(Self { inner, contents: self.contents }))
    }

    async fn hold(&self, paths: &[PathBuf]) -> Result<Option<Arc<dyn ExecutionEnvironment>>, EnvError> {
        let held = self.inner.hold(paths).await?;
        Ok(held.map(|inner| Arc::new(Self { inner, contents: self.contents }) as _))
    }

    async fn initialize(&self) -> Result<(), EnvError> {
        let entry = Entry::start("initialize", self.working_directory().display().to_string());
        entry.finish(self.inner.initialize().await, |()| String::new())
    }

    async fn cleanup(&self) -> Result<(), EnvError> {
        let entry = Entry::start("cleanup", self.working_directory().display().to_string());
        entry.finish(self.inner.cleanup().await, |()| String::new())
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        let subject = self.command_subject(&command.program);
        let entry = Entry::start("spawn", subject.as_str());
        let spawned = entry.finish(self.inner.spawn(command).await, |process| match process.id() {
            Some(id) => format!("process {id}"),
            None => "a process".to_owned(),
        });
        Ok(Box::new(LoggedProcess::new(spawned?, Entry::start("process", subject))))
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        let entry = Entry::at("read", path);
        let read = self.inner.read(path, range).await;
        entry.finish(read, |bytes| format!("{} bytes {}", bytes.len(), self.content(bytes)))
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        let entry = Entry::at("write", path);
        let written = self.inner.write(path, bytes).await;
        entry.finish(written, |()| format!("{} bytes {}", bytes.len(), self.content(bytes)))
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        let entry = Entry::at("metadata", path);
        entry.finish(self.inner.metadata(path).await, |metadata| {
            format!("{:?} of {} bytes", metadata.kind, metadata.len)
        })
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        let entry = Entry::at("list", path);
        entry.finish(self.inner.list(path).await, |entries| format!("{} entries", entries.len()))
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        let entry = Entry::at("remove", path);
        entry.finish(self.inner.remove(path).await, |()| String::new())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        let entry = Entry::start("rename", format!("{} to {}", from.display(), to.display()));
        entry.finish(self.inner.rename(from, to).await, |()| String::new())
    }

    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        let entry = Entry::at("create_directory", path);
        entry.finish(self.inner.create_directory(path).await, |()| String::new())
    }

    async fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        let entry = Entry::start("create_symlink", format!("{} to {}", path.display(), target.display()));
        entry.finish(self.inner.create_symlink(path, target).await, |()| String::new())
    }

    async fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        let entry = Entry::start("set_mode", format!("{} to {mode:o}", path.display()));
        entry.finish(self.inner.set_mode(path, mode).await, |()| String::new())
    }

    async fn walk(&self, request: &WalkRequest) -> Result<WalkOutput, EnvError> {
        let entry = Entry::at("walk", &request.root);
        entry.finish(self.inner.walk(request).await, |output| match output.reached {
            None => format!("{} entries", output.entries.len()),
            Some(limit) => format!("{} entries, limit reached: {limit:?}", output.entries.len()),
        })
    }

    async fn read_many(&self, paths: &[PathBuf], limits: ReadLimits) -> Result<Vec<FileContent>, EnvError> {
        let entry = Entry::start("read_many", format!("{} files", paths.len()));
        entry.finish(self.inner.read_many(paths, limits).await, |contents| {
            let sizes = contents.iter().filter_map(|content| match content {
                FileContent::Bytes(bytes) => Some(bytes.len()),
                FileContent::TooLarge
                | FileContent::Missing
                | FileContent::NotAFile
                | FileContent::Unreadable
                | FileContent::Skipped => None,
            });
            format!("{} read, {} bytes", sizes.clone().count(), sizes.sum::<usize>())
        })
    }

    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        let entry = Entry::at("canonicalize", path);
        entry.finish(self.inner.canonicalize(path).await, |found| found.display().to_string())
    }

    async fn exec_command(&self, request: ExecRequest) -> Result<ExecResult, EnvError> {
        let command = Command::from(&request);
        let entry = Entry::start("exec_command", self.command_subject(&command.program));
        entry.finish(self.inner.exec_command(request).await, |result| {
            let head = result.output.read_at(0, self.contents).unwrap_or_default();
            let ExecResult { exit_code, timed_out, ended_jobs, stuck, .. } = result;
            format!(
                "exit code {exit_code}, timed out {timed_out}, ended jobs {ended_jobs}, stuck {stuck:?}, \
                 {} bytes of output {}",
                result.output.len(),
                self.content(&head),
            )
        })
    }

    async fn read_file(
        &self,
        path: &Path,
        offset: Option<usize>,
        limit: Option<usize>,
    ) -> Result<String, EnvError> {
        let entry = Entry::at("read_file", path);
        let read = self.inner.read_file(path, offset, limit).await;
        entry.finish(read, |text| format!("{} bytes {}", text.len(), self.content(text.as_bytes())))
    }

    async fn write_file(&self, path: &Path, content: &str) -> Result<(), EnvError> {
        let entry = Entry::at("write_file", path);
        let written = self.inner.write_file(path, content).await;
        entry.finish(written, |()| format!("{} bytes {}", content.len(), self.content(content.as_bytes())))
    }

    async fn file_exists(&self, path: &Path) -> Result<bool, EnvError> {
        let entry = Entry::at("file_exists", path);
        entry.finish(self.inner.file_exists(path).await, bool::to_string)
    }

    async fn list_directory(&self, path: &Path, depth: usize) -> Result<Vec<DirEntry>, EnvError> {
        let entry = Entry::at("list_directory", path);
        let listed = self.inner.list_directory(path, depth).await;
        entry.finish(listed, |entries| format!("{} entries", entries.len()))
    }

    async fn find_files(&self, request: &GlobRequest) -> Result<Vec<PathBuf>, EnvError> {
        let entry = Entry::start("glob", self.search_subject(&request.pattern, request.directory()));
        entry.finish(self.inner.find_files(request).await, |found| format!("{} files", found.len()))
    }

    async fn grep(&self, request: &GrepRequest) -> Result<GrepOutput, EnvError> {
        let path = request.path.as_deref().unwrap_or(Path::new(""));
        let entry = Entry::start("grep", self.search_subject(&request.pattern, path));
        entry.finish(self.inner.grep(request).await, |output| format!("{} files", output.files.len()))
    }
}

/// Log entry of one operation; reports when it is dropped before completion.
struct Entry {
    operation: &'static str,
    subject: String,
    started: Instant,
    is_done: bool,
}

impl Entry {
    fn start(operation: &'static str, subject: impl Into<String>) -> Self {
        Self { operation, subject: subject.into(), started: Instant::now(), is_done: false }
    }

    fn at(operation: &'static str, path: &Path) -> Self {
        Self::start(operation, path.display().to_string())
    }

    fn finish<T>(
        mut self,
        result: Result<T, EnvError>,
        describe: impl FnOnce(&T) -> String,
    ) -> Result<T, EnvError> {
        self.is_done = true;
        match &result {
            Ok(value) => self.log(format_args!("{}", describe(value).trim_end())),
            // The error's text contains the pattern.
            Err(EnvError::InvalidPattern { .. }) => self.log(format_args!("failed: invalid pattern")),
            Err(error) => self.log(format_args!("failed: {error}")),
        }
        result
    }

    fn log(&self, outcome: fmt::Arguments<'_>) {
        let milliseconds = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Self { operation, subject, .. } = self;
        tracing::debug!(operation, subject, milliseconds, %outcome, "environment");
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.is_done {
            self.log(format_args!("dropped"));
        }
    }
}

#[cfg(test)]
mod tests;
