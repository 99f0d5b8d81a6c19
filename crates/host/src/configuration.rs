//! Configuration: `config.toml` of the user and of the project, environment variables, and profiles by name.
//!
//! [`Host::resolve`] merges it with the given settings and with the settings of a kept session or of a client.

mod layers;
mod load;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use self::load::{Configuration, needs_trust, project_root};
pub use self::settings::{Settings, Source, Value};
use crate::boxed_future::box_future;
use crate::config_file::{keys, problem};
use crate::env_spec::EnvSpec;
use crate::failure::Failure;
use crate::host::Host;
use crate::layers::{
    BoundedValue, Layer, LayerSpec, RequestSpec, Resolved, StoredSpec, ValueOrigin, limit_recorded_mode,
    merge,
};
use crate::notice::Notice;
use crate::policy::grant;
use crate::process_env::ProcessEnv;
use crate::sessions::{RememberedFlags, RememberedSettings, SelectedSession};
use crate::spec::{PartialSpec, ProfileRef, SessionSpec};

/// Path of the field for the mode.
const MODE: &str = "policy.mode";

/// Settings that the program gives: the flags of the command, or values of an application.
#[derive(Clone, Debug, Default)]
pub struct GivenSettings {
    /// The settings, which are the layer [`Layer::CommandLine`]. A profile that is a file becomes a profile of the configuration
    /// if one has its name.
    pub spec: PartialSpec,
    /// Their origins for messages, by the path of the field.
    pub origins: BTreeMap<String, ValueOrigin>,
    /// The settings as flags, which older versions of stored sessions read.
    pub flags: RememberedFlags,
    /// File of the grant, which is read for each session that is opened.
    pub grant: Option<PathBuf>,
    /// Whether mistakes in the configuration are only reported.
    pub ignore_config_errors: bool,
}

impl GivenSettings {
    /// Returns the layer of the settings.
    #[must_use]
    pub fn into_layer(self) -> LayerSpec {
        let layer = LayerSpec::new(Layer::CommandLine, self.spec, ValueOrigin::Default);
        LayerSpec { origins: self.origins, ..layer }
    }
}

impl From<PartialSpec> for GivenSettings {
    fn from(spec: PartialSpec) -> Self {
        Self { spec, ..Self::default() }
    }
}

/// Settings of a session besides the configuration.
#[derive(Clone, Debug, Default)]
pub struct SettingSources {
    /// Settings that the program gives.
    pub given: GivenSettings,
    /// Defaults of the surface.
    pub defaults: PartialSpec,
    /// Settings of the kept session that is resumed or forked. Its recorded mode is unset if another mode is given.
    pub remembered: RememberedSettings,
    /// Request of a client.
    pub request: Option<RequestSpec>,
}

impl SettingSources {
    /// Returns the given settings with the settings of a kept session. A new session has none.
    ///
    /// # Errors
    ///
    /// The settings of the session cannot be read.
    pub fn from_selected(given: GivenSettings, selected: Option<&SelectedSession>) -> Result<Self, Failure> {
        let remembered = selected.map(SelectedSession::remembered).transpose()?;
        Ok(Self { remembered: remembered.unwrap_or_default(), ..Self::from(given) })
    }
}

impl From<GivenSettings> for SettingSources {
    /// Returns the sources of a new session.
    fn from(given: GivenSettings) -> Self {
        Self { given, ..Self::default() }
    }
}

/// Settings of a session that is to be opened.
#[derive(Clone, Debug)]
pub struct ResolvedSession {
    /// The settings, with the grant of the file if one was given.
    pub spec: SessionSpec,
    /// Settings that the session remembers.
    pub remembered: RememberedSettings,
    /// Keys of the configuration that are no settings of a session, such as those for the terminal.
    pub presentation: BTreeMap<&'static str, String>,
    /// Origins of the settings that are not defaults, by path. The last one has decided.
    pub origins: BTreeMap<&'static str, Vec<ValueOrigin>>,
}

/// The merged settings of a session, and their sources.
struct MergedSession {
    resolved: Resolved,
    /// Settings that the session remembers.
    spec: StoredSpec,
    sources: SettingSources,
    loaded: Configuration,
}

impl Host {
    /// Merges the configuration, the variables, the kept session, the given settings and the request.
    ///
    /// The project of the session's directory applies if the session works on this machine. Its keys that need trust apply only if
    /// the user trusts it. Values that do not apply are notices.
    ///
    /// Dropping the future stops reading. Nothing is changed.
    ///
    /// # Errors
    ///
    /// Mistakes in the configuration, a profile that does not exist, a directory or a grant that cannot be read, and values of a
    /// client that it may not set. A client sets no grant if the program gives the file of one: the grant of the client would have
    /// another id, so that a revocation of the file's grant would not apply.
    pub async fn resolve(&self, sources: SettingSources) -> Result<ResolvedSession, Failure> {
        let requested = sources.request.as_ref().and_then(|request| request.spec.policy.grant.as_ref());
        if requested.is_some() && sources.given.grant.is_some() {
            return Err(Failure::usage(
                "grant: expected none, because sessions have the grant of the program",
            ));
        }
        requested.map_or(Ok(()), grant::require_unsigned)?;
        let MergedSession { resolved, spec, sources, loaded } =
            box_future(|| merge_session(sources, self.process_env())).await?;
        let SettingSources { given, remembered: kept, .. } = sources;
        let profile = layers::selected_profile(&given.spec, &kept.spec.given);
        let presentation = loaded.presentation(profile.as_deref());
        let mut remembered =
            RememberedSettings { flags: given.flags, spec, recorded_mode: kept.recorded_mode };
        remembered.flags.extend(kept.flags);
        make_absolute(&mut remembered.spec.given);
        if let (Some(ProfileRef::Name(name)), ValueOrigin::Flag(_)) =
            (&resolved.spec.model.profile, resolved.origin("model.profile"))
        {
            remembered.flags.insert(keys::PROFILE.to_owned(), vec![name.clone()]);
        }
        let Resolved { mut spec, origins, .. } = resolved;
        if let Some(file) = &given.grant {
            spec.policy.grant = Some(grant::read_file(file, self.process_env())?);
        }
        Ok(ResolvedSession { spec, remembered, presentation, origins })
    }
}

/// Merges the settings of a session, and reports the values that exceed a limit of the user.
async fn merge_session(
    mut sources: SettingSources,
    process_env: &ProcessEnv,
) -> Result<MergedSession, Failure> {
    sources.remembered = sources.remembered.without_replaced(&sources.given.spec);
    let directory = directory_of_session(&sources, process_env)?;
    let ignores_errors = sources.given.ignore_config_errors;
    let loaded = box_future(|| load_checked(directory.as_deref(), ignores_errors, process_env)).await?;
    let layers = layers::session_layers(&sources, &loaded, process_env)?;
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

/// Merges the configuration of a directory with given settings, for a command without a session. Without a directory, no project
/// counts. The grant is not read.
///
/// Reports mistakes and notices of the configuration, but not the values that exceed a limit of the user: see
/// [`report_bounded`]. Dropping the future stops reading.
///
/// # Errors
///
/// Mistakes in the configuration, and a profile that does not exist.
pub async fn resolve_without_session(
    directory: Option<&Path>,
    given: GivenSettings,
    process_env: &ProcessEnv,
) -> Result<Resolved, Failure> {
    let loaded = load_checked(directory, given.ignore_config_errors, process_env).await?;
    let mut given = given.into_layer();
    layers::name_profile(&mut given.spec, &loaded)?;
    let (profile, provider) = (layers::profile_text(&given.spec), given.spec.model.provider.clone());
    let mut layers =
        layers::configuration_layers(profile.as_deref(), provider.as_deref(), &loaded, process_env)?;
    layers.push(given);
    merge_layers(layers)
}

/// Reports the values of some fields that exceed a limit of the user. `is_used` receives the path of a field.
pub fn report_bounded(resolved: &Resolved, is_used: impl Fn(&str) -> bool, process_env: &ProcessEnv) {
    // A stronger value may replace the limit.
    let applies =
        |bounded: &&BoundedValue| is_used(bounded.path) && *resolved.origin(bounded.path) == bounded.limit;
    process_env.notices().report_all(resolved.bounded.iter().filter(applies).filter_map(bounded_notice));
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

/// Returns the directory of this machine that a session works in, whose project applies; `None` if it works elsewhere, where
/// nothing can be read before the model and the sandbox are selected.
fn directory_of_session(
    sources: &SettingSources,
    process_env: &ProcessEnv,
) -> Result<Option<PathBuf>, Failure> {
    let request = sources.request.as_ref().map(|request| &request.spec.environment);
    let given = &sources.given.spec.environment;
    let remembered = &sources.remembered.spec.given.environment;
    let kind = request.and_then(|request| request.kind.as_ref()).or(given.kind.as_ref());
    let kind = kind.or(remembered.kind.as_ref());
    let is_local = kind.is_none_or(|kind| *kind == EnvSpec::Local.to_string());
    let requested = request.and_then(|request| request.dir.as_deref());
    let directory = requested.or(given.dir.as_deref()).or(remembered.dir.as_deref());
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
    directory: Option<&Path>,
    ignore_errors: bool,
    process_env: &ProcessEnv,
) -> Result<Configuration, Failure> {
    let loaded = Configuration::load(directory, process_env).await?;
    let notices = process_env.notices();
    notices.report_all(problem::check(&loaded.problems, ignore_errors)?);
    notices.report_all(loaded.notices.clone());
    Ok(loaded)
}
