//! The configuration and the given settings of a session as layers.

use std::collections::BTreeMap;
use std::path::Path;

use pintle_agent::Toolset;

use super::SettingSources;
use super::load::Configuration;
use super::settings::{self, Settings, Source, Value, Values};
use crate::config_file::keys;
use crate::failure::Failure;
use crate::layers::{FIELDS, FieldRow, Layer, LayerSpec, ValueOrigin, merge};
use crate::process_env::{self, ProcessEnv};
use crate::provider::{Provider, ProviderName};
use crate::spec::{BaseUrl, CountLimit, PartialSpec, ProfileRef};
use crate::timeout;

/// Path of the field for the base URL.
const BASE_URL: &str = "model.base_url";

/// Returns the layers of a session. The remembered settings do not have those that the given settings replace.
pub(super) fn session_layers(
    sources: &SettingSources,
    loaded: &Configuration,
    process_env: &ProcessEnv,
) -> Result<Vec<LayerSpec>, Failure> {
    let mut given = sources.given.clone().into_layer();
    name_profile(&mut given.spec, loaded)?;
    let mut kept = sources.remembered.spec.clone().into_layer();
    let profile = selected_profile(&given.spec, &kept.spec);
    if let (Some(name), true) = (&profile, kept.spec.model.profile.is_some())
        && !loaded.profiles().contains(name.as_str())
    {
        kept.spec.model.profile = Some(ProfileRef::File(name.into()));
    }
    let provider = given.spec.model.provider.as_deref().or(kept.spec.model.provider.as_deref());
    let mut layers = configuration_layers(profile.as_deref(), provider, loaded, process_env)?;
    let defaults = LayerSpec::new(Layer::Default, sources.defaults.clone(), ValueOrigin::Default);
    layers.extend([defaults, kept, given]);
    layers.extend(sources.request.clone().map(LayerSpec::from));
    Ok(layers)
}

/// Changes a profile that is a file into the profile of the configuration that has its name, if there is one. Rejects a name
/// without a profile.
pub(super) fn name_profile(spec: &mut PartialSpec, loaded: &Configuration) -> Result<(), Failure> {
    let profiles = loaded.profiles();
    match &spec.model.profile {
        Some(ProfileRef::Name(name)) if !profiles.contains(name.as_str()) => {
            return Err(Failure::usage(loaded.no_profile(name)));
        }
        Some(ProfileRef::File(file)) => {
            if let Some(name) = file.to_str().filter(|name| profiles.contains(name)) {
                spec.model.profile = Some(ProfileRef::Name(name.to_owned()));
            }
        }
        Some(ProfileRef::Name(_)) | None => {}
    }
    Ok(())
}

/// Returns the layers of the configuration. `profile` is the value of `--profile`, and `provider` the name of the provider that
/// stronger layers set.
pub(super) fn configuration_layers(
    profile: Option<&str>,
    provider: Option<&str>,
    loaded: &Configuration,
    process_env: &ProcessEnv,
) -> Result<Vec<LayerSpec>, Failure> {
    if let Some(name) = profile {
        require_profile(name, loaded)?;
    }
    let selected = loaded.sources(profile).profile();
    let mut layers = loaded.layers(selected.as_ref().map(|value| value.text.as_str()));
    if profile.is_some() {
        layers.iter_mut().for_each(|layer| layer.spec.clear("model.profile"));
    }
    hide_weaker_urls(&mut layers, provider.and_then(|name| name.parse().ok()), process_env);
    Ok(layers)
}

/// Returns the value of `--profile`, given or remembered.
pub(super) fn selected_profile(given: &PartialSpec, remembered: &PartialSpec) -> Option<String> {
    profile_text(given).or_else(|| profile_text(remembered))
}

/// Returns the profile of settings as a value of `--profile`.
pub(super) fn profile_text(spec: &PartialSpec) -> Option<String> {
    match spec.model.profile.as_ref()? {
        ProfileRef::Name(name) => Some(name.clone()),
        ProfileRef::File(file) => Some(file.to_string_lossy().into_owned()),
    }
}

/// Unsets the base URLs of files if the variable of the provider has one. The variable is read once the model is known: it may
/// belong to another provider, with its own variable.
fn hide_weaker_urls(layers: &mut [LayerSpec], given: Option<ProviderName>, process_env: &ProcessEnv) {
    let is_own = |layer: &LayerSpec| layer.layer == Layer::Variables && layer.spec.is_set(BASE_URL);
    if layers.iter().any(is_own) {
        return;
    }
    let configured = || -> Option<Provider> {
        let merged = merge(layers.iter().cloned()).ok()?;
        merged.spec.model.provider?.parse().ok()
    };
    if url_variable(given, configured, process_env).is_some() {
        layers.iter_mut().for_each(|layer| layer.spec.clear(BASE_URL));
    }
}

/// Rejects a value of `--profile` that is neither a profile nor a file.
fn require_profile(name: &str, loaded: &Configuration) -> Result<(), Failure> {
    let is_known = loaded.profiles().contains(name)
        || keys::is_profile_file(name)
        || process_env::read_text_if_exists("profile", Path::new(name))?.is_some();
    if is_known {
        return Ok(());
    }
    Err(Failure::usage(format!("{} in the configuration, and no such file", loaded.no_profile(name))))
}

/// Returns the variable with the base URL of the provider that flags or the configuration name, or else that has a key, and
/// its value.
fn url_variable(
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

impl Configuration {
    /// Returns the layers of the files and of the variables. `profile` is the name of the selected profile.
    fn layers(&self, profile: Option<&str>) -> Vec<LayerSpec> {
        self.values(profile).into_iter().map(|(kind, values)| layer(kind, &values)).collect()
    }

    /// Returns the values of the files and of the variables by layer.
    fn values(&self, profile: Option<&str>) -> Vec<(Layer, Values)> {
        let trusted = self.is_project_trusted;
        let files = [
            (&self.user, Layer::User, Layer::UserProfile),
            (&self.project, Layer::Project { trusted }, Layer::ProjectProfile { trusted }),
        ];
        let mut layers = Vec::new();
        for (file, of_file, of_profile) in files {
            layers.push((of_file, settings::values(file, None, &file.settings)));
            if let Some((name, values)) = profile.and_then(|name| file.profiles.get_key_value(name)) {
                layers.push((of_profile, settings::values(file, Some(name), values)));
            }
        }
        layers.push((Layer::Variables, self.variables.clone()));
        layers
    }

    /// Returns the effective values of the keys without flags. `profile` is the value of `--profile`. The variable with the base
    /// URL of the provider takes precedence over files.
    ///
    /// # Errors
    ///
    /// `profile` is neither a profile nor a file.
    pub fn effective_settings(
        &self,
        profile: Option<&str>,
        process_env: &ProcessEnv,
    ) -> Result<Settings, Failure> {
        let mut settings = self.settings(profile);
        if let Some(name) = profile {
            require_profile(name, self)?;
        }
        let configured = || -> Option<Provider> { settings.values.get("provider")?.text.parse().ok() };
        let variable = url_variable(None, configured, process_env);
        let is_own = settings
            .values
            .get(keys::BASE_URL)
            .is_some_and(|value| matches!(value.source, Source::Variable(_)));
        if let (Some((name, text)), false) = (variable, is_own) {
            let source = Source::Variable(name.to_owned());
            settings.values.insert(keys::BASE_URL, Value { text, source });
        }
        Ok(settings)
    }

    /// Returns the effective values of the keys that are no settings of a session. `profile` is the value of `--profile`.
    pub(super) fn presentation(&self, profile: Option<&str>) -> BTreeMap<&'static str, String> {
        let values = self.settings(profile).values.into_iter();
        values.filter(|(key, _)| field_of(key).is_none()).map(|(key, value)| (key, value.text)).collect()
    }

    /// Returns the effective values of the keys without flags and without the variables of providers.
    pub(super) fn settings(&self, profile: Option<&str>) -> Settings {
        let selected = self.sources(profile).profile();
        let name = selected.as_ref().map(|value| value.text.as_str());
        let mut layers = self.layers(name);
        if profile.is_some() {
            layers.iter_mut().for_each(|layer| layer.spec.clear("model.profile"));
        }
        // Only the values of clients have problems.
        let origins = merge(layers).map(|resolved| resolved.origins).unwrap_or_default();
        let mut values = Values::new();
        for (key, value) in self.values(name).into_iter().flat_map(|(_, values)| values) {
            let row = field_of(key);
            // A key that is no setting of a session has the value of the strongest source.
            let is_effective = row.is_none_or(|row| {
                origins.get(row.path).is_some_and(|of| of.contains(&ValueOrigin::from(&value.source)))
            });
            if is_effective {
                values.insert(key, value);
            }
        }
        Settings { values, profile: selected }
    }
}

/// Returns the field that a key sets; `None` for a key that is no setting of a session.
fn field_of(key: &str) -> Option<&'static FieldRow> {
    FIELDS.iter().find(|row| row.key == Some(key))
}

/// Returns the layer of the values of a source. Keys that are no settings of a session are left out.
fn layer(kind: Layer, values: &Values) -> LayerSpec {
    let mut layer = LayerSpec::new(kind, PartialSpec::default(), ValueOrigin::Default);
    for (key, value) in values {
        if let Some(row) = field_of(key) {
            set(&mut layer.spec, key, &value.text);
            layer = layer.with_origin(row.path, ValueOrigin::from(&value.source));
        }
    }
    layer
}

/// Sets the field of a key. `text` is a value of the key.
fn set(spec: &mut PartialSpec, key: &str, text: &str) {
    let owned = || Some(text.to_owned());
    let count = || text.parse().ok().map(CountLimit);
    let is_on = Some(text == "true");
    match key {
        "provider" => spec.model.provider = owned(),
        "model" => spec.model.name = owned(),
        keys::BASE_URL => spec.model.base_url = Some(BaseUrl::new(text)),
        "reasoning_effort" => spec.model.reasoning_effort = owned(),
        keys::PROFILE if keys::is_profile_file(text) => {
            spec.model.profile = Some(ProfileRef::File(text.into()));
        }
        keys::PROFILE => spec.model.profile = Some(ProfileRef::Name(text.to_owned())),
        "timeout" => spec.model.timeout = timeout::parse(text).ok(),
        keys::CATALOG => spec.model.catalog = Some(text.into()),
        "toolset" => {
            spec.tools.toolset = Some(if text == "spec" { Toolset::Spec } else { Toolset::Native });
        }
        "mode" => spec.policy.mode = text.parse().ok(),
        "after_plan" => spec.policy.after_plan = text.parse().ok(),
        "sandbox" => spec.environment.sandbox = text.parse().ok(),
        "network" => spec.environment.network = text.parse().ok(),
        "confine" => spec.environment.confine = is_on,
        "read_before_write" => spec.policy.read_before_write = is_on,
        "wait_approval" => spec.policy.wait_approval = is_on,
        "max_turns" => spec.limits.max_turns = count(),
        "max_tool_rounds" => spec.limits.max_tool_rounds = count(),
        "compact_at" => spec.limits.compact_at = text.parse().ok(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::ValueKind;

    /// Returns a value of a kind.
    fn sample(kind: ValueKind) -> &'static str {
        match kind {
            ValueKind::Text | ValueKind::Path | ValueKind::Profile | ValueKind::Rule => "x",
            ValueKind::Url => "http://h",
            ValueKind::Choice(names) => names[0],
            ValueKind::Count | ValueKind::Percent => "7",
            ValueKind::Time => "9s",
            ValueKind::Switch => "true",
            ValueKind::Network => "{\"allow\": [\"h\"]}",
            ValueKind::Structure => panic!("a key has no parts"),
        }
    }

    #[test]
    fn each_key_sets_its_field() {
        for row in FIELDS {
            let Some(key) = row.key else { continue };
            let mut spec = PartialSpec::default();
            set(&mut spec, key, sample(row.kind));
            assert_eq!(spec.set_paths(), [row.path], "{key}");
        }
    }

    #[test]
    fn other_keys_belong_to_the_terminal() {
        let others = keys::all().filter(|key| FieldRow::find(key.row.path).is_none());
        assert_eq!(others.map(|key| key.name).collect::<Vec<_>>(), ["plain", "notify", "title", "theme"]);
    }
}
