//! The [`ExecutionEnvironment`] trait: files, processes and search.

mod extension;
mod lines;
mod listing;
#[cfg(feature = "search")]
pub(crate) mod search;
pub(crate) mod walk;
#[cfg(not(feature = "search"))]
mod without_search;

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use tokio::time::Instant;

pub use self::extension::ExecutionEnvironmentExt;
#[cfg(not(feature = "search"))]
use self::without_search as search;
use crate::{
    command::{Command, ExecRequest, ExecResult},
    error::EnvError,
    exec,
    file::{DirEntry, Metadata},
    output::OutputLimits,
    path,
    process::Process,
    search::{GlobRequest, GrepOutput, GrepRequest},
    walk::{FileContent, ReadLimits, WalkOutput, WalkRequest},
};

/// An execution environment: its files, its processes and its search.
///
/// Only the primitives are required. Override a provided method where the environment can do it
/// faster, with the same results; the contract suite behind the feature `testing` checks that they
/// are the same. Operations that only call others are in [`ExecutionEnvironmentExt`].
///
/// Relative paths start at [`working_directory`](Self::working_directory), and those that start with `~` at
/// [`home_directory`](Self::home_directory). Every method is cancel
/// safe: dropping its future stops the work and terminates the processes it started. Each file then
/// has either its old or its new content.
///
/// Environments are shared as `Arc<dyn ExecutionEnvironment>`. A wrapper holds another environment
/// and forwards the operations that it allows.
#[async_trait]
pub trait ExecutionEnvironment: Send + Sync + fmt::Debug {
    /// The directory in which commands start and relative paths begin; always absolute.
    fn working_directory(&self) -> &Path;

    /// The home directory of commands, absolute. `~` at the start of a path is replaced by it. It is known once the
    /// environment is initialized. Default: `None`, for environments without one.
    fn home_directory(&self) -> Option<&Path> {
        None
    }

    /// The platform as the loop specification names it: `linux`, `darwin`, `wasm`.
    fn platform(&self) -> &str;

    /// The name and version of the operating system, for instance `Linux 6.18.0`.
    fn os_version(&self) -> &str;

    /// Prepares the environment.
    ///
    /// Called before any other method, and again only if it failed or was dropped before it
    /// completed.
    ///
    /// # Errors
    ///
    /// Anything that makes the environment unusable, for instance a missing working directory.
    async fn initialize(&self) -> Result<(), EnvError> {
        Ok(())
    }

    /// Terminates every process that still runs here and waits for the last one to exit.
    ///
    /// # Errors
    ///
    /// [`EnvError::EnvironmentLost`] if the environment cannot be reached.
    async fn cleanup(&self) -> Result<(), EnvError> {
        Ok(())
    }

    /// Limits on the output that [`exec_command`](Self::exec_command) keeps.
    fn output_limits(&self) -> OutputLimits {
        OutputLimits::default()
    }

    /// Starts a process.
    ///
    /// Dropping the process terminates it and all its descendants.
    ///
    /// # Errors
    ///
    /// [`EnvError::Spawn`] if the program cannot be started, [`EnvError::NotFound`] or
    /// [`EnvError::NotADirectory`] for the working directory.
    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError>;

    /// Reads a file, or a range of it in bytes. A range that extends past the end returns the bytes
    /// up to the end.
    ///
    /// # Errors
    ///
    /// [`EnvError::TooLarge`] above [`MAX_READ`](crate::MAX_READ) bytes.
    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError>;

    /// Replaces a file atomically: others see the old content or the new one.
    ///
    /// Creates missing parents, and removes them again if the write fails and they are empty. A symbolic link is followed to
    /// its target, which need not exist.
    ///
    /// Mode and owner of an existing file are kept, and on Linux its extended attributes. A file with other hard links, one whose owner or
    /// attributes another file cannot have, a mount point, and a file in a directory that accepts no new file are written in
    /// place, which is not atomic. Copies of both contents are kept until the file is synchronised: temporary files that start
    /// with [`TEMPORARY_PREFIX`](crate::TEMPORARY_PREFIX), in the same directory or in
    /// [`COPIES_DIRECTORY`](crate::COPIES_DIRECTORY).
    ///
    /// # Errors
    ///
    /// [`EnvError::ReadOnlyFile`], also for the superuser; [`EnvError::IsADirectory`] and [`EnvError::NotARegularFile`] if the path exists and is not a
    /// file.
    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError>;

    /// Returns metadata of a path, following symbolic links.
    ///
    /// # Errors
    ///
    /// [`EnvError::NotFound`] also for a dangling link.
    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError>;

    /// Lists one directory, sorted by the bytes of the names.
    ///
    /// # Errors
    ///
    /// [`EnvError::NotADirectory`] if it is a file, [`EnvError::TooManyEntries`] above [`MAX_ENTRIES`](crate::MAX_ENTRIES).
    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError>;

    /// Removes a file, a symbolic link itself, or an empty directory.
    ///
    /// Equivalent to `rm`, or `rmdir` for a directory that is not a link. The parent stays even if
    /// it is empty afterwards.
    ///
    /// # Errors
    ///
    /// [`EnvError::IsADirectory`] for a directory that is not empty.
    async fn remove(&self, path: &Path) -> Result<(), EnvError>;

    /// Renames a file atomically. Creates missing parents and replaces an existing file.
    ///
    /// # Errors
    ///
    /// [`EnvError::IsADirectory`] if `to` is a directory; [`EnvError::Io`] across file systems.
    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError>;

    /// Resolves the path that an operation on `path` would act on.
    ///
    /// The result is absolute with every symbolic link followed, the last component and dangling
    /// links included. Components that do not exist yet are appended unchanged.
    /// [`ConfinedEnvironment`](crate::ConfinedEnvironment) calls this before each operation.
    ///
    /// # Errors
    ///
    /// [`EnvError::Unsupported`] unless the environment implements it; [`EnvError::NotADirectory`]
    /// if the path continues below a file.
    async fn canonicalize(&self, path: &Path) -> Result<PathBuf, EnvError> {
        Err(unsupported("following the links in", path))
    }

    /// Resolves each path as [`canonicalize`](Self::canonicalize) does. Returns the results in the order of the paths.
    ///
    /// # Errors
    ///
    /// Only errors of the environment as a whole, such as its loss. Other errors are results of their paths.
    async fn canonicalize_many(&self, paths: &[PathBuf]) -> Result<Vec<Result<PathBuf, EnvError>>, EnvError> {
        let mut resolved = Vec::with_capacity(paths.len());
        for path in paths {
            match self.canonicalize(path).await {
                Err(lost) if lost.is_environment_failure() => return Err(lost),
                result => resolved.push(result),
            }
        }
        Ok(resolved)
    }

    /// Returns an identity of the working directory itself, as text. Two environments with the same identity access the
    /// same files, whatever their paths and hosts. A directory that was removed and created again has another identity.
    ///
    /// It is derived from the directory's inode and birth time, so a byte-for-byte copy of a whole file system has the
    /// same identity. Default: `None`, for environments and file systems without such an identity.
    ///
    /// # Errors
    ///
    /// [`EnvError::NotFound`] and the like.
    async fn place(&self) -> Result<Option<String>, EnvError> {
        Ok(None)
    }

    /// Returns the limits of commands here, in one or two sentences for a model, which could otherwise only guess why
    /// commands fail. Default: `None`, for environments that do not restrict commands.
    fn command_limits(&self) -> Option<String> {
        None
    }

    /// Returns the same environment without its command sandbox, for a command that is approved to run outside.
    /// Wrappers wrap the result in the same way. Default: `None`, for environments without a sandbox or with a sandbox
    /// that cannot be left.
    fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
        None
    }

    /// Returns this environment with `paths` resolved once. [`canonicalize`](Self::canonicalize) returns the recorded targets.
    ///
    /// Operations on these paths, or below them, use the recorded targets or fail with [`EnvError::Refused`], even if another
    /// process replaces a file, link or directory. Other paths are resolved at each operation. Directories are kept open until
    /// the result is dropped, so hold paths for one tool call only.
    ///
    /// Wrappers wrap the result in the same way. Default: `None`, for environments that resolve paths by name.
    ///
    /// # Errors
    ///
    /// [`EnvError::Refused`] if a path keeps changing. An unresolvable path is not an error.
    async fn hold(&self, paths: &[PathBuf]) -> Result<Option<Arc<dyn ExecutionEnvironment>>, EnvError> {
        let _ = paths;
        Ok(None)
    }

    /// Returns true if file operations here are plain operations on the local file system.
    ///
    /// A wrapper may then perform them itself, by descriptor. Wrappers that restrict files return
    /// false, which is also the default.
    fn shares_host_files(&self) -> bool {
        false
    }

    /// Runs a shell line to completion and collects its output (loop specification, section 4.2).
    ///
    /// At the time-out the command and its descendants receive the terminate signal, two seconds
    /// later the kill signal, and the output so far is returned. If the command exits while its
    /// background jobs still run, they are terminated after a quarter of a second and counted in
    /// [`ExecResult::ended_jobs`]. Dropping the future terminates the command in the same way.
    ///
    /// # Errors
    ///
    /// Those of [`spawn`](Self::spawn), and [`EnvError::EnvironmentLost`]. A failing command is not
    /// an error, and neither is one that cannot be killed: see [`ExecResult::stuck`].
    async fn exec_command(&self, request: ExecRequest) -> Result<ExecResult, EnvError> {
        let process = self.spawn(Command::from(&request)).await?;
        // Started here: waiting for a free command slot does not count towards the time limit.
        exec::run(process, request, self.output_limits(), Instant::now()).await
    }

    /// Reads lines of a text file unchanged, line endings included.
    ///
    /// `offset` is the 1-based first line (0 counts as 1) and `limit` the number of lines; without
    /// them the whole file is read. Bytes that are not UTF-8 become U+FFFD. An offset past the end
    /// returns an empty string.
    ///
    /// # Errors
    ///
    /// [`EnvError::NotText`] if there is a zero byte in or before the requested lines,
    /// [`EnvError::TooLarge`] if these lines exceed [`MAX_READ`](crate::MAX_READ) bytes.
    async fn read_file(
        &self,
        path: &Path,
        offset: Option<usize>,
        limit: Option<usize>,
    ) -> Result<String, EnvError> {
        lines::read_lines(self, path, offset, limit).await
    }

    /// Finds files by the glob of the request, relative to its path, newest first, then sorted by path.
    ///
    /// `*` and `?` match within one name, `**` spans directories, and `{a,b}` and `[a-z]` are
    /// supported. Names with brackets, such as `[id]`, are matched literally as well. Names before
    /// the first wildcard, even an absolute path, select the directory to search. Files matched by `.gitignore`, `.ignore` or `.git/info/exclude` are skipped, whether
    /// or not there is a repository, as is `.git`; other hidden files are found. A glob without
    /// wildcards finds its file even if it is ignored, and in a directory in which everything is
    /// ignored, the rules that ignore it do not apply. Links are listed and not followed.
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPattern`]; [`EnvError::NotFound`] if the path is missing;
    /// [`EnvError::TooManyEntries`] above [`MAX_ENTRIES`](crate::MAX_ENTRIES). [`EnvError::Unsupported`] without the feature
    /// `search`, unless the environment implements it.
    async fn find_files(&self, request: &GlobRequest) -> Result<Vec<PathBuf>, EnvError> {
        search::find_files(self, request).await
    }

    /// Searches the content of files; results are sorted by path.
    ///
    /// Visits the same files as [`find_files`](Self::find_files) except links. Binary files are
    /// skipped and counted.
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPattern`]; [`EnvError::NotFound`] if the path is missing. [`EnvError::Unsupported`] without the
    /// feature `search`, unless the environment implements it.
    async fn grep(&self, request: &GrepRequest) -> Result<GrepOutput, EnvError> {
        search::grep(self, request).await
    }

    /// Creates a directory with its missing parents. An existing directory is left as it is.
    ///
    /// # Errors
    ///
    /// [`EnvError::NotADirectory`] if the path, or one above it, is a file.
    async fn create_directory(&self, path: &Path) -> Result<(), EnvError> {
        walk::create_directory(self, path).await
    }

    /// Creates a symbolic link at `path`, with missing parents. The target is stored as it is given
    /// and need not exist.
    ///
    /// A wrapper checks the location of the link, not its target. The target is checked when the link is followed.
    ///
    /// # Errors
    ///
    /// [`EnvError::Unsupported`] unless the environment implements it; [`EnvError::Io`] if the path
    /// exists.
    async fn create_symlink(&self, path: &Path, target: &Path) -> Result<(), EnvError> {
        let _ = target;
        Err(unsupported("creating the link", path))
    }

    /// Sets the permission bits (`0o7777`) of a file or a directory. A symbolic link is followed to
    /// its target.
    ///
    /// # Errors
    ///
    /// [`EnvError::Unsupported`] unless the environment implements it; [`EnvError::NotFound`] also
    /// for a dangling link.
    async fn set_mode(&self, path: &Path, mode: u32) -> Result<(), EnvError> {
        let _ = mode;
        Err(unsupported("changing the mode of", path))
    }

    /// Lists the tree below a directory with its metadata, within limits of number and time.
    ///
    /// Leaves out files matched by `.gitignore`, `.ignore` or `.git/info/exclude`, whether or not there is a
    /// repository, and everything named `.git`. Nested repositories are walked like other directories. Links are not
    /// followed, except the root. Entries that disappear meanwhile may be missing.
    ///
    /// At the time limit the walk ends with the entries found so far, which may be none.
    ///
    /// # Errors
    ///
    /// [`EnvError::NotFound`] and [`EnvError::NotADirectory`] for the root. [`EnvError::Unsupported`] without the feature
    /// `search`, which reads ignore files, unless the environment implements it.
    async fn walk(&self, request: &WalkRequest) -> Result<WalkOutput, EnvError> {
        search::walk_tree(self, request).await
    }

    /// Reads many files within limits of their size. The result has one element per path, in order.
    ///
    /// A link as the last component of a path is not followed. A file that cannot be read is not an
    /// error.
    ///
    /// # Errors
    ///
    /// Only errors of the environment as a whole, such as [`EnvError::EnvironmentLost`].
    async fn read_many(&self, paths: &[PathBuf], limits: ReadLimits) -> Result<Vec<FileContent>, EnvError> {
        walk::read_many(self, paths, limits).await
    }

    /// Makes a path absolute: joins it to the working directory and removes `.` and `..` lexically.
    /// `~` and `~/` at its start are the [home directory](Self::home_directory), if there is one;
    /// `./~` is an entry of that name. Links are not followed.
    ///
    /// A sandbox may map paths of temporary files to the temporary files of its commands. Wrappers
    /// forward the method.
    fn resolve(&self, path: &Path) -> PathBuf {
        path::resolve(path, self.working_directory(), self.home_directory())
    }
}

fn unsupported(action: &str, path: &Path) -> EnvError {
    EnvError::Unsupported {
        operation: format!("{action} {}", path.display()),
        environment: "the environment".to_owned(),
    }
}

/// Returns an error unless the path is a directory.
pub(crate) async fn expect_directory<E: ExecutionEnvironment + ?Sized>(
    env: &E,
    path: &Path,
) -> Result<(), EnvError> {
    if env.metadata(path).await?.is_dir() {
        return Ok(());
    }
    Err(EnvError::NotADirectory { path: path.to_path_buf() })
}

// Environments are used as trait objects only.
const _: fn(&dyn ExecutionEnvironment) = |_| {};

/// Conversion into a shared environment. Implemented for every [`ExecutionEnvironment`], and for an
/// `Arc` of one.
pub trait IntoEnvironment {
    /// Converts the value. An `Arc` is returned as it is.
    fn into_environment(self) -> Arc<dyn ExecutionEnvironment>;
}

impl<E: ExecutionEnvironment + 'static> IntoEnvironment for E {
    fn into_environment(self) -> Arc<dyn ExecutionEnvironment> {
        Arc::new(self)
    }
}

impl<E: ExecutionEnvironment + 'static> IntoEnvironment for Arc<E> {
    fn into_environment(self) -> Arc<dyn ExecutionEnvironment> {
        self
    }
}

impl IntoEnvironment for Arc<dyn ExecutionEnvironment> {
    fn into_environment(self) -> Arc<dyn ExecutionEnvironment> {
        self
    }
}
