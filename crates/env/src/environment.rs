//! The trait that every place where tools run implements.

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use tokio::time::Instant;

use crate::{
    command::{Command, ExecRequest, ExecResult},
    error::EnvError,
    exec,
    file::{DirEntry, Metadata},
    listing,
    output::OutputLimits,
    path,
    process::Process,
    search::{self, GlobRequest, GrepOutput, GrepRequest},
    text,
};

/// A place where tools run: its files, its processes, its search.
///
/// Implement the primitives and the rest follows; override a provided method where the place can do
/// it faster, with the same results. The contract suite behind the feature `testing` tells whether
/// they are the same.
///
/// Relative paths start at [`working_directory`](Self::working_directory). Every method is cancel
/// safe: dropping its future stops the work, ends the processes that it started, and leaves each
/// file either as it was or as it was to become.
///
/// Environments are shared as `Arc<dyn ExecutionEnvironment>`; wrappers hold another one and pass on
/// what they allow.
#[async_trait]
pub trait ExecutionEnvironment: Send + Sync + fmt::Debug {
    /// Where commands start and relative paths begin: absolute.
    fn working_directory(&self) -> &Path;

    /// The platform in the words of the loop specification: `linux`, `darwin`, `wasm`.
    fn platform(&self) -> &str;

    /// The system's name and version, for instance `Linux 6.18.0`.
    fn os_version(&self) -> &str;

    /// Prepares the environment; called before anything else, and again only if it failed or was dropped before its end.
    ///
    /// # Errors
    ///
    /// Whatever makes the environment useless, for instance a working directory that is missing.
    async fn initialize(&self) -> Result<(), EnvError> {
        Ok(())
    }

    /// Ends every process that still runs here and waits until the last one is gone.
    ///
    /// # Errors
    ///
    /// [`EnvError::EnvironmentLost`] if the other side cannot be reached.
    async fn cleanup(&self) -> Result<(), EnvError> {
        Ok(())
    }

    /// How much output is kept and where; used by [`exec_command`](Self::exec_command).
    fn output_limits(&self) -> OutputLimits {
        OutputLimits::default()
    }

    /// Starts a process.
    ///
    /// Dropping the process ends it with all its descendants.
    ///
    /// # Errors
    ///
    /// [`EnvError::Spawn`] if the program cannot be started, [`EnvError::NotFound`] or
    /// [`EnvError::NotADirectory`] for the working directory.
    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError>;

    /// Reads a file, or a range of it in bytes. A range that goes beyond the end gives what there
    /// is.
    ///
    /// # Errors
    ///
    /// [`EnvError::TooLarge`] above [`MAX_READ`] bytes.
    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError>;

    /// Writes a whole file, atomically: others see the old content or the new one.
    ///
    /// Missing parents are created, and those that were created for a write that fails are removed
    /// again if they are empty. Mode and owner of an existing file stay where possible, a
    /// symbolic link is followed to its target, which may be missing.
    ///
    /// # Errors
    ///
    /// [`EnvError::IsADirectory`] and [`EnvError::NotARegularFile`] if something else stands there.
    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError>;

    /// Facts about a path, with symbolic links followed.
    ///
    /// # Errors
    ///
    /// [`EnvError::NotFound`] also for a link to nowhere.
    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError>;

    /// The entries of one directory, in the order of their names' bytes.
    ///
    /// # Errors
    ///
    /// [`EnvError::NotADirectory`] if it is a file, [`EnvError::TooManyEntries`] above [`MAX_ENTRIES`].
    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError>;

    /// Removes a file, a symbolic link itself, or an empty directory: what `rm` does, and `rmdir` for
    /// a directory that is no link. The directory above stays, even if it is empty then.
    ///
    /// # Errors
    ///
    /// [`EnvError::IsADirectory`] for a directory that is not empty.
    async fn remove(&self, path: &Path) -> Result<(), EnvError>;

    /// Gives a file another name, atomically; missing parents are created and an existing file is
    /// replaced.
    ///
    /// # Errors
    ///
    /// [`EnvError::IsADirectory`] if a directory stands at `to`; [`EnvError::Io`] between two file
    /// systems.
    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError>;

    /// The path that an operation on `path` comes to: absolute, with every symbolic link followed, also
    /// the last one and those to nowhere. What does not exist yet is appended as it is.
    ///
    /// [`Confined`](crate::Confined) asks for it before each operation.
    ///
    /// # Errors
    ///
    /// [`EnvError::Unsupported`] unless the environment implements it; [`EnvError::NotADirectory`] if the
    /// path goes on below a file.
    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        Err(EnvError::Unsupported {
            operation: format!("following the links in {}", path.display()),
            environment: "the environment".to_owned(),
        })
    }

    /// Whether file operations here are nothing but those of the host's own file system, so that a
    /// wrapper may do them itself, by descriptor. Wrappers with rules for files say no; so does whoever
    /// says nothing.
    fn shares_host_files(&self) -> bool {
        false
    }

    /// Runs a shell line to its end and collects the output (loop specification, section 4.2).
    ///
    /// At the time-out the command and its descendants get the terminate signal, two seconds later
    /// the kill signal, and the output so far is returned. A command that returns while jobs of its
    /// own still run has them ended after a quarter of a second, and
    /// [`ExecResult::ended_jobs`] says how many. Dropping the future ends the command in the same way.
    ///
    /// # Errors
    ///
    /// Those of [`spawn`](Self::spawn), and [`EnvError::EnvironmentLost`]. A failing command is not an error,
    /// nor is one that cannot be ended: [`ExecResult::stuck`] tells of it.
    async fn exec_command(&self, request: ExecRequest) -> Result<ExecResult, EnvError> {
        let process = self.spawn(Command::from(&request)).await?;
        // A command may wait for its turn to start, which is none of its time.
        exec::run(process, request, self.output_limits(), Instant::now()).await
    }

    /// Reads lines of a text file as they are, line ends included.
    ///
    /// `offset` is the 1-based first line (0 counts as 1), `limit` the number of lines; without
    /// them it is the whole file. Bytes that are not UTF-8 become U+FFFD. An offset beyond the end
    /// gives an empty text.
    ///
    /// # Errors
    ///
    /// [`EnvError::NotText`] if a zero byte stands in the lines read or before them,
    /// [`EnvError::TooLarge`] if the lines asked for take more than [`MAX_READ`] bytes.
    async fn read_file(
        &self,
        path: &Path,
        offset: Option<usize>,
        limit: Option<usize>,
    ) -> Result<String, EnvError> {
        text::read_lines(self, path, offset, limit).await
    }

    /// Writes a text file as [`write`](Self::write) does.
    ///
    /// # Errors
    ///
    /// Those of [`write`](Self::write).
    async fn write_file(&self, path: &Path, content: &str) -> Result<(), EnvError> {
        self.write(path, content.as_bytes()).await
    }

    /// Whether anything stands at the path; a link to nowhere is nothing.
    ///
    /// # Errors
    ///
    /// Those of [`metadata`](Self::metadata), but for [`EnvError::NotFound`] and a parent that is a
    /// file, which are answers.
    async fn file_exists(&self, path: &Path) -> Result<bool, EnvError> {
        match self.metadata(path).await {
            Ok(_) => Ok(true),
            Err(EnvError::NotFound { .. } | EnvError::NotADirectory { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The entries of a directory and of those below, down to `depth` levels (0 counts as 1).
    ///
    /// Each directory stands before its entries, which are in the order of their names' bytes;
    /// names are relative to `path`. Links are not followed. Nothing is hidden or ignored.
    ///
    /// # Errors
    ///
    /// [`EnvError::TooManyEntries`] above [`MAX_ENTRIES`].
    async fn list_directory(&self, path: &Path, depth: usize) -> Result<Vec<DirEntry>, EnvError> {
        listing::list_directory(self, path, depth).await
    }

    /// Finds files by a glob relative to `path`: newest first, then in the order of their paths.
    ///
    /// `*` and `?` stay within one name, `**` spans directories, `{a,b}` and `[a-z]` work. Names
    /// before the first wildcard, even an absolute path, say where to look. What `.gitignore`,
    /// `.ignore` and `.git/info/exclude` name is left out, whether or not there is a repository; so
    /// is `.git`, while other hidden files are found. Links are listed and not followed.
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPattern`]; [`EnvError::NotFound`] if `path` is missing;
    /// [`EnvError::TooManyEntries`] above [`MAX_ENTRIES`].
    async fn glob(&self, pattern: &str, path: &Path) -> Result<Vec<PathBuf>, EnvError> {
        self.find_files(&GlobRequest::new(pattern).with_path(path)).await
    }

    /// Finds files as [`glob`](Self::glob) does, and looks at hidden and ignored ones as the request says. Who can
    /// do it faster overrides this one.
    ///
    /// # Errors
    ///
    /// Those of [`glob`](Self::glob).
    async fn find_files(&self, request: &GlobRequest) -> Result<Vec<PathBuf>, EnvError> {
        search::find_files(self, request).await
    }

    /// Searches the content of files; results are in the order of their paths.
    ///
    /// Looks at the same files as [`find_files`](Self::find_files) but for links. Binary files are skipped and
    /// counted.
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPattern`]; [`EnvError::NotFound`] if the path is missing.
    async fn grep(&self, request: &GrepRequest) -> Result<GrepOutput, EnvError> {
        search::grep(self, request).await
    }

    /// Makes a path absolute: joined to the working directory, with `.` and `..` taken out
    /// lexically. It does not look at the file system.
    fn resolve(&self, path: &Path) -> PathBuf {
        path::normalize(&self.working_directory().join(path))
    }
}

/// The most bytes that one read returns: 256 MiB.
pub const MAX_READ: u64 = 256 << 20;

/// The most entries that one listing or glob returns.
pub const MAX_ENTRIES: usize = 100_000;

// Environments are used as trait objects only.
const _: fn(&dyn ExecutionEnvironment) = |_| {};
