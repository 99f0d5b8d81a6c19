//! A session with the scripted server: real HTTP, a real directory, real processes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::{
    EventKind, Outcome, ProviderProfile, Session, SessionBuilder, SessionConfig, SessionEvent, SessionHandle,
};
use pintle_env::{ExecutionEnvironment, LocalEnvironment};
use pintle_llm::{Client, RetryPolicy};
use pintle_providers::{Anthropic, Gemini, OpenAi, OpenAiCompatible};
use pintle_testkit::{Dialect, RecordedRequest, Script, ScriptedServer, ServerOptions};
use tempfile::TempDir;

use crate::events::CheckedEvents;
use crate::secrets::log::record_logs;

/// The key that the server requires. It must never be shown.
pub(crate) const KEY: &str = "sk-very-secret";

/// Generates one test per dialect from an async function that takes the dialect.
macro_rules! in_each_dialect {
    ($($name:ident),+ $(,)?) => {
        in_each_dialect!(@ openai, OpenAiResponses, $($name),+);
        in_each_dialect!(@ anthropic, AnthropicMessages, $($name),+);
        in_each_dialect!(@ gemini, Gemini, $($name),+);
        in_each_dialect!(@ compatible, ChatCompletions, $($name),+);
    };
    (@ $module:ident, $dialect:ident, $($name:ident),+) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name(pintle_testkit::Dialect::$dialect).await;
                }
            )+
        }
    };
}
pub(crate) use in_each_dialect;

/// Returns a client for this server, dialect and key.
pub(crate) fn client(server: &ScriptedServer, dialect: Dialect, key: &str) -> Client {
    client_at(&server.base_url(dialect), dialect, key)
}

/// Returns a client for the server at `url`.
pub(crate) fn client_at(url: &str, dialect: Dialect, key: &str) -> Client {
    let builder = Client::builder();
    let builder = match dialect {
        Dialect::OpenAiResponses => {
            builder.provider(OpenAi::builder(key).with_base_url(url).build().unwrap())
        }
        Dialect::AnthropicMessages => {
            builder.provider(Anthropic::builder(key).with_base_url(url).build().unwrap())
        }
        Dialect::Gemini => builder.provider(Gemini::builder(key).with_base_url(url).build().unwrap()),
        Dialect::ChatCompletions => {
            builder.provider(OpenAiCompatible::builder(url).with_api_key(key).build().unwrap())
        }
    };
    builder.default_provider(dialect.name()).build().unwrap()
}

/// Returns the profile of this dialect's model family.
pub(crate) fn profile(dialect: Dialect) -> ProviderProfile {
    match dialect {
        Dialect::OpenAiResponses => ProviderProfile::openai("gpt-5.2-codex"),
        Dialect::AnthropicMessages => ProviderProfile::anthropic("claude-opus-4-6"),
        Dialect::Gemini => ProviderProfile::gemini("gemini-3-flash-preview"),
        Dialect::ChatCompletions => ProviderProfile::openai_compatible("local-model"),
    }
}

pub(crate) struct Harness {
    pub(crate) dialect: Dialect,
    pub(crate) server: ScriptedServer,
    pub(crate) directory: TempDir,
    pub(crate) session: Session,
    /// Checks all events against the schema and their order on drop.
    _checked: CheckedEvents,
}

impl Harness {
    /// Starts a session whose model follows these turns (TOML, without the name).
    pub(crate) async fn new(dialect: Dialect, turns: &str) -> Self {
        Self::with(dialect, turns, SessionConfig::default(), |builder| builder).await
    }

    pub(crate) async fn configured(dialect: Dialect, turns: &str, config: SessionConfig) -> Self {
        Self::with(dialect, turns, config, |builder| builder).await
    }

    pub(crate) async fn with(
        dialect: Dialect,
        turns: &str,
        config: SessionConfig,
        change: impl FnOnce(SessionBuilder) -> SessionBuilder,
    ) -> Self {
        Self::with_env(dialect, turns, config, |builder, _| change(builder)).await
    }

    /// Like [`Harness::with`], for a change that needs the execution environment.
    pub(crate) async fn with_env(
        dialect: Dialect,
        turns: &str,
        config: SessionConfig,
        change: impl FnOnce(SessionBuilder, Arc<LocalEnvironment>) -> SessionBuilder,
    ) -> Self {
        record_logs();
        let directory = tempfile::tempdir().unwrap();
        let env = Arc::new(LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap());
        let shared_env = Arc::clone(&env);
        Self::start(dialect, turns, config, directory, env, |builder| change(builder, shared_env)).await
    }

    /// Starts a session in an environment, which is made for the directory of the harness or ignores it.
    pub(crate) async fn in_env(
        dialect: Dialect,
        turns: &str,
        make_env: impl FnOnce(&Path) -> Arc<dyn ExecutionEnvironment>,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let env = make_env(directory.path());
        Self::start(dialect, turns, SessionConfig::default(), directory, env, |builder| builder).await
    }

    async fn start(
        dialect: Dialect,
        turns: &str,
        config: SessionConfig,
        directory: TempDir,
        env: Arc<dyn ExecutionEnvironment>,
        change: impl FnOnce(SessionBuilder) -> SessionBuilder,
    ) -> Self {
        let script = Script::parse(&format!("name = \"harness\"\n{turns}")).expect("the script parses");
        let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
        let quick =
            RetryPolicy::default().with_base_delay(Duration::from_millis(1)).with_retry_timeouts(true);
        let builder = Session::builder(client(&server, dialect, KEY), profile(dialect), env);
        let session = change(builder.with_config(config.with_retry(quick))).build().unwrap();
        let checked = CheckedEvents::of(&session);
        Self { dialect, server, directory, session, _checked: checked }
    }

    /// Submits a text. Returns every event of the run, and the outcome.
    pub(crate) async fn run(&self, text: &str) -> (Vec<SessionEvent>, Outcome) {
        let mut run = self.session.submit(text);
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            events.push(event);
        }
        let outcome = run.await.or_else(pintle_agent::RunError::into_outcome).expect("the session lives");
        assert!(outcome.error.is_none(), "{:?}: {:?}", self.dialect, outcome.error);
        (events, outcome)
    }

    /// Runs `during` while the command of a [`WAITING_TURN`] runs, then waits for the outcome.
    pub(crate) async fn while_command_runs(
        &self,
        text: &str,
        during: impl AsyncFnOnce(&SessionHandle),
    ) -> Outcome {
        let mut run = self.session.submit(text);
        while !matches!(run.next().await.expect("it goes on").kind, EventKind::ToolCallStart { .. }) {}
        during(&self.session.handle()).await;
        self.write("go", "");
        run.await.or_else(pintle_agent::RunError::into_outcome).expect("the session lives")
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Returns the requests, none of which violates a rule of its dialect.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        let requests = self.server.requests();
        for request in &requests {
            assert_eq!(request.violations, [], "{:?}: {}", self.dialect, request.body);
        }
        requests
    }

    /// Closes the session. Every turn of the script must have been played.
    pub(crate) async fn finish(self) {
        self.requests();
        assert!(self.server.finished(self.dialect), "{:?}: the script has turns left", self.dialect);
        self.session.close().await;
    }
}

/// A turn whose command runs until [`Harness::while_command_runs`] has called its function.
pub(crate) const WAITING_TURN: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "while [ ! -e go ]; do sleep 0.01; done", timeout_ms = 20000 }
"#;

/// Returns a TOML call that replaces a text in a file with the editing tool of the dialect.
pub(crate) fn edit(dialect: Dialect, file: &str, old: &str, new: &str) -> String {
    match dialect {
        Dialect::OpenAiResponses => format!(
            "[[turn.call]]\ntool = \"apply_patch\"\narguments = {{ patch = '''\n*** Begin Patch\n*** Update File: {file}\n@@\n-{old}\n+{new}\n*** End Patch\n''' }}\n"
        ),
        Dialect::AnthropicMessages | Dialect::Gemini | Dialect::ChatCompletions => format!(
            "[[turn.call]]\ntool = \"edit_file\"\narguments = {{ file_path = \"{file}\", old_string = '{old}', new_string = '{new}' }}\n"
        ),
    }
}

/// Returns the serialized kinds of the events.
pub(crate) fn kinds(events: &[SessionEvent]) -> Vec<String> {
    events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["kind"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the complete output of each tool call, in the order in which they ended.
pub(crate) fn outputs(events: &[SessionEvent]) -> Vec<String> {
    events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolCallEnd { output, .. } => Some(output.to_text_lossy().unwrap()),
            _ => None,
        })
        .collect()
}
