//! Tool calls as text, from a server that does not parse them.

use std::sync::Arc;

use pintle_agent::{EventKind, ProviderProfile, Session, SessionEvent};
use pintle_env::LocalEnvironment;
use pintle_middleware::TextToolCallForm::{
    self, DeepSeek, FencedJson, Function, Hermes, Json, Mistral, PythonTag,
};
use pintle_testkit::{Dialect, RecordedRequest, Script, ScriptedServer, ServerOptions, Turn};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{KEY, client, kinds, outputs, profile};

struct TextToolHarness {
    server: ScriptedServer,
    directory: TempDir,
    session: Session,
}

impl TextToolHarness {
    /// Starts a session with a model behind Chat Completions that responds with these texts.
    async fn new(texts: &[&str], change: impl FnOnce(ProviderProfile) -> ProviderProfile) -> Self {
        let turns = texts.iter().map(|text| Turn::text(*text));
        let script = turns.fold(Script::new("text"), Script::with_turn);
        let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.txt"), "found it\n").unwrap();
        let env = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap();
        let profile = change(profile(Dialect::ChatCompletions));
        let client = client(&server, Dialect::ChatCompletions, KEY);
        let session = Session::builder(client, profile, Arc::new(env)).build().unwrap();
        Self { server, directory, session }
    }

    async fn run(&self, text: &str) -> (Vec<SessionEvent>, String) {
        let mut run = self.session.submit(text);
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            events.push(event);
        }
        let outcome = run.await.unwrap();
        assert!(outcome.error.is_none(), "{:?}", outcome.error);
        (events, outcome.text)
    }

    /// Returns the requests, none of which violates a rule of the dialect.
    fn requests(&self) -> Vec<RecordedRequest> {
        let requests = self.server.requests();
        for request in &requests {
            assert_eq!(request.violations, [], "{}", request.body);
        }
        requests
    }
}

/// A call of `read_file` in each form.
const FORMS: [(TextToolCallForm, &str); 8] = [
    (
        Hermes,
        "<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a.txt\"}}\n</tool_call>",
    ),
    (Function, "<function=read_file>\n<parameter=file_path>\na.txt\n</parameter>\n</function>"),
    (
        Function,
        "<tool_call>\n<function=read_file>\n<parameter=file_path>\na.txt\n</parameter>\n</function>\n</tool_call>",
    ),
    (Mistral, "[TOOL_CALLS] [{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a.txt\"}}]"),
    (PythonTag, "<|python_tag|>{\"name\": \"read_file\", \"parameters\": {\"file_path\": \"a.txt\"}}"),
    (Json, "{\"name\": \"read_file\", \"parameters\": {\"file_path\": \"a.txt\"}}"),
    (FencedJson, "```json\n{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a.txt\"}}\n```"),
    (
        DeepSeek,
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n\
         {\"file_path\": \"a.txt\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_configured_form_is_a_call() {
    for streams in [true, false] {
        for (form, text) in FORMS {
            let harness = TextToolHarness::new(&[text, "Done."], |mut profile| {
                profile.supports_streaming = streams;
                profile.with_text_tool_calls([form])
            })
            .await;
            let (events, answer) = harness.run("Read a.txt").await;
            assert_eq!(answer, "Done.");
            assert!(outputs(&events)[0].contains("found it"), "{form:?}: {:?}", kinds(&events));
            let requests = harness.requests();
            let [_, second] = requests.as_slice() else { panic!("{form:?}: {} requests", requests.len()) };
            let messages = second.body["messages"].as_array().unwrap();
            let [.., call, result] = messages.as_slice() else { panic!("{messages:?}") };
            assert_eq!(call["content"], Value::Null, "nothing but the call was said");
            assert_eq!(call["tool_calls"][0]["id"], "text_call_1");
            assert_eq!(call["tool_calls"][0]["function"]["name"], "read_file");
            let arguments = call["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            assert_eq!(arguments, json!({"file_path": "a.txt"}), "{form:?}");
            assert_eq!((&result["role"], &result["tool_call_id"]), (&json!("tool"), &json!("text_call_1")));
            harness.session.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_default_text_is_text() {
    for (form, text) in FORMS {
        let harness = TextToolHarness::new(&[text], |profile| profile).await;
        let (events, answer) = harness.run("Read a.txt").await;
        assert_eq!(answer, text, "{form:?}");
        assert!(outputs(&events).is_empty() && harness.requests().len() == 1, "{form:?}");
        harness.session.close().await;
    }
}

/// Two of the supported models call twice in one response, and again in the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_calls_run_in_order_with_unique_ids() {
    let call = |command: &str| {
        format!(
            "<tool_call>{{\"name\": \"shell\", \"arguments\": {{\"command\": \"{command}\"}}}}</tool_call>"
        )
    };
    // The first call would fail if the second one had started.
    let both = format!(
        "Two steps.\n\n{}\n{}",
        call("sleep 0.1; test ! -e b && touch a"),
        call("test -e a && touch b")
    );
    let again = call("ls");
    let harness =
        TextToolHarness::new(&[&both, &again, "Done."], |profile| profile.with_text_tool_calls([Hermes]))
            .await;
    let (events, _) = harness.run("Make a, then b").await;
    assert!(harness.directory.path().join("b").exists(), "{:?}", outputs(&events));
    let started: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolCallStart { call_id, .. } => Some(call_id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(started, ["text_call_1", "text_call_2", "text_call_3"]);
    let said: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::AssistantTextEnd { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(said, ["Two steps.\n\n", "Done."], "no part of a call is shown as text");
    let requests = harness.requests();
    assert!(requests.iter().all(|request| request.body.get("parallel_tool_calls").is_none()));
    for pair in requests.windows(2) {
        let messages = |request: &RecordedRequest| request.body["messages"].as_array().unwrap().clone();
        assert!(messages(&pair[1]).starts_with(&messages(&pair[0])), "the history only grows");
    }
    harness.session.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_that_is_not_a_valid_call_is_shown() {
    let texts = [
        "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"a.t",
        "<tool_call>{\"name\": \"read_files\", \"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": \"read_file\", arguments: {}}</tool_call>",
        "To read a file I would write:\n```xml\n<tool_call>{\"name\": \"read_file\", \"arguments\": {}}</tool_call>\n```\n",
        "It begins with `<tool_call>` and `{\"name\": \"read_file\", \"arguments\": {}}` follows.",
    ];
    for text in texts {
        let harness = TextToolHarness::new(&[text], |profile| {
            profile.with_text_tool_calls([Hermes, Function, Mistral, PythonTag, Json, FencedJson, DeepSeek])
        })
        .await;
        let (events, answer) = harness.run("Read a.txt").await;
        assert_eq!(answer, text);
        assert!(outputs(&events).is_empty(), "{text}");
        harness.requests();
        harness.session.close().await;
    }
}

/// The sessions of the command are bounded by the window in the profile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_window_bounds_documents_and_outputs() {
    let call =
        "<tool_call>{\"name\": \"read_file\", \"arguments\": {\"file_path\": \"long.txt\"}}</tool_call>";
    let harness = TextToolHarness::new(&[call, "Done."], |profile| {
        profile.with_text_tool_calls([Hermes]).with_context_window(8_192)
    })
    .await;
    std::fs::write(harness.directory.path().join("long.txt"), "x".repeat(30_000)).unwrap();
    std::fs::write(harness.directory.path().join("AGENTS.md"), "é".repeat(20_000)).unwrap();
    let (events, _) = harness.run("Read it").await;
    assert!(outputs(&events)[0].len() > 30_000, "the host sees all of it");
    let requests = harness.requests();
    let messages = requests[1].body["messages"].as_array().unwrap();
    let result = messages.last().unwrap()["content"].as_str().unwrap();
    assert!(result.matches('x').count() < 4_096 && result.chars().count() < 4_096 + 400, "{}", result.len());
    assert!(result.contains("[WARNING: Tool output was truncated."), "{result}");
    let prompt = messages[0]["content"].as_str().unwrap();
    assert_eq!(prompt.matches('é').count(), 2_048);
    assert!(prompt.contains("\n[Project instructions truncated at 4KB]\n"));
    harness.session.close().await;
}
