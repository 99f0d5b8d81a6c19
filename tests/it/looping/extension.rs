//! Extension points of an application: tools, limits, environments, providers (sections 3.7, 4, 5, 9.10).

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pintle_agent::{OutcomeStatus, Session, SessionConfig};
use pintle_env::{Command, DirEntry, EnvError, ExecutionEnvironment, MemoryEnvironment, Metadata, Process};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client, Message, Role, ToolCall};
use pintle_testkit::Dialect;
use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolOutput, TruncationLimits};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::harness::{Harness, in_each_dialect, kinds, outputs, profile};

in_each_dialect![
    a_custom_tool_is_offered_and_called,
    a_custom_tool_replaces_a_profile_tool,
    limits_are_configurable
];

struct RunTests;

#[derive(Deserialize, JsonSchema)]
struct Filter {
    /// Only tests whose name contains this.
    filter: Option<String>,
}

impl Tool for RunTests {
    type Input = Filter;

    fn name(&self) -> &str {
        "run_tests"
    }

    fn description(&self) -> &str {
        "Runs the project's test suite."
    }

    fn effect(&self) -> Effect {
        Effect::Execute
    }

    async fn call(&self, input: Filter, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new(format!("ran {}", input.filter.unwrap_or_else(|| "all".into()))))
    }
}

async fn a_custom_tool_is_offered_and_called(dialect: Dialect) {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "run_tests"
        arguments = { filter = "parser" }
        [[turn]]
        text = "They pass."
        [[turn.expect]]
        call = 0
        contains = "ran parser"
        "#;
    let harness = Harness::new(dialect, turns).await;
    harness.session.handle().set_profile(profile(dialect).with_tool(RunTests).unwrap()).unwrap();
    harness.run("Test the parser").await;
    let first = harness.requests()[0].body.to_string();
    assert!(
        first.contains("Runs the project's test suite.") && first.contains("read_file"),
        "on top of the others"
    );
    harness.finish().await;
}

/// A custom `glob` with a fixed result.
struct CustomGlob;

impl Tool for CustomGlob {
    type Input = Filter;

    fn name(&self) -> &str {
        "glob"
    }

    fn description(&self) -> &str {
        "Not the profile's."
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    async fn call(&self, _: Filter, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new("mine"))
    }
}

async fn a_custom_tool_replaces_a_profile_tool(dialect: Dialect) {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"glob\"\narguments = {}\n[[turn]]\ntext = \"Ok.\"\n[[turn.expect]]\ncall = 0\ncontains = \"mine\"\n";
    let harness = Harness::new(dialect, turns).await;
    let changed = profile(dialect).with_tool(CustomGlob).unwrap();
    assert_eq!(changed.tools().len(), profile(dialect).tools().len(), "in its place");
    harness.session.handle().set_profile(changed).unwrap();
    harness.run("Go").await;
    harness.finish().await;
}

async fn limits_are_configurable(dialect: Dialect) {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = { command = "seq 1 100" }
        [[turn.call]]
        tool = "read_file"
        arguments = { file_path = "long.txt" }
        [[turn]]
        text = "Ok."
        [[turn.expect]]
        call = 0
        contains = "lines omitted ...]"
        [[turn.expect]]
        call = 1
        contains = "[WARNING: Tool output was truncated."
        "#;
    let limits = TruncationLimits::new().with_lines("shell", 10).with_chars("read_file", 200);
    let harness =
        Harness::configured(dialect, turns, SessionConfig::default().with_tool_output(limits)).await;
    harness.write("long.txt", &"abc ".repeat(100));
    let (events, _) = harness.run("Go").await;
    let whole = outputs(&events).concat();
    assert!(!whole.contains("omitted") && !whole.contains("WARNING"), "the events have all of it");
    harness.finish().await;
}

/// Every kind of event in section 2.9, within one session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_kind_of_the_specification_is_emitted() {
    let round = "[[turn]]\ntext = \"On.\"\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"echo hello\" }\n";
    let failing = "[[turn.failure]]\nstatus = 503\n[[turn.failure]]\nstatus = 400\n";
    let turns = format!("{}[[turn]]\ntext = \"never\"\n{failing}", round.repeat(3));
    let mut config = SessionConfig::default().with_max_tool_rounds(3);
    config.limits.loop_detection_window = 3;
    let harness = Harness::configured(Dialect::AnthropicMessages, &turns, config).await;
    let mut events = harness.session.events();
    harness.session.handle().steer("quickly").unwrap();
    assert_eq!(harness.run("go").await.1.status, OutcomeStatus::RoundLimit);
    assert_eq!(harness.session.submit("go on").await.unwrap().status, OutcomeStatus::Failed);
    harness.session.close().await;
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        all.push(event);
    }
    let seen = kinds(&all);
    for kind in [
        "SESSION_START",
        "USER_INPUT",
        "STEERING_INJECTED",
        "ASSISTANT_TEXT_START",
        "ASSISTANT_TEXT_DELTA",
        "ASSISTANT_TEXT_END",
        "TOOL_CALL_START",
        "TOOL_CALL_OUTPUT_DELTA",
        "TOOL_CALL_END",
        "LOOP_DETECTION",
        "TURN_LIMIT",
        "WARNING",
        "ERROR",
        "PROCESSING_END",
        "SESSION_END",
    ] {
        assert!(seen.iter().any(|other| other == kind), "{kind} is missing in {seen:?}");
    }
    assert_eq!(seen.first().unwrap(), "SESSION_START");
    assert_eq!(seen.last().unwrap(), "SESSION_END");
    let numbers: Vec<u64> =
        all.iter().filter(|event| event.offset.is_none()).map(|event| event.seq).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
}

/// A minimal custom environment: only the primitives, delegated to another environment and counted.
#[derive(Debug)]
struct CountingEnvironment {
    inner: MemoryEnvironment,
    writes: AtomicUsize,
}

#[async_trait::async_trait]
impl ExecutionEnvironment for CountingEnvironment {
    fn working_directory(&self) -> &Path {
        self.inner.working_directory()
    }

    fn platform(&self) -> &str {
        "counting"
    }

    fn os_version(&self) -> &str {
        "1"
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        self.inner.spawn(command).await
    }

    async fn read(&self, path: &Path, range: Option<Range<u64>>) -> Result<Vec<u8>, EnvError> {
        self.inner.read(path, range).await
    }

    async fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), EnvError> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.inner.write(path, bytes).await
    }

    async fn metadata(&self, path: &Path) -> Result<Metadata, EnvError> {
        self.inner.metadata(path).await
    }

    async fn list(&self, path: &Path) -> Result<Vec<DirEntry>, EnvError> {
        self.inner.list(path).await
    }

    async fn remove(&self, path: &Path) -> Result<(), EnvError> {
        self.inner.remove(path).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), EnvError> {
        self.inner.rename(from, to).await
    }
}

#[tokio::test]
async fn a_custom_environment_serves_every_tool() {
    let env = Arc::new(CountingEnvironment {
        inner: MemoryEnvironment::new("/project").with_file("/project/src/a.rs", "fn a() {}\n"),
        writes: AtomicUsize::new(0),
    });
    let calls = [
        ("write_file", r#"{"file_path": "b.txt", "content": "b"}"#),
        ("grep", r#"{"pattern": "fn a"}"#),
        ("glob", r#"{"pattern": "**/*.rs"}"#),
        ("read_file", r#"{"file_path": "src/a.rs"}"#),
        ("edit_file", r#"{"file_path": "src/a.rs", "old_string": "fn a", "new_string": "fn z"}"#),
        ("shell", r#"{"command": "true"}"#),
    ];
    let parts =
        calls.iter().map(|(name, arguments)| ToolCall::from_raw(*name, *name, *arguments).into()).collect();
    let adapter = FakeAdapter::new("anthropic").message(Message::new(Role::Assistant, parts)).answer("done");
    let client = Client::builder().provider(adapter).build().unwrap();
    let session =
        Session::builder(client, profile(Dialect::AnthropicMessages), Arc::clone(&env)).build().unwrap();
    session.submit("go").await.unwrap();
    let results: Vec<(String, bool)> = session.history()[2]
        .item
        .results()
        .map(|result| (result.tool_call_id.clone(), result.is_error))
        .collect();
    // The in-memory environment answers commands with "not found" unless they are scripted.
    let failed: Vec<&str> = results.iter().filter(|(_, error)| *error).map(|(id, _)| id.as_str()).collect();
    assert!(failed.iter().all(|id| *id == "shell"), "{results:?}");
    assert_eq!(env.writes.load(Ordering::Relaxed), 2);
    assert_eq!(env.inner.files()[&PathBuf::from("/project/src/a.rs")], b"fn z() {}\n");
}
