//! Inputs of the process: environment variables, current directory, files, standard input and scripted models.
#![expect(clippy::disallowed_methods, reason = "the host reads its own environment and files")]

mod files;
mod input;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_agent::Principal;
use pintle_env::{LocalEnvironment, LocalEnvironmentBuilder, without_paths_below};

pub use self::files::rotated_path;
pub(crate) use self::input::utf8_text;
pub use self::input::{
    PIPE_TIMEOUT, PipedStdin, piped_stdin, read_private_if_exists, read_stdin, read_stdin_within, read_text,
    read_text_if_exists, read_text_within, stdin_is_terminal,
};
use crate::failure::{Failure, OrFailure as _};
use crate::notice::Notices;
use crate::scripted_models::ScriptedModels;

/// Variable with the directory of the command's state.
pub const STATE_VARIABLE: &str = "PINTLE_STATE_DIR";

/// Variable with the directory of the user's configuration.
pub const CONFIG_VARIABLE: &str = "PINTLE_CONFIG_DIR";

/// Variable in which the SDK of codex passes a key of OpenAI, and the variable of that key here.
const CODEX_KEY: &str = "CODEX_API_KEY";
const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// Directories below the state directory that commands of sessions can write to.
const COMMAND_WRITABLE_DIRECTORIES: [&str; 3] = ["caches", "worktrees", "sessions/worktrees"];

/// Variables that direct git to a particular repository, or to its index or objects.
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

/// Settings of git for commands: background maintenance would be terminated with the command that started it.
const GIT_SETTINGS: [(&str, &str); 2] = [("gc.autoDetach", "false"), ("maintenance.autoDetach", "false")];

/// Settings of git for commands that cannot change the configuration of the repository: creating a branch does not
/// change it.
const GIT_SETTINGS_READ_ONLY_CONFIG: [(&str, &str); 2] =
    [("branch.autoSetupMerge", "false"), ("push.autoSetupRemote", "false")];

/// Environment variables, directories and files of the process and its user. The variables are read once at startup.
#[derive(Clone)]
pub struct ProcessEnv {
    variables: BTreeMap<OsString, OsString>,
    /// Directories that commands of a session may write to: the current directory, and `--dir`.
    workspaces: Vec<PathBuf>,
    /// Home directory in the user database.
    database_home: Option<PathBuf>,
    /// Files of a server, which are hidden from its sessions; `None` in a process that serves no sessions.
    server_files: Option<Vec<PathBuf>>,
    /// Directories of other users of the same server, which a sandboxed session must not read.
    foreign_roots: Vec<PathBuf>,
    notices: Notices,
    /// Models whose answers come from a script, if this process has them.
    scripted_models: Option<Arc<dyn ScriptedModels>>,
    sandbox_listener: Option<&'static str>,
}

impl ProcessEnv {
    /// Creates an environment with these variables, without a home directory and without other data of this process.
    pub fn from_variables<'a>(variables: impl IntoIterator<Item = (&'a str, &'a OsStr)>) -> Self {
        let variables = variables.into_iter();
        let variables = variables.map(|(name, value)| (name.into(), value.to_owned())).collect();
        Self {
            variables,
            workspaces: Vec::new(),
            database_home: None,
            server_files: None,
            foreign_roots: Vec::new(),
            notices: Notices::default(),
            scripted_models: None,
            sandbox_listener: None,
        }
    }

    /// Returns this environment for a user with this home directory in the user database.
    #[cfg(test)]
    pub(crate) fn with_database_home(mut self, home: &Path) -> Self {
        self.database_home = Some(home.to_path_buf());
        self
    }

    /// Reads the environment of this process. The main function of a program calls it once and passes the result on.
    ///
    /// Falls back to the home directory in the user database if `HOME` is not an absolute path.
    pub fn capture() -> Self {
        let workspaces = std::env::current_dir().into_iter().collect();
        let process_env = Self {
            variables: std::env::vars_os().collect(),
            workspaces,
            database_home: home_from_user_database(),
            server_files: None,
            foreign_roots: Vec::new(),
            notices: Notices::default(),
            scripted_models: None,
            sandbox_listener: None,
        };
        match process_env.home() {
            Some(_) => process_env,
            None => {
                let home = process_env.database_home.clone();
                process_env.with_home(home)
            }
        }
    }

    /// Returns this environment with other notices. They receive the notices that were buffered before.
    pub fn with_notices(mut self, notices: Notices) -> Self {
        notices.report_all(self.notices.take());
        self.notices = notices;
        self
    }

    /// Returns the notices of this process. They are buffered until a sink is set.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Returns this environment for a command with a session in `directory`.
    pub fn with_workspace(mut self, directory: Option<&Path>) -> Self {
        self.workspaces.extend(directory.and_then(|directory| std::path::absolute(directory).ok()));
        self
    }

    /// Returns this environment for a server with these files. These files, its configuration and its state are hidden
    /// from its sessions, with or without a sandbox.
    pub fn with_server_files(mut self, files: impl IntoIterator<Item = PathBuf>) -> Self {
        let absolute = files.into_iter().filter_map(|file| std::path::absolute(file).ok());
        self.server_files = Some(absolute.collect());
        self
    }

    /// Returns the files of the server; `None` in a process that serves no sessions.
    pub fn server_files(&self) -> Option<&[PathBuf]> {
        self.server_files.as_deref()
    }

    /// Returns this environment for a session that must not read these directories.
    pub fn with_foreign_roots(mut self, directories: Vec<PathBuf>) -> Self {
        self.foreign_roots = directories;
        self
    }

    /// Returns the directories of other users of the same server.
    pub fn foreign_roots(&self) -> &[PathBuf] {
        &self.foreign_roots
    }

    /// Returns this environment for a program that opens the listener in a sandbox if this is its only argument. Without it, a
    /// list of hosts is refused as unsupported.
    pub fn with_sandbox_listener(mut self, argument: &'static str) -> Self {
        self.sandbox_listener = Some(argument);
        self
    }

    /// Returns the argument with which this program opens the listener in a sandbox.
    pub(crate) fn sandbox_listener(&self) -> Option<&'static str> {
        self.sandbox_listener
    }

    /// Returns this environment with models whose answers come from a script.
    pub fn with_scripted_models(mut self, models: impl ScriptedModels + 'static) -> Self {
        self.scripted_models = Some(Arc::new(models));
        self
    }

    /// Returns the models whose answers come from a script. Fails if this process has none.
    pub fn scripted_models(&self) -> Result<&dyn ScriptedModels, Failure> {
        let models = self.scripted_models.as_deref();
        models.ok_or_else(|| Failure::usage("no scripted models are available"))
    }

    /// Returns this environment without the variables that direct git to a particular repository. Git sets them for its
    /// hooks.
    pub fn without_repository(mut self) -> Self {
        self.variables.retain(|name, _| !GIT_REPOSITORY_VARIABLES.iter().any(|known| name == *known));
        self
    }

    fn with_home(mut self, home: Option<PathBuf>) -> Self {
        self.variables.remove(OsStr::new("HOME"));
        self.variables.extend(home.map(|home| ("HOME".into(), home.into())));
        self
    }

    /// Returns the home directory of the user; `None` if neither `HOME` nor the user database has an absolute path.
    pub fn home(&self) -> Option<PathBuf> {
        self.variables.get(OsStr::new("HOME")).map(PathBuf::from).filter(|home| home.is_absolute())
    }

    /// Returns the home directory in the user database, which may differ from [`home`](Self::home).
    pub(crate) fn database_home(&self) -> Option<&Path> {
        self.database_home.as_deref()
    }

    /// Uses the key that the SDK of codex passes as the OpenAI key, unless one is set.
    pub fn with_codex_key(mut self) -> Self {
        if self.variable(OPENAI_KEY).is_none()
            && let Some(key) = self.variables.get(OsStr::new(CODEX_KEY)).cloned()
        {
            self.variables.insert(OPENAI_KEY.into(), key);
        }
        self
    }

    /// Returns this environment with more variables.
    pub fn with_variables(&self, variables: &BTreeMap<String, String>) -> Self {
        let mut all = self.clone();
        all.variables.extend(variables.iter().map(|(name, value)| (name.into(), value.into())));
        all
    }

    /// Returns the value of a variable, or `None` if it is unset, empty or not UTF-8.
    pub fn variable(&self, name: &str) -> Option<String> {
        let value = self.variables.get(OsStr::new(name))?.to_str()?;
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Returns the user of the command for records: the name of the user, and of the machine if it is known.
    pub fn principal(&self) -> Principal {
        let user = self.variable("USER").or_else(|| self.variable("LOGNAME"));
        let user = user.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()));
        let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let name = if machine.is_empty() { user } else { format!("{user}@{machine}") };
        Principal::new(name)
    }

    /// Checks the variables that name the directories of the state and of the configuration. A missing directory is no mistake.
    ///
    /// A relative path, which would depend on the working directory, and a configuration directory that is a file are usage
    /// failures.
    pub fn check_directories(&self) -> Result<(), Failure> {
        for name in [STATE_VARIABLE, CONFIG_VARIABLE] {
            let Some(path) = self.variable(name).map(PathBuf::from) else { continue };
            let shown = path.display();
            if path.is_relative() {
                return Err(Failure::usage(format!("{name} is {shown}: expected an absolute path")));
            }
            if name == CONFIG_VARIABLE && path.exists() && !path.is_dir() {
                return Err(Failure::usage(format!("{name} is {shown}, a file: expected a directory")));
            }
        }
        Ok(())
    }

    /// Returns the directory of the command's state.
    pub fn state_directory(&self) -> Result<PathBuf, Failure> {
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
    pub fn configuration_directory(&self) -> Option<PathBuf> {
        let variable = |name: &str| self.variable(name).map(PathBuf::from);
        variable(CONFIG_VARIABLE)
            .or_else(|| Some(variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute())?.join("pintle")))
            .or_else(|| Some(self.home()?.join(".config/pintle")))
    }

    /// Returns all variables.
    pub fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> + use<> {
        self.variables.clone().into_iter()
    }

    /// Returns the absolute path of the given directory, or of the current directory.
    pub fn directory(&self, named: Option<&Path>) -> Result<PathBuf, Failure> {
        let Some(named) = named else {
            return std::env::current_dir().or_usage("cannot use the current directory");
        };
        let refused = |why: &str| {
            let problem = format!("directory {}: {why}; expected an existing directory", named.display());
            Failure::usage(problem).with_setting("environment.dir")
        };
        match std::fs::metadata(named) {
            Ok(metadata) if metadata.is_dir() => absolute(named),
            Ok(_) => Err(refused("is not a directory")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(refused("does not exist")),
            Err(error) => Err(refused("cannot be used").caused_by(&error)),
        }
    }

    /// Returns whether a path is a directory, or a link to one.
    pub fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }

    /// Returns a path with all links followed, as far as it exists.
    pub fn real_path(&self, path: &Path) -> PathBuf {
        let found = path
            .ancestors()
            .find_map(|above| Some(above.canonicalize().ok()?.join(path.strip_prefix(above).ok()?)));
        without_trailing_slash(&found.unwrap_or_else(|| path.to_path_buf()))
    }

    /// Returns whether two paths lead to the same file or directory.
    pub fn is_same_path(&self, one: &Path, other: &Path) -> bool {
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

    /// Returns the variables for programs that run outside of the sandbox: they contain no paths that commands of a
    /// session may have written to, such as `directory`, a workspace, a worktree or project caches.
    fn unsandboxed_variables(&self, directory: Option<&Path>) -> BTreeMap<OsString, OsString> {
        let state = self.state_directory().ok().filter(|state| state.is_absolute());
        let of_state =
            state.iter().flat_map(|state| COMMAND_WRITABLE_DIRECTORIES.map(|name| state.join(name)));
        let roots = self.workspaces.iter().cloned().chain(directory.map(Path::to_path_buf)).chain(of_state);
        // Programs may start in `/`, which is never a workspace.
        let roots: Vec<PathBuf> = roots.filter(|root| root.parent().is_some()).collect();
        without_paths_below(self.variables(), &roots)
    }

    /// Returns the directory in which programs outside of the sandbox start, unless the user names another one: the
    /// user's home directory, without project files that a program might load.
    pub(crate) fn unsandboxed_directory(&self) -> PathBuf {
        self.home().filter(|home| home.is_dir()).unwrap_or_else(|| PathBuf::from("/"))
    }

    /// Prepares a program of the user, such as an editor: sets its directory, and removes variables with paths that
    /// commands of a session may have written to.
    pub fn prepare_unsandboxed(&self, command: &mut std::process::Command) {
        command.current_dir(self.unsandboxed_directory());
        let outside = self.unsandboxed_variables(None);
        for (name, value) in &self.variables {
            match outside.get(name) {
                None => command.env_remove(name),
                Some(kept) if kept != value => command.env(name, kept),
                // This process may have removed it: it can be a secret.
                Some(_) => command,
            };
        }
    }

    /// Returns a builder for a local environment of programs that run outside of the sandbox.
    pub fn unsandboxed_builder(&self, directory: &Path) -> LocalEnvironmentBuilder {
        LocalEnvironment::builder(directory).with_host_env(self.unsandboxed_variables(Some(directory)))
    }

    /// Returns a builder for a local environment with all variables, for the commands of a session.
    pub(crate) fn environment_builder(&self, directory: &Path) -> LocalEnvironmentBuilder {
        let builder = LocalEnvironment::builder(directory).with_host_env(self.variables());
        self.with_git_settings(builder, &GIT_SETTINGS)
    }

    /// Sets the variables of git for an environment whose commands cannot change the configuration of the repository.
    #[cfg(target_os = "linux")]
    pub fn with_unchanged_configuration(&self, builder: LocalEnvironmentBuilder) -> LocalEnvironmentBuilder {
        self.with_git_settings(builder, &[GIT_SETTINGS, GIT_SETTINGS_READ_ONLY_CONFIG].concat())
    }

    /// Adds git settings to the settings in the user's variables.
    fn with_git_settings(
        &self,
        builder: LocalEnvironmentBuilder,
        settings: &[(&str, &str)],
    ) -> LocalEnvironmentBuilder {
        let before = self.variable("GIT_CONFIG_COUNT").map_or(Ok(0), |count| count.parse::<u16>());
        // Git refuses to work with a count that is not a number.
        let Ok(before) = before.map(usize::from) else { return builder };
        let builder = builder.with_variable("GIT_CONFIG_COUNT", (before + settings.len()).to_string());
        settings.iter().zip(before..).fold(builder, |builder, ((key, value), number)| {
            builder
                .with_variable(format!("GIT_CONFIG_KEY_{number}"), *key)
                .with_variable(format!("GIT_CONFIG_VALUE_{number}"), *value)
        })
    }

    /// Creates a local execution environment for files, and for programs that run outside of the sandbox.
    pub fn local_environment(&self, directory: &Path) -> Result<LocalEnvironment, Failure> {
        self.unsandboxed_builder(directory).build().or_failed("cannot use the execution environment")
    }
}

impl std::fmt::Debug for ProcessEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessEnv").field("variables", &self.variables.keys().collect::<Vec<_>>()).finish()
    }
}

/// Makes the path absolute without resolving symbolic links.
pub fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map(|path| without_trailing_slash(&path))
        .map_err(|error| Failure::usage(format!("cannot use {}", path.display())).caused_by(&error))
}

/// Returns a path in the form used in records, messages and hashes of paths.
fn without_trailing_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Returns the home directory of this process's user in the user database.
fn home_from_user_database() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current()).ok().flatten()?;
    Some(user.dir).filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::Notice;

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
            let process_env = ProcessEnv::from_variables(variables);
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
    fn a_sink_receives_the_notices_that_were_kept_before() {
        let process_env = ProcessEnv::from_variables([]);
        process_env.notices().report("before");
        let received = Notices::default();
        let process_env = process_env.with_notices(received.clone());
        process_env.clone().notices().report("after");
        let received = received.take();
        assert_eq!(received.iter().map(Notice::text).collect::<Vec<_>>(), ["before", "after"]);
    }

    #[test]
    fn missing_directory_is_rejected() {
        let process_env = ProcessEnv::from_variables([]);
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(process_env.directory(Some(directory.path())).unwrap(), directory.path());
        let missing = directory.path().join("missing");
        let failure = process_env.directory(Some(&missing)).unwrap_err();
        let expected =
            format!("directory {}: does not exist; expected an existing directory", missing.display());
        assert_eq!((failure.message(), failure.setting()), (expected, Some("environment.dir")));
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let failure = process_env.directory(Some(&file)).unwrap_err();
        assert!(failure.message().contains("is not a directory"), "{failure:?}");
    }
}
