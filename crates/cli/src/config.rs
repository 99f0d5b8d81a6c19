//! The flags of commands without a session, with the settings that they and the configuration form.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pintle_host::boxed_future::box_future;
use pintle_host::configuration::{report_bounded, resolve_without_session};
use pintle_host::env_spec::EnvSpec;
use pintle_host::failure::Failure;
use pintle_host::named_value::parse_setting;
use pintle_host::process_env::ProcessEnv;
use pintle_host::{GivenSettings, PartialSpec, Resolved};

use crate::arguments::{
    AskArgs, CatalogArgs, Command, ConfigurationArgs, EnvArgs, ModelArgs, ModelsArgs, RulesScope,
    ShowPromptArgs, ToolsArgs, profile_file,
};
#[cfg(feature = "mcp")]
use crate::arguments::{ConfinementArgs, McpCommand, ServeToolsArgs, ServerToolsArgs};

/// Returns the command with its settings. `typed` are the names of the flags that were typed.
///
/// A command with a session may have to select the session first, and forms its settings itself.
pub(crate) async fn complete(
    mut command: Command,
    typed: &BTreeSet<String>,
    process_env: &ProcessEnv,
) -> Result<Command, Failure> {
    match &mut command {
        Command::Ask(args) => box_future(move || complete_ask(args, process_env)).await?,
        Command::Tools(args) if args.command.is_some() => {}
        Command::Tools(args) => box_future(move || complete_tools(args, typed, process_env)).await?,
        Command::Models(args) => box_future(move || complete_models(args, process_env)).await?,
        Command::Prompt(args) => box_future(move || complete_prompt(args, typed, process_env)).await?,
        Command::Rules(args) => {
            box_future(move || complete_rules(args.command.scope_mut(), process_env)).await?
        }
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => match &mut args.command {
            McpCommand::Serve(args) => {
                box_future(move || complete_mcp_serve(args, typed, process_env)).await?
            }
            McpCommand::Tools(args) => {
                box_future(move || complete_mcp_tools(args, typed, process_env)).await?
            }
            McpCommand::List(_)
            | McpCommand::Add(_)
            | McpCommand::Remove(_)
            | McpCommand::Login(_)
            | McpCommand::Logout(_) => {}
        },
        _ => {}
    }
    Ok(command)
}

async fn complete_ask(args: &mut AskArgs, process_env: &ProcessEnv) -> Result<(), Failure> {
    args.model = resolve_model(&args.model, args.configuration, process_env).await?;
    Ok(())
}

/// Returns the flags of a model with the settings of the configuration.
pub(crate) async fn resolve_model(
    args: &ModelArgs,
    configuration: ConfigurationArgs,
    process_env: &ProcessEnv,
) -> Result<ModelArgs, Failure> {
    let mut spec = PartialSpec::default();
    args.set(&mut spec);
    let resolved = resolve(here(process_env), configuration, spec, process_env).await?;
    ModelArgs::from_resolved(&resolved)
}

async fn complete_tools(
    args: &mut ToolsArgs,
    typed: &BTreeSet<String>,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    let mut spec = PartialSpec::default();
    spec.model.provider = args.provider.map(|provider| provider.name().to_owned());
    spec.tools.toolset = typed.contains("toolset").then(|| args.toolset.into());
    let resolved = resolve(here(process_env), args.configuration, spec, process_env).await?;
    args.provider = resolved.spec.model.provider.as_deref().map(parse_setting).transpose()?;
    args.toolset = args.toolset.or_resolved(&resolved);
    Ok(())
}

async fn complete_models(args: &mut ModelsArgs, process_env: &ProcessEnv) -> Result<(), Failure> {
    let mut spec = PartialSpec::default();
    spec.model.catalog.clone_from(&args.catalog.catalog);
    let resolved = resolve(here(process_env), args.configuration, spec, process_env).await?;
    args.catalog = CatalogArgs::from_resolved(&resolved);
    Ok(())
}

async fn complete_prompt(
    args: &mut ShowPromptArgs,
    typed: &BTreeSet<String>,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    let mut spec = PartialSpec::default();
    let flags =
        ModelArgs { model: args.model.clone(), profile: args.profile.clone(), ..ModelArgs::default() };
    flags.set(&mut spec);
    spec.model.provider = args.provider.map(|provider| provider.name().to_owned());
    spec.tools.toolset = typed.contains("toolset").then(|| args.toolset.into());
    let directory = directory_of(&args.environment, process_env)?;
    let resolved = resolve(directory, args.configuration, spec, process_env).await?;
    args.model.clone_from(&resolved.spec.model.name);
    args.profile = profile_file(&resolved);
    // The file sets the provider.
    let provider = resolved.spec.model.provider.as_deref().filter(|_| args.profile.is_none());
    args.provider = provider.map(parse_setting).transpose()?;
    args.toolset = args.toolset.or_resolved(&resolved);
    Ok(())
}

async fn complete_rules(scope: &mut RulesScope, process_env: &ProcessEnv) -> Result<(), Failure> {
    let mut spec = PartialSpec::default();
    scope.policy.set(&mut spec);
    let directory = process_env.directory(scope.dir.as_deref())?;
    let resolved = resolve(Some(directory), scope.configuration, spec, process_env).await?;
    report_bounded(&resolved, |path| MODES.contains(&path), process_env);
    scope.policy.apply(&resolved);
    Ok(())
}

#[cfg(feature = "mcp")]
async fn complete_mcp_serve(
    args: &mut ServeToolsArgs,
    typed: &BTreeSet<String>,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    let mut spec = PartialSpec::default();
    args.policy.set(&mut spec);
    args.confinement.set(&mut spec, typed.contains("sandbox"));
    spec.tools.toolset = typed.contains("toolset").then(|| args.toolset.into());
    let directory = directory_of(&args.environment, process_env)?;
    let resolved = resolve(directory, args.configuration, spec, process_env).await?;
    let is_used = |path: &str| MODES.contains(&path) || CONFINEMENT.contains(&path);
    report_bounded(&resolved, is_used, process_env);
    args.policy.apply(&resolved);
    args.confinement = ConfinementArgs::from_spec(&resolved.spec);
    args.toolset = args.toolset.or_resolved(&resolved);
    Ok(())
}

#[cfg(feature = "mcp")]
async fn complete_mcp_tools(
    args: &mut ServerToolsArgs,
    typed: &BTreeSet<String>,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    let mut spec = PartialSpec::default();
    args.confinement.set(&mut spec, typed.contains("sandbox"));
    let resolved = resolve(here(process_env), args.configuration, spec, process_env).await?;
    report_bounded(&resolved, |path| CONFINEMENT.contains(&path), process_env);
    args.confinement = ConfinementArgs::from_spec(&resolved.spec);
    Ok(())
}

/// Paths of the modes.
const MODES: [&str; 2] = ["policy.mode", "policy.after_plan"];

/// Paths of the settings of [`ConfinementArgs`].
#[cfg(feature = "mcp")]
const CONFINEMENT: [&str; 4] =
    ["environment.sandbox", "environment.network", "environment.confine", "policy.read_before_write"];

/// Merges the configuration of a directory with the settings of flags.
async fn resolve(
    directory: Option<PathBuf>,
    configuration: ConfigurationArgs,
    typed: PartialSpec,
    process_env: &ProcessEnv,
) -> Result<Resolved, Failure> {
    let ignore_config_errors = configuration.ignore_config_errors;
    let given = GivenSettings { ignore_config_errors, ..GivenSettings::from(typed) };
    resolve_without_session(directory.as_deref(), given, process_env).await
}

/// Returns the current directory, if there is one.
fn here(process_env: &ProcessEnv) -> Option<PathBuf> {
    process_env.directory(None).ok()
}

/// Returns the working directory; `None` elsewhere than on this machine.
fn directory_of(environment: &EnvArgs, process_env: &ProcessEnv) -> Result<Option<PathBuf>, Failure> {
    let is_local = environment.env == EnvSpec::Local;
    is_local.then(|| process_env.directory(environment.dir.as_deref())).transpose()
}
