//! Inputs of the process: environment variables, current directory, files and standard input.
#![expect(clippy::disallowed_methods, reason = "the command reads its own environment and files")]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal as _, Read, StdinLock};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pintle_agent::Principal;
use pintle_env::{LocalEnvironment, LocalEnvironmentBuilder, without_paths_below};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::time::sleep;

use crate::failure::{Failure, OrFailure as _};

/// Maximum size of a text read from a file or standard input: 8 MiB.
const MAX_TEXT: u64 = 8 << 20;

/// Variable with the directory of the command's state.
pub(crate) const STATE_VARIABLE: &str = "PINTLE_STATE_DIR";

/// Pause between two attempts to take a lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Variable with the directory of the user's configuration.
const CONFIG_VARIABLE: &str = "PINTLE_CONFIG_DIR";

/// Variable in which the SDK of codex passes a key of OpenAI, and the variable of that key here.
#[cfg(feature = "compat")]
const CODEX_KEY: &str = "CODEX_API_KEY";
#[cfg(feature = "compat")]
const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// Directories below the state directory that commands of sessions can write to.
const WRITTEN_BY_COMMANDS: [&str; 3] = ["caches", "worktrees", "sessions/worktrees"];

/// Variables that lead git to a certain repository, or to an index or objects of it.
const GIT_REPOSITORY_VARIABLES: [&str; 15] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Settings of git for commands: maintenance in the background would be ended with the command that started it.
const GIT_SETTINGS: [(&str, &str); 2] = [("gc.autoDetach", "false"), ("maintenance.autoDetach", "false")];

/// Settings of git for commands that cannot change the configuration of the repository: branches are made without it.
const GIT_SETTINGS_READ_ONLY_CONFIG: [(&str, &str); 2] =
    [("branch.autoSetupMerge", "false"), ("push.autoSetupRemote", "false")];

/// How long to wait for the first byte of input piped in addition to a prompt.
pub(crate) const PIPE_TIMEOUT: Duration = Duration::from_secs(3);

/// Environment variables of the process, read once at startup.
#[derive(Clone)]
pub(crate) struct ProcessEnv {
    variables: BTreeMap<OsString, OsString>,
    /// Directories that commands of a session may write to: the current directory, and `--dir`.
    workspaces: Vec<PathBuf>,
    /// Home directory that the user database has.
    database_home: Option<PathBuf>,
    /// Files of a server, which its sessions do not see; `None` in a process that serves no sessions.
    server_files: Option<Vec<PathBuf>>,
    /// Directories of other users of the same server, which a sandboxed session must not read.
    foreign: Vec<PathBuf>,
}

impl ProcessEnv {
    /// An environment with these variables.
    #[cfg(test)]
    pub(crate) fn with<'a>(variables: impl IntoIterator<Item = (&'a str, &'a OsStr)>) -> Self {
        let variables = variables.into_iter();
        let variables = variables.map(|(name, value)| (name.into(), value.to_owned())).collect();
        Self {
            variables,
            workspaces: Vec::new(),
            database_home: None,
            server_files: None,
            foreign: Vec::new(),
        }
    }

    /// Returns this environment for a user with this home directory in the user database.
    #[cfg(test)]
    pub(crate) fn with_database_home(mut self, home: &Path) -> Self {
        self.database_home = Some(home.to_path_buf());
        self
    }

    /// Reads the environment of this process. Falls back to the home directory in the user database if `HOME` is not an absolute
    /// path.
    pub(crate) fn capture() -> Self {
        let workspaces = std::env::current_dir().into_iter().collect();
        let process_env = Self {
            variables: std::env::vars_os().collect(),
            workspaces,
            database_home: home_of_user(),
            server_files: None,
            foreign: Vec::new(),
        };
        match process_env.home() {
            Some(_) => process_env,
            None => {
                let home = process_env.database_home.clone();
                process_env.with_home(home)
            }
        }
    }

    /// Returns this environment for a command with a session in `directory`.
    pub(crate) fn with_workspace(mut self, directory: Option<&Path>) -> Self {
        self.workspaces.extend(directory.and_then(|directory| std::path::absolute(directory).ok()));
        self
    }

    /// Returns this environment for a server with these files. Its sessions see neither them nor its configuration and state,
    /// with a sandbox or without one.
    #[cfg(feature = "server")]
    pub(crate) fn with_server_files(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        let absolute = files.into_iter().filter_map(|file| std::path::absolute(file).ok());
        self.server_files = Some(absolute.collect());
        self
    }

    /// Returns the files of the server; `None` in a process that serves no sessions.
    pub(crate) fn server_files(&self) -> Option<&[PathBuf]> {
        self.server_files.as_deref()
    }

    /// Returns this environment for a session that must not read these directories.
    #[cfg(feature = "server")]
    pub(crate) fn with_foreign(mut self, directories: Vec<PathBuf>) -> Self {
        self.foreign = directories;
        self
    }

    /// Returns the directories of other users of the same server.
    pub(crate) fn foreign(&self) -> &[PathBuf] {
        &self.foreign
    }

    /// Returns this environment without the variables that lead git to a certain repository. Git sets them for its hooks.
    pub(crate) fn without_repository(mut self) -> Self {
        self.variables.retain(|name, _| !GIT_REPOSITORY_VARIABLES.iter().any(|known| name == *known));
        self
    }

    fn with_home(mut self, home: Option<PathBuf>) -> Self {
        self.variables.remove(OsStr::new("HOME"));
        self.variables.extend(home.map(|home| ("HOME".into(), home.into())));
        self
    }

    /// Returns the home directory of the user; `None` if neither `HOME` nor the user database has an absolute path.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.variables.get(OsStr::new("HOME")).map(PathBuf::from).filter(|home| home.is_absolute())
    }

    /// Returns the home directory that the user database has, which may be another one than [`home`](Self::home).
    pub(crate) fn database_home(&self) -> Option<&Path> {
        self.database_home.as_deref()
    }

    /// Takes the key that the SDK of codex passes as that of OpenAI, unless there is one.
    #[cfg(feature = "compat")]
    pub(crate) fn with_key_of_codex(mut self) -> Self {
        if self.variable(OPENAI_KEY).is_none()
            && let Some(key) = self.variables.get(OsStr::new(CODEX_KEY)).cloned()
        {
            self.variables.insert(OPENAI_KEY.into(), key);
        }
        self
    }

    /// Returns this environment with more variables.
    #[cfg(feature = "task")]
    pub(crate) fn and(&self, variables: &BTreeMap<String, String>) -> Self {
        let mut all = self.clone();
        all.variables.extend(variables.iter().map(|(name, value)| (name.into(), value.into())));
        all
    }

    /// Returns the value of a variable, or `None` if it is unset, empty or not UTF-8.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let value = self.variables.get(OsStr::new(name))?.to_str()?;
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Returns who uses the command, for records: the name of the user, and of the machine if it is known.
    pub(crate) fn principal(&self) -> Option<Principal> {
        let user = self.variable("USER").or_else(|| self.variable("LOGNAME"));
        let user = user.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()));
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let name = if machine.is_empty() { user } else { format!("{user}@{machine}") };
        Some(Principal::new(name))
    }

    /// Returns the directory of the command's state.
    ///
    /// # Errors
    ///
    /// A usage failure if no variable names one.
    pub(crate) fn state_directory(&self) -> Result<PathBuf, Failure> {
        let variable = |name: &str| self.variable(name).map(PathBuf::from);
        let directory = variable(STATE_VARIABLE)
            .or_else(|| Some(variable("XDG_STATE_HOME").filter(|path| path.is_absolute())?.join("pintle")))
            .or_else(|| Some(self.home()?.join(".local/state/pintle")));
        directory.ok_or_else(|| {
            Failure::usage(format!(
                "no directory for sessions: expected {STATE_VARIABLE}, XDG_STATE_HOME or HOME"
            ))
        })
    }

    /// Returns the directory of the user's configuration; `None` if no variable names one.
    pub(crate) fn configuration_directory(&self) -> Option<PathBuf> {
        let variable = |name: &str| self.variable(name).map(PathBuf::from);
        variable(CONFIG_VARIABLE)
            .or_else(|| Some(variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute())?.join("pintle")))
            .or_else(|| Some(self.home()?.join(".config/pintle")))
    }

    /// Returns all variables.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> + use<> {
        self.variables.clone().into_iter()
    }

    /// Returns the absolute path of the given directory, or of the current directory.
    ///
    /// # Errors
    ///
    /// A usage failure if it does not exist or is not a directory.
    pub(crate) fn directory(&self, named: Option<&Path>) -> Result<PathBuf, Failure> {
        let Some(named) = named else {
            return std::env::current_dir().or_usage("cannot use the current directory");
        };
        let refused = |why: &str| {
            Failure::usage(format!("--dir {}: {why}; expected an existing directory", named.display()))
        };
        match std::fs::metadata(named) {
            Ok(metadata) if metadata.is_dir() => absolute(named),
            Ok(_) => Err(refused("is not a directory")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(refused("does not exist")),
            Err(error) => Err(refused("cannot be used").caused_by(&error)),
        }
    }

    /// Returns whether a path is a directory, or a link to one.
    pub(crate) fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }

    /// Returns a path with all links followed, as far as it exists.
    pub(crate) fn real_path(&self, path: &Path) -> PathBuf {
        let found = path
            .ancestors()
            .find_map(|above| Some(above.canonicalize().ok()?.join(path.strip_prefix(above).ok()?)));
        without_trailing_slash(&found.unwrap_or_else(|| path.to_path_buf()))
    }

    /// Returns whether two paths lead to the same file or directory.
    pub(crate) fn is_same_path(&self, one: &Path, other: &Path) -> bool {
        match (one.canonicalize(), other.canonicalize()) {
            (Ok(one), Ok(other)) => one == other,
            (_, _) => false,
        }
    }

    /// Returns whether a path leads to a file with more than one hard link.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_multiple_hard_links(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_dir() && metadata.nlink() > 1)
    }

    /// Creates a directory and its parents.
    ///
    /// # Errors
    ///
    /// A failure that names it.
    pub(crate) fn create_directory(&self, path: &Path) -> Result<(), Failure> {
        std::fs::create_dir_all(path)
            .map_err(|error| Failure::failed(format!("cannot create {}", path.display())).caused_by(&error))
    }

    /// Removes a directory with everything in it.
    ///
    /// # Errors
    ///
    /// A failure that names it.
    pub(crate) fn remove_directory(&self, path: &Path) -> Result<(), Failure> {
        std::fs::remove_dir_all(path)
            .map_err(|error| Failure::failed(format!("cannot remove {}", path.display())).caused_by(&error))
    }

    /// Writes a text file that only the user can read, whole or not at all. Its directory is created.
    ///
    /// # Errors
    ///
    /// A failure that names it.
    pub(crate) fn write_private(&self, path: &Path, text: &str) -> Result<(), Failure> {
        use std::io::Write as _;
        let write = || {
            let directory = path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(directory)?;
            // A new file of this kind has mode 0600.
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(path).map(drop).map_err(|error| error.error)
        };
        write().map_err(|error| Failure::failed(format!("cannot write {}", path.display())).caused_by(&error))
    }

    /// Writes a file of the user's configuration as [`write_private`](Self::write_private) does. If it is a symbolic link, its
    /// target is written and the link stays.
    ///
    /// # Errors
    ///
    /// A failure that names it.
    pub(crate) fn write_configuration(&self, path: &Path, text: &str) -> Result<(), Failure> {
        self.write_private(&self.real_path(path), text)
    }

    /// Locks a file as [`try_lock_private`](Self::try_lock_private) does, and waits for another process to release it.
    ///
    /// # Errors
    ///
    /// A failure that names it, also if it is still locked at the end of `time`.
    pub(crate) async fn lock_private(&self, path: &Path, time: Duration) -> Result<File, Failure> {
        let until = Instant::now() + time;
        loop {
            if let Some(file) = self.try_lock_private(path)? {
                return Ok(file);
            }
            if Instant::now() >= until {
                return Err(Failure::failed(format!("another process keeps {} locked", path.display())));
            }
            sleep(LOCK_PAUSE).await;
        }
    }

    /// Locks a file that only the user can read, which is created, with its directory; `None` while somebody else has the lock.
    /// Dropping the file releases it.
    ///
    /// # Errors
    ///
    /// A failure that names it.
    pub(crate) fn try_lock_private(&self, path: &Path) -> Result<Option<File>, Failure> {
        use std::fs::TryLockError;
        use std::os::unix::fs::OpenOptionsExt as _;
        let lock = || {
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            let file = std::fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(path)?;
            match file.try_lock() {
                Ok(()) => Ok(Some(file)),
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(error)) => Err(error),
            }
        };
        lock().map_err(|error: io::Error| {
            Failure::failed(format!("cannot lock {}", path.display())).caused_by(&error)
        })
    }

    /// Removes a file. Returns whether it was there.
    ///
    /// # Errors
    ///
    /// A failure that names it.
    pub(crate) fn remove_file(&self, path: &Path) -> Result<bool, Failure> {
        match std::fs::remove_file(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Failure::failed(format!("cannot remove {}", path.display())).caused_by(&error)),
        }
    }

    /// Returns the paths in a directory; none if it cannot be read.
    pub(crate) fn paths_in(&self, directory: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    }

    /// Writes a text file, whole or not at all. An existing one keeps its mode, and a symbolic link its target; a new one has
    /// `new_mode`. Its directory is created.
    ///
    /// # Errors
    ///
    /// A failure that names it.
    pub(crate) fn write_keeping_mode(&self, path: &Path, text: &str, new_mode: u32) -> Result<(), Failure> {
        use std::io::Write as _;
        use std::os::unix::fs::PermissionsExt as _;
        let write = || {
            let path = &self.real_path(path);
            let mode = std::fs::metadata(path).map_or(new_mode, |found| found.permissions().mode() & 0o777);
            let directory = path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(directory)?;
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            file.write_all(text.as_bytes())?;
            file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
            file.as_file().sync_all()?;
            file.persist(path).map(drop).map_err(|error| error.error)
        };
        write().map_err(|error| Failure::failed(format!("cannot write {}", path.display())).caused_by(&error))
    }

    /// Writes a text file that only the user can read and that does not exist yet. Returns its absolute path.
    ///
    /// # Errors
    ///
    /// A failure that names it.
    pub(crate) fn write_new(&self, path: &Path, text: &str) -> Result<PathBuf, Failure> {
        use std::io::Write as _;
        let path = absolute(path)?;
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
            file.write_all(text.as_bytes())?;
            file.persist_noclobber(&path).map(drop).map_err(|error| error.error)
        };
        match write() {
            Ok(()) => Ok(path),
            Err(error) => Err(Failure::failed(format!("cannot write {}", path.display())).caused_by(&error)),
        }
    }

    /// Appends to a text file that only the user can read. It is created, with its directory.
    ///
    /// # Errors
    ///
    /// A failure that names it.
    pub(crate) fn append_private(&self, path: &Path, text: &str) -> Result<(), Failure> {
        use std::io::Write as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        let append = || {
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            let mut file = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
            // In one piece, since another process may append as well.
            file.write_all(text.as_bytes())
        };
        append()
            .map_err(|error| Failure::failed(format!("cannot write {}", path.display())).caused_by(&error))
    }

    /// Moves a file of at least this size aside, to its name with `.1` at the end, in place of the one before.
    ///
    /// # Errors
    ///
    /// A failure that names it.
    #[cfg(feature = "server")]
    pub(crate) fn rotate(&self, path: &Path, size: u64) -> Result<(), Failure> {
        if std::fs::metadata(path).map_or(0, |found| found.len()) < size {
            return Ok(());
        }
        std::fs::rename(path, moved_aside(path)).map_err(|error| {
            Failure::failed(format!("cannot move {} aside", path.display())).caused_by(&error)
        })
    }

    /// Copies a file or a link from below one directory to the same place below another, with its mode.
    ///
    /// # Errors
    ///
    /// A failure that names it.
    pub(crate) fn copy_below(&self, from: &Path, to: &Path, name: &[u8]) -> Result<(), Failure> {
        use std::os::unix::ffi::OsStrExt as _;
        let name = Path::new(OsStr::from_bytes(name));
        let (source, target) = (from.join(name), to.join(name));
        let copy = || {
            if let Some(parent) = target.parent() {
                std::fs::create_dir_all(parent)?;
            }
            if std::fs::symlink_metadata(&source)?.is_symlink() {
                return std::os::unix::fs::symlink(std::fs::read_link(&source)?, &target);
            }
            std::fs::copy(&source, &target).map(drop)
        };
        copy().map_err(|error| Failure::failed(format!("cannot copy {}", source.display())).caused_by(&error))
    }

    /// Returns the variables for programs that run outside of the sandbox: they name nothing that commands of a session may
    /// have written, be it below `directory`, in a workspace, a worktree or the caches of projects.
    fn variables_outside(&self, directory: Option<&Path>) -> BTreeMap<OsString, OsString> {
        let state = self.state_directory().ok().filter(|state| state.is_absolute());
        let of_state = state.iter().flat_map(|state| WRITTEN_BY_COMMANDS.map(|name| state.join(name)));
        let roots = self.workspaces.iter().cloned().chain(directory.map(Path::to_path_buf)).chain(of_state);
        // Programs may start in `/`, which is never a workspace.
        let roots: Vec<PathBuf> = roots.filter(|root| root.parent().is_some()).collect();
        without_paths_below(self.variables(), &roots)
    }

    /// Returns the directory in which programs outside of the sandbox start, unless the user names another one: that of the
    /// user, with no files of a project that a program might load.
    pub(crate) fn directory_outside(&self) -> PathBuf {
        self.home().filter(|home| home.is_dir()).unwrap_or_else(|| PathBuf::from("/"))
    }

    /// Prepares a program of the user, such as an editor: where it starts, and without variables that name what commands of
    /// a session may have written.
    pub(crate) fn prepare_outside(&self, command: &mut std::process::Command) {
        command.current_dir(self.directory_outside());
        let outside = self.variables_outside(None);
        for (name, value) in &self.variables {
            match outside.get(name) {
                None => command.env_remove(name),
                Some(kept) if kept != value => command.env(name, kept),
                // This process may have given it up: it can be a secret.
                Some(_) => command,
            };
        }
    }

    /// Returns a builder for a local environment of programs that run outside of the sandbox.
    pub(crate) fn outside_builder(&self, directory: &Path) -> LocalEnvironmentBuilder {
        LocalEnvironment::builder(directory).host_env(self.variables_outside(Some(directory)))
    }

    /// Returns a builder for a local environment with all variables, for the commands of a session.
    pub(crate) fn environment_builder(&self, directory: &Path) -> LocalEnvironmentBuilder {
        let builder = LocalEnvironment::builder(directory).host_env(self.variables());
        self.with_git_settings(builder, &GIT_SETTINGS)
    }

    /// Sets what git needs in an environment whose commands cannot change the configuration of the repository.
    #[cfg(target_os = "linux")]
    pub(crate) fn with_unchanged_configuration(
        &self,
        builder: LocalEnvironmentBuilder,
    ) -> LocalEnvironmentBuilder {
        self.with_git_settings(builder, &[GIT_SETTINGS, GIT_SETTINGS_READ_ONLY_CONFIG].concat())
    }

    /// Adds settings to those that the user gives git by variables.
    fn with_git_settings(
        &self,
        builder: LocalEnvironmentBuilder,
        settings: &[(&str, &str)],
    ) -> LocalEnvironmentBuilder {
        let before = self.variable("GIT_CONFIG_COUNT").map_or(Ok(0), |count| count.parse::<u16>());
        // Git refuses to work with a count that is not a number.
        let Ok(before) = before.map(usize::from) else { return builder };
        let builder = builder.variable("GIT_CONFIG_COUNT", (before + settings.len()).to_string());
        settings.iter().zip(before..).fold(builder, |builder, ((key, value), number)| {
            builder
                .variable(format!("GIT_CONFIG_KEY_{number}"), *key)
                .variable(format!("GIT_CONFIG_VALUE_{number}"), *value)
        })
    }

    /// Creates a local execution environment for files, and for programs that run outside of the sandbox.
    ///
    /// # Errors
    ///
    /// A failure if commands cannot run in the directory.
    pub(crate) fn local_environment(&self, directory: &Path) -> Result<LocalEnvironment, Failure> {
        self.outside_builder(directory).build().or_failed("cannot use the execution environment")
    }
}

impl std::fmt::Debug for ProcessEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessEnv").field("variables", &self.variables.keys().collect::<Vec<_>>()).finish()
    }
}

/// Makes the path absolute without resolving symbolic links.
///
/// # Errors
///
/// A usage failure for an empty path.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map(|path| without_trailing_slash(&path))
        .map_err(|error| Failure::usage(format!("cannot use {}", path.display())).caused_by(&error))
}

/// Returns where [`ProcessEnv::rotate`] moves a file.
#[cfg(feature = "server")]
pub(crate) fn moved_aside(path: &Path) -> PathBuf {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".1");
    aside.into()
}

/// Returns a path in the form that records, messages and hashes of paths have.
fn without_trailing_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Reads a text file named on the command line. `what` describes it in errors.
///
/// # Errors
///
/// A usage failure if it cannot be read, is too large, or is not UTF-8.
pub(crate) fn read_text(what: &str, path: &Path) -> Result<String, Failure> {
    read_text_within(MAX_TEXT, what, path)
}

/// Reads a text file of the user's configuration or state; `None` if it does not exist. A dangling link is an error.
///
/// # Errors
///
/// As [`read_text`].
pub(crate) fn read_text_if_there(what: &str, path: &Path) -> Result<Option<String>, Failure> {
    refuse_pipe(what, path)?;
    match File::open(path) {
        Err(error) if is_absent(&error, path) => Ok(None),
        Ok(_) | Err(_) => read_text(what, path).map(Some),
    }
}

/// Refuses a named pipe, which would block until another process writes to it.
fn refuse_pipe(what: &str, path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::FileTypeExt as _;
    if std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        let path = path.display();
        return Err(Failure::usage(format!("the {what} {path} is a named pipe; expected a regular file")));
    }
    Ok(())
}

/// Returns whether opening failed because the file does not exist, and not because of a dangling link.
fn is_absent(error: &io::Error, path: &Path) -> bool {
    let is_missing = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    let nearest = path.ancestors().find(|above| std::fs::symlink_metadata(above).is_ok());
    is_missing && nearest.is_none_or(|found| !found.is_symlink() || found.exists())
}

/// Reads a text file that only its owner may read; `None` if there is none.
///
/// # Errors
///
/// A usage failure for a file that others can read or change, otherwise as [`read_text`].
pub(crate) fn read_private_if_there(what: &str, path: &Path) -> Result<Option<String>, Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    refuse_pipe(what, path)?;
    let what = format!("the {what} {}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if is_absent(&error, path) => return Ok(None),
        Err(error) => return Err(unreadable(&what, &error)),
    };
    let metadata = file.metadata().map_err(|error| unreadable(&what, &error))?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(Failure::usage(format!("{what} is open to others (mode {mode:04o}), so it is not used"))
            .with_hint(&format!(
                "`chmod 600 {}`, and replace keys that others may have read",
                path.display()
            )));
    }
    bounded_text(MAX_TEXT, &what, file).map(Some)
}

/// Reads a text file of at most `limit` bytes.
///
/// # Errors
///
/// As [`read_text`].
pub(crate) fn read_text_within(limit: u64, what: &str, path: &Path) -> Result<String, Failure> {
    let what = format!("the {what} {}", path.display());
    let file = File::open(path).map_err(|error| unreadable(&what, &error))?;
    bounded_text(limit, &what, file)
}

/// Reads standard input to its end.
///
/// # Errors
///
/// As [`read_text`].
pub(crate) fn read_stdin() -> Result<String, Failure> {
    read_stdin_within(MAX_TEXT)
}

/// Reads standard input of at most `limit` bytes to its end.
///
/// # Errors
///
/// As [`read_text`].
pub(crate) fn read_stdin_within(limit: u64) -> Result<String, Failure> {
    bounded_text(limit, "standard input", io::stdin().lock())
}

/// Standard input of a command that was also given a prompt.
#[derive(Debug)]
pub(crate) enum PipedStdin {
    /// Standard input is a terminal.
    Terminal,
    /// Nothing arrived within [`PIPE_TIMEOUT`]. Many programs start others with a pipe that they never write to.
    Silent,
    /// There is input, or the end of input.
    Ready(StdinLock<'static>),
}

/// Waits up to [`PIPE_TIMEOUT`] for input piped in addition to a prompt.
pub(crate) fn piped_stdin() -> PipedStdin {
    if stdin_is_terminal() {
        return PipedStdin::Terminal;
    }
    let timeout = Timespec { tv_sec: PIPE_TIMEOUT.as_secs().cast_signed(), tv_nsec: 0 };
    let stdin = io::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    if let Ok(0) = poll(&mut ready, Some(&timeout)) {
        return PipedStdin::Silent;
    }
    PipedStdin::Ready(stdin.lock())
}

/// Returns whether standard input is a terminal.
pub(crate) fn stdin_is_terminal() -> bool {
    io::stdin().is_terminal()
}

fn bounded_text(limit: u64, what: &str, source: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    source.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| unreadable(what, &error))?;
    if bytes.len() as u64 > limit {
        return Err(Failure::usage(format!("{what} is larger than {} MiB", limit >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let position = error.utf8_error().valid_up_to() + 1;
        Failure::usage(format!("{what} is not valid UTF-8: invalid byte {position}"))
    })
}

fn unreadable(what: &str, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot read {what}")).caused_by(error)
}

/// Returns the home directory that the user database has for the user of this process.
fn home_of_user() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current()).ok().flatten()?;
    Some(user.dir).filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_bounded_and_utf8() {
        assert_eq!(bounded_text(MAX_TEXT, "it", b"hello".as_slice()).unwrap(), "hello");
        let failure = bounded_text(MAX_TEXT, "it", b"a\xFF".as_slice()).unwrap_err();
        assert_eq!(failure.message(), "it is not valid UTF-8: invalid byte 2");
        let failure = bounded_text(MAX_TEXT, "it", io::repeat(b'a')).unwrap_err();
        assert_eq!(failure.message(), "it is larger than 8 MiB");
    }

    #[test]
    fn a_link_that_leads_nowhere_is_no_missing_file() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::os::unix::fs::symlink(at("nowhere"), at("link")).unwrap();
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", at("good")).unwrap();
        std::os::unix::fs::symlink(directory.path(), at("here")).unwrap();
        for (path, expected) in [
            ("missing", Ok(None)),
            ("missing/file", Ok(None)),
            ("here/missing", Ok(None)),
            ("here/link", Err(())),
            ("file/below", Ok(None)),
            ("good", Ok(Some("text"))),
            ("link", Err(())),
            ("link/file", Err(())),
        ] {
            let read = read_text_if_there("it", &at(path)).map_err(drop);
            assert_eq!(read.as_ref().map(Option::as_deref), expected.as_ref().map(|text| *text), "{path}");
            let private = read_private_if_there("it", &at(path)).is_err();
            assert!(private == expected.is_err() || path == "good", "{path}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_file_stays() {
        use std::os::unix::fs::PermissionsExt as _;

        let process_env = ProcessEnv::with([]);
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("elsewhere")).unwrap();
        std::fs::write(at("elsewhere/file"), "old").unwrap();
        std::os::unix::fs::symlink("elsewhere/file", at("link")).unwrap();
        process_env.write_configuration(&at("link"), "configuration").unwrap();
        assert!(std::fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(at("elsewhere/file")).unwrap(), "configuration");
        process_env.write_configuration(&at("new/file"), "configuration").unwrap();
        assert_eq!(std::fs::read_to_string(at("new/file")).unwrap(), "configuration");
        let mode = |name: &str| std::fs::metadata(at(name)).unwrap().permissions().mode() & 0o777;
        std::fs::set_permissions(at("elsewhere/file"), std::fs::Permissions::from_mode(0o640)).unwrap();
        process_env.write_keeping_mode(&at("link"), "shared", 0o600).unwrap();
        assert!(std::fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(at("elsewhere/file")).unwrap(), "shared");
        process_env.write_keeping_mode(&at("newer/file"), "shared", 0o600).unwrap();
        assert_eq!((mode("link"), mode("newer/file")), (0o640, 0o600));
    }

    #[tokio::test]
    async fn settings_of_git_are_added_to_those_of_the_user() {
        use pintle_env::{ExecRequest, ExecutionEnvironment as _};

        let path = std::env::var_os("PATH").unwrap();
        let of_user = [
            ("GIT_CONFIG_COUNT", OsStr::new("1")),
            ("GIT_CONFIG_KEY_0", OsStr::new("core.abbrev")),
            ("GIT_CONFIG_VALUE_0", OsStr::new("9")),
        ];
        let directory = tempfile::tempdir().unwrap();
        for (settings, abbreviation) in [(&of_user[..], "9"), (&of_user[..0], "unset")] {
            let variables = settings.iter().copied().chain([("PATH", path.as_os_str())]);
            let process_env = ProcessEnv::with(variables);
            let builder = process_env.environment_builder(directory.path());
            let line = "git config core.abbrev || echo unset; git config gc.autoDetach; git config maintenance.autoDetach; \
                        git config branch.autoSetupMerge || echo unset";
            let environment = builder.build().unwrap();
            let result = environment.exec_command(ExecRequest::new(line)).await.unwrap();
            let text = result.stdout.to_text_lossy().unwrap();
            assert_eq!(text, format!("{abbreviation}\nfalse\nfalse\nunset\n"));
        }
    }

    #[test]
    fn missing_directory_is_rejected() {
        let process_env = ProcessEnv::with([]);
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(process_env.directory(Some(directory.path())).unwrap(), directory.path());
        let missing = directory.path().join("missing");
        let failure = process_env.directory(Some(&missing)).unwrap_err();
        assert!(failure.message().ends_with("does not exist; expected an existing directory"), "{failure:?}");
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let failure = process_env.directory(Some(&file)).unwrap_err();
        assert!(failure.message().contains("is not a directory"), "{failure:?}");
    }
}
