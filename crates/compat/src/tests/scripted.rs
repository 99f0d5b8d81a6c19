//! Sessions with a scripted model, for tests.

use std::sync::LazyLock;

use pintle_agent::{Outcome, ProviderProfile, Session, SessionEvent, SessionId, Toolset};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::Anthropic;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use serde_json::Value;

use crate::Line;

/// Id of every session in tests.
pub(crate) const SESSION: &str = "0190a000-0000-7000-8000-000000000001";

/// Returns lines as text, one below the other, without what differs from run to run: durations, token counts and the
/// directory. UUIDs and the id of the session are checked and left out.
pub(crate) fn golden(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let mut value = line.value().clone();
        normalize(&mut value);
        text.push_str(&value.to_string());
        text.push('\n');
    }
    text
}

fn normalize(value: &mut Value) {
    static DIRECTORY: LazyLock<String> =
        LazyLock::new(|| std::env::temp_dir().join(".tmp").display().to_string());
    match value {
        Value::Object(fields) => {
            if let Some(uuid) = fields.remove("uuid") {
                assert_eq!(uuid.as_str().map(str::len), Some(36), "{uuid}");
            }
            if let Some(session) = fields.remove("session_id") {
                assert_eq!(session, SESSION);
            }
            for (name, value) in fields.iter_mut() {
                match name.as_str() {
                    "usage" | "modelUsage" => *value = Value::from("TOKENS"),
                    "duration_ms" | "duration_api_ms" => *value = Value::from("MS"),
                    _ => normalize(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::String(text) => {
            if let Some((before, after)) = text.split_once(DIRECTORY.as_str()) {
                let rest = after.get(6..).unwrap_or_default();
                *text = format!("{before}/project{rest}");
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Runs one input with tools in an empty directory and returns all events until the session is closed.
pub(crate) fn run(script: &str) -> (Vec<SessionEvent>, Outcome) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let script = Script::parse(script).expect("a script");
        let server = ScriptedServer::start(script, ServerOptions::new()).await.expect("a server");
        let url = server.base_url(Dialect::AnthropicMessages);
        let provider = Anthropic::builder("any-key").with_base_url(url).build().expect("a provider");
        let client = Client::builder().provider(provider).build().expect("a client");
        let directory = tempfile::tempdir().expect("a directory");
        let env =
            LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).expect("an environment");
        let profile = ProviderProfile::anthropic("claude-opus-4-6").with_toolset(Toolset::Native);
        let session = Session::builder(client, profile, env)
            .with_id(SessionId::new(SESSION))
            .build()
            .expect("a session");
        let outcome =
            session.submit("Go.").await.or_else(pintle_agent::RunError::into_outcome).expect("an outcome");
        let mut events = session.events();
        session.close().await;
        let mut all = Vec::new();
        while let Some(event) = events.next().await {
            all.push(event);
        }
        server.shutdown().await;
        (all, outcome)
    })
}
