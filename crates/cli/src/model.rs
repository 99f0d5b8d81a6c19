//! A model that can be asked: a client, the way to it, and the scripted server if that is what answers.

use std::borrow::Cow;
use std::path::Path;

use pintle_agent::{ProviderProfile, Toolset, ToolsetOptions};
use pintle_llm::{Catalog, Client, ModelInfo};
use pintle_testkit::{Script, ScriptedServer, ServerOptions};

use crate::args::ModelArgs;
use crate::failure::Failure;
use crate::follow::Watch;
use crate::host::{self, Host};
use crate::models;
use crate::profile_file::ProfileFile;
use crate::provider::Provider;
use crate::render::Drafts;
use crate::route::{ModelSource, Route};

/// The model that a script is for when nobody names one and the catalog knows none.
const SCRIPTED_MODEL: &str = "scripted";

/// A model, ready to be asked.
#[derive(Debug)]
pub(crate) struct Model {
    /// Has one provider.
    pub(crate) client: Client,
    /// What can be seen of its answers before they are complete.
    pub(crate) drafts: Drafts,
    /// How it is reached.
    pub(crate) route: Route,
    /// The user's own, and what it gives for this model before tools are chosen.
    own: Option<(ProfileFile, ProviderProfile)>,
    /// What is known of models.
    catalog: Cow<'static, Catalog>,
    /// Serves for as long as it lives.
    server: Option<ScriptedServer>,
}

impl Model {
    /// The one that flags and environment ask for.
    ///
    /// # Errors
    ///
    /// Those of [`ModelSource::choose`], of a profile or a catalog that cannot be used, and of a script that cannot be
    /// followed.
    pub(crate) async fn of(args: &ModelArgs, host: &Host) -> Result<Self, Failure> {
        let file = args.profile.as_deref().map(ProfileFile::read).transpose()?;
        let filled = file.as_ref().map(|file| file.fill(args)).transpose()?;
        let mut model = Self::chosen(filled.as_ref().unwrap_or(args), host).await?;
        if let Some(file) = file {
            let profile = file.with_all_tools(Some(&model.route.model), &model.catalog)?;
            model.own = Some((file, profile));
        }
        Ok(model)
    }

    async fn chosen(args: &ModelArgs, host: &Host) -> Result<Self, Failure> {
        let source = ModelSource::choose(args, |name| host.variable(name))?;
        let catalog = models::catalog(&args.catalog, host)?;
        match source {
            ModelSource::Provider(mut route) => {
                if let Some(known) = catalog.find(route.provider.name(), &route.model) {
                    // An alias is ours: no provider knows it.
                    route.model.clone_from(&known.id);
                }
                let (client, drafts) = watched(&route)?;
                Ok(Self { client, drafts, route, own: None, catalog, server: None })
            }
            ModelSource::Script { file, dialect, model } => {
                let mut script = read_script(&file)?;
                script.model = model.or(script.model);
                let own = script.dialect.map(Provider::of_dialect);
                let scripted = Self::scripted(script, dialect.or(own).unwrap_or(Provider::OpenAi)).await?;
                Ok(Self { catalog, ..scripted })
            }
        }
    }

    /// A script that is served on loopback, and reached over HTTP like any other.
    ///
    /// # Errors
    ///
    /// A failure if no port can be had.
    pub(crate) async fn scripted(script: Script, provider: Provider) -> Result<Self, Failure> {
        let model = script.model.clone().or_else(|| provider.default_model().map(str::to_owned));
        let model = model.unwrap_or_else(|| SCRIPTED_MODEL.to_owned());
        let server = ScriptedServer::start(script, ServerOptions::new())
            .await
            .map_err(|error| Failure::failed("the scripted server cannot be started").because(&error))?;
        let route = Route::to_script(provider, model, server.base_url(provider.dialect()));
        let (client, drafts) = watched(&route)?;
        let catalog = Cow::Borrowed(Catalog::built_in());
        Ok(Self { client, drafts, route, own: None, catalog, server: Some(server) })
    }

    /// Prompt, tools and limits for it, with all tools of the toolset.
    pub(crate) fn profile(&self) -> ProviderProfile {
        if let Some((_, own)) = &self.own {
            return own.clone();
        }
        self.route.provider.profile(&self.route.model).with_catalog(&self.catalog)
    }

    /// The toolset that it is given: a profile of the user's own says which, else it is the one that is asked for.
    pub(crate) fn toolset(&self, asked: Toolset) -> Toolset {
        self.own.as_ref().map_or(asked, |(file, _)| file.toolset())
    }

    /// Whether the user has named the tools, however small the window is.
    pub(crate) fn names_tools(&self) -> bool {
        self.own.as_ref().is_some_and(|(file, _)| file.names_tools())
    }

    /// The profile with the tools of a toolset and those that these options bring.
    ///
    /// # Errors
    ///
    /// As for [`Model::of`].
    pub(crate) fn equipped(
        &self,
        toolset: Toolset,
        options: &ToolsetOptions,
    ) -> Result<ProviderProfile, Failure> {
        match &self.own {
            Some((file, _)) => file.profile(Some(&self.route.model), &self.catalog, options),
            None => Ok(self.profile().with_toolset_options(toolset, options)),
        }
    }

    /// What is known of models, the prices of others included.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Whose prices hold: nobody's for a model that is not in the catalog, and for a script.
    pub(crate) fn priced(&self) -> Option<&ModelInfo> {
        let is_real = self.server.is_none();
        self.catalog.find(self.route.provider.name(), &self.route.model).filter(|_| is_real)
    }
}

/// A client, and what can be seen of the answers that pass through it.
fn watched(route: &Route) -> Result<(Client, Drafts), Failure> {
    let watch = Watch::default();
    let drafts = watch.drafts.clone();
    Ok((route.client(watch)?, drafts))
}

/// Reads and checks a script.
///
/// # Errors
///
/// A usage failure that names file, place and what was expected there.
pub(crate) fn read_script(path: &Path) -> Result<Script, Failure> {
    let text = host::read_text("script", path)?;
    Script::parse(&text)
        .map_err(|error| Failure::usage(format!("cannot follow {}", path.display())).because(&error))
}
