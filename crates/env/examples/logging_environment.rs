//! A wrapper that logs every operation of another environment.
//!
//! A `DelegatingEnvironment` is an environment around another one: it forwards the operations that it does not override.
//! This one logs the name, the path, the duration and the outcome of each operation through `tracing`. The guide
//! `docs/guide/environment.md` has the other wrappers.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    io::Write as _,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use pintle_env::{
    Command, DirEntry, EnvError, ExecRequest, ExecResult, ExecutionEnvironment, ExecutionEnvironmentExt as _,
    ExitStatus, FileContent, GlobRequest, GrepOutput, GrepRequest, IntoEnvironment, LocalEnvironment,
    Metadata, Process, ProcessOutput, Program, ReadLimits, Signal, WalkOutput, WalkRequest,
};
use tokio::io::AsyncWrite;
use tracing::{Event, Subscriber, field, span};

/// The target of all events.
const TARGET: &str = "environment";

/// Logs every operation through `tracing`: its name, its path, its duration and its outcome. For a
/// spawned process it logs the start, and the exit once it is awaited.
///
/// Contents are omitted, as are command lines, patterns and outputs, which may contain secrets:
/// only their sizes are logged. [`with_contents`](Self::with_contents) adds them for debugging.
/// Values of variables and the input of commands are never logged.
///
/// All events have the level `debug`. Failed operations, and those dropped before completion, have
/// that as their `outcome`.
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
impl pintle_env::DelegatingEnvironment for Logging {
    fn inner(&self) -> &Arc<dyn ExecutionEnvironment> {
        &self.inner
    }

    fn wrap(&self, inner: Arc<dyn ExecutionEnvironment>) -> Arc<dyn ExecutionEnvironment> {
        Arc::new(Self { inner, contents: self.contents })
    }

    async fn initialize(&self) -> Result<(), EnvError> {
        let entry = LogEntry::start("initialize", self.inner.working_directory().display().to_string());
        entry.finish(self.inner.initialize().await, |()| String::new())
    }

    async fn cleanup(&self) -> Result<(), EnvError> {
        let entry = LogEntry::start("cleanup", self.inner.working_directory().display().to_string());
        entry.finish(self.inner.cleanup().await, |()| String::new())
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        let subject = self.command_subject(&command.program);
        let entry = LogEntry::start("spawn", subject.as_str());
        let spawned = entry.finish(self.inner.spawn(command).await, |process| match process.id() {
            Some(id) => format!("process {id}"),
            None => "a process".to_owned(),
        });
        Ok(Box::new(LoggedProcess::new(spawned?, LogEntry::start("process", subject))))
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        let entry = LogEntry::start_at("read", path);
        let read = self.inner.read(path, range).await;
        entry.finish(read, |bytes| format!("{} bytes {}", bytes.len(), self.content(bytes)))
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        let entry = LogEntry::start_at("write", path);
        let written = self.inner.write(path, bytes).await;
        entry.finish(written, |()| format!("{} bytes {}", bytes.len(), self.content(bytes)))
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        let entry = LogEntry::start_at("metadata", path);
        entry.finish(self.inner.metadata(path).await, |metadata| {
            format!("{:?} of {} bytes", metadata.kind, metadata.len)
        })
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        let entry = LogEntry::start_at("list", path);
        entry.finish(self.inner.list(path).await, |entries| format!("{} entries", entries.len()))
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        let entry = LogEntry::start_at("remove", path);
        entry.finish(self.inner.remove(path).await, |()| String::new())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        let entry = LogEntry::start("rename", format!("{} to {}", from.display(), to.display()));
        entry.finish(self.inner.rename(from, to).await, |()| String::new())
    }

    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        let entry = LogEntry::start_at("create_directory", path);
        entry.finish(self.inner.create_directory(path).await, |()| String::new())
    }

    async fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        let entry = LogEntry::start("create_symlink", format!("{} to {}", path.display(), target.display()));
        entry.finish(self.inner.create_symlink(path, target).await, |()| String::new())
    }

    async fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        let entry = LogEntry::start("set_mode", format!("{} to {mode:o}", path.display()));
        entry.finish(self.inner.set_mode(path, mode).await, |()| String::new())
    }

    async fn walk(&self, request: &WalkRequest) -> Result<WalkOutput, EnvError> {
        let entry = LogEntry::start_at("walk", &request.root);
        entry.finish(self.inner.walk(request).await, |output| match output.reached {
            None => format!("{} entries", output.entries.len()),
            Some(limit) => format!("{} entries, limit reached: {limit:?}", output.entries.len()),
        })
    }

    async fn read_many(&self, paths: &[PathBuf], limits: ReadLimits) -> Result<Vec<FileContent>, EnvError> {
        let entry = LogEntry::start("read_many", format!("{} files", paths.len()));
        entry.finish(self.inner.read_many(paths, limits).await, |contents| {
            let sizes = contents.iter().filter_map(|content| {
                if let FileContent::Bytes(bytes) = content { Some(bytes.len()) } else { None }
            });
            format!("{} read, {} bytes", sizes.clone().count(), sizes.sum::<usize>())
        })
    }

    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        let entry = LogEntry::start_at("canonicalize", path);
        entry.finish(self.inner.canonicalize(path).await, |found| found.display().to_string())
    }

    async fn exec_command(&self, request: ExecRequest) -> Result<ExecResult, EnvError> {
        let command = Command::from(&request);
        let entry = LogEntry::start("exec_command", self.command_subject(&command.program));
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
        let entry = LogEntry::start_at("read_file", path);
        let read = self.inner.read_file(path, offset, limit).await;
        entry.finish(read, |text| format!("{} bytes {}", text.len(), self.content(text.as_bytes())))
    }

    async fn find_files(&self, request: &GlobRequest) -> Result<Vec<PathBuf>, EnvError> {
        let path = request.path.as_deref().unwrap_or(Path::new(""));
        let entry = LogEntry::start("find_files", self.search_subject(&request.pattern, path));
        entry.finish(self.inner.find_files(request).await, |found| format!("{} files", found.len()))
    }

    async fn grep(&self, request: &GrepRequest) -> Result<GrepOutput, EnvError> {
        let path = request.path.as_deref().unwrap_or(Path::new(""));
        let entry = LogEntry::start("grep", self.search_subject(&request.pattern, path));
        entry.finish(self.inner.grep(request).await, |output| format!("{} files", output.files.len()))
    }
}

/// Log entry of one operation; reports when it is dropped before completion.
struct LogEntry {
    operation: &'static str,
    subject: String,
    started: Instant,
    is_done: bool,
}

impl LogEntry {
    fn start(operation: &'static str, subject: impl Into<String>) -> Self {
        Self { operation, subject: subject.into(), started: Instant::now(), is_done: false }
    }

    fn start_at(operation: &'static str, path: &Path) -> Self {
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
        tracing::debug!(target: TARGET, operation, subject, milliseconds, %outcome, "environment");
    }
}

impl Drop for LogEntry {
    fn drop(&mut self) {
        if !self.is_done {
            self.log(format_args!("dropped"));
        }
    }
}

/// Forwards to a process and logs the first exit that is awaited.
struct LoggedProcess {
    inner: Box<dyn Process>,
    /// `None` once the exit was logged. If dropped before, that is logged.
    entry: Option<LogEntry>,
}

impl LoggedProcess {
    fn new(inner: Box<dyn Process>, entry: LogEntry) -> Self {
        Self { inner, entry: Some(entry) }
    }

    /// Logs the end, unless it was logged before.
    fn log_end<T>(
        &mut self,
        ended: Result<T, EnvError>,
        describe: impl FnOnce(&T) -> String,
    ) -> Result<T, EnvError> {
        match self.entry.take() {
            Some(entry) => entry.finish(ended, describe),
            None => ended,
        }
    }
}

#[async_trait]
impl Process for LoggedProcess {
    fn id(&self) -> Option<u32> {
        self.inner.id()
    }

    fn take_stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
        self.inner.take_stdin()
    }

    fn take_output(&mut self) -> Option<Box<dyn ProcessOutput>> {
        self.inner.take_output()
    }

    async fn wait(&mut self) -> Result<ExitStatus, EnvError> {
        let ended = self.inner.wait().await;
        self.log_end(ended, |status| format!("exit code {}", status.code()))
    }

    async fn signal(&mut self, signal: Signal) -> Result<(), EnvError> {
        self.inner.signal(signal).await
    }

    async fn jobs(&mut self) -> Result<usize, EnvError> {
        self.inner.jobs().await
    }

    async fn terminate(&mut self, grace: Duration) -> Result<usize, EnvError> {
        let ended = self.inner.terminate(grace).await;
        self.log_end(ended, |jobs| format!("ended with {jobs} jobs"))
    }
}

impl fmt::Debug for LoggedProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// A subscriber that keeps the events of the wrapper as text. An application has a subscriber already.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn text(&self) -> MutexGuard<'_, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber for Log {
    fn enabled(&self, callsite: &tracing::Metadata<'_>) -> bool {
        callsite.target() == TARGET
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = self.text();
        event.record(&mut Fields(&mut text));
        text.push('\n');
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Appends the fields of an event to a text.
struct Fields<'a>(&'a mut String);

impl field::Visit for Fields<'_> {
    fn record_debug(&mut self, field: &field::Field, value: &dyn fmt::Debug) {
        if field.name() != "milliseconds" {
            // Writing to a string cannot fail.
            let _ = write!(self.0, "{}={value:?} ", field.name());
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    let directory = tempfile::tempdir()?;
    let local = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?;
    let environment = Logging::new(local).with_contents(80);
    environment.initialize().await?;
    environment.write_file(Path::new("notes.txt"), "buy milk\n").await?;
    environment.exec_command(ExecRequest::new("wc -l notes.txt")).await?;
    environment.cleanup().await?;
    drop(guard);
    std::io::stdout().write_all(log.text().as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use pintle_env::{CommandScript, MemoryEnvironment, contract};

    use super::*;

    /// Returns the log of one operation of each kind.
    async fn logged(contents: usize) -> String {
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let memory = MemoryEnvironment::new("/project")
            .with_commands(|_| CommandScript::exit(3).stdout("secret-output"));
        let environment = Logging::new(Arc::new(memory)).with_contents(contents);
        let path = Path::new("/project/a");
        environment.write_file(path, "secret-content").await.unwrap();
        environment.read(path, None).await.unwrap();
        environment.read_file(path, None, None).await.unwrap();
        let request =
            ExecRequest::new("echo secret-line").with_env("A", "secret-value").with_stdin("secret-input");
        environment.exec_command(request).await.unwrap();
        drop(environment.spawn(Command::argv("program", ["secret-argument"])).await.unwrap());
        environment.grep(&GrepRequest::new("secret-pattern")).await.unwrap();
        environment.glob("secret-glob", Path::new("")).await.unwrap();
        environment.glob("secret-[", Path::new("")).await.unwrap_err();
        environment.metadata(Path::new("/gone")).await.unwrap_err();
        environment.cleanup().await.unwrap();
        log.text().clone()
    }

    #[tokio::test]
    async fn operations_are_logged_without_contents() {
        let log = logged(0).await;
        assert!(!log.contains("secret"), "{log}");
        for expected in [
            r#"operation="write" subject="/project/a" outcome=14 bytes"#,
            r#"operation="exec_command" subject="a shell line of 16 bytes" outcome=exit code 3"#,
            r#"operation="spawn" subject="\"program\" with 1 arguments" outcome=a process"#,
            r#"operation="find_files" subject="" outcome=failed: invalid pattern"#,
            r#"operation="metadata" subject="/gone" outcome=failed: /gone does not exist"#,
            r#"operation="cleanup""#,
        ] {
            assert!(log.contains(expected), "{expected}\n{log}");
        }
    }

    #[tokio::test]
    async fn contents_are_logged_on_request_and_values_never() {
        let log = logged(100).await;
        for expected in ["content", "output", "line", "argument", "pattern", "glob"] {
            assert!(log.contains(&format!("secret-{expected}")), "{expected}\n{log}");
        }
        for never in ["secret-value", "secret-input"] {
            assert!(!log.contains(never), "{never}\n{log}");
        }
        let cut = logged(8).await;
        assert!(cut.contains("secret-c") && !cut.contains("secret-co"), "{cut}");
    }

    #[tokio::test]
    async fn a_process_has_a_start_and_an_end() {
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let memory = MemoryEnvironment::new("/project").with_commands(|_| CommandScript::exit(3));
        let environment = Logging::new(Arc::new(memory));
        let none: [&str; 0] = [];
        let mut process = environment.spawn(Command::argv("program", none)).await.unwrap();
        assert_eq!(log.text().lines().count(), 1);
        for _ in 0..2 {
            assert_eq!(process.wait().await.unwrap().code(), 3);
        }
        drop(process);
        drop(environment.spawn(Command::argv("program", none)).await.unwrap());
        let log = log.text().clone();
        let outcomes: Vec<_> =
            log.lines().filter_map(|line| Some(line.split_once("outcome=")?.1.trim_end())).collect();
        assert_eq!(outcomes, ["a process", "exit code 3", "a process", "dropped"]);
    }

    #[tokio::test]
    async fn dropped_operations_are_logged() {
        let log = Log::default();
        let _guard = tracing::subscriber::set_default(log.clone());
        let memory = MemoryEnvironment::new("/project").with_commands(|_| CommandScript::exit(0).hang());
        let environment = Logging::new(Arc::new(memory));
        let hanging = environment.exec_command(ExecRequest::new("sleep"));
        tokio::time::timeout(Duration::from_millis(20), hanging).await.unwrap_err();
        let log = log.text().clone();
        assert!(
            log.contains(r#"operation="exec_command" subject="a shell line of 5 bytes" outcome=dropped"#),
            "{log}"
        );
    }

    #[tokio::test]
    async fn keeps_the_contract() {
        let environment = Logging::new(Arc::new(MemoryEnvironment::new("/project")));
        contract::files(&environment, Path::new("/project/files")).await.unwrap();
        contract::search(&environment, Path::new("/project/search")).await.unwrap();
    }
}
