//! A session against the scripted server: real HTTP, a real folder, real processes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::{
    EventKind, Outcome, ProviderProfile, Session, SessionBuilder, SessionConfig, SessionEvent, SessionHandle,
};
use pintle_env::LocalEnvironment;
use pintle_llm::{Client, RetryPolicy};
use pintle_providers::{Anthropic, Gemini, OpenAi, OpenAiCompatible};
use pintle_testkit::{Dialect, RecordedRequest, Script, ScriptedServer, ServerOptions};
use tempfile::TempDir;

use crate::events::CheckedEvents;

/// The key that the server wants and nothing may show.
pub(crate) const KEY: &str = "sk-very-secret";

/// Makes one test per dialect of an async function that takes the dialect.
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

/// A client that talks to this server in this dialect with this key.
pub(crate) fn client(server: &ScriptedServer, dialect: Dialect, key: &str) -> Client {
    client_at(&server.base_url(dialect), dialect, key)
}

/// A client that talks to whatever is there.
pub(crate) fn client_at(url: &str, dialect: Dialect, key: &str) -> Client {
    let builder = Client::builder();
    let builder = match dialect {
        Dialect::OpenAiResponses => builder.provider(OpenAi::builder(key).base_url(url).build().unwrap()),
        Dialect::AnthropicMessages => {
            builder.provider(Anthropic::builder(key).base_url(url).build().unwrap())
        }
        Dialect::Gemini => builder.provider(Gemini::builder(key).base_url(url).build().unwrap()),
        Dialect::ChatCompletions => {
            builder.provider(OpenAiCompatible::builder(url).api_key(key).build().unwrap())
        }
    };
    builder.default_provider(dialect.name()).build().unwrap()
}

/// The profile of this dialect's family.
pub(crate) fn profile(dialect: Dialect) -> ProviderProfile {
    match dialect {
        Dialect::OpenAiResponses => ProviderProfile::openai("gpt-5.2-codex"),
        Dialect::AnthropicMessages => ProviderProfile::anthropic("claude-opus-4-6"),
        Dialect::Gemini => ProviderProfile::gemini("gemini-3-flash-preview"),
        Dialect::ChatCompletions => ProviderProfile::openai_compatible("local-model"),
    }
}

pub(crate) struct Lab {
    pub(crate) dialect: Dialect,
    pub(crate) server: ScriptedServer,
    pub(crate) folder: TempDir,
    pub(crate) session: Session,
    /// Holds all that happened to the schema and the order of events when the lab is dropped.
    _checked: CheckedEvents,
}

impl Lab {
    /// A session whose model follows these turns (TOML, without the name).
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
        Self::within(dialect, turns, config, |builder, _| change(builder)).await
    }

    /// As [`Lab::with`], for a change that needs the place where tools run.
    pub(crate) async fn within(
        dialect: Dialect,
        turns: &str,
        config: SessionConfig,
        change: impl FnOnce(SessionBuilder, Arc<LocalEnvironment>) -> SessionBuilder,
    ) -> Self {
        let script = Script::parse(&format!("name = \"lab\"\n{turns}")).expect("the script parses");
        let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let env = Arc::new(LocalEnvironment::with_host_env(folder.path(), std::env::vars_os()).unwrap());
        let quick =
            RetryPolicy::default().with_base_delay(Duration::from_millis(1)).with_retry_timeouts(true);
        let place = Arc::clone(&env);
        let builder = Session::builder(client(&server, dialect, KEY), profile(dialect), env);
        let session = change(builder.config(config.with_retry(quick)), place).build().unwrap();
        let checked = CheckedEvents::of(&session);
        Self { dialect, server, folder, session, _checked: checked }
    }

    /// Submits and collects every event of the run, and the outcome.
    pub(crate) async fn run(&self, text: &str) -> (Vec<SessionEvent>, Outcome) {
        let mut run = self.session.submit(text);
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            events.push(event);
        }
        let outcome = run.await.expect("the session lives");
        assert!(outcome.error.is_none(), "{:?}: {:?}", self.dialect, outcome.error);
        (events, outcome)
    }

    /// Does something while the command of a [`WAITING_TURN`] runs, and lets the run come to its end.
    pub(crate) async fn meanwhile(&self, text: &str, during: impl FnOnce(&SessionHandle)) -> Outcome {
        let mut run = self.session.submit(text);
        while !matches!(run.next().await.expect("it goes on").kind, EventKind::ToolCallStart { .. }) {}
        during(&self.session.handle());
        self.write("go", "");
        run.await.expect("the session lives")
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The requests, none of which broke a rule of its dialect.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        let requests = self.server.requests();
        for request in &requests {
            assert_eq!(request.violations, [], "{:?}: {}", self.dialect, request.body);
        }
        requests
    }

    /// Closes the session; every turn of the script was given.
    pub(crate) async fn finish(self) {
        self.requests();
        assert!(self.server.finished(self.dialect), "{:?}: the script has turns left", self.dialect);
        self.session.close().await;
    }
}

/// A turn whose command runs on until [`Lab::meanwhile`] has done what it does.
pub(crate) const WAITING_TURN: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "while [ ! -e go ]; do sleep 0.01; done", timeout_ms = 20000 }
"#;

/// A TOML call that replaces one text of a file by the dialect's own editing tool.
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

/// The events' kinds, as they are serialised.
pub(crate) fn kinds(events: &[SessionEvent]) -> Vec<String> {
    events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["kind"].as_str().unwrap().to_owned())
        .collect()
}

/// The whole output of each tool call, in the order of their ends.
pub(crate) fn outputs(events: &[SessionEvent]) -> Vec<String> {
    events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolCallEnd { output, .. } => Some(output.to_text_lossy().unwrap()),
            _ => None,
        })
        .collect()
}
