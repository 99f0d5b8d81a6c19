//! Applies `--sandbox`, `--network` and `--confine` to an environment.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use pintle_env::{Confined, ExecutionEnvironment, LocalEnvironmentBuilder, WriteSwitch};

use super::repository_guard::RepositoryGuard;
use super::secrets::{self, HiddenPaths};
use super::temporary::TemporaryDirectory;
use super::watch_record::WatchRecord;
use crate::args::{ConfinementArgs, SandboxName};
use crate::env_spec::EnvSpec;
use crate::failure::{Failure, OrFailure as _};
use crate::process_env::ProcessEnv;

/// Message for an environment that cannot be set up.
pub(super) const UNUSABLE: &str = "cannot use the execution environment";

/// Hint at the way out of a sandbox that cannot be set up.
pub(crate) const HINT: &str =
    "use --no-sandbox to run commands with all your permissions, or --mode edit to be asked";

/// Local environment with its limits applied.
pub(super) struct ConfinedLocal {
    pub(super) environment: Arc<dyn ExecutionEnvironment>,
    /// The same for servers of tools, of which some may run outside of the sandbox.
    pub(super) of_servers: Arc<dyn ExecutionEnvironment>,
    pub(super) kill_all: Arc<dyn Fn() + Send + Sync>,
    /// Directory for temporary files of sandboxed commands, removed on drop.
    pub(super) temporary: Option<TemporaryDirectory>,
    pub(super) sandbox: SandboxState,
    /// It was not tried in this run that the machine can set up the sandbox.
    pub(super) is_remembered: bool,
    /// Files of git and of projects that the sandbox keeps commands from changing.
    pub(super) protected: Vec<PathBuf>,
    /// Returns the paths that lost their protection while a command ran.
    pub(super) replaced: Option<ReplacedPathsSource>,
    /// Restores git histories that commands remove.
    pub(super) repositories: RepositoryGuard,
}

/// Returns paths that a sandbox held no longer.
pub(super) type ReplacedPathsSource = Arc<dyn Fn() -> BTreeSet<PathBuf> + Send + Sync>;

/// Files of a workspace and of the user that a sandbox guards.
#[derive(Clone, Copy)]
pub(super) struct GuardedFiles<'a> {
    pub(super) record: &'a WatchRecord,
    pub(super) hidden: &'a HiddenPaths,
    /// Rules of `--deny`.
    pub(super) denials: &'a [String],
}

/// What a run needs of a sandbox.
#[derive(Clone, Debug)]
pub(crate) struct SandboxUse {
    /// Whether commands and file tools may change the workspace now. It follows the mode.
    pub(crate) writes: WriteSwitch,
    /// Somebody can allow a command to run outside.
    pub(crate) can_be_left: bool,
    /// Something may be kept for later runs.
    pub(crate) keeps_state: bool,
    /// Whether the result of an earlier probe may be used.
    pub(crate) may_recall: bool,
    /// The workspace is a clone that is removed later. Only its own repository is guarded, not those that commands make in it.
    pub(crate) is_disposable: bool,
}

impl Default for SandboxUse {
    fn default() -> Self {
        Self {
            writes: WriteSwitch::new(true),
            can_be_left: false,
            keeps_state: false,
            may_recall: true,
            is_disposable: false,
        }
    }
}

/// What holds the commands of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SandboxState {
    /// The user wants none.
    Off,
    /// A sandbox of this level, `full` or `writes`.
    Level(String),
    /// None could be set up.
    Unavailable {
        /// Why, for each level.
        reasons: String,
    },
}

impl SandboxState {
    /// Returns how a record names it.
    pub(crate) fn on_record(&self) -> &str {
        match self {
            Self::Off => "off",
            Self::Level(level) => level,
            Self::Unavailable { .. } => "unavailable",
        }
    }
}

/// Rejects flags that do not apply to the target.
///
/// # Errors
///
/// A usage failure.
pub(super) fn validate(args: &ConfinementArgs, spec: &EnvSpec) -> Result<(), Failure> {
    let level = args.level();
    if matches!(level, SandboxName::Full | SandboxName::Writes) && *spec != EnvSpec::Local {
        return Err(Failure::usage(format!("--sandbox requires --env local, not {spec}"))
            .with_hint("use --confine to restrict file tools"));
    }
    let has_sandbox = level != SandboxName::Off && *spec == EnvSpec::Local;
    if args.network.is_some() && !args.has_network() && !has_sandbox {
        return Err(Failure::usage("--network off requires a sandbox"));
    }
    Ok(())
}

/// Returns whether a run on this machine has a sandbox, unless its flags say otherwise.
#[cfg(target_os = "linux")]
pub(crate) async fn has_sandbox(local: &pintle_env::LocalEnvironment) -> bool {
    let support = pintle_env::SandboxSupport::probe(local).await;
    support.is_ok_and(|support| !support.levels().is_empty())
}

/// Returns whether a run on this machine has a sandbox, unless its flags say otherwise.
#[cfg(not(target_os = "linux"))]
pub(crate) async fn has_sandbox(_local: &pintle_env::LocalEnvironment) -> bool {
    false
}

/// Builds the local environment.
///
/// # Errors
///
/// A usage failure if a level is asked for that cannot be set up.
pub(super) async fn local(
    args: &ConfinementArgs,
    use_of: &SandboxUse,
    builder: LocalEnvironmentBuilder,
    files: &GuardedFiles<'_>,
    process_env: &ProcessEnv,
) -> Result<ConfinedLocal, Failure> {
    let sandbox = match args.level() {
        SandboxName::Off => SandboxState::Off,
        SandboxName::Auto | SandboxName::Full | SandboxName::Writes => {
            match sandboxed(args, use_of, builder.clone(), files, process_env).await? {
                Sandbox::Built(built) => return Ok(*built),
                Sandbox::Unavailable { reasons } if args.level() == SandboxName::Auto => {
                    SandboxState::Unavailable { reasons }
                }
                Sandbox::Unavailable { reasons } => {
                    return Err(
                        Failure::usage(format!("the sandbox cannot be set up: {reasons}")).with_hint(HINT)
                    );
                }
            }
        }
    };
    let local = Arc::new(builder.build().or_failed(UNUSABLE)?);
    let killed = Arc::clone(&local);
    Ok(ConfinedLocal {
        environment: confine(args, Arc::clone(&local) as _, []),
        of_servers: local,
        kill_all: Arc::new(move || killed.kill_all()),
        temporary: None,
        sandbox,
        is_remembered: false,
        protected: Vec::new(),
        replaced: None,
        repositories: RepositoryGuard::default(),
    })
}

/// Restricts file tools to the working directory and `more` if `--confine` is set.
pub(super) fn confine(
    args: &ConfinementArgs,
    environment: Arc<dyn ExecutionEnvironment>,
    more: impl IntoIterator<Item = PathBuf>,
) -> Arc<dyn ExecutionEnvironment> {
    if !args.confine {
        return environment;
    }
    let roots: Vec<PathBuf> =
        std::iter::once(environment.working_directory().to_path_buf()).chain(more).collect();
    Arc::new(Confined::new(environment, roots))
}

/// Attempt to set up a sandbox.
enum Sandbox {
    Built(Box<ConfinedLocal>),
    Unavailable { reasons: String },
}

#[cfg(target_os = "linux")]
async fn sandboxed(
    args: &ConfinementArgs,
    use_of: &SandboxUse,
    builder: LocalEnvironmentBuilder,
    files: &GuardedFiles<'_>,
    process_env: &ProcessEnv,
) -> Result<Sandbox, Failure> {
    use pintle_env::{ProjectCaches, Protection, ReadOnly, SandboxLevel, Sandboxed};
    use pintle_governance::protected_paths;

    use super::machine::Machine;
    use crate::console;
    use crate::policy::PROJECT_DIRECTORY;

    /// Protections that only cause a notice if the machine lacks them.
    const OPTIONAL: [Protection; 3] = [Protection::Devices, Protection::Signals, Protection::Descriptors];

    let temporary = TemporaryDirectory::create().or_failed("cannot create a temporary directory")?;
    let plain = builder.clone().build().or_failed(UNUSABLE)?;
    let workspace = plain.working_directory().to_path_buf();
    // The trials end by themselves, soon.
    let trials = builder.clone().lifeline(false).build().or_failed(UNUSABLE)?;
    let Machine { support, is_remembered } = match use_of.may_recall {
        true => Machine::recall_or_probe(&trials, use_of.keeps_state, process_env).await?,
        false => Machine::probe(&trials, use_of.keeps_state, process_env).await?,
    };
    let wanted = |level: &SandboxLevel| match args.level() {
        SandboxName::Full => *level == SandboxLevel::Full,
        SandboxName::Writes => *level == SandboxLevel::Writes,
        SandboxName::Auto | SandboxName::Off => true,
    };
    let reason = |level: SandboxLevel| {
        let reason = support.unavailable(level).filter(|_| wanted(&level));
        reason.map(|reason| format!("level {level}: {reason}"))
    };
    let Some(level) = support.levels().into_iter().find(wanted) else {
        let reasons: Vec<String> =
            [SandboxLevel::Full, SandboxLevel::Writes].into_iter().filter_map(reason).collect();
        return Ok(Sandbox::Unavailable { reasons: reasons.join("; ") });
    };

    let lasting = secrets::cache_directory(&workspace, process_env).filter(|_| use_of.keeps_state);
    let lasting = match lasting {
        Some(directory) => ProjectCaches::prepare(directory, process_env.variables()).await.ok(),
        None => None,
    };
    let caches = match lasting {
        Some(caches) => caches,
        // What is built goes with the session.
        None => ProjectCaches::prepare(temporary.path().join("caches"), process_env.variables())
            .await
            .or_failed("cannot prepare the caches of the project")?,
    };
    let builder = match level {
        SandboxLevel::Full => process_env.with_unchanged_configuration(builder),
        SandboxLevel::Writes => builder,
    };
    let local = builder.build().or_failed(UNUSABLE)?;
    let mut sandbox = Sandboxed::new(local)
        .with_level(level)
        .with_support(support.clone())
        .with_network(args.has_network())
        // With the network of the machine, abstract sockets would lead to its services.
        .with_unix_sockets(level == SandboxLevel::Full && !args.has_network())
        .with_temporary(temporary.path())
        .with_caches(caches, temporary.path().join("copies-of-caches"), &use_of.writes)
        .with_writable_while(&workspace, &use_of.writes)
        .leavable(use_of.can_be_left);
    let mut writable = secrets::of_repository(&workspace, process_env);
    for root in &writable {
        sandbox = sandbox.with_writable_while(root, &use_of.writes);
    }
    writable.push(process_env.real_path(&workspace));
    let mut found =
        protected_paths(&plain, [PROJECT_DIRECTORY], files.record.earlier()).await.or_failed(UNUSABLE)?;
    if use_of.is_disposable {
        leave_out_nested(&mut found, &process_env.real_path(&workspace));
    }
    let is_writable = |git: &PathBuf| {
        writable.iter().any(|root| git.starts_with(root) || process_env.real_path(root).starts_with(git))
    };
    let repositories: Vec<PathBuf> = found.git_directories.into_iter().filter(is_writable).collect();
    let mut protected = Vec::new();
    match level {
        SandboxLevel::Full => {
            let denied = denied_reads(files.denials, &plain, process_env).await?;
            sandbox = files.hidden.paths.iter().chain(&denied).fold(sandbox, Sandboxed::with_hidden);
            files.record.note(&found.found);
            protected = found.paths;
            sandbox = protected.iter().fold(sandbox, Sandboxed::with_protected);
        }
        SandboxLevel::Writes => {
            // Without a reason, the user has chosen the level.
            let why = reason(SandboxLevel::Full).map(|reason| format!(" ({reason})")).unwrap_or_default();
            console::notice(&format!(
                "the sandbox limits writes only: commands can read all that you can, and change git's settings{why}"
            ));
        }
    }
    let unenforced = sandbox.unenforced().await.or_failed(UNUSABLE)?;
    for protection in OPTIONAL {
        if unenforced.contains(&protection) {
            console::notice(&format!("this machine cannot block {protection}"));
        }
        sandbox = sandbox.accepting(protection);
    }
    let of_servers = Arc::new(sandbox.clone().leavable(true));
    let sandbox = Arc::new(sandbox);
    let (killed, held) = (Arc::clone(&sandbox), Arc::clone(&sandbox));
    let environment: Arc<dyn ExecutionEnvironment> = if use_of.writes.is_on() {
        sandbox
    } else {
        Arc::new(ReadOnly::new(sandbox).allow_commands().unless(&use_of.writes))
    };
    Ok(Sandbox::Built(Box::new(ConfinedLocal {
        environment: confine(args, environment, [temporary.path().to_path_buf()]),
        of_servers,
        kill_all: Arc::new(move || killed.kill_all()),
        temporary: Some(temporary),
        sandbox: SandboxState::Level(level.to_string()),
        is_remembered,
        protected,
        replaced: Some(Arc::new(move || held.replaced_paths())),
        repositories: RepositoryGuard::new(&repositories, &workspace, process_env),
    })))
}

/// Leaves out the repositories and worktrees in a workspace, other than its own repository.
#[cfg(target_os = "linux")]
fn leave_out_nested(found: &mut pintle_governance::ProtectedPaths, workspace: &std::path::Path) {
    use std::path::Path;

    let own = workspace.join(".git");
    // The entry named `.git` that a path is in.
    let entry_of = |path: &PathBuf| {
        let below = path.strip_prefix(workspace).ok()?;
        below.ancestors().find(|above| above.ends_with(".git")).map(|entry| workspace.join(entry))
    };
    let entries = found.paths.iter().chain(&found.git_directories).filter_map(entry_of);
    let nested =
        entries.filter(|entry| *entry != own).filter_map(|entry| entry.parent().map(Path::to_path_buf));
    let nested: Vec<PathBuf> = nested.chain([own.join("worktrees")]).collect();
    let is_kept = |path: &PathBuf| !nested.iter().any(|tree| path.starts_with(tree));
    found.paths.retain(is_kept);
    found.git_directories.retain(is_kept);
}

/// Returns an environment of this machine whose commands have the rights of the user but no network.
///
/// # Errors
///
/// A usage failure if this machine has no sandbox.
#[cfg(target_os = "linux")]
pub(crate) async fn without_network(
    directory: &std::path::Path,
    process_env: &ProcessEnv,
) -> Result<Arc<dyn ExecutionEnvironment>, Failure> {
    use pintle_env::{Protection, Sandboxed};

    use super::machine::Machine;

    let builder = process_env.outside_builder(directory);
    let trials = builder.clone().lifeline(false).build().or_failed(UNUSABLE)?;
    let Machine { support, .. } = Machine::recall_or_probe(&trials, false, process_env).await?;
    // The strongest level comes first. The last one leaves temporary directories and services' files as they are.
    let level = support.levels().into_iter().next_back().ok_or_else(no_network_sandbox)?;
    let local = builder.build().or_failed(UNUSABLE)?;
    let sandbox = Sandboxed::new(local).with_level(level).with_support(support).with_writable("/");
    let unenforced = sandbox.unenforced().await.or_failed(UNUSABLE)?;
    if unenforced.contains(&Protection::Sockets) {
        return Err(no_network_sandbox());
    }
    Ok(Arc::new(unenforced.into_iter().fold(sandbox, Sandboxed::accepting)))
}

/// Returns an environment of this machine whose commands have the rights of the user but no network.
///
/// # Errors
///
/// A usage failure: a sandbox requires Linux.
#[cfg(not(target_os = "linux"))]
pub(crate) async fn without_network(
    _directory: &std::path::Path,
    _process_env: &ProcessEnv,
) -> Result<Arc<dyn ExecutionEnvironment>, Failure> {
    Err(no_network_sandbox())
}

fn no_network_sandbox() -> Failure {
    Failure::usage(
        "the grant does not allow the network, and no sandbox on this machine can block it for your hooks",
    )
    .with_hint("remove the hooks, or give a grant with `\"network\": true`")
}

/// Returns the files that rules deny to read. A notice names the rules with files that commands can read anyway.
///
/// # Errors
///
/// A usage failure for an invalid rule.
#[cfg(target_os = "linux")]
async fn denied_reads(
    denials: &[String],
    environment: &pintle_env::LocalEnvironment,
    process_env: &ProcessEnv,
) -> Result<Vec<PathBuf>, Failure> {
    use crate::console;

    let rules = crate::policy::denials(denials, environment, process_env).await?;
    let denied = rules.denied_reads(environment).await.or_failed(UNUSABLE)?;
    for (rule, reason) in &denied.incomplete {
        console::notice(&format!(
            "cannot hide all files that the rule `{rule}` denies to read from commands: {reason}"
        ));
    }
    let (hidden, linked): (Vec<PathBuf>, Vec<PathBuf>) =
        denied.paths.into_iter().partition(|path| !process_env.has_multiple_hard_links(path));
    for path in linked {
        console::notice(&format!(
            "cannot hide {}, which a rule denies to read: it has more than one hard link",
            path.display()
        ));
    }
    Ok(hidden)
}

#[cfg(not(target_os = "linux"))]
async fn sandboxed(
    _args: &ConfinementArgs,
    _use_of: &SandboxUse,
    _builder: LocalEnvironmentBuilder,
    _files: &GuardedFiles<'_>,
    _process_env: &ProcessEnv,
) -> Result<Sandbox, Failure> {
    Ok(Sandbox::Unavailable { reasons: "a sandbox requires Linux".to_owned() })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::Path;

    use pintle_governance::ProtectedPaths;

    use super::*;

    #[test]
    fn only_the_own_repository_of_a_disposable_workspace_is_guarded() {
        let files = [
            ("/a/.git/w/.git/config", true),
            ("/a/.git/w/.git/hooks", true),
            ("/a/.git/w/.git/modules/sub/config", true),
            ("/a/.git/w/.git/worktrees/tree/commondir", false),
            ("/a/.git/w/.pintle", true),
            ("/a/.git/w/below/.pintle", true),
            ("/a/.git/w/made/.git/config", false),
            ("/a/.git/w/made/.pintle", false),
            ("/a/.git/w/tree/.git", false),
            ("/elsewhere/.git/config", true),
        ];
        let directories = [
            ("/a/.git/w/.git", true),
            ("/a/.git/w/.git/modules/sub", true),
            ("/a/.git/w/.git/worktrees/tree", false),
            ("/a/.git/w/made/.git", false),
        ];
        let mut found = ProtectedPaths::default();
        found.paths.extend(files.map(|(path, _)| PathBuf::from(path)));
        found.git_directories.extend(directories.map(|(path, _)| PathBuf::from(path)));
        leave_out_nested(&mut found, Path::new("/a/.git/w"));
        for (path, is_kept) in files {
            assert_eq!(found.paths.iter().any(|found| found == Path::new(path)), is_kept, "{path}");
        }
        for (path, is_kept) in directories {
            assert_eq!(found.git_directories.iter().any(|found| found == Path::new(path)), is_kept, "{path}");
        }
    }
}
