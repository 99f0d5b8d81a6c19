//! Sets up the sandbox of Linux.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_egress::{Limits, Proxy, SystemResolver};
use pintle_env::{
    ExecutionEnvironment, ListenerHelper, LocalEnvironment, LocalEnvironmentBuilder, NetworkGateway,
    ProjectCaches, Protection, ReadOnlyEnvironment, SandboxLevel, SandboxSupport, SandboxedEnvironment,
};
use pintle_governance::HostScope;

use super::{
    ConfinedLocal, Confinement, ENVIRONMENT_UNUSABLE, GuardedFiles, SandboxAttempt, SandboxRequirements,
    SandboxState, confine,
};
use crate::env_spec::unsupported_hosts;
use crate::environment::project_caches::{self, FillCaches, SessionCaches};
use crate::environment::proxy_gateway::ProxyGateway;
use crate::environment::repository_guard::RepositoryGuard;
use crate::environment::sandbox_loss::SandboxLoss;
use crate::environment::sandbox_probe::{self, SandboxProbe};
use crate::environment::secrets;
use crate::environment::temporary::TemporaryDirectory;
use crate::environment::workspace_search::{SearchedWorkspace, WorkspaceSearch};
use crate::failure::{Failure, OrFailure as _};
use crate::notice::{Notice, Notices};
use crate::process_env::ProcessEnv;
use crate::spec::SandboxLevel as RequestedLevel;

/// Protections that only cause a notice if the machine lacks them.
const OPTIONAL: [Protection; 3] = [Protection::Devices, Protection::Signals, Protection::Descriptors];

/// Builds the local environment with the strongest level of the sandbox that the limits allow and the machine has.
pub(super) async fn build_sandboxed(
    confinement: &Confinement,
    requirements: &SandboxRequirements,
    builder: LocalEnvironmentBuilder,
    files: &GuardedFiles<'_>,
    process_env: &ProcessEnv,
) -> Result<SandboxAttempt, Failure> {
    let temporary = TemporaryDirectory::create().or_failed("cannot create a temporary directory")?;
    let plain = builder.clone().build().or_failed(ENVIRONMENT_UNUSABLE)?;
    let workspace = plain.working_directory().to_path_buf();
    let SandboxProbe { support, is_cached } = probe_machine(requirements, &builder, process_env).await?;
    let reason = |level| unavailable_reason(confinement, &support, level);
    let Some(level) = support.levels().into_iter().find(|level| is_level_allowed(confinement, *level)) else {
        let reasons: Vec<String> =
            [SandboxLevel::Full, SandboxLevel::Writes].into_iter().filter_map(reason).collect();
        return Ok(SandboxAttempt::Unavailable { reasons: reasons.join("; ") });
    };

    let (caches, cache_lock) = create_caches(&workspace, &temporary, requirements, process_env).await?;
    let builder = match level {
        SandboxLevel::Full => process_env.with_unchanged_configuration(builder),
        SandboxLevel::Writes => builder,
    };
    let local = builder.build().or_failed(ENVIRONMENT_UNUSABLE)?;
    let mut sandbox = SandboxedEnvironment::new(local)
        .with_level(level)
        .with_support(support.clone())
        .with_network(confinement.has_network())
        // With the network of the machine, abstract sockets would lead to its services.
        .with_unix_sockets(level == SandboxLevel::Full && !confinement.has_network())
        .with_temporary(temporary.path())
        .with_caches(caches, temporary.path().join("copies-of-caches"), &requirements.writes)
        .with_writable_while(&workspace, &requirements.writes)
        .with_outside_commands(requirements.can_run_outside);
    if let Some(hosts) = files.hosts {
        if level != SandboxLevel::Full {
            let why = reason(SandboxLevel::Full).map(|reason| format!(" ({reason})")).unwrap_or_default();
            return Err(unsupported_hosts(&format!("it is not supported at the sandbox level {level}{why}")));
        }
        sandbox = sandbox.with_gateway(gateway(hosts, process_env)?);
    }
    sandbox = requirements.readable.iter().fold(sandbox, SandboxedEnvironment::with_readable);
    let mut policy = files.policy.clone();
    policy.sandbox_holds_commands = true;
    policy.temporary = Some(temporary.path().to_path_buf());
    policy.writable_roots = secrets::external_git_directories(&workspace, process_env);
    for root in &policy.writable_roots {
        sandbox = sandbox.with_writable_while(root, &requirements.writes);
    }
    let searched = SearchedWorkspace {
        environment: plain.clone(),
        settings_directories: policy.settings_directories.clone(),
        writable_roots: policy.writable_roots.clone(),
        is_disposable: requirements.is_disposable,
        is_protected: level == SandboxLevel::Full,
    };
    let search = WorkspaceSearch::new(searched, files.record, process_env);
    let search = Arc::new(search.await.or_failed(ENVIRONMENT_UNUSABLE)?);
    sandbox = sandbox.with_protected_source(Arc::clone(&search) as _);
    match level {
        SandboxLevel::Full => {
            let denied = find_denied_files(files, &plain, process_env).await?;
            let hidden = || policy.hidden.iter().chain(&denied);
            process_env.notices().report_all(hard_link_notices(hidden(), process_env));
            sandbox = sandbox.with_paths(hidden().cloned(), search.own().iter().cloned());
            policy.protected = search.own().to_vec();
        }
        SandboxLevel::Writes => {
            // Without a reason, the user has chosen the level.
            let why = reason(SandboxLevel::Full).map(|reason| format!(" ({reason})")).unwrap_or_default();
            process_env.notices().report(format!(
                "the sandbox limits writes only: commands can read all that you can, and change git's settings{why}"
            ));
        }
    }
    let sandbox = accept_missing_protections(sandbox, process_env.notices()).await?;
    let server_environment = Arc::new(sandbox.clone().with_outside_commands(true));
    // Servers do not share the sandboxes that are started ahead.
    let sandbox = Arc::new(sandbox.with_start_ahead(true));
    let loss = loss_of(&sandbox, process_env);
    let (killed, held) = (Arc::clone(&sandbox), Arc::clone(&sandbox));
    let caches = SessionCaches::new(cache_lock, fill_caches_of(&sandbox));
    let environment: Arc<dyn ExecutionEnvironment> = if requirements.writes.is_on() {
        sandbox
    } else {
        Arc::new(ReadOnlyEnvironment::new(sandbox).allow_commands().with_write_switch(&requirements.writes))
    };
    Ok(SandboxAttempt::Built(Box::new(ConfinedLocal {
        environment: confine(confinement, environment, [temporary.path().to_path_buf()]),
        server_environment,
        kill_all: Arc::new(move || killed.kill_all()),
        temporary: Some(temporary),
        sandbox: SandboxState::Level(level.to_string()),
        is_cached,
        workspace: policy,
        replaced: Some(Arc::new(move || held.replaced_paths())),
        repositories: RepositoryGuard::new(Arc::clone(&search), &workspace, true, process_env),
        search: Some(search),
        caches,
        loss,
    })))
}

/// Returns the gateway of commands to these hosts, with a proxy for the session.
fn gateway(hosts: &HostScope, process_env: &ProcessEnv) -> Result<Arc<dyn NetworkGateway>, Failure> {
    let Some(argument) = process_env.sandbox_listener() else {
        return Err(unsupported_hosts("this program opens no listener in sandboxes"));
    };
    let proxy = Proxy::new(Arc::new(SystemResolver), Limits::default());
    let helper = ListenerHelper::new("/proc/self/exe", [argument]);
    Ok(Arc::new(ProxyGateway::new(proxy, hosts.rules(), helper)))
}

/// Reports that the machine has lost the sandbox. The record of its probe is removed then.
fn loss_of(sandbox: &SandboxedEnvironment, process_env: &ProcessEnv) -> SandboxLoss {
    let (known, process_env) = (sandbox.clone(), process_env.clone());
    SandboxLoss::new(
        Arc::new(move || known.failure()),
        Box::pin(sandbox.wait_for_failure()),
        Box::new(move || sandbox_probe::forget(&process_env)),
    )
}

/// Returns the sandbox support of this machine.
async fn probe_machine(
    requirements: &SandboxRequirements,
    builder: &LocalEnvironmentBuilder,
    process_env: &ProcessEnv,
) -> Result<SandboxProbe, Failure> {
    // The processes of the probe exit quickly.
    let trials = builder.clone().with_lifeline(false).build().or_failed(ENVIRONMENT_UNUSABLE)?;
    match requirements.may_reuse_probe {
        true => SandboxProbe::recall_or_probe(&trials, requirements.keeps_state, process_env).await,
        false => SandboxProbe::probe(&trials, requirements.keeps_state, process_env).await,
    }
}

/// Returns whether the limits allow a level.
fn is_level_allowed(confinement: &Confinement, level: SandboxLevel) -> bool {
    match confinement.level {
        RequestedLevel::Full => level == SandboxLevel::Full,
        RequestedLevel::Writes => level == SandboxLevel::Writes,
        RequestedLevel::Auto | RequestedLevel::Off => true,
    }
}

/// Returns the reason why the machine does not have a level that the limits allow.
fn unavailable_reason(
    confinement: &Confinement,
    support: &SandboxSupport,
    level: SandboxLevel,
) -> Option<String> {
    let reason = support.unavailable(level).filter(|_| is_level_allowed(confinement, level));
    reason.map(|reason| format!("level {level}: {reason}"))
}

/// Creates the caches of the project, and returns a lock if they are lasting ones. A run that keeps no state uses lasting
/// ones if the project has some. A disposable workspace has new ones.
async fn create_caches(
    workspace: &Path,
    temporary: &TemporaryDirectory,
    requirements: &SandboxRequirements,
    process_env: &ProcessEnv,
) -> Result<(ProjectCaches, Option<File>), Failure> {
    let leased = match requirements.is_disposable {
        true => None,
        false => project_caches::lease(workspace, requirements.keeps_state, process_env),
    };
    if let Some((directory, lock)) = leased
        && let Ok(caches) = ProjectCaches::create(directory, process_env.variables()).await
    {
        return Ok((caches, Some(lock)));
    }
    // Build output is removed with the session.
    let caches = ProjectCaches::create(temporary.path().join("caches"), process_env.variables()).await;
    Ok((caches.or_failed("cannot create the caches of the project")?, None))
}

/// Returns a function that fills the caches of a sandbox.
fn fill_caches_of(sandbox: &Arc<SandboxedEnvironment>) -> FillCaches {
    let sandbox = Arc::clone(sandbox);
    Arc::new(move || {
        let sandbox = Arc::clone(&sandbox);
        Box::pin(async move {
            // After a failure, the first command tries again.
            let _ = sandbox.fill_caches().await;
        })
    })
}

/// Accepts that the machine lacks optional protections. A notice names each that it lacks.
async fn accept_missing_protections(
    mut sandbox: SandboxedEnvironment,
    notices: &Notices,
) -> Result<SandboxedEnvironment, Failure> {
    let unenforced = sandbox.unenforced().await.or_failed(ENVIRONMENT_UNUSABLE)?;
    for protection in OPTIONAL {
        if unenforced.contains(&protection) {
            notices.report(format!("this machine cannot block {protection}"));
        }
        sandbox = sandbox.with_accepted(protection);
    }
    Ok(sandbox)
}

/// Returns the files that rules deny to read. A notice names the rules with files that commands can still read.
async fn find_denied_files(
    files: &GuardedFiles<'_>,
    environment: &LocalEnvironment,
    process_env: &ProcessEnv,
) -> Result<Vec<PathBuf>, Failure> {
    let rules = crate::policy::load_denials(
        files.denials,
        environment,
        files.projects.projects().await?,
        process_env,
    )
    .await?;
    let denied = rules.denied_reads(environment).await.or_failed(ENVIRONMENT_UNUSABLE)?;
    for (rule, reason) in &denied.incomplete {
        process_env.notices().report(format!(
            "cannot hide all files that the rule `{rule}` denies to read from commands: {reason}"
        ));
    }
    Ok(denied.paths.into_iter().collect())
}

/// Returns a notice for each hidden file that commands can read by another name.
fn hard_link_notices<'a>(
    hidden: impl Iterator<Item = &'a PathBuf>,
    process_env: &ProcessEnv,
) -> impl Iterator<Item = Notice> {
    hidden.filter(move |path| process_env.has_multiple_hard_links(path)).map(|path| {
        Notice::from(format!(
            "{} is hidden from commands only under this name: it has more than one hard link",
            path.display()
        ))
    })
}
