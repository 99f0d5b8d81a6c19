//! Opens the sessions of a server.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::SessionId;
use pintle_governance::Mode;
use pintle_llm::{Catalog, Usage};
use pintle_server::{
    DocumentKind, FileChanges, FileLeft, FilePoint, FileStep, HostError, ModelSummary, NewSession,
    OpenSession, RestoreReport, RestoreRequest, SessionHost, SessionSettings, SettingsChange,
};
use pintle_store::Summary;
use tempfile::NamedTempFile;

use super::controls::ServeControls;
use super::roots::WorkspaceRoots;
use crate::approve::Prompter;
use crate::args::{AuditFormat, ExportFormat, Flags, RunArgs, SessionArgs};
use crate::audit;
use crate::config;
use crate::environment::{EnvTarget, hidden};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::model::Model;
use crate::opening::{Beside, Opened, Opening};
use crate::process_env::ProcessEnv;
use crate::run::keep_for_good;
use crate::sessions::delete::delete_one;
use crate::sessions::export;
use crate::sessions::files::{Files, Point, Report, RewindOptions, in_place};
use crate::sessions::{Place, Selected, Sessions, remembered_flags};

/// Mode of sessions by default.
const MODE: Mode = Mode::Edit;

/// Property that a server sets to the tenant of a session.
const TENANT: &str = "tenant";

/// Environment of the server's own machine.
const LOCAL: &str = "local";

/// Opens the sessions of the user's store.
#[derive(Clone, Debug)]
pub(super) struct ServeHost {
    process_env: ProcessEnv,
    /// Flags of this process, which come before those that a session remembers.
    given: Flags,
    /// Mode of sessions for which none is set.
    mode: Mode,
    roots: WorkspaceRoots,
    models: Vec<ModelSummary>,
    catalog: Catalog,
    /// Whether the model is a script, which has no price.
    is_scripted: bool,
}

/// Problem of a request without a directory.
const NO_DIRECTORY: &str = "directory: required, because the default directory is outside the allowed roots";

/// Settings of a session besides its flags.
#[derive(Debug, Default)]
struct Wanted {
    id: Option<SessionId>,
    directory: Option<PathBuf>,
    /// Grant in a file.
    grant: Option<PathBuf>,
    settings: SettingsChange,
    properties: std::collections::BTreeMap<String, String>,
}

impl ServeHost {
    /// Creates a host whose sessions have the flags of this process.
    ///
    /// # Errors
    ///
    /// A failure without a model, such as for want of a key.
    pub(super) async fn new(
        args: &RunArgs,
        roots: WorkspaceRoots,
        process_env: &ProcessEnv,
    ) -> Result<Self, Failure> {
        let model = Model::from_args(&args.model, process_env).await?;
        model.warn_if_unknown();
        let provider = model.route.provider.name();
        let models = model.catalog().list(Some(provider));
        let models = models.map(|known| ModelSummary::new(&known.id, known.context_window)).collect();
        let catalog = model.catalog().clone();
        Ok(Self {
            process_env: process_env.clone(),
            given: args.session.given.clone(),
            mode: args.policy.mode.unwrap_or(MODE),
            roots,
            models,
            catalog,
            is_scripted: model.is_scripted(),
        })
    }

    /// Opens a new session, or one of the store. `words` are flags that the session remembers.
    async fn open_with(
        &self,
        words: &[String],
        selected: Option<Selected>,
        wanted: Wanted,
    ) -> Result<OpenSession, Failure> {
        let (new, mut is_kept) = (wanted.id.clone(), false);
        let opened = self.try_open(words, selected, wanted, &mut is_kept).await;
        if let (Err(_), true, Some(id)) = (&opened, is_kept, new)
            && let Ok(sessions) = Sessions::open(&self.process_env).await
        {
            // The session was shown to no client, and cannot be opened.
            let _ = sessions.store().delete(&id).await;
        }
        opened
    }

    /// Sets `is_kept` once the session is in the store.
    async fn try_open(
        &self,
        words: &[String],
        selected: Option<Selected>,
        wanted: Wanted,
        is_kept: &mut bool,
    ) -> Result<OpenSession, Failure> {
        let is_new = selected.is_none();
        let completed = config::complete_run(words, &self.process_env).await?;
        let Wanted { id, directory, grant, settings, properties } = wanted;
        let session = SessionArgs {
            given: completed.session.given.clone(),
            id: id.as_ref().map(ToString::to_string),
            properties,
            ..SessionArgs::default()
        };
        let mut args = RunArgs { session, ..completed };
        args.environment.dir = directory.or(args.environment.dir);
        let process_env = &self.process_env.clone().with_workspace(args.environment.dir.as_deref());
        if grant.is_some() && args.grant.is_some() {
            // Another one could be wider.
            return Err(Failure::usage(
                "grant: expected none, since the server holds its sessions to its own",
            ));
        }
        args.grant = grant.or(args.grant);
        let names_model = settings.model.is_some();
        args.model.model = settings.model.or(args.model.model);
        args.model.reasoning_effort = settings.effort.or(args.model.reasoning_effort);
        if let Some(mode) = &settings.mode {
            args.policy.mode = Some(mode.parse().map_err(|_| {
                Failure::usage(format!("there is no mode `{mode}`: expected plan, ask, edit or auto"))
            })?);
        }
        // A person can be asked.
        let mode = *args.policy.mode.get_or_insert(MODE);
        let model = Model::from_args(&args.model, process_env).await?;
        if names_model {
            model.warn_if_unknown();
        }
        let target = EnvTarget::of_hosted(&args, mode, process_env)?;
        let kept = Some(keep_for_good(&args, selected, &model, None, process_env).await?);
        *is_kept = true;
        let env_session = target.connect().await?;
        let prompter = Prompter::in_conversation(process_env.principal());
        let opening = Opening {
            args: &args,
            is_mode_given: is_new,
            is_effort_given: is_new && args.model.reasoning_effort.is_some(),
            can_turn_to_plan: true,
            id,
            servers: Vec::new(),
            kept,
            model: &model,
            beside: Beside::default(),
        };
        let opened = match opening.open(&env_session, &prompter, process_env).await {
            Ok(opened) => opened,
            Err(failure) => {
                // The first failure is the one to tell.
                env_session.close_with_notice().await;
                return Err(failure);
            }
        };
        let Opened { session, policy, servers, effort, offered, .. } = opened;
        let controls = ServeControls::new(&session, policy, servers, model, effort, offered, env_session);
        Ok(OpenSession::new(session, Arc::new(controls)))
    }

    async fn sessions(&self) -> Result<Sessions, HostError> {
        Sessions::open(&self.process_env).await.map_err(|failure| host_error(&failure))
    }

    /// Finds a session that nobody has open.
    async fn unheld(&self, id: &SessionId) -> Result<(Sessions, Summary), HostError> {
        let (sessions, summary) = self.find(id).await?;
        if let Ok(Some(holder)) = sessions.store().holder(id).await {
            let holder = format!("pintle with process id {} on {}", holder.pid, holder.host);
            return Err(HostError::Held { id: id.clone(), holder });
        }
        Ok((sessions, summary))
    }

    /// Checks that a session of the store works where sessions may work now.
    fn check_root(&self, summary: &Summary) -> Result<(), HostError> {
        let place = Place::of_summary(summary);
        if place.environment() != LOCAL {
            return Ok(());
        }
        let tenant = summary.properties.get(TENANT).map(String::as_str);
        self.roots.resolve(tenant, Path::new(place.directory()), &self.process_env).map(drop)
    }

    /// Checks that a session of the store does not work in a hidden directory, whose files are neither shown nor restored.
    fn check_visible(&self, summary: &Summary) -> Result<(), HostError> {
        let place = Place::of_summary(summary);
        if place.environment() != LOCAL {
            return Ok(());
        }
        match hidden(Path::new(place.directory()), &self.process_env) {
            Ok(_) => Ok(()),
            Err(failure) => Err(HostError::Forbidden(failure.message())),
        }
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
impl SessionHost for ServeHost {
    async fn create(&self, id: SessionId, request: NewSession) -> Result<OpenSession, HostError> {
        let NewSession { directory, environment, rules, grant, settings, properties, .. } = request;
        let tenant = properties.get(TENANT).map(String::as_str);
        let of_server = self.given.get("env").and_then(|names| names.first());
        let is_local = environment.as_ref().or(of_server).is_none_or(|environment| environment == LOCAL);
        let directory = match directory.map(PathBuf::from) {
            Some(directory) if !is_local && !directory.is_absolute() => {
                let shown = directory.display();
                let problem = format!("directory: expected an absolute path, not `{shown}`");
                return Err(HostError::Invalid(problem));
            }
            Some(directory) if !is_local => Some(directory),
            Some(directory) => Some(self.roots.resolve(tenant, &directory, &self.process_env)?),
            None if !is_local => None,
            None => {
                let of_server = self.given.get("dir").and_then(|names| names.first()).map(PathBuf::from);
                let directory = self.process_env.directory(of_server.as_deref());
                let directory = directory.map_err(|failure| host_error(&failure))?;
                let resolved = self.roots.resolve(tenant, &directory, &self.process_env);
                // The path is not the client's.
                Some(resolved.map_err(|_| HostError::Invalid(NO_DIRECTORY.to_owned()))?)
            }
        };
        let mut words = Vec::new();
        if let Some(environment) = &environment {
            if let Some(of_server) = self.given.get("env") {
                let of_server = of_server.join(", ");
                let problem = format!("environment: the sessions of this server work in {of_server}");
                return Err(HostError::Invalid(problem));
            }
            words.push(format!("--env={environment}"));
        }
        words.extend(rules.allow.iter().map(|rule| format!("--allow={rule}")));
        words.extend(rules.deny.iter().map(|rule| format!("--deny={rule}")));
        // It is on record once the session is open.
        let grant = grant.map(|grant| written(&grant)).transpose()?;
        let path = grant.as_ref().map(|file| file.path().to_owned());
        let names_model = settings.model.is_some();
        let wanted = Wanted { id: Some(id), directory, grant: path, settings, properties };
        self.open_with(&words, None, wanted).await.map_err(|failure| {
            if names_model && failure.exit() == Exit::Authentication {
                // The client chose a model of a provider without a key.
                return HostError::Unprocessable(failure.message());
            }
            host_error(&failure)
        })
    }

    async fn open(&self, id: &SessionId) -> Result<OpenSession, HostError> {
        let (sessions, summary) = self.unheld(id).await?;
        self.check_root(&summary)?;
        let selected = Selected::of(sessions, summary).await.map_err(|failure| host_error(&failure))?;
        let words = selected.remembered(&self.given).map_err(|failure| host_error(&failure))?;
        let opened = self.open_with(&words, Some(selected), Wanted::default()).await;
        opened.map_err(|failure| host_error(&failure))
    }

    async fn fork(
        &self,
        origin: &SessionId,
        turns: usize,
        fork: SessionId,
    ) -> Result<OpenSession, HostError> {
        let (sessions, summary) = self.find(origin).await?;
        self.check_root(&summary)?;
        let words = remembered_flags(&summary, &self.given).map_err(|failure| host_error(&failure))?;
        let args = config::complete_run(&words, &self.process_env).await;
        let is_grant_given = args.map_err(|failure| host_error(&failure))?.grant.is_some();
        let selected = Selected::to_fork(sessions, summary.clone(), turns, is_grant_given).await;
        let selected = selected.map_err(|failure| host_error(&failure))?;
        let own = ["served", TENANT];
        let properties = summary.properties.into_iter().filter(|(name, _)| own.contains(&name.as_str()));
        let wanted = Wanted { id: Some(fork), properties: properties.collect(), ..Wanted::default() };
        let opened = self.open_with(&words, Some(selected), wanted).await;
        opened.map_err(|failure| host_error(&failure))
    }

    async fn delete(&self, id: &SessionId) -> Result<(), HostError> {
        let (sessions, summary) = self.unheld(id).await?;
        let deleted = delete_one(&sessions, &summary, &self.process_env).await;
        deleted.map_err(|failure| host_error(&failure))
    }

    async fn changes(&self, id: &SessionId, since: &FilePoint) -> Result<FileChanges, HostError> {
        let (sessions, summary) = self.find(id).await?;
        self.check_visible(&summary)?;
        let work = async |files: &Files<'_>| files.changes(&point_of(since)?).await;
        let found = in_place(&sessions, id.as_str(), &self.process_env, work).await;
        let found = found.map_err(|failure| host_error(&failure))?;
        let mut changes = FileChanges::default();
        if let Some((checkpoint, comparison, diffs)) = found {
            changes.checkpoint = Some(checkpoint);
            changes.diffs = diffs;
            changes.unknown = comparison.unknown;
        }
        Ok(changes)
    }

    async fn restore(&self, id: &SessionId, request: &RestoreRequest) -> Result<RestoreReport, HostError> {
        let (sessions, summary) =
            if request.dry_run { self.find(id).await? } else { self.unheld(id).await? };
        self.check_root(&summary)?;
        self.check_visible(&summary)?;
        let options = RewindOptions {
            files: true,
            conversation: request.conversation,
            force: request.force,
            dry_run: request.dry_run,
            keeps_protected: true,
        };
        let work = async |files: &Files<'_>| files.go_back(&point_of(&request.point)?, options).await;
        let done = in_place(&sessions, id.as_str(), &self.process_env, work).await;
        Ok(report_of(done.map_err(|failure| host_error(&failure))?))
    }

    async fn document(&self, id: &SessionId, kind: DocumentKind) -> Result<String, HostError> {
        let sessions = self.sessions().await?;
        let (id, process_env) = (id.as_str(), &self.process_env);
        let written = match kind {
            DocumentKind::Record => export::text(&sessions, id, ExportFormat::Jsonl).await,
            DocumentKind::Markdown => export::text(&sessions, id, ExportFormat::Markdown).await,
            DocumentKind::Html => export::text(&sessions, id, ExportFormat::Html).await,
            DocumentKind::Audit => audit::text(&sessions, id, AuditFormat::Json, process_env).await,
            DocumentKind::AuditText => audit::text(&sessions, id, AuditFormat::Text, process_env).await,
            DocumentKind::AuditHtml => audit::text(&sessions, id, AuditFormat::Html, process_env).await,
        };
        written.map_err(|failure| host_error(&failure))
    }

    fn settings_of(&self, summary: &Summary) -> SessionSettings {
        let place = Place::of_summary(summary);
        let mut settings = SessionSettings::default();
        settings.directory = Some(place.directory().to_owned()).filter(|directory| !directory.is_empty());
        settings.model = summary.properties.get("model").cloned();
        settings
    }

    fn widens(&self, settings: &SettingsChange) -> bool {
        let mode: Option<Mode> = settings.mode.as_deref().and_then(|mode| mode.parse().ok());
        mode.is_some_and(|mode| mode.is_wider_than(self.mode))
    }

    async fn fork_widens(&self, origin: &SessionId) -> Result<bool, HostError> {
        let (_, summary) = self.find(origin).await?;
        let words = remembered_flags(&summary, &self.given).map_err(|failure| host_error(&failure))?;
        let args = config::complete_run(&words, &self.process_env).await;
        let mode = args.map_err(|failure| host_error(&failure))?.policy.mode.unwrap_or(MODE);
        Ok(mode.is_wider_than(self.mode))
    }

    fn cost(&self, provider: &str, model: &str, usage: &Usage) -> Option<f64> {
        if self.is_scripted { None } else { self.catalog.cost(provider, model, usage) }
    }

    fn models(&self) -> Vec<ModelSummary> {
        self.models.clone()
    }
}

fn point_of(point: &FilePoint) -> Result<Point<'_>, Failure> {
    match point {
        FilePoint::Turns(turns) => Ok(Point::Turns(*turns)),
        FilePoint::Checkpoint(id) => Ok(Point::Checkpoint(id)),
        _ => Err(Failure::usage("this kind of point is not known")),
    }
}

fn report_of(report: Report) -> RestoreReport {
    let mut done = RestoreReport::default();
    done.dry_run = report.dry_run;
    done.turns = report.turns;
    done.turns_before = report.before;
    done.files = report.steps.into_iter().map(|(path, action)| FileStep::new(path, action)).collect();
    done.changed_by_others = report.foreign;
    done.left_alone =
        report.left_alone.into_iter().map(|(path, reason)| FileLeft::new(path, reason)).collect();
    done.undo = report.undo.filter(|_| !report.dry_run);
    done.problems = report.problems;
    done
}

/// Writes a grant into a file of its own.
fn written(grant: &serde_json::Value) -> Result<NamedTempFile, HostError> {
    let failed = |error| HostError::failed("the grant cannot be written", error);
    let mut file = NamedTempFile::new().map_err(failed)?;
    file.write_all(grant.to_string().as_bytes()).map_err(failed)?;
    Ok(file)
}

fn host_error(failure: &Failure) -> HostError {
    match failure.exit() {
        Exit::Usage => HostError::Invalid(failure.message()),
        Exit::Done
        | Exit::Authentication
        | Exit::Failed
        | Exit::LimitReached
        | Exit::Denied
        | Exit::Unmatched
        | Exit::Interrupted => HostError::failed(failure.message(), failure.details().to_owned()),
    }
}
