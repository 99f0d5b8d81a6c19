//! Opens the sessions of a user for the clients of a server.

mod builder;
mod controls;
mod fork;
mod request;
mod roots;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::SessionId;
use pintle_governance::{Mode, RecordedPolicy};
use pintle_host::attendant::ClientAttendant;
use pintle_host::audit::{AuditFormat, export_audit};
use pintle_host::env_spec::{EnvSpec, EnvironmentChoice};
use pintle_host::environment::{EnvSession, local_workspace_policy};
use pintle_host::failure::{Failure, FailureKind};
use pintle_host::model::Model;
use pintle_host::process_env::ProcessEnv;
use pintle_host::route::ModelChoice;
use pintle_host::sessions::delete::delete_stored_session;
use pintle_host::sessions::export::{ExportFormat, export_session};
use pintle_host::sessions::files::{
    RewindOptions, RewindReport, SessionFiles, SessionPoint, with_session_files,
};
use pintle_host::sessions::{RememberedSettings, SelectedSession, SessionLocation, Sessions};
use pintle_host::{
    GivenSettings, Host, OpenRequest, PartialSpec, RequestClient, RequestSpec, SandboxLevel, SessionSpec,
    SettingSources, Surface,
};
use pintle_llm::{Catalog, Money, Usage};
use pintle_store::{IntactRecord, StoreError, Summary, read_intact};

pub use self::builder::UserSessionHostBuilder;
use self::controls::UserSessionControls;
use self::fork::{unknown_policy, widening};
use self::request::request_settings;
pub use self::roots::WorkspaceRoot;
use self::roots::WorkspaceRoots;
use crate::damage::damage_or;
use crate::files::{FileChanges, FileLeft, FilePoint, FileStep, RestoreReport, RestoreRequest};
use crate::host::{
    DocumentKind, HostError, ModelSummary, NewSession, OpenSession, SessionHost, SessionSettings,
    SettingsChange,
};
use crate::hub::{SERVER_OWNED, TENANT};

/// Mode of sessions by default.
const MODE: Mode = Mode::Edit;

/// Opens the sessions of a user's store: with the configuration, rules, keys and sandbox of the user, as
/// [`pintle_host::Host`] does.
///
/// An application serves the sessions of its user with it:
///
/// ```no_run
/// use std::sync::Arc;
///
/// use pintle_host::Host;
/// use pintle_host::process_env::ProcessEnv;
/// use pintle_server::{Server, ServerLimits, UserSessionHost, WorkspaceRoot};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let host = Host::new(ProcessEnv::capture());
/// let store = host.sessions().await?.shared_store();
/// let sessions = UserSessionHost::builder(host).with_root(WorkspaceRoot::new("/srv/projects")).build().await?;
/// let server = Server::new(Arc::new(sessions), store, ServerLimits::default());
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:7468").await?;
/// server.reopen_sessions().await?;
/// server.serve_tcp(listener, std::future::pending()).await?;
/// # Ok(())
/// # }
/// ```
///
/// Clients select the directory, the model, the mode and the rules of a session, within the limits of their scopes. Sessions of
/// this machine work in the roots of their tenant. The configuration and the state of the user, and the files of the server, are
/// hidden from all sessions.
#[derive(Clone, Debug)]
pub struct UserSessionHost {
    host: Host,
    /// Settings of the application. They precede the settings that a session remembers.
    given: GivenSettings,
    /// Settings of a session for which a client sets none.
    spec: SessionSpec,
    /// Environment of sessions for which none is set.
    environment: EnvSpec,
    /// Model of sessions for which none is set.
    model: String,
    roots: WorkspaceRoots,
    models: Vec<ModelSummary>,
    catalog: Catalog,
    /// Whether the model is a script and has no price.
    is_scripted: bool,
}

/// Problem of a request without a directory.
const NO_DIRECTORY: &str = "directory: required, because the default directory is outside the allowed roots";

/// A session to open, besides its settings.
#[derive(Debug, Default)]
struct RequestedSession {
    id: Option<SessionId>,
    tenant: Option<String>,
    /// Model that the client requested.
    model: Option<String>,
    properties: BTreeMap<String, String>,
}

impl UserSessionHost {
    /// Returns a builder. The host has the configuration, the keys and the stored sessions of the user.
    pub fn builder(host: Host) -> UserSessionHostBuilder {
        UserSessionHostBuilder::new(host)
    }

    /// Returns the settings of a session for which a client sets none.
    #[must_use]
    pub const fn default_spec(&self) -> &SessionSpec {
        &self.spec
    }

    fn process_env(&self) -> &ProcessEnv {
        self.host.process_env()
    }

    /// Opens a new or stored session.
    async fn open_with(
        &self,
        sources: SettingSources,
        selected: Option<SelectedSession>,
        requested: RequestedSession,
    ) -> Result<OpenSession, HostError> {
        let is_new = selected.is_none();
        let mut resolved = self.host.resolve(sources).await.map_err(host_error)?;
        let RequestedSession { id, tenant, model: named, properties } = requested;
        let spec = &mut resolved.spec;
        spec.persistence.id = id.as_ref().map(ToString::to_string);
        spec.persistence.properties = Some(properties);
        let choice = EnvironmentChoice::try_from(&*spec).map_err(host_error)?;
        let tenant = tenant.as_deref();
        let judged = self.resolve_workspace(tenant, &choice)?;
        let foreign = judged.as_deref().map(|workspace| self.roots.foreign_roots(tenant, workspace));
        let process_env = self.process_env().clone().with_workspace(choice.directory.as_deref());
        let process_env = process_env.with_foreign_roots(foreign.unwrap_or_default());
        let model = self.model_for(&resolved.spec, named.as_deref(), &process_env).await?;
        let is_effort_given = is_new && resolved.spec.model.reasoning_effort.is_some();
        let mut surface =
            Surface::new(Arc::new(ClientAttendant::without_approver(Some(process_env.principal()))));
        surface.can_switch_to_plan = true;
        surface.check_environment = Some(Box::new(|_: &EnvSession| {
            require_same_workspace(judged.as_deref(), self.resolve_workspace(tenant, &choice))
        }));
        let request = OpenRequest {
            selected,
            model: Some(Arc::new(model)),
            is_mode_given: is_new,
            is_effort_given,
            ..OpenRequest::from(resolved)
        };
        let host = Host::new(process_env);
        let opened = host.open(request, surface).await.map_err(host_error)?;
        let (session, controls) = UserSessionControls::split(opened);
        Ok(OpenSession::new(session, Arc::new(controls)))
    }

    /// Selects the model of a session. `named` is the model that the client requested.
    async fn model_for(
        &self,
        spec: &SessionSpec,
        named: Option<&str>,
        process_env: &ProcessEnv,
    ) -> Result<Model, HostError> {
        let choice = ModelChoice::try_from(spec).map_err(host_error)?;
        let model = Model::choose(&choice, process_env).await;
        let Some(named) = named else { return model.map_err(host_error) };
        let model = model.map_err(|failure| {
            match matches!(failure.kind(), FailureKind::Usage | FailureKind::Credentials) {
                // For example a model of another provider, or of a provider without a key.
                true => HostError::Unprocessable(failure.message()),
                false => host_error(failure),
            }
        })?;
        model.require_listed(named, &self.model).map_err(HostError::Unprocessable)?;
        Ok(model)
    }

    async fn sessions(&self) -> Result<Sessions, HostError> {
        self.host.sessions().await.map_err(host_error)
    }

    /// Finds a session that no process has open.
    async fn unheld(&self, id: &SessionId) -> Result<(Sessions, Summary), HostError> {
        let (sessions, summary) = self.find(id).await?;
        if let Ok(Some(holder)) = sessions.store().holder(id).await {
            let holder = format!("pintle with process id {} on {}", holder.pid, holder.host);
            return Err(HostError::Held { id: id.clone(), holder });
        }
        Ok((sessions, summary))
    }

    /// Returns the directory in which a session of the store works, as [`resolve_workspace`](Self::resolve_workspace) does.
    fn resolve_stored_workspace(&self, summary: &Summary) -> Result<Option<PathBuf>, HostError> {
        let choice = SessionLocation::from_summary(summary).to_choice(&summary.id).map_err(host_error)?;
        self.resolve_workspace(summary.properties.get(TENANT).map(String::as_str), &choice)
    }

    /// Returns a directory of this machine with all links resolved if sessions of the tenant may work there; `None` for another
    /// environment, where the roots do not apply.
    ///
    /// A tenant gets [`HostError::Forbidden`] for an environment that is not the server's.
    fn resolve_workspace(
        &self,
        tenant: Option<&str>,
        choice: &EnvironmentChoice,
    ) -> Result<Option<PathBuf>, HostError> {
        let environment = &choice.spec;
        if *environment != EnvSpec::Local {
            if tenant.is_some() && *environment != self.environment {
                let problem = format!(
                    "environment: `{environment}` is not the environment of this server, and tenants have no other"
                );
                return Err(HostError::Forbidden(problem));
            }
            return Ok(None);
        }
        let directory = match choice.directory.as_deref() {
            Some(directory) if directory.is_absolute() => directory.to_path_buf(),
            given => self.process_env().directory(given).map_err(host_error)?,
        };
        self.roots.resolve(tenant, &directory, self.process_env()).map(Some)
    }

    /// Returns the directory in which a session of the store works; `None` if it is not on this machine.
    fn stored_directory(&self, summary: &Summary) -> Option<PathBuf> {
        let place = SessionLocation::from_summary(summary);
        let is_local = place.environment() == EnvSpec::LOCAL && self.environment == EnvSpec::Local;
        let directory = PathBuf::from(place.directory());
        (is_local && directory.is_absolute()).then_some(directory)
    }

    /// Checks that a session of the store does not work in a hidden directory, whose files are neither shown nor restored.
    fn require_visible(&self, summary: &Summary) -> Result<(), HostError> {
        let place = SessionLocation::from_summary(summary);
        if place.environment() != EnvSpec::LOCAL {
            return Ok(());
        }
        match local_workspace_policy(Path::new(place.directory()), SandboxLevel::Auto, self.process_env()) {
            Ok(_) => Ok(()),
            Err(failure) => Err(HostError::Forbidden(failure.message())),
        }
    }

    /// Returns the settings of a stored session, whose checked directory precedes the directory of the server.
    fn sources_for_stored(
        &self,
        remembered: RememberedSettings,
        directory: Option<PathBuf>,
    ) -> SettingSources {
        let mut requested = PartialSpec::default();
        requested.environment.dir = directory;
        let request = RequestSpec { client: RequestClient::Http, can_approve: false, spec: requested };
        self.sources(remembered, request)
    }

    fn sources(&self, remembered: RememberedSettings, request: RequestSpec) -> SettingSources {
        SettingSources { given: self.given.clone(), defaults: defaults(), remembered, request: Some(request) }
    }

    /// Returns whether the sessions have a grant of the application.
    fn has_grant(&self) -> bool {
        self.given.grant.is_some() || self.given.spec.policy.grant.is_some()
    }

    async fn audit(
        &self,
        sessions: &Sessions,
        id: &SessionId,
        format: AuditFormat,
    ) -> Result<String, Failure> {
        export_audit(sessions, id.as_str(), format, self.process_env()).await
    }

    async fn find(&self, id: &SessionId) -> Result<(Sessions, Summary), HostError> {
        let sessions = self.sessions().await?;
        let summary = sessions.store().summary(id).await;
        let summary = summary.map_err(|error| HostError::failed("the session cannot be read", error))?;
        let summary = summary.ok_or_else(|| HostError::NotFound(id.clone()))?;
        Ok((sessions, summary))
    }
}

#[async_trait]
impl SessionHost for UserSessionHost {
    async fn create(&self, id: SessionId, request: NewSession) -> Result<OpenSession, HostError> {
        let given = &self.given.spec.environment;
        let mut requested = request_settings(&request, &self.environment, given.kind.is_some())?;
        let NewSession { directory, environment, settings, properties, can_approve, .. } = request;
        let tenant = properties.get(TENANT).map(String::as_str);
        let is_local = match &environment {
            Some(environment) => environment == EnvSpec::LOCAL,
            None => self.environment == EnvSpec::Local,
        };
        let of_server = given.dir.as_deref();
        let directory = match directory.map(PathBuf::from) {
            Some(directory) if !is_local && !directory.is_absolute() => {
                let shown = directory.display();
                let problem = format!("directory: expected an absolute path, not `{shown}`");
                return Err(HostError::Invalid(problem));
            }
            Some(directory) if !is_local => Some(directory),
            Some(directory) => Some(self.roots.resolve(tenant, &directory, self.process_env())?),
            None if !is_local => of_server.map(Path::to_owned),
            None => {
                let directory = self.process_env().directory(of_server).map_err(host_error)?;
                let resolved = self.roots.resolve(tenant, &directory, self.process_env());
                // The path does not come from the client.
                Some(resolved.map_err(|_| HostError::Invalid(NO_DIRECTORY.to_owned()))?)
            }
        };
        let tenant = tenant.map(str::to_owned);
        // The configuration of the directory's project applies.
        requested.environment.dir = directory;
        let request = RequestSpec { client: RequestClient::Http, can_approve, spec: requested };
        let model = settings.model;
        let requested = RequestedSession { id: Some(id), tenant, model, properties };
        self.open_with(self.sources(RememberedSettings::default(), request), None, requested).await
    }

    async fn open(&self, id: &SessionId) -> Result<OpenSession, HostError> {
        let (sessions, summary) = self.unheld(id).await?;
        self.resolve_stored_workspace(&summary)?;
        let directory = self.stored_directory(&summary);
        let tenant = summary.properties.get(TENANT).cloned();
        let requested = RequestedSession { tenant, ..RequestedSession::default() };
        let store = sessions.shared_store();
        let opening = async {
            let selected = SelectedSession::load(sessions, summary).await.map_err(host_error)?;
            let remembered = selected.remembered().map_err(host_error)?;
            let sources = self.sources_for_stored(remembered, directory);
            self.open_with(sources, Some(selected), requested).await
        };
        match opening.await {
            Ok(opened) => Ok(opened),
            Err(error) => Err(damage_or(store.as_ref(), id, error).await),
        }
    }

    async fn fork(
        &self,
        origin: &SessionId,
        entries: usize,
        fork: SessionId,
    ) -> Result<OpenSession, HostError> {
        let (sessions, summary) = self.find(origin).await?;
        self.resolve_stored_workspace(&summary)?;
        let directory = self.stored_directory(&summary);
        let tenant = summary.properties.get(TENANT).cloned();
        let own = [SERVER_OWNED, TENANT];
        let properties = summary.properties.clone();
        let properties = properties.into_iter().filter(|(name, _)| own.contains(&name.as_str()));
        let requested =
            RequestedSession { id: Some(fork), tenant, model: None, properties: properties.collect() };
        let store = sessions.shared_store();
        let forking = async {
            let selected = SelectedSession::load_for_fork(sessions, summary, entries, self.has_grant())
                .await
                .map_err(host_error)?;
            let remembered = selected.remembered().map_err(host_error)?;
            let sources = self.sources_for_stored(remembered, directory);
            self.open_with(sources, Some(selected), requested).await
        };
        match forking.await {
            Ok(opened) => Ok(opened),
            Err(error) => Err(damage_or(store.as_ref(), origin, error).await),
        }
    }

    async fn delete(&self, id: &SessionId) -> Result<(), HostError> {
        let (sessions, summary) = self.unheld(id).await?;
        delete_stored_session(&sessions, &summary, self.process_env()).await.map_err(host_error)
    }

    async fn changes(&self, id: &SessionId, since: &FilePoint) -> Result<FileChanges, HostError> {
        let (sessions, summary) = self.find(id).await?;
        self.require_visible(&summary)?;
        let judged = self.resolve_stored_workspace(&summary)?;
        let work = async |files: &SessionFiles<'_>| {
            require_same_workspace(judged.as_deref(), self.resolve_stored_workspace(&summary))?;
            changes_since(files, since).await
        };
        match with_session_files(&sessions, id.as_str(), self.process_env(), work).await {
            Ok(changes) => Ok(changes),
            Err(failure) => Err(damage_or(sessions.store(), id, host_error(failure)).await),
        }
    }

    async fn restore(&self, id: &SessionId, request: &RestoreRequest) -> Result<RestoreReport, HostError> {
        let (sessions, summary) =
            if request.dry_run { self.find(id).await? } else { self.unheld(id).await? };
        self.require_visible(&summary)?;
        let judged = self.resolve_stored_workspace(&summary)?;
        let options = RewindOptions {
            files: true,
            conversation: request.conversation,
            force: request.force,
            dry_run: request.dry_run,
            keeps_protected: true,
        };
        let work = async |files: &SessionFiles<'_>| {
            require_same_workspace(judged.as_deref(), self.resolve_stored_workspace(&summary))?;
            files.rewind(&point_of(&request.point), options).await
        };
        match with_session_files(&sessions, id.as_str(), self.process_env(), work).await {
            Ok(report) => Ok(report_of(report)),
            Err(failure) => Err(damage_or(sessions.store(), id, host_error(failure)).await),
        }
    }

    async fn document(&self, id: &SessionId, kind: DocumentKind) -> Result<String, HostError> {
        let sessions = self.sessions().await?;
        let written = match kind {
            DocumentKind::Record => export(&sessions, id, ExportFormat::Jsonl).await,
            DocumentKind::Markdown => export(&sessions, id, ExportFormat::Markdown).await,
            DocumentKind::Html => export(&sessions, id, ExportFormat::Html).await,
            DocumentKind::Audit => self.audit(&sessions, id, AuditFormat::Json).await,
            DocumentKind::AuditText => self.audit(&sessions, id, AuditFormat::Text).await,
            DocumentKind::AuditHtml => self.audit(&sessions, id, AuditFormat::Html).await,
        };
        match written {
            Ok(text) => Ok(text),
            Err(failure) => Err(damage_or(sessions.store(), id, host_error(failure)).await),
        }
    }

    fn settings_of(&self, summary: &Summary) -> SessionSettings {
        let place = SessionLocation::from_summary(summary);
        SessionSettings {
            directory: Some(place.directory().to_owned()).filter(|directory| !directory.is_empty()),
            model: summary.properties.get("model").cloned(),
            ..SessionSettings::default()
        }
    }

    fn widens(&self, settings: &SettingsChange) -> bool {
        let mode: Option<Mode> = settings.mode.as_deref().and_then(|mode| mode.parse().ok());
        mode.is_some_and(|mode| mode.is_wider_than(self.spec.policy.mode))
    }

    async fn fork_widening(&self, origin: &SessionId) -> Result<Option<String>, HostError> {
        let (sessions, summary) = self.find(origin).await?;
        let (mut recorded, damage) = match read_intact(sessions.store(), origin).await {
            Ok(IntactRecord { record, damage, .. }) => (RecordedPolicy::from_record(&record), damage),
            // Nothing was recorded yet.
            Err(StoreError::NotFound(_)) => (RecordedPolicy::default(), None),
            Err(error) => {
                let error = HostError::failed("the session cannot be read", error);
                return Err(damage_or(sessions.store(), origin, error).await);
            }
        };
        if let Some(damage) = damage {
            return Ok(Some(unknown_policy(origin, &damage)));
        }
        let remembered = RememberedSettings::from_session(&summary, &recorded).map_err(host_error)?;
        let directory = self.stored_directory(&summary);
        // A new session in the same directory has only the settings of the server and of the project.
        let new = self.sources_for_stored(RememberedSettings::default(), directory.clone());
        let new = self.host.resolve(new).await.map_err(host_error)?;
        let fork = self.sources_for_stored(remembered, directory);
        let fork = self.host.resolve(fork).await.map_err(host_error)?;
        // The fork starts with the recorded mode within the limits of the user.
        recorded.mode = fork.remembered.recorded_mode.or(recorded.mode);
        Ok(widening(&fork.spec, &recorded, &new.spec))
    }

    fn cost(&self, provider: &str, model: &str, usage: &Usage) -> Option<Money> {
        if self.is_scripted { None } else { self.catalog.cost(provider, model, usage) }
    }

    fn models(&self) -> Vec<ModelSummary> {
        self.models.clone()
    }
}

/// Returns the text of a session.
async fn export(sessions: &Sessions, id: &SessionId, format: ExportFormat) -> Result<String, Failure> {
    export_session(sessions, id.as_str(), format).await.map(|exported| exported.text)
}

/// Returns the changes of the files of a session since a point.
async fn changes_since(files: &SessionFiles<'_>, point: &FilePoint) -> Result<FileChanges, Failure> {
    let Some((checkpoint, changes)) = files.changes(&point_of(point)).await? else {
        return Ok(FileChanges::default());
    };
    let diffs = files.file_diffs(&changes).await?;
    Ok(FileChanges { checkpoint: Some(checkpoint), diffs, unknown: changes.unknown })
}

fn point_of(point: &FilePoint) -> SessionPoint<'_> {
    match point {
        FilePoint::Entries(entries) => SessionPoint::Entries(*entries),
        FilePoint::Checkpoint(id) => SessionPoint::Checkpoint(id),
    }
}

fn report_of(report: RewindReport) -> RestoreReport {
    let left_alone = report.left_alone.into_iter();
    RestoreReport {
        dry_run: report.dry_run,
        turns: report.turns,
        turns_before: report.before,
        files: report.steps.into_iter().map(|(path, action)| FileStep::new(path, action)).collect(),
        changed_by_others: report.foreign,
        left_alone: left_alone.map(|(path, reason)| FileLeft::new(path, reason)).collect(),
        undo: report.undo.filter(|_| !report.dry_run),
        problems: report.problems,
    }
}

/// Returns the defaults of sessions, whose user can be asked.
fn defaults() -> PartialSpec {
    let mut defaults = PartialSpec::default();
    defaults.policy.mode = Some(MODE);
    defaults
}

/// Checks that the directory of a session is still the one that was checked.
fn require_same_workspace(
    judged: Option<&Path>,
    found: Result<Option<PathBuf>, HostError>,
) -> Result<(), Failure> {
    if found.is_ok_and(|found| found.as_deref() == judged) {
        return Ok(());
    }
    Err(Failure::usage("the directory of the session was replaced during the request"))
}

/// Returns a failure as the error of a request.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes the value")]
fn host_error(failure: Failure) -> HostError {
    match failure.kind() {
        FailureKind::Usage => HostError::Invalid(failure.message()),
        FailureKind::Credentials
        | FailureKind::LimitReached
        | FailureKind::Denied
        | FailureKind::UnmatchedAnswer
        | FailureKind::Interrupted
        | FailureKind::Other => {
            // The hint contains flags and commands of the command line, which a client does not use.
            let for_operator = format!("{} {}", failure.hint().unwrap_or_default(), failure.details());
            HostError::failed(failure.message_without_hint(), for_operator.trim())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_exchanged_is_refused() {
        let directory = |name: &str| Some(PathBuf::from(name));
        let forbidden = || Err(HostError::Forbidden("outside the roots".to_owned()));
        for (judged, found, expected) in [
            (directory("/srv/a"), Ok(directory("/srv/a")), true),
            (directory("/srv/a"), Ok(directory("/srv/b")), false),
            (directory("/srv/a"), forbidden(), false),
            (directory("/srv/a"), Ok(None), false),
            (None, Ok(None), true),
        ] {
            let case = format!("{judged:?} {found:?}");
            assert_eq!(require_same_workspace(judged.as_deref(), found).is_ok(), expected, "{case}");
        }
    }
}
