//! Stored sessions of the user: created, resumed, forked, found and deleted.

pub mod delete;
pub mod empty;
pub mod export;
pub mod files;
mod flags;
mod location;
mod open_session_files;
pub mod verify;
pub mod worktree;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_agent::protocol::InputKind;
use pintle_agent::{Count, Ledgers, Record, SessionId, SessionState, Start, Timestamp};
use pintle_env::ExecutionEnvironment;
use pintle_governance::{Grant, RecordedPolicy};
use pintle_store::checkpoint::{CheckpointLimits, StoredCheckpoints};
use pintle_store::{
    FileStore, Filter, ForkError, IntactRecord, Page, SessionStore, SessionWriter, StoreError, StoredFork,
    StoredJournal, Summary, WorkspaceMatch, match_workspace, read_intact, read_record,
};

pub use self::flags::{RememberedFlags, RememberedSettings, SessionDescription};
pub(crate) use self::flags::{remembered_denials, remembered_hidden_paths};
pub use self::location::{SessionLocation, require_directory};
pub use self::open_session_files::OpenSessionFiles;
use self::worktree::Worktree;
use crate::env_spec::EnvironmentChoice;
use crate::failure::{Failure, OrFailure as _};
use crate::model::Model;
use crate::notice::Notices;
use crate::policy;
use crate::process_env::{self, ProcessEnv, STATE_VARIABLE};
use crate::session_store::{self, StoreBackend};

/// The sessions of this user.
#[derive(Clone, Debug)]
pub struct Sessions {
    backend: StoreBackend,
    notices: Notices,
}

/// Storage of an open session: its journal and its checkpoints, and the grant and the policy on its record.
#[derive(Debug)]
pub struct SessionStorage {
    /// Checkpoints of the session.
    pub checkpoints: StoredCheckpoints,
    /// Id of the session.
    pub id: SessionId,
    /// Journal that the session writes to.
    pub journal: StoredJournal,
    /// Grant on the record of the session.
    pub grant: Option<Grant>,
    /// Policy that the session, or the origin of a fork, had at the end of its record.
    pub policy: RecordedPolicy,
    /// Origin of the session.
    pub origin: SessionOrigin,
}

impl SessionStorage {
    /// Returns whether the session has no earlier history.
    pub fn is_new(&self) -> bool {
        matches!(self.origin, SessionOrigin::New)
    }

    /// Checks that the tools reach the files that the session has worked on, and records their location. Its
    /// checkpoints leave out the `excluded` paths, which are relative to the working directory. Reports other files to
    /// `notices`.
    ///
    /// Fails if the tools do not reach them while work is in progress: its calls could not be judged with other files.
    pub(crate) async fn bind_workspace(
        mut self,
        env: &dyn ExecutionEnvironment,
        excluded: BTreeSet<PathBuf>,
        notices: Option<&Notices>,
    ) -> Result<Self, Failure> {
        if let SessionOrigin::Resumed(record) = &self.origin
            && match_workspace(self.journal.summary(), env).await == WorkspaceMatch::Other
        {
            let replay = record.replay().or_failed("the session cannot be read")?;
            let id = &self.id;
            if replay.state == SessionState::Processing {
                return Err(Failure::failed(format!(
                    "session {id} is stranded: its unfinished work is in files that are not reachable here"
                ))
                .with_hint(&format!(
                    "continue it where it was started, or use `pintle run --fork {id}` here"
                )));
            }
            if let Some(notices) = notices {
                notices.report(format!("session {id} worked in another directory or on another machine before: its files may be missing here"));
            }
        }
        self.journal.set_workspace(env).await;
        self.checkpoints = self.checkpoints.with_limits(CheckpointLimits::default().with_excluded(excluded));
        Ok(self)
    }
}

/// How a session in the store was created.
#[derive(Debug)]
pub enum SessionOrigin {
    /// A new session without a history.
    New,
    /// A resumed session.
    Resumed(Box<Record>),
    /// A new session with the history of another one.
    Forked(Box<Start>),
}

/// Rules of the state directory, which may be within the directory that a session works in.
const STATE_IGNORE_RULES: &str = "# Sessions and inputs of pintle. Checkpoints, rewinds and searches of a directory above leave them alone.\n\
                        /*\n!/worktrees/\n";

/// Excludes the state directory from checkpoints of a directory above: a rewind would revert the sessions themselves.
fn write_ignore_rules(root: &Path, process_env: &ProcessEnv) {
    let rules = root.join(".gitignore");
    if matches!(process_env::read_text_if_exists("rules", &rules), Ok(None)) {
        // If the directory is not writable, its files do not change, and a rewind has no effect on them.
        let _ = process_env.write_private(&rules, STATE_IGNORE_RULES);
    }
}

impl Sessions {
    /// Opens the store: in the user's state directory, which is created, or in the database that a variable names.
    pub fn open(process_env: &ProcessEnv) -> BoxFuture<'_, Result<Self, Failure>> {
        // Boxed, so that rustc does not prove again for each caller that all of it is `Send`.
        Box::pin(Self::open_store(process_env))
    }

    async fn open_store(process_env: &ProcessEnv) -> Result<Self, Failure> {
        let notices = process_env.notices().clone();
        if let Some(address) = session_store::database_address(process_env) {
            return session_store::connect(&address, process_env)
                .await
                .map(|backend| Self { backend, notices });
        }
        let root = Self::directory(process_env)?;
        let opened = process_env.create_directory(&root).and_then(|()| {
            write_ignore_rules(&root, process_env);
            FileStore::open(root.join("sessions")).or_failed("cannot use the directory of the sessions")
        });
        opened.map(|store| Self { backend: StoreBackend::from(store), notices }).map_err(|failure| {
            failure.with_hint(&format!("set {STATE_VARIABLE} to another directory, or use --no-session"))
        })
    }

    /// Returns the daily ledgers, which are stored next to the sessions.
    pub(crate) fn ledgers(&self) -> Arc<dyn Ledgers> {
        Arc::clone(&self.backend.ledgers)
    }

    /// Returns a shared handle of the store, for users that outlive this value.
    pub fn shared_store(&self) -> Arc<dyn SessionStore> {
        Arc::clone(&self.backend.store)
    }

    /// Returns the directory of the command's state.
    pub fn directory(process_env: &ProcessEnv) -> Result<PathBuf, Failure> {
        process_env.state_directory()
    }

    /// Returns the summary of the session whose id starts with `prefix`.
    pub async fn find(&self, prefix: &str) -> Result<Summary, Failure> {
        let exact = self.store().summary(&SessionId::new(prefix)).await.ok().flatten();
        if let Some(summary) = exact {
            return Ok(summary);
        }
        let all = self.list(&Filter::default(), &Page::default()).await?;
        find_by_prefix(prefix, all, "session", "`pintle sessions list --all` shows all")
    }

    /// Returns the summaries of sessions, the newest first.
    pub async fn list(&self, filter: &Filter, page: &Page) -> Result<Vec<Summary>, Failure> {
        let found = self.store().list(filter, page).await.or_failed("cannot list the sessions")?;
        Ok(found.into_iter().filter(Summary::is_session).collect())
    }

    /// Returns the record of a session. A damaged record is a failure.
    pub async fn record(&self, id: &SessionId) -> Result<Record, Failure> {
        match read_record(self.store(), id).await {
            Ok(record) => Ok(record),
            Err(error) => Err(self.failure(&error, id).await),
        }
    }

    /// Returns the record up to the first damaged line, with a notice about the damage.
    pub async fn intact_record(&self, id: &SessionId) -> Result<IntactRecord, Failure> {
        let intact = read_intact(self.store(), id).await.map_err(|error| unreadable(&error, id))?;
        if let Some(damage) = &intact.damage {
            let entries = intact.record.replay().map_or(0, |replay| replay.history.len());
            let entries = Count(entries as u64, "entry");
            self.notices.report(format!(
                "{damage}; {entries} before it can be read, and everything from there on is left out"
            ));
        }
        Ok(intact)
    }

    /// Returns the store.
    pub fn store(&self) -> &dyn SessionStore {
        self.backend.store.as_ref()
    }

    /// Returns whether a process runs the session.
    pub async fn is_live(&self, id: &SessionId) -> bool {
        matches!(self.store().holder(id).await, Ok(Some(_)))
    }

    /// Returns the journal of a session, including the journals of its subagents.
    pub fn journal(&self, writer: Box<dyn SessionWriter>, summary: Summary) -> StoredJournal {
        self.with_subagents(StoredJournal::new(writer, summary))
    }

    fn with_subagents(&self, journal: StoredJournal) -> StoredJournal {
        journal.with_subagents(Arc::clone(&self.backend.store))
    }

    fn checkpoints(&self, id: &SessionId) -> StoredCheckpoints {
        StoredCheckpoints::new(Arc::clone(&self.backend.store), id.clone())
    }

    /// Opens a session for writing.
    pub async fn writer(&self, id: &SessionId) -> Result<Box<dyn SessionWriter>, Failure> {
        let opened = match self.store().open(id).await {
            Ok(opened) => opened,
            Err(error) => return Err(self.failure(&error, id).await),
        };
        if let Some(torn) = opened.torn {
            self.notices.report(format!(
                "left out the last {} of session {id}: the write was incomplete",
                Count(torn.bytes, "byte")
            ));
        }
        Ok(opened.writer)
    }

    /// Returns the failure of an operation on a session. Entries before the damage, if any, can be shown and forked.
    async fn failure(&self, error: &StoreError, id: &SessionId) -> Failure {
        let failure = unreadable(error, id);
        if !error.is_damage() || read_intact(self.store(), id).await.is_err() {
            return failure;
        }
        failure.with_hint(&format!(
            "`pintle sessions show {id}` shows the entries before the damage, and `pintle run --fork {id}@N` forks it after one of them"
        ))
    }
}

/// Session that a run asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChoice {
    /// A new session.
    New,
    /// The newest session of the directory.
    Newest,
    /// The session whose id starts with this text.
    Resume(String),
    /// A new session with the history of another one, as `ID` or `ID@N`.
    Fork(String),
}

/// Stored session to resume or to fork, before the settings are applied.
#[derive(Debug)]
pub struct SelectedSession {
    sessions: Sessions,
    summary: Summary,
    record: Record,
    /// Fork after this many entries of the history; `None` to resume the session itself.
    fork: Option<Option<usize>>,
}

/// Returns the session that a run resumes or forks; `None` for a new one. `is_grant_given` is whether the run has a
/// separate grant.
pub async fn select(
    choice: &SessionChoice,
    environment: &EnvironmentChoice,
    is_grant_given: bool,
    process_env: &ProcessEnv,
) -> Result<Option<SelectedSession>, Failure> {
    let select = async |prefix: &str, fork| -> Result<Option<SelectedSession>, Failure> {
        let sessions = Sessions::open(process_env).await?;
        let summary = sessions.find(prefix).await?;
        if environment.directory.is_none() {
            require_directory(&summary, process_env)?;
        }
        // A fork at an entry before the damage is possible.
        let record = match fork {
            Some(Some(_)) => {
                let remedy = "name the grant of the fork with --grant";
                read_forkable_record(&sessions, &summary, is_grant_given, remedy).await?
            }
            Some(None) | None => sessions.record(&summary.id).await?,
        };
        Ok(Some(SelectedSession { sessions, summary, record, fork }))
    };
    match choice {
        SessionChoice::New => Ok(None),
        SessionChoice::Newest => newest(environment, process_env).await.map(Some),
        SessionChoice::Resume(prefix) => select(prefix, None).await,
        SessionChoice::Fork(text) => {
            let (prefix, turns) = parse_session_point(text)?;
            select(prefix, Some(turns)).await
        }
    }
}

/// Returns the newest session of a directory that has a message.
async fn newest(
    environment: &EnvironmentChoice,
    process_env: &ProcessEnv,
) -> Result<SelectedSession, Failure> {
    let sessions = Sessions::open(process_env).await?;
    let location = match SessionLocation::from_choice(environment, process_env) {
        Ok(location) => location,
        Err(failure) => {
            let missing = missing_directory_failure(&sessions, environment, process_env).await;
            return Err(missing.unwrap_or(failure));
        }
    };
    for summary in sessions.list(&location.filter(), &Page::default()).await? {
        match read_record(sessions.store(), &summary.id).await {
            Ok(record) if empty::has_message(&record) => {
                return Ok(SelectedSession { sessions, summary, record, fork: None });
            }
            // The session ended, or its process was killed, before a message was recorded.
            Ok(_) | Err(StoreError::NotFound(_)) => {}
            Err(error) => return Err(sessions.failure(&error, &summary.id).await),
        }
    }
    Err(Failure::usage(format!("there is no session of {location}"))
        .with_hint("`pintle sessions list --all` shows all"))
}

/// Returns the failure for `--dir`, if it is the directory of a session and does not exist; `None` otherwise.
async fn missing_directory_failure(
    sessions: &Sessions,
    environment: &EnvironmentChoice,
    process_env: &ProcessEnv,
) -> Option<Failure> {
    let named = environment.directory.as_ref()?;
    let found = sessions
        .list(
            &SessionLocation::from_local_directory(&process_env::absolute(named).ok()?).filter(),
            &Page::of(1),
        )
        .await
        .ok()?;
    require_directory(found.first()?, process_env).err()
}

/// Returns the record of a session to fork at an entry, up to the first damaged line. `is_grant_given` is whether the
/// fork has a separate grant.
///
/// Fails with the remedy if the damaged part may contain a grant, and the fork has no separate one.
async fn read_forkable_record(
    sessions: &Sessions,
    summary: &Summary,
    is_grant_given: bool,
    remedy: &str,
) -> Result<Record, Failure> {
    let id = &summary.id;
    let IntactRecord { record, damage, .. } = sessions.intact_record(id).await?;
    // The first grant can be in the damaged part. The summary is separate from the record.
    let may_have_grant =
        flags::is_grant_recorded(summary) || policy::grant::recorded_grant(&record)?.is_some();
    if damage.is_some() && may_have_grant && !is_grant_given {
        return Err(
            Failure::usage(format!("the damaged part of session {id} may contain a grant")).with_hint(remedy)
        );
    }
    Ok(record)
}

impl SelectedSession {
    /// Returns the settings that the session remembers.
    pub fn remembered(&self) -> Result<RememberedSettings, Failure> {
        RememberedSettings::from_session(&self.summary, &RecordedPolicy::from_record(&self.record))
    }

    /// Returns the record of the session.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Returns whether the session works in a worktree.
    pub fn has_worktree(&self) -> bool {
        Worktree::from_summary(&self.summary).is_some()
    }

    /// Loads a session to resume.
    pub async fn load(sessions: Sessions, summary: Summary) -> Result<Self, Failure> {
        let record = sessions.record(&summary.id).await?;
        Ok(Self { sessions, summary, record, fork: None })
    }

    /// Loads a session to fork after the first entries of its history. A damaged session can be forked at an entry
    /// before the damage. `is_grant_given` is whether the fork has a separate grant.
    ///
    /// Fails if the damaged part may contain a grant.
    pub async fn load_for_fork(
        sessions: Sessions,
        summary: Summary,
        turns: usize,
        is_grant_given: bool,
    ) -> Result<Self, Failure> {
        let remedy = "only a server with a grant forks it";
        let record = read_forkable_record(&sessions, &summary, is_grant_given, remedy).await?;
        Ok(Self { sessions, summary, record, fork: Some(Some(turns)) })
    }

    /// Returns the title of the session; empty if it has no title yet.
    pub fn title(&self) -> String {
        self.summary.title.clone()
    }

    /// Returns the environment and the directory in which the session works.
    pub fn environment(&self) -> Result<EnvironmentChoice, Failure> {
        SessionLocation::from_summary(&self.summary).to_choice(&self.summary.id)
    }

    /// Opens the session for the run.
    pub async fn open(
        self,
        description: &SessionDescription,
        model: &Model,
        location: &SessionLocation,
        worktree: Option<&Worktree>,
    ) -> Result<SessionStorage, Failure> {
        let Self { sessions, summary, record, fork } = self;
        let grant = policy::grant::recorded_grant(&record)?;
        let mut policy = RecordedPolicy::from_record(&record);
        policy.mode = description.remembered.recorded_mode.or(policy.mode);
        let Some(turns) = fork else {
            let mut writer = sessions.writer(&summary.id).await?;
            let id = summary.id.clone();
            let was_recorded = flags::is_grant_recorded(&summary);
            // The project may have been moved.
            let summary = flags::add_hidden_paths(location.add_to_summary(summary), description)?;
            let summary = flags::add_grant(summary, description, grant.as_ref());
            if flags::is_grant_recorded(&summary) && !was_recorded {
                // Written before the grant is recorded, whose line may be damaged later.
                let written = writer.set_summary(summary.clone()).await;
                written.map_err(|error| unreadable(&error, &id))?;
            }
            let checkpoints = sessions.checkpoints(&id);
            let newest = record.entries.iter().rev().find_map(|entry| {
                let InputKind::CheckpointTaken { checkpoint, .. } = &entry.input.kind else { return None };
                checkpoint.id.parse().ok()
            });
            let checkpoints = match newest {
                Some(newest) => checkpoints.after(newest),
                None => checkpoints,
            };
            return Ok(SessionStorage {
                checkpoints,
                id,
                grant,
                policy,
                journal: sessions.journal(writer, summary),
                origin: SessionOrigin::Resumed(Box::new(record)),
            });
        };
        let described = new_summary(description, model, location, worktree, grant.as_ref())?;
        let id = described.id.clone();
        let forked = pintle_store::fork(sessions.store(), &summary.id, turns, described).await;
        let StoredFork { start, journal, .. } = forked.map_err(|error| fork_failure(&error, &summary.id))?;
        Ok(SessionStorage {
            checkpoints: sessions.checkpoints(&id),
            id,
            grant,
            policy,
            journal: sessions.with_subagents(journal),
            origin: SessionOrigin::Forked(Box::new(start)),
        })
    }
}

impl Sessions {
    /// Creates a new session.
    pub async fn create(
        &self,
        description: &SessionDescription,
        model: &Model,
        location: &SessionLocation,
        worktree: Option<&Worktree>,
    ) -> Result<SessionStorage, Failure> {
        let summary = new_summary(description, model, location, worktree, None)?;
        let id = summary.id.clone();
        let writer = self.store().create(summary.clone()).await.or_failed("cannot create the session")?;
        let checkpoints = self.checkpoints(&id);
        Ok(SessionStorage {
            checkpoints,
            id,
            journal: self.journal(writer, summary),
            grant: None,
            policy: RecordedPolicy::default(),
            origin: SessionOrigin::New,
        })
    }
}

/// Returns the only summary whose id starts with `prefix`. `kind` names the items, such as `session`.
pub fn find_by_prefix(prefix: &str, all: Vec<Summary>, kind: &str, hint: &str) -> Result<Summary, Failure> {
    let mut found = all.into_iter().filter(|summary| summary.id.as_str().starts_with(prefix));
    match (found.next(), found.next()) {
        (Some(summary), None) => Ok(summary),
        (None, _) => Err(Failure::usage(format!("there is no {kind} `{prefix}`")).with_hint(hint)),
        (Some(one), Some(other)) => Err(Failure::usage(format!(
            "`{prefix}` is a prefix of several {kind}s, such as {} and {}",
            one.id, other.id
        ))),
    }
}

/// Returns the summary of a new session. A fork inherits the grant of its origin. Fails for a path that is not UTF-8.
fn new_summary(
    description: &SessionDescription,
    model: &Model,
    location: &SessionLocation,
    worktree: Option<&Worktree>,
    inherited_grant: Option<&Grant>,
) -> Result<Summary, Failure> {
    let chosen = description.id.as_ref().map(SessionId::new);
    let id = worktree.map(|worktree| worktree.session.clone()).or(chosen).unwrap_or_else(SessionId::generate);
    let mut summary = location.add_to_summary(Summary::new(id, now()));
    summary.properties.extend(description.properties.clone());
    if let Some(worktree) = worktree {
        summary = worktree.add_to_summary(summary);
    }
    let summary = flags::add_settings(summary, description, model)?;
    Ok(flags::add_grant(summary, description, inherited_grant))
}

/// Returns the failure of an operation on a session, without a hint about the entries before the damage.
fn unreadable(error: &StoreError, id: &SessionId) -> Failure {
    let failure = Failure::failed(format!("cannot open session {id}")).caused_by(error);
    if error.is_damage() {
        failure.with_hint(&format!("`pintle sessions verify {id}` lists the damage"))
    } else {
        failure
    }
}

/// Returns the failure of a fork of a session.
fn fork_failure(error: &ForkError, id: &SessionId) -> Failure {
    match error {
        ForkError::TooShort { .. } => Failure::usage(error.to_string()),
        ForkError::Store(error) => unreadable(error, id),
        ForkError::Replay(_) | _ => Failure::failed("the session cannot be forked").caused_by(error),
    }
}

/// Parses `ID` or `ID@N`.
pub fn parse_session_point(text: &str) -> Result<(&str, Option<usize>), Failure> {
    let Some((id, turns)) = text.rsplit_once('@') else { return Ok((text, None)) };
    match turns.parse() {
        Ok(turns) if !id.is_empty() => Ok((id, Some(turns))),
        _ => Err(Failure::usage(format!("{text}: expected ID or ID@N, with N entries of the history"))),
    }
}

/// Returns the time of this machine.
pub fn now() -> Timestamp {
    pintle_agent::Clock::now(&pintle_agent::SystemClock)
}
