//! Files and commands of an environment, accessed through the client.

mod terminal;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pintle_env::{EnvError, ExecRequest, ExecResult, ExecutionEnvironment, FileKind, forward};

use crate::client::Client;

/// Maximum size of a file that is read or written through the client, in bytes.
const MAX_FILE: u64 = 8 << 20;

/// Time that the client has to read or write a file.
const FILE_TIME: Duration = Duration::from_secs(10);

/// Environment with the client's text files: reads include unsaved changes, and writes update open buffers.
///
/// It wraps the environment that contains the client's files. Searches, listings and metadata use the files on disk. So do
/// reads of files that are not UTF-8 text or are larger than 8 MiB, and of all files until the client knows the session. If
/// the client does not answer within ten seconds, the file on disk is read, and a write fails. Environments that confine or
/// reject must wrap this one, not the inner one.
///
/// Commands run in the inner environment, unless the [`TerminalSwitch`] is on, the client has terminals, and a tool call
/// runs the command.
#[derive(Clone, Debug)]
pub struct EditorEnvironment {
    inner: Arc<dyn ExecutionEnvironment>,
    client: Client,
    session: String,
    terminals: TerminalSwitch,
}

/// Whether commands may run in the client's terminals, outside any sandbox. Clones share the state.
///
/// An application turns it on only while every command needs approval or is allowed by a rule of the user. It must be off
/// in a mode in which commands run without approval because a sandbox confines them.
#[derive(Clone, Debug, Default)]
pub struct TerminalSwitch(Arc<AtomicBool>);

impl TerminalSwitch {
    /// Creates a switch in this state. The default switch is off.
    #[must_use]
    pub fn new(is_on: bool) -> Self {
        Self(Arc::new(AtomicBool::new(is_on)))
    }

    /// Returns whether commands run in the client's terminals.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Sets the state for later commands.
    pub fn set(&self, is_on: bool) {
        self.0.store(is_on, Ordering::Release);
    }
}

impl EditorEnvironment {
    /// Wraps the environment of the session with this id.
    #[must_use]
    pub fn new(
        inner: Arc<dyn ExecutionEnvironment>,
        client: Client,
        session: impl Into<String>,
        terminals: TerminalSwitch,
    ) -> Self {
        Self { inner, client, session: session.into(), terminals }
    }

    /// Returns the path by which the client knows the file.
    async fn real_path(&self, path: &Path) -> PathBuf {
        let resolved = self.inner.resolve(path);
        self.inner.canonicalize(&resolved).await.unwrap_or(resolved)
    }

    /// Returns the bytes of a text file with unsaved changes; `None` if it has none or is not read through the client.
    async fn edited(&self, path: &Path) -> Option<Vec<u8>> {
        if !self.client.features().reads_files || !self.client.knows(&self.session) {
            return None;
        }
        let metadata = self.inner.metadata(path).await.ok()?;
        if metadata.kind != FileKind::File || metadata.len > MAX_FILE {
            return None;
        }
        let saved = self.inner.read(path, None).await.ok()?;
        let saved_text = text(&saved)?;
        let real_path = self.real_path(path).await;
        let reading = self.client.read_text_file(&self.session, &real_path);
        let edited = match tokio::time::timeout(FILE_TIME, reading).await {
            Ok(Ok(edited)) => edited,
            Ok(Err(error)) => {
                tracing::debug!(path = %real_path.display(), %error, "the client does not read the file");
                return None;
            }
            Err(_elapsed) => {
                tracing::warn!(path = %real_path.display(), "the client takes too long to read the file");
                return None;
            }
        };
        // Editors normalise line ends and omit the byte order mark. Without other changes, the contents on disk count.
        let is_changed = plain(&edited) != plain(saved_text);
        (is_changed && !edited.contains('\0')).then(|| edited.into_bytes())
    }

    /// Writes a text file through the client. Returns false if the environment must write it instead.
    async fn write_edited(&self, path: &Path, bytes: &[u8]) -> Result<bool, EnvError> {
        if !self.client.features().writes_files || !self.client.knows(&self.session) {
            return Ok(false);
        }
        let Some(text) = text(bytes).filter(|text| text.len() as u64 <= MAX_FILE) else { return Ok(false) };
        // The new file and its new directories.
        let mut created = Vec::new();
        match self.inner.metadata(path).await {
            Ok(metadata) if metadata.kind == FileKind::File && metadata.read_only_mode().is_none() => {}
            // A new file gets its directories and its mode from the environment.
            Err(EnvError::NotFound { .. }) => {
                let directories = self.missing_directories(path).await;
                self.inner.write(path, bytes).await?;
                created.push(self.real_path(path).await);
                created.extend(directories);
            }
            // The environment reports the error.
            Ok(_) | Err(_) => return Ok(false),
        }
        let real_path = self.real_path(path).await;
        let writing = self.client.write_text_file(&self.session, &real_path, text);
        let failed = |source| EnvError::Io { action: "write", path: self.inner.resolve(path), source };
        let written = match tokio::time::timeout(FILE_TIME, writing).await {
            Ok(written) => written.map_err(|error| failed(io::Error::other(error))),
            Err(_elapsed) => Err(failed(io::ErrorKind::TimedOut.into())),
        };
        if written.is_err() {
            self.remove_created(&created, bytes).await;
        }
        written.map(|()| true)
    }

    /// Returns the missing directories of a path, the deepest first.
    async fn missing_directories(&self, path: &Path) -> Vec<PathBuf> {
        let resolved = self.inner.resolve(path);
        let mut missing = Vec::new();
        for directory in resolved.ancestors().skip(1) {
            match self.inner.metadata(directory).await {
                Err(EnvError::NotFound { .. }) => missing.push(directory.to_path_buf()),
                Ok(_) | Err(_) => break,
            }
        }
        missing
    }

    /// Removes a new file that the client did not write, and its new directories. Keeps a file that has changed since, and
    /// directories that are not empty.
    async fn remove_created(&self, created: &[PathBuf], bytes: &[u8]) {
        let Some(file) = created.first() else { return };
        if self.inner.read(file, None).await.is_ok_and(|found| found != bytes) {
            return;
        }
        for path in created {
            if let Err(error) = self.inner.remove(path).await {
                tracing::debug!(path = %path.display(), %error, "a path that the client refused is not removed");
                return;
            }
        }
    }

    fn uses_terminal(&self, request: &ExecRequest) -> bool {
        // The client's terminal accepts no input from the agent.
        let can =
            request.stdin.is_none() && self.client.features().terminals && self.client.knows(&self.session);
        can && self.terminals.is_on()
    }
}

#[async_trait]
impl ExecutionEnvironment for EditorEnvironment {
    forward! {
        inner: working_directory, home_directory, platform, os_version, output_limits, place, resolve, initialize, cleanup, spawn, metadata,
        list, remove, rename, canonicalize, canonicalize_many, find_files, grep, create_directory, create_symlink,
        set_mode, walk, read_many
    }

    fn command_limits(&self) -> Option<String> {
        // No sandbox confines a command in the client's terminal.
        let is_held = !(self.terminals.is_on() && self.client.features().terminals);
        self.inner.command_limits().filter(|_| is_held)
    }

    fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
        let inner = self.inner.outside_sandbox()?;
        Some(Arc::new(Self { inner, ..self.clone() }))
    }

    async fn hold(&self, paths: &[PathBuf]) -> Result<Option<Arc<dyn ExecutionEnvironment>>, EnvError> {
        let held = self.inner.hold(paths).await?;
        Ok(held.map(|inner| Arc::new(Self { inner, ..self.clone() }) as _))
    }

    async fn exec_command(&self, request: ExecRequest) -> Result<ExecResult, EnvError> {
        // The session also runs its own commands. Users need not see these in a terminal.
        let uses_terminal = self.uses_terminal(&request)
            && self.client.runs_for_call(&self.session, &request.command, None).await;
        if !uses_terminal {
            return self.inner.exec_command(request).await;
        }
        let directory = match &request.working_dir {
            Some(directory) => self.inner.resolve(directory),
            None => self.inner.working_directory().to_path_buf(),
        };
        terminal::run(&self.client, &self.session, request, &directory, self.inner.output_limits()).await
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        let Some(edited) = self.edited(path).await else { return self.inner.read(path, range).await };
        let Some(range) = range else { return Ok(edited) };
        let at = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(edited.len());
        Ok(edited.get(at(range.start)..at(range.end)).unwrap_or_default().to_vec())
    }

    // A read by ranges would request the complete text for each range, and the user may change it in between.
    async fn read_file(
        &self,
        path: &Path,
        offset: Option<usize>,
        limit: Option<usize>,
    ) -> Result<String, EnvError> {
        let Some(edited) = self.edited(path).await else {
            return self.inner.read_file(path, offset, limit).await;
        };
        let text = String::from_utf8_lossy(&edited);
        let lines = text.split_inclusive('\n').skip(offset.unwrap_or(1).saturating_sub(1));
        Ok(lines.take(limit.unwrap_or(usize::MAX)).collect())
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        if self.write_edited(path, bytes).await? { Ok(()) } else { self.inner.write(path, bytes).await }
    }
}

/// Returns the text of a file that an editor can open.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// Returns the text without a byte order mark and with line feeds only.
fn plain(text: &str) -> String {
    text.trim_start_matches('\u{feff}').replace("\r\n", "\n")
}
