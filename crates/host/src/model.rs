//! Model selected by the command line: its client, its route, and the server of its script, if it has one.

use std::borrow::Cow;

use pintle_agent::{ProviderProfile, Toolset, ToolsetOptions};
use pintle_llm::{Catalog, Client, ModelInfo};

use crate::failure::Failure;
use crate::missing_key;
use crate::model_catalog;
use crate::notice::Notice;
use crate::process_env::ProcessEnv;
use crate::profile_file::ProfileFile;
use crate::provider::Provider;
use crate::route::{ModelChoice, ModelSource, Route, key_remedy};
use crate::scripted_models::{ScriptServer, ScriptedModel};

/// Model name for a script when neither the script nor the catalog provides one.
const SCRIPTED_MODEL: &str = "scripted";

/// Prefixes of model names, before a slash, that are not providers: resource types of Gemini's API.
const GEMINI_RESOURCES: [&str; 2] = ["models", "tunedModels"];

/// Model with a client to call it.
#[derive(Debug)]
pub struct Model {
    /// Client with a single provider.
    pub client: Client,
    /// Route to the model.
    pub route: Route,
    /// The `--profile` file and its profile for this model with all tools.
    custom: Option<(ProfileFile, ProviderProfile)>,
    catalog: Cow<'static, Catalog>,
    /// Server of the script, if one answers.
    server: Option<ScriptServer>,
}

/// Name of a model at the provider of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedModel {
    /// Name at the provider.
    pub name: String,
    /// Warning for a model that the catalog does not contain.
    pub warning: Option<String>,
}

impl Model {
    /// Selects a model from a choice and environment variables.
    pub async fn choose(choice: &ModelChoice, process_env: &ProcessEnv) -> Result<Self, Failure> {
        let file = choice.profile.as_deref().map(ProfileFile::read).transpose()?;
        let filled = file.as_ref().map(|file| file.fill(choice)).transpose()?;
        let mut model = Self::select(filled.as_ref().unwrap_or(choice), process_env).await?;
        if let Some(file) = file {
            let profile = file.with_all_tools(Some(&model.route.model), &model.catalog)?;
            model.custom = Some((file, profile));
        }
        Ok(model)
    }

    async fn select(choice: &ModelChoice, process_env: &ProcessEnv) -> Result<Self, Failure> {
        let catalog = model_catalog::load(choice.catalog.as_deref(), process_env)?;
        let source = ModelSource::choose(choice, &catalog, process_env, &missing_key::PORTS).await?;
        match source {
            ModelSource::Provider(mut route) => {
                if let Some(known) = catalog.find(route.provider.name(), &route.model) {
                    // Providers do not know the aliases of the catalog.
                    route.model.clone_from(&known.id);
                }
                let client = route.client(Client::builder())?;
                Ok(Self { client, route, custom: None, catalog, server: None })
            }
            ModelSource::Script { file, dialect, model } => {
                let scripted = process_env.scripted_models()?.start(&file, dialect, model).await?;
                Ok(Self { catalog, ..Self::scripted(scripted)? })
            }
        }
    }

    /// Returns a model whose answers come from a script.
    pub fn scripted(scripted: ScriptedModel) -> Result<Self, Failure> {
        let ScriptedModel { provider, model, base_url, server } = scripted;
        let model = model.or_else(|| provider.default_model().map(str::to_owned));
        let model = model.unwrap_or_else(|| SCRIPTED_MODEL.to_owned());
        let route = Route::scripted(provider, model, base_url);
        let client = route.client(Client::builder())?;
        let catalog = Cow::Borrowed(Catalog::built_in());
        Ok(Self { client, route, custom: None, catalog, server: Some(server) })
    }

    /// Returns the profile with all tools of its toolset.
    pub fn profile(&self) -> ProviderProfile {
        let profile = match &self.custom {
            Some((_, profile)) => profile.clone(),
            None => self.route.provider.profile(&self.route.model).with_catalog(&self.catalog),
        };
        self.without_scripted_prices(profile)
    }

    /// Returns the profile without prices if the model is scripted: a script costs nothing, whatever model it names.
    fn without_scripted_prices(&self, profile: ProviderProfile) -> ProviderProfile {
        if self.is_scripted() { profile.without_prices() } else { profile }
    }

    /// Returns whether a script answers instead of a model.
    pub fn is_scripted(&self) -> bool {
        self.server.is_some()
    }

    /// Returns the toolset of the `--profile` file, or `requested` without one.
    pub fn toolset(&self, requested: Toolset) -> Toolset {
        self.custom.as_ref().map_or(requested, |(file, _)| file.toolset())
    }

    /// Returns whether the `--profile` file lists its tools.
    pub fn names_tools(&self) -> bool {
        self.custom.as_ref().is_some_and(|(file, _)| file.names_tools())
    }

    /// Returns the profile with the tools selected by the toolset and the options.
    pub(crate) fn profile_with_tools(
        &self,
        toolset: Toolset,
        options: &ToolsetOptions,
    ) -> Result<ProviderProfile, Failure> {
        match &self.custom {
            Some((file, _)) => {
                let profile = file.profile(Some(&self.route.model), &self.catalog, options)?;
                Ok(self.without_scripted_prices(profile))
            }
            None => Ok(self.profile().with_toolset_options(toolset, options)),
        }
    }

    /// Returns the model catalog.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns the catalog entry of a model of the same provider, unless the model is scripted.
    pub fn find(&self, model: &str) -> Option<&ModelInfo> {
        self.catalog.find(self.route.provider.name(), model).filter(|_| !self.is_scripted())
    }

    /// Returns a notice about a model that the catalog does not contain and that is sent to the default provider.
    pub fn unknown_model(&self) -> Option<Notice> {
        self.route.unknown_model(&self.route.model, &self.catalog).map(Notice::from)
    }

    /// Returns the name that the provider of this session has for another model. A script answers for any model.
    ///
    /// Fails with a remedy for a model that the catalog lists for other providers only, and for one whose name begins
    /// with another provider.
    pub fn resolve(&self, name: &str) -> Result<ResolvedModel, String> {
        let provider = self.route.provider;
        if let Some(known) = self.find(name) {
            return Ok(ResolvedModel { name: known.id.clone(), warning: None });
        }
        let resolved =
            ResolvedModel { name: name.to_owned(), warning: self.route.unknown_model(name, &self.catalog) };
        if self.is_scripted() {
            return Ok(resolved);
        }
        let serving = Provider::serving(name, &self.catalog);
        if let Some(other) = serving.first()
            && !provider.may_serve(&serving)
            && !self.route.is_gateway()
        {
            return Err(served_elsewhere(name, *other, provider));
        }
        // Model names of other servers may contain slashes.
        let is_server_of_vendor = self.route.base_url.is_none() && provider != Provider::OpenAiCompatible;
        match name.split_once('/').filter(|_| is_server_of_vendor && serving.is_empty()) {
            Some((prefix, rest)) => match prefix.to_ascii_lowercase().parse::<Provider>() {
                Ok(other) if other != provider => Err(served_elsewhere(rest, other, provider)),
                Ok(_) => Ok(resolved),
                Err(_) if GEMINI_RESOURCES.contains(&prefix) => Ok(resolved),
                Err(_) => {
                    Ok(ResolvedModel { warning: Some(unknown_provider(name, prefix, provider)), ..resolved })
                }
            },
            None => Ok(resolved),
        }
    }

    /// As [`resolve`](Self::resolve), for hosts that list their models: the name must be in the catalog, unless the
    /// catalog has no models of the provider or the session started with it.
    pub fn resolve_listed(&self, name: &str) -> Result<String, String> {
        let resolved = self.resolve(name)?.name;
        self.require_listed(name, &self.route.model)?;
        Ok(resolved)
    }

    /// Checks that the catalog contains a model that a client of a host names. It may be missing from a catalog without models
    /// of the provider, and if it is the `default` of the host.
    pub fn require_listed(&self, name: &str, default: &str) -> Result<(), String> {
        let provider = self.route.provider.name();
        let is_listed = self.catalog.find(provider, name).is_some();
        if is_listed || name == default || self.catalog.list(Some(provider)).next().is_none() {
            return Ok(());
        }
        Err(format!("there is no model `{name}` of {provider} here: `GET /v1/models` lists the models"))
    }

    /// Returns the catalog entry of a real model, or `None` for an unknown or scripted one.
    pub fn catalog_entry(&self) -> Option<&ModelInfo> {
        self.find(&self.route.model)
    }
}

/// Returns the message for a model of another provider than the session's.
fn served_elsewhere(name: &str, other: Provider, own: Provider) -> String {
    let remedy = key_remedy(other);
    let url = if other == Provider::OpenAiCompatible { " --base-url URL" } else { "" };
    let (other, own) = (other.name(), own.name());
    format!(
        "model `{name}` is served by {other}, and this session uses {own}; {remedy}, and start a session with \
         `--provider {other}{url} --model {name}`"
    )
}

/// Returns the warning for a model whose name begins with an unknown provider.
fn unknown_provider(name: &str, prefix: &str, own: Provider) -> String {
    let providers = Provider::ALL.map(Provider::name);
    format!(
        "there is no provider `{prefix}`, so model `{name}` is sent to {}; the providers are {}, and a session with \
         `--provider openai-compatible --base-url URL` uses the server of another one",
        own.name(),
        providers.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use async_trait::async_trait;

    use super::*;
    use crate::provider::ProviderName;
    use crate::scripted_models::ScriptedModels;

    /// Scripted models without a server.
    #[derive(Debug)]
    struct FakeModels;

    #[async_trait]
    impl ScriptedModels for FakeModels {
        async fn start(
            &self,
            file: &Path,
            provider: Option<Provider>,
            model: Option<String>,
        ) -> Result<ScriptedModel, Failure> {
            let base_url = format!("http://127.0.0.1:1/{}", file.display());
            let provider = provider.unwrap_or(Provider::OpenAiCompatible);
            Ok(ScriptedModel { provider, model, base_url, server: Box::new(()) })
        }
    }

    #[tokio::test]
    async fn script_answers_through_the_scripted_models_of_the_process() {
        let args = |dialect, model: Option<&str>| ModelChoice {
            provider: Some(ProviderName::Scripted),
            script: Some(PathBuf::from("s.toml")),
            dialect,
            model: model.map(str::to_owned),
            ..ModelChoice::default()
        };
        let process_env = ProcessEnv::from_variables([]);
        let failure = Model::choose(&args(None, None), &process_env).await.unwrap_err();
        assert_eq!(failure.message(), "no scripted models are available");
        let process_env = process_env.with_scripted_models(FakeModels);
        let default = Provider::Gemini.default_model().unwrap();
        for (dialect, model, provider, expected) in [
            (Some(Provider::Gemini), Some("m"), Provider::Gemini, "m"),
            (Some(Provider::Gemini), None, Provider::Gemini, default),
            (None, None, Provider::OpenAiCompatible, SCRIPTED_MODEL),
        ] {
            let model = Model::choose(&args(dialect, model), &process_env).await.unwrap();
            assert!(model.is_scripted());
            assert_eq!((model.route.provider, model.route.model.as_str()), (provider, expected));
            let base_url = model.route.base_url.map(|base_url| base_url.redacted());
            assert_eq!(base_url.as_deref(), Some("http://127.0.0.1:1/s.toml"));
        }
    }

    fn model(provider: Provider) -> Model {
        let scripted = Route::scripted(provider, "m".to_owned(), "http://127.0.0.1:1".to_owned());
        let route = Route { base_url: None, is_provider_named: true, ..scripted };
        let client = route.client(Client::builder()).unwrap();
        let catalog = Cow::Borrowed(Catalog::built_in());
        Model { client, route, custom: None, catalog, server: None }
    }

    #[test]
    fn models_of_other_providers_are_refused_with_the_way_to_a_key() {
        let claude = Provider::Anthropic.default_model().unwrap();
        for (name, expected) in [
            (
                claude.to_owned(),
                format!(
                    "set ANTHROPIC_API_KEY, or `pintle login anthropic`, and start a session with `--provider anthropic --model {claude}`"
                ),
            ),
            (
                "gemini/new".to_owned(),
                "set GEMINI_API_KEY or GOOGLE_API_KEY, or `pintle login gemini`, and start a session with `--provider gemini --model new`".to_owned(),
            ),
        ] {
            let problem = model(Provider::OpenAi).resolve(&name).unwrap_err();
            assert!(problem.ends_with(&expected), "{name}: {problem}");
        }
        assert_eq!(model(Provider::Anthropic).resolve(claude).unwrap().warning, None);
    }

    #[test]
    fn an_unknown_model_of_the_default_provider_is_a_notice() {
        let mut model = model(Provider::OpenAi);
        model.route.model = "no-such-model".to_owned();
        assert_eq!(model.unknown_model(), None, "the provider is named");
        model.route.is_provider_named = false;
        let notice = model.unknown_model().unwrap();
        assert!(notice.text().starts_with("model `no-such-model` is not in the catalog"), "{notice:?}");
    }

    #[test]
    fn an_unknown_provider_is_a_warning_with_the_providers() {
        let resolved = model(Provider::OpenAi).resolve("groq/new").unwrap();
        assert_eq!(resolved.name, "groq/new");
        let warning = resolved.warning.unwrap();
        assert!(warning.starts_with("there is no provider `groq`"), "{warning}");
        assert!(warning.contains("openai, anthropic, gemini, openai-compatible"), "{warning}");
        for name in ["models/new", "new"] {
            assert_eq!(model(Provider::Gemini).resolve(name).unwrap().warning, None, "{name}");
        }
    }
}
