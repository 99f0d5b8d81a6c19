//! Subagents over real HTTP in each dialect: real files, real processes (loop specification, section 7).

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use pintle_agent::{EventKind, OutcomeStatus, RunError, Session, SessionEvent, Toolset, TreeEvents};
use pintle_env::LocalEnvironment;
use pintle_llm::{Client, Error, EventStream, ProviderAdapter, Request, Response, Role, ToolChoice};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use tempfile::TempDir;

use crate::harness::{KEY, client, in_each_dialect, outputs, profile};

in_each_dialect![
    spawn_and_wait,
    send_input_wait_and_close,
    native_spawn_and_wait,
    closing_the_parent_stops_its_subagents_commands,
];

/// A provider with a separate server for each conversation, selected by the conversation's first words.
#[derive(Debug)]
struct RoutingProvider {
    name: String,
    clients: Vec<(&'static str, Client)>,
}

impl RoutingProvider {
    fn find(&self, request: &Request) -> &Client {
        let first = request.messages.iter().find(|message| message.role == Role::User);
        let text = first.map(|message| message.text()).unwrap_or_default();
        let found = self.clients.iter().find(|(begins, _)| text.starts_with(begins));
        found.map(|(_, client)| client).unwrap_or_else(|| panic!("nobody plays {text:?}"))
    }
}

#[async_trait]
impl ProviderAdapter for RoutingProvider {
    fn name(&self) -> &str {
        &self.name
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        self.find(request).complete(request.clone()).await
    }

    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        self.find(request).stream(request.clone()).await
    }

    fn supports_tool_choice(&self, _choice: &ToolChoice) -> bool {
        true
    }
}

struct SubagentHarness {
    dialect: Dialect,
    servers: Vec<ScriptedServer>,
    directory: TempDir,
    session: Session,
}

impl SubagentHarness {
    /// Starts a session. Its model and those of its subagents follow these turns (TOML), selected by their first words.
    async fn new(dialect: Dialect, toolset: Toolset, parts: &[(&'static str, String)]) -> Self {
        let (mut servers, mut clients) = (Vec::new(), Vec::new());
        for (begins, turns) in parts {
            let script = Script::parse(&format!("name = \"{begins}\"\n{turns}")).expect("the script parses");
            let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
            clients.push((*begins, client(&server, dialect, KEY)));
            servers.push(server);
        }
        let directory = tempfile::tempdir().unwrap();
        let env = Arc::new(LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap());
        let profile = profile(dialect).with_toolset(toolset);
        let cast = RoutingProvider { name: profile.provider.clone(), clients };
        let client = Client::builder().provider(cast).build().unwrap();
        let session = Session::builder(client, profile, env).build().unwrap();
        Self { dialect, servers, directory, session }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// Closes the session. Every request must be valid, and every turn must have been played.
    async fn finish(self) -> Vec<SessionEvent> {
        let events = self.session.tree_events();
        self.session.close().await;
        for server in self.servers {
            for request in server.requests() {
                assert_eq!(request.violations, [], "{:?}: {}", self.dialect, request.body);
            }
            assert!(server.finished(self.dialect), "{:?}: a script has turns left", self.dialect);
            server.shutdown().await;
        }
        all(events).await
    }
}

async fn all(mut events: TreeEvents) -> Vec<SessionEvent> {
    let mut all = Vec::new();
    while let Some(event) = events.next().await {
        all.push(event);
    }
    all
}

fn of_depth(events: &[SessionEvent], depth: u32) -> Vec<SessionEvent> {
    events.iter().filter(|event| event.depth == depth).cloned().collect()
}

fn call(tool: &str, arguments: &str) -> String {
    format!("[[turn]]\n[[turn.call]]\ntool = \"{tool}\"\narguments = {arguments}\n")
}

fn text(text: &str) -> String {
    format!("[[turn]]\ntext = \"{text}\"\n")
}

fn expect(contains: &str) -> String {
    format!("[[turn.expect]]\ncall = 0\ncontains = '''{contains}'''\n")
}

async fn spawn_and_wait(dialect: Dialect) {
    let parent = [
        call("spawn_agent", "{ task = \"Write hello.txt.\", working_dir = \"sub\" }"),
        call("wait", "{ agent_id = \"agent_1\" }") + &expect("agent_id: agent_1"),
        text("It is written.") + &expect("success: true\nturns_used: 2\noutput:\nDone."),
    ];
    let child = [
        call("write_file", "{ file_path = \"hello.txt\", content = \"hello\\n\" }"),
        text("Done.") + "[[turn.expect]]\nrequest_contains = \"You are a subagent\"\n",
    ];
    let parts = [("Have", parent.concat()), ("Write", child.concat())];
    let harness = SubagentHarness::new(dialect, Toolset::Spec, &parts).await;
    std::fs::create_dir(harness.path("sub")).unwrap();
    let outcome = harness.session.submit("Have it written.").await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "It is written."));
    assert_eq!(std::fs::read_to_string(harness.path("sub/hello.txt")).unwrap(), "hello\n");
    // The subagent's conversation contains nothing of its parent's.
    let first = &harness.servers[1].requests()[0].body.to_string();
    assert!(!first.contains("Have it written.") && !first.contains("spawn_agent"), "{first}");
    let parents = harness.servers[0].requests().last().unwrap().body.to_string();
    assert!(!parents.contains("hello.txt\\\",\\\"content"), "{parents}");
    let events = harness.finish().await;
    assert!(events.iter().any(|event| matches!(event.kind, EventKind::SubagentSpawned { .. })));
    assert_eq!(of_depth(&events, 1).len(), events.iter().filter(|event| event.parent.is_some()).count());
}

async fn send_input_wait_and_close(dialect: Dialect) {
    let parent = [
        call("spawn_agent", "{ task = \"Look around.\" }"),
        call("wait", "{ agent_id = \"agent_1\" }"),
        call("send_input", "{ agent_id = \"agent_1\", message = \"And in sub?\" }"),
        call("wait", "{ agent_id = \"agent_1\" }") + &expect("The message was sent to agent_1."),
        call("close_agent", "{ agent_id = \"agent_1\" }") + &expect("Nothing there either."),
        call("wait", "{ agent_id = \"agent_9\" }") + &expect("agent_1 is closed. Final status: completed"),
        text("Nothing at all.") + &expect("there is no subagent \"agent_9\"; there are: agent_1 (closed)"),
    ];
    let child = [
        text("Nothing here."),
        text("Nothing there either.") + "[[turn.expect]]\nrequest_contains = \"And in sub?\"\n",
    ];
    let parts = [("Ask", parent.concat()), ("Look", child.concat())];
    let harness = SubagentHarness::new(dialect, Toolset::Spec, &parts).await;
    assert_eq!(harness.session.submit("Ask around.").await.unwrap().text, "Nothing at all.");
    let events = harness.finish().await;
    let ends = events.iter().filter(|event| matches!(event.kind, EventKind::SubagentEnded { .. }));
    assert_eq!(ends.count(), 1, "close_agent ended it, and the parent's end not again");
}

async fn native_spawn_and_wait(dialect: Dialect) {
    let parent = match dialect {
        Dialect::OpenAiResponses => {
            call("spawn_agent", "{ message = \"Look around.\" }")
                + &call("wait", "{ ids = [\"agent_1\"], timeout_ms = 60000 }")
        }
        Dialect::AnthropicMessages => call(
            "Task",
            "{ description = \"look\", prompt = \"Look around.\", subagent_type = \"general-purpose\" }",
        ),
        Dialect::Gemini => {
            call("invoke_agent", "{ agent_name = \"codebase_investigator\", prompt = \"Look around.\" }")
        }
        Dialect::ChatCompletions => {
            call("spawn_agent", "{ task = \"Look around.\" }") + &call("wait", "{ agent_id = \"agent_1\" }")
        }
    };
    let parent = parent + &text("Nothing.") + &expect("Nothing here.");
    let parts = [("Ask", parent), ("Look", text("Nothing here."))];
    let harness = SubagentHarness::new(dialect, Toolset::Native, &parts).await;
    assert_eq!(harness.session.submit("Ask around.").await.unwrap().text, "Nothing.");
    let events = harness.finish().await;
    assert!(outputs(&of_depth(&events, 0)).last().unwrap().contains("Nothing here."));
}

async fn closing_the_parent_stops_its_subagents_commands(dialect: Dialect) {
    let parent = call("spawn_agent", "{ task = \"Sleep.\" }") + &call("wait", "{ agent_id = \"agent_1\" }");
    let stubborn =
        "{ command = \"echo $$ > pid; trap '' TERM; sleep 600 & wait; sleep 600\", timeout_ms = 600000 }";
    let parts = [("Have", parent), ("Sleep", call("shell", stubborn))];
    let harness = SubagentHarness::new(dialect, Toolset::Spec, &parts).await;
    let run = harness.session.submit("Have it sleep.");
    let pid = loop {
        let pid = std::fs::read_to_string(harness.path("pid")).unwrap_or_default();
        if !pid.trim().is_empty() {
            break pid.trim().to_owned();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let process = Path::new("/proc").join(pid);
    assert!(process.exists());
    let asked = Instant::now();
    let events = harness.finish().await;
    assert!(matches!(run.await, Err(RunError::Closed { outcome: Some(_) })));
    assert!(!process.exists(), "a command that ignores TERM is killed before the session ends");
    assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
    let told: Vec<(u32, String)> = events
        .iter()
        .map(|event| (event.depth, crate::harness::kinds(std::slice::from_ref(event)).concat()))
        .collect();
    let wanted = [(1, "SESSION_END"), (0, "SUBAGENT_ENDED"), (0, "PROCESSING_END"), (0, "SESSION_END")];
    let ends: Vec<(u32, &str)> = told.iter().map(|(depth, kind)| (*depth, kind.as_str())).collect();
    assert_eq!(ends[ends.len() - 4..], wanted, "{dialect:?}");
}

/// The target of a link decides, not its own path.
#[tokio::test]
async fn a_subagent_cannot_leave_its_directory_by_a_link() {
    let dialect = Dialect::AnthropicMessages;
    let parent = call("spawn_agent", "{ task = \"x\", working_dir = \"out\" }")
        + &text("So not.")
        + &expect("is not below");
    let harness = SubagentHarness::new(dialect, Toolset::Spec, &[("Go", parent)]).await;
    std::os::unix::fs::symlink("/tmp", harness.path("out")).unwrap();
    assert_eq!(harness.session.submit("Go out.").await.unwrap().text, "So not.");
    harness.finish().await;
}
