//! Model selected by the command line: its client, its route, and the scripted server behind it, if any.

use std::borrow::Cow;
use std::path::Path;

use pintle_agent::{ProviderProfile, Toolset, ToolsetOptions};
use pintle_llm::{Catalog, Client, ModelInfo};
use pintle_testkit::{Script, ScriptedServer, ServerOptions};

use crate::args::ModelArgs;
use crate::console;
use crate::failure::{Failure, OrFailure as _};
use crate::models;
use crate::no_key;
use crate::process_env::{self, ProcessEnv};
use crate::profile_file::ProfileFile;
use crate::provider::Provider;
use crate::route::{ModelSource, Route};

/// Model name for a script when neither the script nor the catalog provides one.
const SCRIPTED_MODEL: &str = "scripted";

/// Model with a client to call it.
#[derive(Debug)]
pub(crate) struct Model {
    /// Client with a single provider.
    pub(crate) client: Client,
    /// Route to the model.
    pub(crate) route: Route,
    /// The `--profile` file and its profile for this model with all tools.
    custom: Option<(ProfileFile, ProviderProfile)>,
    catalog: Cow<'static, Catalog>,
    /// Shuts down when dropped.
    server: Option<ScriptedServer>,
}

/// Name of a model at the provider of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedModel {
    pub(crate) name: String,
    /// Warning for a model that the catalog does not contain.
    pub(crate) warning: Option<String>,
}

impl Model {
    /// Selects a model from flags and environment variables.
    ///
    /// # Errors
    ///
    /// The errors of [`ModelSource::choose`], and usage failures for an invalid profile, catalog or script.
    pub(crate) async fn from_args(args: &ModelArgs, process_env: &ProcessEnv) -> Result<Self, Failure> {
        let file = args.profile.as_deref().map(ProfileFile::read).transpose()?;
        let filled = file.as_ref().map(|file| file.fill(args)).transpose()?;
        let mut model = Self::select(filled.as_ref().unwrap_or(args), process_env).await?;
        if let Some(file) = file {
            let profile = file.with_all_tools(Some(&model.route.model), &model.catalog)?;
            model.custom = Some((file, profile));
        }
        Ok(model)
    }

    async fn select(args: &ModelArgs, process_env: &ProcessEnv) -> Result<Self, Failure> {
        let catalog = models::catalog(&args.catalog, process_env)?;
        let source = ModelSource::choose(args, &catalog, process_env, &no_key::PORTS).await?;
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
                let mut script = read_script(&file)?;
                script.model = model.or(script.model);
                let script_dialect = script.dialect.map(Provider::from_dialect);
                let scripted =
                    Self::scripted(script, dialect.or(script_dialect).unwrap_or(Provider::OpenAi)).await?;
                Ok(Self { catalog, ..scripted })
            }
        }
    }

    /// Serves a script on loopback and returns a model that is called over HTTP like any other.
    ///
    /// # Errors
    ///
    /// A failure if the server cannot bind a port.
    pub(crate) async fn scripted(script: Script, provider: Provider) -> Result<Self, Failure> {
        let model = script.model.clone().or_else(|| provider.default_model().map(str::to_owned));
        let model = model.unwrap_or_else(|| SCRIPTED_MODEL.to_owned());
        let server = ScriptedServer::start(script, ServerOptions::new())
            .await
            .or_failed("cannot start the scripted server")?;
        let route = Route::to_script(provider, model, server.base_url(provider.dialect()));
        let client = route.client(Client::builder())?;
        let catalog = Cow::Borrowed(Catalog::built_in());
        Ok(Self { client, route, custom: None, catalog, server: Some(server) })
    }

    /// Returns the profile with all tools of its toolset.
    pub(crate) fn profile(&self) -> ProviderProfile {
        if let Some((_, profile)) = &self.custom {
            return profile.clone();
        }
        self.route.provider.profile(&self.route.model).with_catalog(&self.catalog)
    }

    /// Returns the toolset of the `--profile` file, or `requested` without one.
    pub(crate) fn toolset(&self, requested: Toolset) -> Toolset {
        self.custom.as_ref().map_or(requested, |(file, _)| file.toolset())
    }

    /// Returns whether the `--profile` file lists its tools.
    pub(crate) fn names_tools(&self) -> bool {
        self.custom.as_ref().is_some_and(|(file, _)| file.names_tools())
    }

    /// Returns the profile with the tools selected by the toolset and the options.
    ///
    /// # Errors
    ///
    /// A usage failure for a `--profile` file that names an unknown tool.
    pub(crate) fn profile_with_tools(
        &self,
        toolset: Toolset,
        options: &ToolsetOptions,
    ) -> Result<ProviderProfile, Failure> {
        match &self.custom {
            Some((file, _)) => file.profile(Some(&self.route.model), &self.catalog, options),
            None => Ok(self.profile().with_toolset_options(toolset, options)),
        }
    }

    /// Returns the model catalog.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns the catalog entry of a model of the same provider, unless the model is scripted.
    pub(crate) fn find(&self, model: &str) -> Option<&ModelInfo> {
        self.catalog.find(self.route.provider.name(), model).filter(|_| self.server.is_none())
    }

    /// Warns of a model that the catalog does not contain and that is sent to the default provider.
    pub(crate) fn warn_if_unknown(&self) {
        if let Some(warning) = self.route.unknown_model(&self.route.model, &self.catalog) {
            console::notice(&warning);
        }
    }

    /// Returns the name that the provider of this session has for another model. A script answers for any model.
    ///
    /// # Errors
    ///
    /// A message with the way out, for a model that the catalog lists for other providers only.
    pub(crate) fn resolve(&self, name: &str) -> Result<ResolvedModel, String> {
        let provider = self.route.provider;
        if let Some(known) = self.find(name) {
            return Ok(ResolvedModel { name: known.id.clone(), warning: None });
        }
        let resolved =
            ResolvedModel { name: name.to_owned(), warning: self.route.unknown_model(name, &self.catalog) };
        if self.server.is_some() {
            return Ok(resolved);
        }
        let serving = Provider::serving(name, &self.catalog);
        match serving.first() {
            Some(other) if !provider.may_serve(&serving) && !self.route.is_gateway() => {
                let keys = other.variables().keys.join(" or ");
                let (other, own) = (other.name(), provider.name());
                Err(format!(
                    "model `{name}` is served by {other}, and this session uses {own}; start a session with \
                     `--provider {other} --model {name}` and a key in {keys}"
                ))
            }
            Some(_) | None => Ok(resolved),
        }
    }

    /// As [`resolve`](Self::resolve), for hosts that list their models: the name must be in the catalog, unless the
    /// catalog has no models of the provider or the session started with it.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve), and for a model that is not listed.
    #[cfg(feature = "server")]
    pub(crate) fn resolve_listed(&self, name: &str) -> Result<String, String> {
        let resolved = self.resolve(name)?.name;
        self.require_listed(name, &self.route.model)?;
        Ok(resolved)
    }

    /// Checks that the catalog contains a model that a client of a host names. It may be missing from a catalog without models
    /// of the provider, and if it is the `default` of the host.
    ///
    /// # Errors
    ///
    /// A message for a model that is not listed.
    #[cfg(feature = "server")]
    pub(crate) fn require_listed(&self, name: &str, default: &str) -> Result<(), String> {
        let provider = self.route.provider.name();
        let is_listed = self.catalog.find(provider, name).is_some();
        if is_listed || name == default || self.catalog.list(Some(provider)).next().is_none() {
            return Ok(());
        }
        Err(format!("there is no model `{name}` of {provider} here: `GET /v1/models` lists the models"))
    }

    /// Returns the catalog entry of a real model, or `None` for an unknown or scripted one.
    pub(crate) fn catalog_entry(&self) -> Option<&ModelInfo> {
        self.find(&self.route.model)
    }
}

/// Reads and validates a script.
///
/// # Errors
///
/// A usage failure with the file, the position and the expected syntax.
pub(crate) fn read_script(path: &Path) -> Result<Script, Failure> {
    let text = process_env::read_text("script", path)?;
    Script::parse(&text)
        .map_err(|error| Failure::usage(format!("invalid script {}", path.display())).caused_by(&error))
}
