//! Applies `--sandbox`, `--network` and `--confine` to an environment.

use std::path::PathBuf;
use std::sync::Arc;

use pintle_env::{Confined, ExecutionEnvironment, LocalEnvironmentBuilder};
use tempfile::TempDir;

use crate::args::{ConfinementArgs, SandboxName};
use crate::env_spec::EnvSpec;
use crate::failure::{Failure, OrFailure as _};

/// Message for an environment that cannot be set up.
const UNUSABLE: &str = "cannot use the execution environment";

/// Local environment with its limits applied.
pub(super) struct ConfinedLocal {
    pub(super) environment: Arc<dyn ExecutionEnvironment>,
    pub(super) kill_all: Arc<dyn Fn() + Send + Sync>,
    /// Directory for temporary files of sandboxed commands, removed on drop.
    pub(super) temporary: Option<TempDir>,
}

/// Rejects flags that do not apply to the target.
///
/// # Errors
///
/// A usage failure.
pub(super) fn validate(args: &ConfinementArgs, spec: &EnvSpec) -> Result<(), Failure> {
    let is_sandboxed = args.sandbox != SandboxName::Off;
    if is_sandboxed && *spec != EnvSpec::Local {
        return Err(Failure::usage(format!("--sandbox requires --env local, not {spec}"))
            .with_hint("use --confine to restrict file tools"));
    }
    if args.network.is_some() && !args.has_network() && !is_sandboxed {
        return Err(Failure::usage("--network off requires --sandbox workspace or --sandbox read-only"));
    }
    Ok(())
}

/// Builds the local environment.
///
/// # Errors
///
/// A usage failure if the kernel cannot enforce the limits on writes and sockets.
pub(super) async fn local(
    args: &ConfinementArgs,
    builder: LocalEnvironmentBuilder,
) -> Result<ConfinedLocal, Failure> {
    if args.sandbox != SandboxName::Off {
        return sandboxed(args, builder).await;
    }
    let local = Arc::new(builder.build().or_failed(UNUSABLE)?);
    let killed = Arc::clone(&local);
    Ok(ConfinedLocal {
        environment: confine(args, local, []),
        kill_all: Arc::new(move || killed.kill_all()),
        temporary: None,
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

#[cfg(target_os = "linux")]
async fn sandboxed(
    args: &ConfinementArgs,
    builder: LocalEnvironmentBuilder,
) -> Result<ConfinedLocal, Failure> {
    use pintle_env::{Protection, ReadOnly, Sandboxed};

    use crate::console;

    /// Protections that only cause a notice if the kernel lacks them.
    const OPTIONAL: [Protection; 2] = [Protection::Devices, Protection::Signals];

    let temporary = tempfile::Builder::new()
        .prefix("pintle-")
        .tempdir()
        .or_failed("cannot create a temporary directory")?;
    let local = builder.variable("TMPDIR", temporary.path()).build().or_failed(UNUSABLE)?;
    let workspace = local.working_directory().to_path_buf();
    let mut sandbox = Sandboxed::new(local).with_network(args.has_network()).with_writable(temporary.path());
    if args.sandbox == SandboxName::Workspace {
        sandbox = sandbox.with_writable(workspace);
    }
    let unenforced = sandbox.unenforced().await.or_failed(UNUSABLE)?;
    for protection in OPTIONAL {
        if unenforced.contains(&protection) {
            console::notice(&format!("this kernel cannot block {protection}"));
        }
        sandbox = sandbox.accepting(protection);
    }
    let sandbox = Arc::new(sandbox);
    let killed = Arc::clone(&sandbox);
    let environment: Arc<dyn ExecutionEnvironment> = match args.sandbox {
        SandboxName::ReadOnly => Arc::new(ReadOnly::new(sandbox).allow_commands()),
        SandboxName::Workspace | SandboxName::Off => sandbox,
    };
    Ok(ConfinedLocal {
        environment: confine(args, environment, [temporary.path().to_path_buf()]),
        kill_all: Arc::new(move || killed.kill_all()),
        temporary: Some(temporary),
    })
}

#[cfg(not(target_os = "linux"))]
async fn sandboxed(
    _args: &ConfinementArgs,
    _builder: LocalEnvironmentBuilder,
) -> Result<ConfinedLocal, Failure> {
    Err(Failure::usage("--sandbox requires Linux"))
}
