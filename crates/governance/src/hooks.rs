//! External hooks: commands that run at certain points of a session, in the format that coding agents share.

mod answer;
mod commands;
mod error;
mod event;
mod file;
mod input;
mod joined;
mod json;
mod merge;
mod programs;
mod run;
#[cfg(test)]
mod tests;
mod trusted;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::join_all;
use pintle_agent::{
    ApprovalRequest, CallAnswer, CompactionTrigger, Decision, EndAnswer, HookContext, HookSession, Hooks,
    InputAnswer, ResultAnswer, SessionEndReason, SessionId, SessionSource,
};
use pintle_env::ExecutionEnvironment;
use pintle_tools::gate::Judgement;
use pintle_tools::pipeline::{Execution, PreparedCall};

use self::answer::{Answer, for_model};
pub use self::commands::{HookCommand, HookCommands};
pub use self::error::HooksError;
pub use self::event::HookEvent;
use self::event::HookEventExt as _;
use self::input::{Details, SessionFacts, source_name};
pub(crate) use self::joined::JoinedHooks;
use self::merge::AttributedAnswer;
pub use self::run::{HookAnswer, HookFailure, HookRun};
use self::run::{HookDirectories, HookEnd, HookResult};
pub use self::trusted::TrustedPrograms;
use crate::policy::Policy;

/// Receives each run of a hook.
type Observer = Arc<dyn Fn(HookRun) + Send + Sync>;

/// Returns the path of a session's record.
type Transcripts = Arc<dyn Fn(&SessionId) -> Option<PathBuf> + Send + Sync>;

/// Runs commands as hooks of a session.
///
/// A command reads one JSON object and answers by its exit code and its output; the guide `docs/guide/hooks.md` describes
/// both. The commands of an event run in parallel. Their answers are merged in the order of the commands: the strictest
/// counts.
///
/// A hook that fails to answer is reported and otherwise ignored, unless it is [required](HookCommand::required) before a
/// call: then the call is denied.
///
/// Commands run in the working directory of the environment, regardless of the session's directory, so that a relative
/// path names the same program for all subagents. The environment decides which variables commands inherit; a local
/// environment omits secrets by default. `PINTLE_PROJECT_DIR` is added.
#[derive(Clone)]
pub struct ExternalHooks {
    groups: Vec<Group>,
    policy: Option<Policy>,
    transcripts: Option<Transcripts>,
    observer: Option<Observer>,
}

/// Commands and their environment.
#[derive(Clone)]
struct Group {
    commands: Arc<HookCommands>,
    env: Arc<dyn ExecutionEnvironment>,
    /// Start directory; `None` for the working directory of the environment.
    directory: Option<PathBuf>,
    /// Hashes that their programs must have; `None` if programs are not checked.
    trusted: Option<Arc<TrustedPrograms>>,
}

/// Run of a command. It is reported when it ends, even if its future is dropped.
struct PendingRun<'a> {
    observer: Option<&'a Observer>,
    run: Option<HookRun>,
    started: Instant,
}

impl ExternalHooks {
    /// Creates the hooks of a session. The commands run in `env`, the machine of the embedding application, whichever
    /// environment the tools have. The application must trust the commands first.
    #[must_use]
    pub fn new(commands: HookCommands, env: Arc<dyn ExecutionEnvironment>) -> Self {
        let groups = vec![Group { commands: Arc::new(commands), env, directory: None, trusted: None }];
        Self { groups, policy: None, transcripts: None, observer: None }
    }

    /// Adds commands that run elsewhere, such as a project's commands in the sandbox of its session. Their answers follow
    /// the answers of earlier commands.
    #[must_use]
    pub fn and(mut self, commands: HookCommands, env: Arc<dyn ExecutionEnvironment>) -> Self {
        self.groups.push(Group { commands: Arc::new(commands), env, directory: None, trusted: None });
        self
    }

    /// Adds commands as [`and`](Self::and) does. They start in the workspace of `trusted`, even if the session works in a
    /// directory below it. The programs of a command are hashed again before each run: if one has changed, the command
    /// does not run. A hook before a call then denies the call; other hooks count as unanswered.
    #[must_use]
    pub fn and_trusted(
        mut self,
        commands: HookCommands,
        env: Arc<dyn ExecutionEnvironment>,
        trusted: TrustedPrograms,
    ) -> Self {
        let directory = Some(trusted.workspace().to_path_buf());
        let trusted = Some(Arc::new(trusted));
        self.groups.push(Group { commands: Arc::new(commands), env, directory, trusted });
        self
    }

    /// Sets the start directory of the commands added so far. Default: the working directory of their environment. Their
    /// input and `PINTLE_PROJECT_DIR` name the project's directory in either case. Set it for unconfined commands, since
    /// a program may load files of its start directory.
    #[must_use]
    pub fn with_working_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        for group in &mut self.groups {
            group.directory = Some(directory.clone());
        }
        self
    }

    /// Sets the policy whose mode hooks read.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Sets the function that returns the path of a session's record, if it is known.
    #[must_use]
    pub fn with_transcripts(
        mut self,
        transcripts: impl Fn(&SessionId) -> Option<PathBuf> + Send + Sync + 'static,
    ) -> Self {
        self.transcripts = Some(Arc::new(transcripts));
        self
    }

    /// Sets the function that receives each finished run. The session waits for it, so it must not block.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Fn(HookRun) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Returns the commands.
    pub fn commands(&self) -> impl Iterator<Item = &HookCommand> {
        self.groups.iter().flat_map(|group| group.commands.iter())
    }

    /// Returns the [first unknown tool](HookCommands::unknown_tool) of each set of commands.
    #[must_use]
    pub fn unknown_tools(&self, is_known: impl Fn(&str) -> bool) -> Vec<(&str, &HookCommand)> {
        self.groups.iter().filter_map(|group| group.commands.unknown_tool(&is_known)).collect()
    }

    /// Runs the commands of an event. Matchers are compared with `subjects`.
    async fn run(
        &self,
        event: HookEvent,
        session: &HookSession,
        subjects: &[&str],
        call_id: Option<&str>,
        details: impl FnOnce() -> Details,
    ) -> Vec<AttributedAnswer> {
        let mut commands = Vec::new();
        for group in &self.groups {
            commands.extend(
                group.commands.for_event(event, subjects).into_iter().map(|command| (command, group)),
            );
        }
        if commands.is_empty() {
            return Vec::new();
        }
        let input = details().into_input(event, session, self.session_facts(session));
        let run = |(command, group)| self.run_one(command, group, session, call_id, input.clone());
        join_all(commands.into_iter().map(run)).await
    }

    async fn run_one(
        &self,
        command: &HookCommand,
        group: &Group,
        session: &HookSession,
        call_id: Option<&str>,
        input: Vec<u8>,
    ) -> AttributedAnswer {
        let pending = self.start(command, session, call_id);
        let finished = group.run(command, input).await;
        let blocks =
            || for_model(&finished.stderr).unwrap_or_else(|| format!("{} blocks it", command.source));
        let answered = match finished.end {
            HookEnd::Answered(stdout) => {
                Answer::parse(command.event, &stdout).map_err(|_garbage| HookFailure::Garbage)
            }
            HookEnd::Blocked => Ok(Answer::deny(blocks())),
            HookEnd::Failed(failure) => Err(failure),
        };
        let failure = answered.as_ref().err().copied();
        let answer = answered.unwrap_or_else(|failure| unanswered(command, failure));
        pending.end(failure, finished.exit_code, &answer, &finished.stderr);
        AttributedAnswer { hook: command.source.clone(), answer }
    }

    fn start(&self, command: &HookCommand, session: &HookSession, call_id: Option<&str>) -> PendingRun<'_> {
        let run = HookRun {
            session: session.id.clone(),
            event: command.event,
            call_id: call_id.map(str::to_owned),
            hook: command.source.clone(),
            command: command.command.clone(),
            exit_code: None,
            failure: None,
            duration_ms: 0,
            answer: HookAnswer::Nothing,
            message: None,
        };
        PendingRun { observer: self.observer.as_ref(), run: Some(run), started: Instant::now() }
    }

    fn session_facts(&self, session: &HookSession) -> SessionFacts {
        let transcript = self.transcripts.as_ref().and_then(|of| of(&session.id));
        SessionFacts {
            transcript: transcript.map(|path| path.to_string_lossy().into_owned()),
            mode: self.policy.as_ref().map(|policy| policy.mode().as_str()),
        }
    }
}

impl Group {
    /// Runs a command, unless one of its programs has changed since it was trusted.
    async fn run(&self, command: &HookCommand, input: Vec<u8>) -> HookResult {
        if let Some(trusted) = &self.trusted
            && let Some(changed) = trusted.changed(command, self.env.as_ref()).await
        {
            let stderr = format!("{} is not as it was when it was trusted", changed.display());
            return HookResult { end: HookEnd::Failed(HookFailure::Changed), exit_code: None, stderr };
        }
        let project = match &self.trusted {
            Some(trusted) => trusted.workspace(),
            None => self.env.working_directory(),
        };
        let start = self.directory.as_deref().unwrap_or(project);
        run::run(self.env.as_ref(), HookDirectories { project, start }, command, input).await
    }
}

/// Returns the answer of a hook that did not answer: empty, unless the call must not run without an answer.
fn unanswered(command: &HookCommand, failure: HookFailure) -> Answer {
    if command.event != HookEvent::PreToolUse {
        return Answer::default();
    }
    let (hook, why) = (&command.source, failure.describe());
    if command.is_required {
        Answer::deny(format!("the hook {hook} is required and did not answer: {why}"))
    } else if failure == HookFailure::Changed {
        // The program may have been changed to let this call pass.
        Answer::deny(format!("the hook {hook} did not run: {why}"))
    } else {
        Answer::default()
    }
}

impl PendingRun<'_> {
    fn end(mut self, failure: Option<HookFailure>, exit_code: Option<i32>, answer: &Answer, stderr: &str) {
        /// Maximum length of an error message, in characters.
        const MAX_MESSAGE: usize = 500;
        let Some(run) = &mut self.run else { return };
        let has_error_output = failure.is_some() || !run.event.can_block();
        let error = stderr.trim().chars().take(MAX_MESSAGE).collect::<String>();
        run.failure = failure;
        run.exit_code = exit_code;
        run.answer = answer.word();
        run.message =
            answer.message.clone().or_else(|| (has_error_output && !error.is_empty()).then_some(error));
        self.report();
    }

    fn report(&mut self) {
        let Some(mut run) = self.run.take() else { return };
        run.duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let HookRun { event, hook, exit_code, .. } = &run;
        if let Some(failure) = run.failure {
            let failure = failure.describe();
            tracing::warn!(%event, hook, exit_code, "a hook did not answer: {failure}");
        } else if run.answer == HookAnswer::Deny && !event.can_block() {
            tracing::warn!(%event, hook, "a hook blocks what cannot be blocked");
        }
        if let Some(observer) = self.observer {
            observer(run);
        }
    }
}

impl Drop for PendingRun<'_> {
    fn drop(&mut self) {
        if let Some(run) = &mut self.run {
            run.failure = Some(HookFailure::Stopped);
            self.report();
        }
    }
}

#[async_trait]
impl Hooks for ExternalHooks {
    async fn session_started(&self, session: &HookSession, source: SessionSource) -> HookContext {
        let answers = if session.origin.is_some() {
            self.run(HookEvent::SubagentStart, session, &[], None, Details::none).await
        } else {
            let name = source_name(source);
            self.run(HookEvent::SessionStart, session, &[name], None, || Details::of_start(name)).await
        };
        merge::context(&answers)
    }

    async fn session_ended(&self, session: &HookSession, reason: SessionEndReason) {
        // A subagent's end has its own event, which comes earlier, while a hook can still make the subagent continue.
        if session.origin.is_none() {
            self.run(HookEvent::SessionEnd, session, &[], None, || Details::of_session_end(reason)).await;
        }
    }

    async fn before_input(&self, session: &HookSession, text: &str) -> InputAnswer {
        let details = || Details::of_prompt(text);
        merge::input(&self.run(HookEvent::UserPromptSubmit, session, &[], None, details).await)
    }

    async fn before_call(
        &self,
        session: &HookSession,
        call: &PreparedCall,
        _judgement: &Judgement,
    ) -> CallAnswer {
        let (subjects, id) = ([call.name(), call.kind()], Some(call.call_id()));
        let details = || Details::of_call(call);
        merge::call(&self.run(HookEvent::PreToolUse, session, &subjects, id, details).await)
    }

    async fn before_approval(&self, session: &HookSession, request: &ApprovalRequest) -> Option<Decision> {
        let subjects = [request.tool_name.as_str(), &request.tool_kind];
        let (id, details) = (Some(request.call_id.as_str()), || Details::of_request(request));
        merge::approval(&self.run(HookEvent::PermissionRequest, session, &subjects, id, details).await)
    }

    async fn after_call(
        &self,
        session: &HookSession,
        call: &PreparedCall,
        execution: &Execution,
        duration: Duration,
    ) -> ResultAnswer {
        let has_failed = execution.error.is_some() || execution.result.is_error;
        let event = if has_failed { HookEvent::PostToolUseFailure } else { HookEvent::PostToolUse };
        let (subjects, id) = ([call.name(), call.kind()], Some(call.call_id()));
        let details = || Details::of_result(call, execution, duration);
        merge::result(&self.run(event, session, &subjects, id, details).await)
    }

    async fn before_end(&self, session: &HookSession, text: &str, sent_on: u32) -> EndAnswer {
        let event = if session.origin.is_some() { HookEvent::SubagentStop } else { HookEvent::Stop };
        merge::end(&self.run(event, session, &[], None, || Details::of_end(text, sent_on)).await)
    }

    async fn before_compaction(&self, session: &HookSession, trigger: CompactionTrigger) -> Option<String> {
        let details = || Details::of_compaction(trigger);
        merge::blocked(&self.run(HookEvent::PreCompact, session, &[], None, details).await)
    }
}

impl fmt::Debug for ExternalHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalHooks").field("commands", &self.commands().count()).finish_non_exhaustive()
    }
}
