//! Selects a model and its endpoint from flags, environment variables and configured keys.

use std::path::PathBuf;

use pintle_llm::{Catalog, Client, ClientBuilder, Error, error_chain};
use pintle_providers::{AdapterBuilder, Anthropic, Gemini, OpenAi, OpenAiCompatible};

use crate::failure::{Failure, FailureKind};
use crate::keys::{ConfiguredKeys, Secret};
use crate::missing_key;
use crate::named_value::{parse_setting, suggest_name};
use crate::process_env::ProcessEnv;
use crate::provider::{Provider, ProviderName};
use crate::spec::{BaseUrl, ProfileRef, SessionSpec};

/// Source of the base URL and the key of a scripted server.
const SCRIPT: &str = "--script";

/// Key of a scripted server, which accepts any. Providers redact keys of 8 bytes and more in messages, so a longer word
/// would be missing there.
const SCRIPT_KEY: &str = "script";

/// Model and endpoint that a run asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelChoice {
    /// Provider; `None` for the provider of a known model, or the first one with a key.
    pub provider: Option<ProviderName>,
    /// Model name; `None` for the provider's best model.
    pub model: Option<String>,
    /// Base URL of the provider's API.
    pub base_url: Option<BaseUrl>,
    /// Script that answers instead of a provider.
    pub script: Option<PathBuf>,
    /// Wire dialect of the script.
    pub dialect: Option<Provider>,
    /// File with a profile.
    pub profile: Option<PathBuf>,
    /// File of models and prices.
    pub catalog: Option<PathBuf>,
}

impl TryFrom<&SessionSpec> for ModelChoice {
    type Error = Failure;

    /// Fails for an unknown provider or dialect.
    fn try_from(spec: &SessionSpec) -> Result<Self, Failure> {
        let model = &spec.model;
        // The values of a profile with a name are settings themselves.
        let profile = match &model.profile {
            Some(ProfileRef::File(file)) => Some(file.clone()),
            Some(ProfileRef::Name(_)) | None => None,
        };
        Ok(Self {
            provider: model.provider.as_deref().map(parse_setting).transpose()?,
            model: model.name.clone(),
            base_url: model.base_url.clone(),
            script: model.script.clone(),
            dialect: model.dialect.as_deref().map(parse_setting).transpose()?,
            profile,
            catalog: model.catalog.clone(),
        })
    }
}

/// Source of model responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModelSource {
    /// An API provider.
    Provider(Route),
    /// A script served in this process.
    Script {
        /// Path of the script.
        file: PathBuf,
        /// Wire dialect, if given on the command line.
        dialect: Option<Provider>,
        /// Model name, if given on the command line.
        model: Option<String>,
    },
}

/// Endpoint of a model, with credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Provider.
    pub provider: Provider,
    /// Model name.
    pub model: String,
    /// Base URL, or `None` for the provider's default.
    pub base_url: Option<ConfiguredUrl>,
    /// API key, which a local server may not need.
    pub key: Option<ApiKey>,
    /// OpenAI organization, for keys that belong to several.
    pub(crate) organization: Option<String>,
    /// OpenAI project, for keys that belong to several.
    pub project: Option<String>,
    /// Whether the user named the provider.
    pub(crate) is_provider_named: bool,
}

/// Base URL and where it was configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredUrl {
    url: BaseUrl,
    /// Flag or environment variable.
    pub source: &'static str,
}

/// API key and where it is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    secret: Secret,
    /// Environment variable, or another source.
    pub source: &'static str,
}

impl ModelSource {
    /// Selects a source from a choice, environment variables and the keys that the user has configured. Without a provider
    /// in the choice, the catalog decides on the provider of a known model. The command that prints a key runs only
    /// if its provider is selected and no variable has the key. Without any key, it looks for local servers at `ports`.
    ///
    /// A missing key is an authentication failure.
    pub(crate) async fn choose(
        choice: &ModelChoice,
        catalog: &Catalog,
        process_env: &ProcessEnv,
        ports: &[u16],
    ) -> Result<Self, Failure> {
        let lookup = |name: &str| process_env.variable(name);
        if choice.provider == Some(ProviderName::Scripted) {
            return scripted(choice);
        }
        for (flag, given) in [("--script", choice.script.is_some()), ("--dialect", choice.dialect.is_some())]
        {
            if given {
                return Err(Failure::usage(format!("{flag} requires --provider scripted")));
            }
        }
        let provider = provider(choice, catalog, process_env, ports).await?;
        let model = model_or_default(provider, choice.model.as_deref())?;
        let base_url = base_url(provider, choice, lookup)?;
        Ok(Self::Provider(Route {
            provider,
            model,
            base_url,
            key: key(provider, process_env).await?,
            organization: lookup("OPENAI_ORG_ID").filter(|_| provider == Provider::OpenAi),
            project: lookup("OPENAI_PROJECT_ID").filter(|_| provider == Provider::OpenAi),
            is_provider_named: choice.provider.is_some(),
        }))
    }
}

impl Route {
    /// Returns the route to a scripted server, which accepts any key.
    pub fn scripted(provider: Provider, model: String, url: String) -> Self {
        Self {
            provider,
            model,
            base_url: Some(ConfiguredUrl { url: BaseUrl::new(url), source: SCRIPT }),
            key: Some(ApiKey { secret: Secret::new(SCRIPT_KEY), source: SCRIPT }),
            organization: None,
            project: None,
            is_provider_named: false,
        }
    }

    /// Returns whether the user named the provider and a base URL: a gateway serves models of several vendors in one
    /// dialect.
    pub(crate) fn is_gateway(&self) -> bool {
        self.is_provider_named && self.base_url.is_some()
    }

    /// Returns a warning for a model that no provider of the catalog has, if it goes to the default server of a provider
    /// that the user did not name.
    pub fn unknown_model(&self, model: &str, catalog: &Catalog) -> Option<String> {
        let is_chosen = self.is_provider_named || self.base_url.is_some();
        if is_chosen || !Provider::serving(model, catalog).is_empty() {
            return None;
        }
        let known = catalog
            .list(None)
            .flat_map(|known| std::iter::once(&known.id).chain(&known.aliases))
            .map(String::as_str);
        Some(format!(
            "model `{model}` is not in the catalog and is sent to {}; `--provider NAME` selects another provider, and \
             `pintle models` lists the known models{}",
            self.provider.name(),
            suggest_name(model, known)
        ))
    }

    /// Returns the key, unless it belongs to a scripted server and is not secret.
    pub fn secret(&self) -> Option<&Secret> {
        self.key.as_ref().filter(|key| key.source != SCRIPT).map(|key| &key.secret)
    }

    /// Builds a client with this provider alone. Sends nothing.
    pub fn client(&self, builder: ClientBuilder) -> Result<Client, Failure> {
        self.build_client(builder).map_err(|error| {
            let source = self.base_url.as_ref().map_or("the command line", |base_url| base_url.source);
            Failure::usage(format!("{source}: {}", error_chain(&error)))
        })
    }

    fn build_client(&self, client: ClientBuilder) -> Result<Client, Error> {
        let key = self.key.as_ref().map_or("", |key| key.secret.expose());
        let url = self.base_url.as_ref().map(|base_url| base_url.url.as_str());
        let client = client.default_provider(self.provider.name());
        match self.provider {
            Provider::OpenAi => {
                let mut adapter = with_base_url(OpenAi::builder(key), url);
                if let Some(id) = &self.organization {
                    adapter = adapter.with_organization(id);
                }
                if let Some(id) = &self.project {
                    adapter = adapter.with_project(id);
                }
                client.provider(adapter.build()?)
            }
            Provider::Anthropic => client.provider(with_base_url(Anthropic::builder(key), url).build()?),
            Provider::Gemini => client.provider(with_base_url(Gemini::builder(key), url).build()?),
            Provider::OpenAiCompatible => {
                client.provider(OpenAiCompatible::builder(url.unwrap_or_default()).with_api_key(key).build()?)
            }
        }
        .build()
    }
}

impl ConfiguredUrl {
    /// Returns the URL without user, password and query, which may be secret.
    pub fn redacted(&self) -> String {
        self.url.redacted().as_str().to_owned()
    }
}

/// Sets the base URL, if there is one.
fn with_base_url<A>(builder: AdapterBuilder<A>, url: Option<&str>) -> AdapterBuilder<A> {
    match url {
        Some(url) => builder.with_base_url(url),
        None => builder,
    }
}

fn scripted(choice: &ModelChoice) -> Result<ModelSource, Failure> {
    if choice.base_url.is_some() {
        return Err(Failure::usage("--base-url cannot be used with --provider scripted"));
    }
    let file =
        choice.script.clone().ok_or_else(|| Failure::usage("--provider scripted requires --script FILE"))?;
    Ok(ModelSource::Script { file, dialect: choice.dialect, model: choice.model.clone() })
}

async fn provider(
    choice: &ModelChoice,
    catalog: &Catalog,
    process_env: &ProcessEnv,
    ports: &[u16],
) -> Result<Provider, Failure> {
    let model = choice.model.as_deref();
    let serving = model.map_or_else(Vec::new, |model| Provider::serving(model, catalog));
    if let Some(ProviderName::Of(given)) = choice.provider {
        return match (model, serving.first()) {
            (Some(model), Some(other)) if !is_gateway(choice, process_env) && !given.may_serve(&serving) => {
                Err(mismatch(model, *other, given))
            }
            _ => Ok(given),
        };
    }
    let default = default_provider(choice.base_url.is_some(), process_env)?;
    let has_url = choice.base_url.is_some() && !serving.contains(&Provider::OpenAiCompatible);
    if let (Some(model), Some(default), Some(first), true) = (model, default, serving.first(), has_url)
        && !default.may_serve(&serving)
    {
        // The URL may be meant for the provider that is selected by a key.
        return Err(ambiguous_url(model, *first, default));
    }
    match (model, provider_with_key(default, &serving, process_env)?, serving.first()) {
        (_, Some(with_key), _) => Ok(with_key),
        (Some(model), None, Some(serving)) => Err(missing_key_failure(model, *serving, default)),
        _ => Err(missing_key::failure(missing_key::find_local_server(ports).await.as_ref())),
    }
}

/// Returns the provider that is selected for a model of the built-in catalog. Without a key, it is the first one that serves
/// the model, or OpenAI.
pub fn displayed_provider(
    given: Option<Provider>,
    model: Option<&str>,
    process_env: &ProcessEnv,
) -> Result<Provider, Failure> {
    if let Some(given) = given {
        return Ok(given);
    }
    let serving = model.map_or_else(Vec::new, |model| Provider::serving(model, Catalog::built_in()));
    let default = default_provider(false, process_env)?;
    let selected = provider_with_key(default, &serving, process_env)?;
    Ok(selected.or_else(|| serving.first().copied()).unwrap_or(Provider::OpenAi))
}

/// Returns the default provider if it may serve a model of these providers, otherwise the first one of them with a key.
fn provider_with_key(
    default: Option<Provider>,
    serving: &[Provider],
    process_env: &ProcessEnv,
) -> Result<Option<Provider>, Failure> {
    if let Some(default) = default
        && default.may_serve(serving)
    {
        return Ok(Some(default));
    }
    let configured = ConfiguredKeys::read(process_env)?;
    let has_key = |provider: &Provider| {
        *provider == Provider::OpenAiCompatible
            || configured.source_or_variable(*provider, process_env).is_some()
    };
    Ok(serving.iter().copied().find(has_key))
}

/// Returns whether the user named the provider and a base URL.
fn is_gateway(choice: &ModelChoice, process_env: &ProcessEnv) -> bool {
    let Some(ProviderName::Of(given)) = choice.provider else { return false };
    choice.base_url.is_some() || process_env.variable(given.variables().base_url).is_some()
}

/// Returns the first provider with a key, or the compatible server if its flag or variable has a base URL.
fn default_provider(has_url_flag: bool, process_env: &ProcessEnv) -> Result<Option<Provider>, Failure> {
    let lookup = |name: &str| process_env.variable(name);
    if let Some(provider) = Provider::first_with_key(lookup) {
        return Ok(Some(provider));
    }
    let configured = ConfiguredKeys::read(process_env)?;
    if let Some(provider) = Provider::BY_KEY.into_iter().find(|known| configured.source(*known).is_some()) {
        return Ok(Some(provider));
    }
    let compatible = Provider::OpenAiCompatible;
    let has_url = has_url_flag || lookup(compatible.variables().base_url).is_some();
    Ok(has_url.then_some(compatible))
}

/// Returns the failure for a model of a provider other than the given one.
fn mismatch(model: &str, serving: Provider, given: Provider) -> Failure {
    let (name, other) = (serving.name(), given.name());
    Failure::usage(format!("model `{model}` is served by {name}, not by {other}"))
        .with_hint(&format!("use `--provider {name}`, or --base-url for a gateway that serves it as {other}"))
}

/// Returns the failure for a base URL that may belong to either provider.
fn ambiguous_url(model: &str, serving: Provider, default: Provider) -> Failure {
    let (serving, default) = (serving.name(), default.name());
    Failure::usage(format!(
        "model `{model}` is served by {serving}, and --base-url may be meant for {default}"
    ))
    .with_hint(&format!("name the provider of the URL: `--provider {serving}` or `--provider {default}`"))
}

/// Returns the failure for a model whose provider has no key, although another one has.
fn missing_key_failure(model: &str, serving: Provider, other: Option<Provider>) -> Failure {
    let name = serving.name();
    let failure = Failure::new(
        FailureKind::Credentials,
        format!("model `{model}` is served by {name}, and there is no API key for {name}"),
    )
    .with_hint(&key_remedy(serving));
    match other {
        Some(other) => {
            let other = other.name();
            failure.with_hint(&format!(
                "a gateway that serves it as {other} needs `--provider {other}` and a base URL"
            ))
        }
        None => failure,
    }
}

/// Returns how the user provides a key of a provider.
pub(crate) fn key_remedy(provider: Provider) -> String {
    format!("set {}, or `pintle login {}`", provider.variables().keys.join(" or "), provider.name())
}

/// Returns the given model, or the default one of the provider.
pub fn model_or_default(provider: Provider, named: Option<&str>) -> Result<String, Failure> {
    let model = named.or_else(|| provider.default_model());
    model.map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!("{} has no default model", provider.name())).with_hint("set one with --model")
    })
}

fn base_url(
    provider: Provider,
    choice: &ModelChoice,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Option<ConfiguredUrl>, Failure> {
    if let Some(url) = &choice.base_url {
        return Ok(Some(ConfiguredUrl { url: url.clone(), source: "--base-url" }));
    }
    let variable = provider.variables().base_url;
    match lookup(variable) {
        Some(url) => Ok(Some(ConfiguredUrl { url: BaseUrl::new(url), source: variable })),
        None if provider == Provider::OpenAiCompatible => Err(Failure::usage(format!(
            "{} requires --base-url or {variable}, such as http://127.0.0.1:8080/v1",
            provider.name()
        ))),
        None => Ok(None),
    }
}

async fn key(provider: Provider, process_env: &ProcessEnv) -> Result<Option<ApiKey>, Failure> {
    let names = provider.variables().keys;
    let in_variable = names.iter().find_map(|name| Some((Secret::new(process_env.variable(name)?), *name)));
    let key = match in_variable {
        Some(key) => Some(key),
        None => ConfiguredKeys::read(process_env)?.key(provider, process_env).await?,
    };
    match key {
        Some((secret, source)) if !secret.expose().bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(Failure::new(
                FailureKind::Credentials,
                format!("the key in {source} contains a space, a line break or another invalid character"),
            )
            .with_hint("check its value"))
        }
        Some((secret, source)) => Ok(Some(ApiKey { secret, source })),
        None if provider == Provider::OpenAiCompatible => Ok(None),
        None => Err(Failure::new(FailureKind::Credentials, format!("no API key for {}", provider.name()))
            .with_hint(&key_remedy(provider))
            .with_hint("`pintle demo` works without one, and needs cargo in PATH")),
    }
}

#[cfg(test)]
mod tests;
