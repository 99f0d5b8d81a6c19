//! Configuration: `config.toml` of the user and of the project, environment variables, and profiles by name.
//!
//! The settings of a command are merged from the layers of these sources, of its flags, and of its session.

mod commands;
pub(crate) mod file;
mod layers;
pub(crate) mod load;
pub(crate) mod settings;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pintle_host::{
    BoundedValue, LayerSpec, PartialSpec, ProfileRef, Resolved, SessionSpec, StoredSpec, ValueOrigin,
    limit_recorded_mode, merge,
};

pub(crate) use self::commands::complete;
use self::load::Configuration;
use crate::arguments::{ConfigurationArgs, ConversationArgs, RunArgs};
use crate::config::file::{keys, problem};
use crate::env_spec::EnvSpec;
use crate::failure::Failure;
use crate::notice::Notice;
use crate::policy;
use crate::process_env::{self, ProcessEnv};
use crate::provider::{Provider, ProviderName};
use crate::sessions::{RememberedSettings, SelectedSession};

/// Path of the field for the mode.
const MODE: &str = "policy.mode";

/// Settings of a session besides the configuration and the flags of this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionSources {
    /// Defaults of the surface.
    pub(crate) defaults: PartialSpec,
    /// Settings of the kept session that is resumed or forked. Its recorded mode is unset if another mode is given.
    pub(crate) remembered: RememberedSettings,
    /// Request of a client.
    pub(crate) request: Option<LayerSpec>,
}

impl SessionSources {
    /// Returns the settings of a kept session; none for a new session.
    pub(crate) fn of_selected(selected: Option<&SelectedSession>) -> Result<Self, Failure> {
        let remembered = selected.map(SelectedSession::remembered).transpose()?;
        Ok(Self { remembered: remembered.unwrap_or_default(), ..Self::default() })
    }
}

/// The merged settings of a session, and their sources.
struct MergedSession {
    resolved: Resolved,
    /// Settings that the session remembers.
    spec: StoredSpec,
    sources: SessionSources,
    loaded: Configuration,
}

/// Settings of a session that is to be opened, and its presentation.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedSession {
    /// The settings, without the grant of a file.
    pub(crate) spec: SessionSpec,
    /// Settings that the session remembers.
    pub(crate) remembered: RememberedSettings,
    /// Presentation of a conversation.
    pub(crate) conversation: ConversationArgs,
}

impl ResolvedSession {
    /// Returns the settings with the grant of the file that a flag names, if it names one.
    pub(crate) fn with_grant(mut self, args: &RunArgs) -> Result<Self, Failure> {
        if let Some(file) = &args.grant {
            self.spec.policy.grant = Some(policy::grant::read_file(file)?);
        }
        Ok(self)
    }
}

/// Returns the settings that the configuration, the flags of this process and the other sources form.
pub(crate) async fn resolve_session(
    args: &RunArgs,
    sources: SessionSources,
    process_env: &ProcessEnv,
) -> Result<ResolvedSession, Failure> {
    let MergedSession { resolved, spec, sources, loaded } = merge_session(args, sources, process_env).await?;
    let mut conversation = args.conversation.clone();
    let profile = layers::selected_profile(args, &sources.remembered.spec.given);
    for (key, value) in loaded.settings(profile.as_deref()).values {
        if !args.typed.contains(key) {
            conversation.set(key, &value.text);
        }
    }
    let recorded_mode = sources.remembered.recorded_mode;
    let mut remembered = RememberedSettings { flags: args.session.given.clone(), spec, recorded_mode };
    remembered.flags.extend(sources.remembered.flags);
    make_absolute(&mut remembered.spec.given);
    if let (Some(ProfileRef::Name(name)), ValueOrigin::Flag(_)) =
        (&resolved.spec.model.profile, resolved.origin("model.profile"))
    {
        remembered.flags.insert(keys::PROFILE.to_owned(), vec![name.clone()]);
    }
    Ok(ResolvedSession { spec: resolved.spec, remembered, conversation })
}

/// Returns the settings of a session, as [`resolve_session`] does.
#[cfg(feature = "server")]
pub(crate) async fn resolve_spec(
    args: &RunArgs,
    sources: SessionSources,
    process_env: &ProcessEnv,
) -> Result<SessionSpec, Failure> {
    let merged = merge_session(args, sources, process_env).await?;
    Ok(merged.resolved.spec)
}

/// Merges the settings of a session, and reports the values that exceed a limit of the user.
async fn merge_session(
    args: &RunArgs,
    mut sources: SessionSources,
    process_env: &ProcessEnv,
) -> Result<MergedSession, Failure> {
    let typed = args.layer(&BTreeSet::new())?;
    sources.remembered = sources.remembered.without_replaced(&typed.spec);
    let directory = directory_of_session(args, &sources, process_env)?;
    let loaded = load_checked(directory, args.configuration, process_env).await?;
    let layers = layers::of_session(args, &sources, &loaded, process_env)?;
    let mut spec = StoredSpec::from_layers(&layers);
    if matches!(spec.origins.get(MODE), Some(ValueOrigin::Request(_))) {
        // The record of the session has the mode of the client, which may change.
        spec.given.clear(MODE);
        spec.origins.remove(MODE);
    }
    let recorded = sources.remembered.recorded_mode;
    let limit = recorded.and_then(|recorded| limit_recorded_mode(&layers, recorded));
    let resolved = merge_layers(layers)?;
    report_bounded(&resolved, |_| true, process_env);
    if let Some((mode, bounded)) = limit {
        sources.remembered.recorded_mode = Some(mode);
        process_env.notices().report(bounded.to_string());
    }
    Ok(MergedSession { resolved, spec, sources, loaded })
}

/// Makes the paths of files absolute: a relative path means another file in another directory.
fn make_absolute(spec: &mut PartialSpec) {
    let model = &mut spec.model;
    let profile = match &mut model.profile {
        Some(ProfileRef::File(file)) => Some(file),
        Some(ProfileRef::Name(_)) | None => None,
    };
    let of_model = [model.script.as_mut(), model.catalog.as_mut(), profile].into_iter().flatten();
    for file in of_model.chain(&mut spec.tools.server_files) {
        if let Ok(absolute) = std::path::absolute(&*file) {
            *file = absolute;
        }
    }
}

fn merge_layers(layers: Vec<LayerSpec>) -> Result<Resolved, Failure> {
    merge(layers).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::usage(problems.join("; "))
    })
}

/// Reports the values of some fields that exceed a limit of the user.
fn report_bounded(resolved: &Resolved, is_used: impl Fn(&str) -> bool, process_env: &ProcessEnv) {
    // A stronger value may replace the limit.
    let applies =
        |bounded: &&BoundedValue| is_used(bounded.path) && *resolved.origin(bounded.path) == bounded.limit;
    process_env.notices().report_all(resolved.bounded.iter().filter(applies).filter_map(bounded_notice));
}

/// Returns the directory of this machine that a session works in, whose project applies; `None` if it works elsewhere, where
/// nothing can be read before the model and the sandbox are selected.
fn directory_of_session(
    args: &RunArgs,
    sources: &SessionSources,
    process_env: &ProcessEnv,
) -> Result<Option<PathBuf>, Failure> {
    let request = sources.request.as_ref().map(|request| &request.spec.environment);
    let remembered = &sources.remembered.spec.given.environment;
    let typed = args.is_typed("env").then(|| args.environment.env.to_string());
    let kind = request.and_then(|request| request.kind.clone()).or(typed).or_else(|| remembered.kind.clone());
    let is_local = kind.is_none_or(|kind| kind == EnvSpec::Local.to_string());
    let requested = request.and_then(|request| request.dir.as_deref());
    let directory = requested.or(args.environment.dir.as_deref()).or(remembered.dir.as_deref());
    is_local.then(|| process_env.directory(directory)).transpose()
}

/// Returns the notice about a value that exceeds a limit of the user; `None` for the first mode of a kept session, since only
/// the last one on its record applies.
fn bounded_notice(bounded: &BoundedValue) -> Option<Notice> {
    let mut bounded = bounded.clone();
    if matches!(bounded.origin, ValueOrigin::Remembered(_)) {
        if bounded.path == MODE {
            return None;
        }
        // A message does not need the flag that the session remembers.
        bounded.origin = ValueOrigin::Remembered(None);
    }
    Some(Notice::from(bounded.to_string()))
}

/// Loads the configuration for a command that works in `directory`, and reports its mistakes and notices. Without a directory,
/// no project counts.
async fn load_checked(
    directory: Option<PathBuf>,
    configuration: ConfigurationArgs,
    process_env: &ProcessEnv,
) -> Result<Configuration, Failure> {
    let loaded = load::load(directory.as_deref(), process_env).await?;
    let notices = process_env.notices();
    notices.report_all(problem::check(&loaded.problems, configuration.ignore_config_errors)?);
    notices.report_all(loaded.notices.clone());
    Ok(loaded)
}

/// Rejects a value of `--profile` that is neither a profile nor a file.
pub(crate) fn require_file(name: &str, loaded: &Configuration) -> Result<(), Failure> {
    if keys::is_profile_file(name) || process_env::read_text_if_exists("profile", Path::new(name))?.is_some()
    {
        return Ok(());
    }
    Err(Failure::usage(format!("{} in the configuration, and no such file", loaded.no_profile(name))))
}

/// Returns the variable with the base URL of the provider that flags or the configuration name, or else that has a key, and
/// its value.
pub(crate) fn url_variable(
    given: Option<ProviderName>,
    configured: impl FnOnce() -> Option<Provider>,
    process_env: &ProcessEnv,
) -> Option<(&'static str, String)> {
    let provider = match given {
        Some(ProviderName::Scripted) => return None,
        Some(ProviderName::Of(provider)) => Some(provider),
        None => configured().or_else(|| Provider::first_with_key(|name| process_env.variable(name))),
    };
    let name = provider.unwrap_or(Provider::OpenAiCompatible).variables().base_url;
    Some((name, process_env.variable(name)?))
}

#[cfg(test)]
mod tests;
