//! The configuration and the flags of a session as layers of its settings.

use pintle_agent::Toolset;
use pintle_host::{
    BaseUrl, BoundedValue, CountLimit, FIELDS, FieldRow, KeptSpec, Layer, LayerSpec, Origin, PartialSpec,
    ProfileRef, merge,
};

use super::load::Configuration;
use super::settings::{self, Settings, Source, Value};
use super::{require_file, url_variable};
use crate::args::RunArgs;
use crate::config_file::keys;
use crate::failure::{Failure, OrFailure as _};
use crate::process_env::ProcessEnv;
use crate::provider::{Provider, ProviderName};
use crate::sessions::Flags;
use crate::timeout;

/// Path of the field for the base URL.
const BASE_URL: &str = "model.base_url";

/// Returns the layers of a session: the configuration, the flags that it remembers, and the flags that were typed. The
/// remembered flags do not have those that the typed flags replace.
pub(super) fn of_session(
    args: &RunArgs,
    remembered: &Flags,
    loaded: &Configuration,
    process_env: &ProcessEnv,
) -> Result<Vec<LayerSpec>, Failure> {
    let sources = loaded.sources(None);
    let profiles = sources.profiles();
    let typed = args.layer(&profiles)?;
    let mut kept = remembered_layer(remembered)?;
    let flag = selected_profile(args, remembered);
    if let Some(name) = flag.as_deref().filter(|name| !profiles.contains(name)) {
        require_file(name, loaded)?;
        if kept.spec.model.profile.is_some() {
            kept.spec.model.profile = Some(ProfileRef::File(name.into()));
        }
    }
    let (profile, _) = loaded.sources(flag.as_deref()).profile();
    let mut layers = loaded.layers(profile.as_ref().map(|value| value.text.as_str()));
    if flag.is_some() {
        layers.iter_mut().for_each(|layer| layer.spec.clear("model.profile"));
    }
    let provider = typed.spec.model.provider.as_deref().or(kept.spec.model.provider.as_deref());
    let provider = provider.and_then(|name| name.parse().ok());
    hide_weaker_urls(&mut layers, provider, process_env);
    layers.extend([kept, typed]);
    Ok(layers)
}

/// Returns the flags among words such as `--mode=plan`.
pub(super) fn flags_of(words: &[String]) -> Flags {
    let mut flags = Flags::new();
    for word in words.iter().filter_map(|word| word.strip_prefix("--")) {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        flags.entry(name.to_owned()).or_default().extend(value.map(str::to_owned));
    }
    flags
}

/// Returns the value of `--profile`, typed or remembered.
pub(super) fn selected_profile(args: &RunArgs, remembered: &Flags) -> Option<String> {
    let typed = args.model.profile.as_ref().map(|path| path.to_string_lossy().into_owned());
    typed.or_else(|| remembered.get("profile")?.first().cloned())
}

/// Returns the layer of the flags that a session remembers.
pub(super) fn remembered_layer(flags: &Flags) -> Result<LayerSpec, Failure> {
    let kept = KeptSpec::from_flags(flags, None).or_usage("cannot continue the session")?;
    Ok(kept.into_layer())
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

impl Configuration {
    /// Returns the layers of the files and of the variables. `profile` is the name of the selected profile.
    pub(super) fn layers(&self, profile: Option<&str>) -> Vec<LayerSpec> {
        self.values(profile).into_iter().map(|(kind, values)| layer(kind, &values)).collect()
    }

    /// Returns the values of the files and of the variables by layer.
    fn values(&self, profile: Option<&str>) -> Vec<(Layer, settings::Layer)> {
        let trusted = self.is_project_trusted;
        let files = [
            (&self.user, Layer::User, Layer::UserProfile),
            (&self.project, Layer::Project { trusted }, Layer::ProjectProfile { trusted }),
        ];
        let mut layers = Vec::new();
        for (file, of_file, of_profile) in files {
            layers.push((of_file, settings::layer(file, None, &file.settings)));
            if let Some((name, values)) = profile.and_then(|name| file.profiles.get_key_value(name)) {
                layers.push((of_profile, settings::layer(file, Some(name), values)));
            }
        }
        layers.push((Layer::Variables, self.variables.clone()));
        layers
    }

    /// Replaces values that exceed a limit of the user by the limit. Returns what was replaced.
    pub(super) fn limit(&self, settings: &mut Settings) -> Vec<BoundedValue> {
        let profile = settings.profile.as_ref().map(|value| value.text.as_str());
        let (layers, values) = (self.layers(profile), self.values(profile));
        // Only the values of clients have problems.
        let mut bounded = merge(layers).map(|resolved| resolved.bounded).unwrap_or_default();
        bounded.retain(|bounded| {
            let Some(key) = FieldRow::find(bounded.path).and_then(|row| row.key) else { return false };
            let is_of = |value: &&Value, origin: &Origin| Origin::from(&value.source) == *origin;
            let shown = settings.values.get(key).is_some_and(|value| is_of(&value, &bounded.origin));
            let mut limits = values.iter().filter_map(|(_, values)| values.get(key));
            match limits.find(|value| is_of(value, &bounded.limit)) {
                Some(limit) if shown => settings.values.insert(key, limit.clone()).is_some(),
                Some(_) | None => false,
            }
        });
        bounded
    }
}

/// Returns the layer of the values of a source. Keys that are no settings of a session are left out.
fn layer(kind: Layer, values: &settings::Layer) -> LayerSpec {
    let mut layer = LayerSpec::new(kind, PartialSpec::default(), Origin::Default);
    for (key, value) in values {
        if let Some(row) = FIELDS.iter().find(|row| row.key == Some(*key)) {
            set(&mut layer.spec, key, &value.text);
            layer = layer.with_origin(row.path, Origin::from(&value.source));
        }
    }
    layer
}

impl From<&Source> for Origin {
    fn from(source: &Source) -> Self {
        match source {
            Source::File { name, line, profile } => {
                Self::File { name: name.clone(), line: *line, profile: profile.clone() }
            }
            Source::Variable(name) => Self::Variable(name.clone()),
            Source::Flag(flag) => Self::Flag(flag.clone()),
        }
    }
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
    use pintle_host::ValueKind;

    use super::*;

    /// Returns a value of a kind.
    fn sample(kind: ValueKind) -> &'static str {
        match kind {
            ValueKind::Text | ValueKind::Path | ValueKind::Profile | ValueKind::Rule => "x",
            ValueKind::Url => "http://h",
            ValueKind::Choice(names) => names[0],
            ValueKind::Count | ValueKind::Percent => "7",
            ValueKind::Time => "9s",
            ValueKind::Switch => "true",
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
