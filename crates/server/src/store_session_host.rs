//! Opens the sessions of a store for applications that configure sessions in code.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pintle_agent::{Principal, SessionBuilder, SessionHandle, SessionId, Timestamp};
use pintle_llm::{Catalog, Money, ReasoningEffort, Usage};
use pintle_store::{
    ForkError, SessionStore, StoreError, StoredFork, StoredJournal, StoredSession, Summary, delete_tree, fork,
};

use crate::damage::damage_or;
use crate::host::{
    HostError, ModelSummary, NewRules, NewSession, OpenSession, SessionControls, SessionHost,
    SessionSettings, SettingsChange,
};

/// Property with the model that the client selected for a new session.
const MODEL: &str = "model";

/// Property with the reasoning effort that the client selected for a new session.
const EFFORT: &str = "effort";

/// Properties of a session's own progress, which a fork does not inherit.
const PROGRESS: [&str; 4] = [
    StoredJournal::STATE,
    StoredJournal::PENDING_APPROVALS,
    StoredJournal::COST_MICROS,
    StoredJournal::TOKENS,
];

type BoxError = Box<dyn Error + Send + Sync>;

type BuildSession = dyn Fn(&Summary) -> Result<SessionBuilder, BoxError> + Send + Sync;

/// Opens the sessions of a store, which the application configures with a function.
///
/// The function receives the summary of each session that is created or opened: its id and its properties, of which `tenant` is
/// the tenant of the client. It returns a builder with the model, the environment, the tools and the gates. The host adds the
/// id, the record and the journal.
///
/// Clients select one of [`with_models`](Self::with_models) and the reasoning effort. Directory, environment, rules and mode are
/// decided by the application. The settings of a new session are kept in its summary. Later changes last until the server
/// closes the session.
#[derive(Clone)]
pub struct StoreSessionHost {
    store: Arc<dyn SessionStore>,
    build: Arc<BuildSession>,
    models: Vec<ModelSummary>,
    catalog: Option<Arc<Catalog>>,
}

impl fmt::Debug for StoreSessionHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreSessionHost").field("models", &self.models).finish_non_exhaustive()
    }
}

impl StoreSessionHost {
    /// Creates a host for the sessions of a store. `build` configures each session. Its error is the operator's; clients
    /// get the status 500.
    #[must_use]
    pub fn new<F, E>(store: Arc<dyn SessionStore>, build: F) -> Self
    where
        F: Fn(&Summary) -> Result<SessionBuilder, E> + Send + Sync + 'static,
        E: Into<BoxError>,
    {
        let build = Arc::new(move |summary: &Summary| -> Result<SessionBuilder, BoxError> {
            build(summary).map_err(Into::into)
        });
        Self { store, build, models: Vec::new(), catalog: None }
    }

    /// Sets the models that clients can select for a session. Default: none.
    #[must_use]
    pub fn with_models(mut self, models: impl IntoIterator<Item = ModelSummary>) -> Self {
        self.models = models.into_iter().collect();
        self
    }

    /// Sets the catalog with the prices of models. Default: all prices are unknown.
    #[must_use]
    pub fn with_catalog(mut self, catalog: Catalog) -> Self {
        self.catalog = Some(Arc::new(catalog));
        self
    }

    /// Returns the builder of a session, with the settings in its summary.
    fn configure(&self, summary: &Summary) -> Result<(SessionBuilder, SessionSettings), HostError> {
        let built = (self.build)(summary);
        let mut builder =
            built.map_err(|error| HostError::failed("the session cannot be configured", error))?;
        let mut settings = self.settings_of(summary);
        settings.directory = Some(builder.environment().working_directory().display().to_string());
        if let Some(model) = &settings.model {
            builder = builder.with_model(model.clone());
        }
        if let Some(effort) = &settings.effort {
            let effort = ReasoningEffort::from(effort.clone());
            let config = builder.config().clone().with_reasoning_effort(Some(effort));
            builder = builder.with_config(config);
        }
        Ok((builder, settings))
    }

    /// Builds a session that is connected to the store.
    fn start(&self, builder: SessionBuilder, settings: SessionSettings) -> Result<OpenSession, HostError> {
        #[expect(clippy::disallowed_methods, reason = "the application has configured the session")]
        let session =
            builder.build().map_err(|error| HostError::failed("the session cannot be opened", error))?;
        let controls = StoreSessionControls {
            handle: session.handle(),
            models: self.models.clone(),
            settings: Mutex::new(settings),
        };
        Ok(OpenSession::new(session, Arc::new(controls)))
    }

    async fn find(&self, id: &SessionId) -> Result<Summary, HostError> {
        let summary = self.store.summary(id).await.map_err(store_error)?;
        summary.filter(Summary::is_session).ok_or_else(|| HostError::NotFound(id.clone()))
    }
}

#[async_trait]
impl SessionHost for StoreSessionHost {
    async fn create(&self, id: SessionId, request: NewSession) -> Result<OpenSession, HostError> {
        let NewSession { directory, environment, rules, grant, settings, properties, .. } = request;
        for (name, is_set) in [
            ("directory", directory.is_some()),
            ("environment", environment.is_some()),
            ("rules", rules != NewRules::default()),
            ("grant", grant.is_some()),
        ] {
            if is_set {
                return Err(HostError::Invalid(format!("{name}: the application decides it here")));
            }
        }
        require_supported(&settings, &self.models)?;
        let mut summary = Summary::new(id, Timestamp::now());
        summary.properties = properties;
        let SettingsChange { model, effort, .. } = settings;
        summary.properties.extend(model.map(|model| (MODEL.to_owned(), model)));
        summary.properties.extend(effort.map(|effort| (EFFORT.to_owned(), effort)));
        let (builder, settings) = self.configure(&summary)?;
        let stored = StoredSession::create(&self.store, summary).await.map_err(store_error)?;
        self.start(stored.attach(builder), settings)
    }

    async fn open(&self, id: &SessionId) -> Result<OpenSession, HostError> {
        let (builder, settings) = self.configure(&self.find(id).await?)?;
        match StoredSession::open(&self.store, id).await {
            Ok(stored) => self.start(stored.attach(builder), settings),
            Err(error) => Err(damage_or(self.store.as_ref(), id, store_error(error)).await),
        }
    }

    async fn fork(&self, origin: &SessionId, turns: usize, id: SessionId) -> Result<OpenSession, HostError> {
        let mut summary = Summary::new(id.clone(), Timestamp::now());
        summary.properties = self.find(origin).await?.properties;
        summary.properties.retain(|name, _| !PROGRESS.contains(&name.as_str()));
        let (builder, settings) = self.configure(&summary)?;
        let StoredFork { start, journal, .. } =
            match fork(self.store.as_ref(), origin, Some(turns), summary).await {
                Ok(forked) => forked,
                Err(ForkError::Store(error)) => {
                    return Err(damage_or(self.store.as_ref(), origin, store_error(error)).await);
                }
                Err(error @ ForkError::TooShort { .. }) => return Err(HostError::Invalid(error.to_string())),
                Err(error) => return Err(HostError::failed("the session cannot be forked", error)),
            };
        let journal = journal.with_subagents(Arc::clone(&self.store));
        self.start(builder.with_id(id).start(start).journal(journal), settings)
    }

    async fn delete(&self, id: &SessionId) -> Result<(), HostError> {
        self.find(id).await?;
        if let Some(holder) = self.store.holder(id).await.map_err(store_error)? {
            return Err(HostError::Held { id: id.clone(), holder: holder.to_string() });
        }
        delete_tree(self.store.as_ref(), id).await.map_err(store_error)
    }

    fn cost(&self, provider: &str, model: &str, usage: &Usage) -> Option<Money> {
        self.catalog.as_ref()?.cost(provider, model, usage)
    }

    fn settings_of(&self, summary: &Summary) -> SessionSettings {
        let property = |name: &str| summary.properties.get(name).cloned();
        SessionSettings { model: property(MODEL), effort: property(EFFORT), ..SessionSettings::default() }
    }

    fn models(&self) -> Vec<ModelSummary> {
        self.models.clone()
    }
}

/// Controls of one session of a [`StoreSessionHost`].
#[derive(Debug)]
struct StoreSessionControls {
    handle: SessionHandle,
    models: Vec<ModelSummary>,
    settings: Mutex<SessionSettings>,
}

impl StoreSessionControls {
    fn current(&self) -> MutexGuard<'_, SessionSettings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SessionControls for StoreSessionControls {
    fn settings(&self) -> SessionSettings {
        self.current().clone()
    }

    async fn set(&self, change: &SettingsChange, by: Option<&Principal>) -> Result<(), HostError> {
        require_supported(change, &self.models)?;
        let failed = |error| HostError::failed("the setting cannot be changed", error);
        let handle = by.map_or_else(|| self.handle.clone(), |by| self.handle.acting_as(by.clone()));
        if let Some(model) = &change.model {
            handle.set_model(model.clone()).map_err(failed)?;
            self.current().model = Some(model.clone());
        }
        if let Some(effort) = &change.effort {
            handle.set_reasoning_effort(Some(ReasoningEffort::from(effort.clone()))).map_err(failed)?;
            self.current().effort = Some(effort.clone());
        }
        Ok(())
    }
}

/// Checks that clients can change these settings.
fn require_supported(change: &SettingsChange, models: &[ModelSummary]) -> Result<(), HostError> {
    if change.mode.is_some() {
        return Err(HostError::Invalid("mode: the application decides which calls run here".to_owned()));
    }
    match &change.model {
        Some(model) if !models.iter().any(|known| known.id == *model) => {
            Err(HostError::Unprocessable(format!("model: there is no model `{model}` here")))
        }
        Some(_) | None => Ok(()),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other errors are failures of the store")]
fn store_error(error: StoreError) -> HostError {
    match error {
        StoreError::NotFound(id) => HostError::NotFound(id),
        StoreError::Exists(id) => HostError::Exists(id),
        StoreError::InUse { session, holder } => HostError::Held { id: session, holder: holder.to_string() },
        error => HostError::failed("the store failed", error),
    }
}
