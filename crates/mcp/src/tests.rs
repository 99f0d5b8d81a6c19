//! Servers as real processes, with their faults.
#![expect(clippy::disallowed_methods, reason = "the files of the servers are those of this machine")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pintle_env::{ExecutionEnvironment, LocalEnvironment};
use pintle_llm::ToolCall;
use pintle_tools::pipeline::{Execution, RunOptions, run};
use pintle_tools::{ToolContext, ToolErrorKind, ToolRegistry};
use serde_json::{Map, json};

use crate::{
    Elicitation, ElicitationAnswer, ElicitationRequest, Elicitor, McpServers, PromptRole, ServerErrorKind,
    ServerName, ServerSpec, ServerTransport, StdioServer,
};

/// Deadline for anything that normally happens at once.
const TIMEOUT: Duration = Duration::from_secs(60);

struct Fixture {
    directory: tempfile::TempDir,
    env: Arc<dyn ExecutionEnvironment>,
}

impl Fixture {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("server.py"), include_str!("tests/server.py")).unwrap();
        let env =
            LocalEnvironment::builder(directory.path()).with_host_env(std::env::vars_os()).build().unwrap();
        let env: Arc<dyn ExecutionEnvironment> = Arc::new(env);
        env.initialize().await.unwrap();
        Self { directory, env }
    }

    fn spec(&self, faults: &[&str]) -> ServerSpec {
        let arguments = [&["server.py"], faults].concat();
        let server =
            StdioServer::new("python3", arguments).with_env("SERVER_LOG", self.directory.path().join("log"));
        ServerSpec::new(name(), ServerTransport::Stdio(server))
    }

    fn servers(&self, faults: &[&str]) -> McpServers {
        McpServers::new(Arc::clone(&self.env), [self.spec(faults)])
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    fn context(&self) -> ToolContext {
        ToolContext::new(Arc::clone(&self.env), "")
    }
}

fn name() -> ServerName {
    "s".parse().unwrap()
}

/// Calls a tool as a session does.
async fn call(servers: &McpServers, cx: &ToolContext, tool: &str, text: &str) -> Execution {
    let mut registry = ToolRegistry::new();
    servers.list(&name()).await.unwrap();
    assert!(servers.register(&mut registry, usize::MAX).is_empty());
    let arguments = json!({"text": text}).to_string();
    let call = ToolCall::from_raw("call", format!("mcp__s__{tool}"), arguments);
    run(&registry, &call, cx, &RunOptions::new()).await
}

/// Waits until something is so.
async fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap_or_else(|_| panic!("{what}: not so in time"));
}

#[tokio::test]
async fn a_server_is_started_at_its_first_use_and_ends_with_its_session() {
    let fixture = Fixture::new().await;
    let (servers, cx) = (fixture.servers(&[]), fixture.context());
    assert!(!servers.is_running(&name()).await && fixture.log().is_empty());
    let echoed = call(&servers, &cx, "echo", "hello").await;
    assert_eq!((echoed.result.text().as_str(), echoed.error), ("hello", None));
    let failed = call(&servers, &cx, "fail", "").await;
    assert_eq!((failed.result.text().as_str(), failed.error), ("no such city", Some(ToolErrorKind::Failed)));
    servers.close().await;
    let log = fixture.log();
    assert_eq!(log.matches("started").count(), 1, "{log}");
    assert!(log.ends_with("end of input\n"), "it may end on its own: {log}");
    let error = servers.list(&name()).await.unwrap_err();
    assert_eq!(error.to_string(), "MCP server `s` was ended with its session");
}

#[tokio::test]
async fn versions_and_habits_of_servers_are_accepted() {
    for faults in [&["older"][..], &["rubbish"], &["strict"], &["nulls"], &["nulls", "newest"]] {
        let fixture = Fixture::new().await;
        let servers = fixture.servers(faults);
        let echoed = call(&servers, &fixture.context(), "echo", "hello").await;
        assert_eq!(echoed.result.text(), "hello", "{faults:?}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_start_is_explained_and_not_tried_for_ever() {
    let fixture = Fixture::new().await;
    let servers = fixture.servers(&["exits", "rubbish"]);
    for _ in 0..3 {
        let error = servers.list(&name()).await.unwrap_err();
        assert_eq!(error.kind(), ServerErrorKind::Start);
        assert_eq!(
            error.to_string(),
            "MCP server `s` ended during the handshake: it exited with code 2; 4 lines on its standard output were no \
             messages, the first: Welcome to the server!; its standard error: error: no configuration"
        );
    }
    let error = servers.list(&name()).await.unwrap_err().to_string();
    assert_eq!(error, "MCP server `s` has failed to start 3 times and is not tried again in this session");
    let missing = StdioServer::new("no-such-program", [""; 0]);
    let spec = ServerSpec::new(name(), ServerTransport::Stdio(missing));
    let error =
        McpServers::new(Arc::clone(&fixture.env), [spec]).list(&name()).await.unwrap_err().to_string();
    assert!(error.starts_with("MCP server `s` could not be started: "), "{error}");
    assert!(error.to_lowercase().contains("no such file or directory"), "{error}");
    let undeclared = servers.list(&"other".parse().unwrap()).await.unwrap_err().to_string();
    assert_eq!(undeclared, "MCP server `other` is not declared");
}

#[tokio::test]
async fn a_server_that_hangs_in_the_handshake_is_ended() {
    let fixture = Fixture::new().await;
    let spec = fixture.spec(&["silent"]).with_start_timeout(Duration::from_millis(300));
    let servers = McpServers::new(Arc::clone(&fixture.env), [spec]);
    let error = servers.list(&name()).await.unwrap_err().to_string();
    assert_eq!(error, "MCP server `s` did not complete the handshake within 0.3 s");
    fixture.env.cleanup().await.unwrap();
    let pid = fixture.log().lines().next().map(|line| line.replace("started ", "")).unwrap_or_default();
    assert!(pid.is_empty() || !is_running(&pid), "{pid} still runs");
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_started_again() {
    let fixture = Fixture::new().await;
    let (servers, cx) = (fixture.servers(&[]), fixture.context());
    let died = call(&servers, &cx, "die", "").await;
    assert_eq!(
        died.result.text(),
        "Tool error (mcp__s__die): MCP server `s` is gone: it exited with code 3; its standard error: fatal: out of luck"
    );
    assert_eq!(call(&servers, &cx, "echo", "again").await.result.text(), "again");
    servers.close().await;
    assert_eq!(fixture.log().matches("started").count(), 2);
}

#[tokio::test]
async fn a_message_without_an_end_ends_the_server() {
    let fixture = Fixture::new().await;
    let (servers, cx) = (fixture.servers(&[]), fixture.context());
    let huge = call(&servers, &cx, "huge", "").await;
    let expected = "Tool error (mcp__s__huge): MCP server `s` is gone: it sent a message above 64 MiB";
    assert_eq!(huge.result.text(), expected);
    assert_eq!(call(&servers, &cx, "echo", "again").await.result.text(), "again");
    servers.close().await;
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server() {
    let fixture = Fixture::new().await;
    let (servers, cx) = (fixture.servers(&[]), fixture.context());
    let stop = async {
        wait_until("the call", || fixture.log().contains("waiting")).await;
        cx.cancel.cancel();
    };
    let (cancelled, ()) = tokio::join!(call(&servers, &cx, "wait", ""), stop);
    assert_eq!(cancelled.error, Some(ToolErrorKind::Cancelled));
    wait_until("the notification", || fixture.log().contains("notifications/cancelled")).await;
    assert_eq!(call(&servers, &fixture.context(), "echo", "on").await.result.text(), "on");
    servers.close().await;
}

#[tokio::test]
async fn a_call_may_take_long_as_long_as_it_makes_progress() {
    let fixture = Fixture::new().await;
    let spec = fixture.spec(&[]).with_call_timeout(Duration::from_millis(700));
    let servers = McpServers::new(Arc::clone(&fixture.env), [spec]);
    let seen = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&seen);
    let cx = fixture.context().with_on_output(Arc::new(move |chunk| {
        sink.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk.bytes));
    }));
    let done = call(&servers, &cx, "progress", "0.3").await;
    assert_eq!(done.result.text(), "done");
    assert_eq!(*seen.lock().unwrap(), "1/4 step 1\n2/4 step 2\n3/4 step 3\n4/4 step 4\n");
    let waited = call(&servers, &cx, "wait", "").await;
    let expected = "Tool error (mcp__s__wait): MCP server `s` did not answer within 0.7 s";
    assert_eq!((waited.result.text().as_str(), waited.error), (expected, Some(ToolErrorKind::TimedOut)));
    servers.close().await;
}

/// Answers after a while.
struct Ada(Duration);

#[async_trait]
impl Elicitor for Ada {
    async fn elicit(&self, question: Elicitation) -> ElicitationAnswer {
        assert_eq!((question.server, question.message.as_str()), (name(), "Who?"));
        assert!(matches!(question.request, ElicitationRequest::Form(_)));
        tokio::time::sleep(self.0).await;
        ElicitationAnswer::Accept(Map::from_iter([("name".to_owned(), json!("Ada"))]))
    }
}

#[tokio::test]
async fn a_person_may_take_longer_than_a_call() {
    let fixture = Fixture::new().await;
    let spec = fixture.spec(&[]).with_call_timeout(Duration::from_millis(300));
    let elicitor = Arc::new(Ada(Duration::from_millis(900)));
    let servers = McpServers::with_elicitor(Arc::clone(&fixture.env), [spec], elicitor);
    let asked = call(&servers, &fixture.context(), "ask", "").await;
    assert_eq!(asked.result.text(), r#"{"action": "accept", "content": {"name": "Ada"}}"#);
    servers.close().await;
    let nobody = fixture.servers(&[]);
    let asked = call(&nobody, &fixture.context(), "ask", "").await;
    assert_eq!(asked.result.text(), r#"{"action": "cancel"}"#);
    nobody.close().await;
}

#[tokio::test]
async fn lists_are_bounded_and_what_no_provider_accepts_is_named() {
    let fixture = Fixture::new().await;
    let many = fixture.servers(&["many"]);
    assert_eq!(many.list(&name()).await.unwrap().len(), 5000);
    let mut registry = ToolRegistry::new();
    assert!(many.register(&mut registry, usize::MAX).is_empty());
    assert!(registry.names().is_sorted() && registry.names().count() == 5000);
    many.close().await;
    let endless = fixture.servers(&["endless"]);
    assert_eq!(endless.list(&name()).await.unwrap().len(), 8);
    endless.close().await;
    let schemas = fixture.servers(&["schemas"]);
    schemas.list(&name()).await.unwrap();
    let mut registry = ToolRegistry::new();
    let refused: Vec<String> =
        schemas.register(&mut registry, usize::MAX).iter().map(ToString::to_string).collect();
    assert_eq!(registry.names().collect::<Vec<_>>(), ["mcp__s__none", "mcp__s__round"], "{refused:?}");
    assert_eq!(refused.len(), 2, "{refused:?}");
    schemas.close().await;
}

#[tokio::test]
async fn a_malformed_tool_is_left_out_alone() {
    for faults in [&["malformed"][..], &["malformed", "newest"]] {
        let fixture = Fixture::new().await;
        let servers = fixture.servers(faults);
        servers.list(&name()).await.unwrap();
        for max_bytes in [0, usize::MAX] {
            let mut registry = ToolRegistry::new();
            let refused: Vec<String> =
                servers.register(&mut registry, max_bytes).iter().map(ToString::to_string).collect();
            assert_eq!(refused, ["tool `mcp__s__bad` cannot be registered"], "{faults:?}");
            let call = ToolCall::from_raw("call", "mcp__s__echo", r#"{"text": "hello"}"#);
            let echoed = run(&registry, &call, &fixture.context(), &RunOptions::new()).await;
            assert_eq!(echoed.result.text(), "hello", "{faults:?}");
        }
        servers.close().await;
    }
}

#[tokio::test]
async fn malformed_resources_and_prompts_are_left_out_alone() {
    let faults = ["malformed", "offers", "templates"];
    let newest = [&faults[..], &["newest"]].concat();
    for faults in [&faults[..], &newest[..]] {
        let fixture = Fixture::new().await;
        let servers = fixture.servers(faults);
        servers.list(&name()).await.unwrap();
        let mut registry = ToolRegistry::new();
        assert_eq!(servers.register(&mut registry, usize::MAX).len(), 1, "{faults:?}");
        let call = ToolCall::from_raw("call", "list_mcp_resources", r#"{"server": "s"}"#);
        let listed = run(&registry, &call, &fixture.context(), &RunOptions::new()).await.result.text();
        let (found, left_out) = listed.split_once("\nLeft out of `s`, malformed: ").unwrap();
        let expected =
            "s: memo:///a, a, text/plain, 5 bytes, First. Memo.\ns: memo:///{name}, memos, template";
        assert_eq!(found, expected, "{faults:?}");
        assert!(
            left_out.starts_with("`memo:///bad`: `name`: invalid type: integer"),
            "{faults:?}: {left_out}"
        );
        assert!(left_out.contains("; `bad`: missing field `uriTemplate`"), "{faults:?}: {left_out}");
        let prompts = servers.prompts(&name()).await.unwrap();
        let commands: Vec<&str> = prompts.iter().map(|prompt| prompt.command.as_str()).collect();
        assert_eq!(commands, ["mcp__s__review"], "{faults:?}");
        servers.close().await;
    }
}

#[tokio::test]
async fn a_search_offers_only_tools_that_can_be_called() {
    let fixture = Fixture::new().await;
    let servers = fixture.servers(&["schemas"]);
    let mut registry = ToolRegistry::new();
    assert!(servers.register(&mut registry, 0).is_empty());
    for query in ["", "outside wrong round none"] {
        let call = ToolCall::from_raw("call", "search_tools", json!({"query": query}).to_string());
        let found = run(&registry, &call, &fixture.context(), &RunOptions::new()).await.result.text();
        let (offered, left_out) = found.split_once("Left out, ").unwrap();
        for (tool, is_offered) in [("none", true), ("round", true), ("outside", false), ("wrong", false)] {
            let name = format!("mcp__s__{tool}");
            assert_eq!(offered.contains(&name), is_offered, "{query}: {tool}");
            assert_eq!(left_out.contains(&name), !is_offered, "{query}: {tool}");
            assert_eq!(registry.find(&name).is_some(), is_offered, "{query}: {tool}");
        }
    }
    servers.close().await;
}

#[tokio::test]
async fn whatever_a_server_has_started_ends_with_it() {
    for faults in [&[][..], &["stays"]] {
        let fixture = Fixture::new().await;
        let servers = fixture.servers(faults);
        let pids = call(&servers, &fixture.context(), "pid", "").await.result.text().to_owned();
        assert_eq!(pids.split(' ').filter(|pid| is_running(pid)).count(), 2, "{pids}");
        servers.close().await;
        assert_eq!(pids.split(' ').filter(|pid| is_running(pid)).count(), 0, "{faults:?}: {pids}");
        // Without an end of its own as well.
        let servers = fixture.servers(faults);
        let pids = call(&servers, &fixture.context(), "pid", "").await.result.text().to_owned();
        drop(servers);
        fixture.env.cleanup().await.unwrap();
        assert_eq!(pids.split(' ').filter(|pid| is_running(pid)).count(), 0, "{faults:?}: {pids}");
    }
}

/// Returns whether a process runs. One that has exited and was not waited for does not.
fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

#[tokio::test]
async fn tools_above_a_limit_are_found_and_called_without_being_defined() {
    let fixture = Fixture::new().await;
    let (servers, cx) = (fixture.servers(&[]), fixture.context());
    let mut registry = ToolRegistry::new();
    assert!(servers.register(&mut registry, 100).is_empty());
    let before = registry.definitions();
    assert_eq!(registry.names().collect::<Vec<_>>(), ["search_tools", "call_tool"]);
    let called = async |name: &str, arguments: serde_json::Value| {
        let call = ToolCall::from_raw("call", name, arguments.to_string());
        run(&registry, &call, &cx, &RunOptions::new()).await.result.text().to_owned()
    };
    let found = called("search_tools", json!({"query": "echo", "limit": 1})).await;
    assert!(
        found.starts_with("mcp__s__echo: Does echo.\n  parameters: {\"properties\":{\"text\""),
        "{found}"
    );
    let echo = json!({"name": "mcp__s__echo", "arguments": {"text": "hello"}});
    assert_eq!(called("call_tool", echo).await, "hello");
    assert_eq!(called("mcp__s__echo", json!({"text": "by its name"})).await, "by its name");
    let wrong = called("call_tool", json!({"name": "mcp__s__echo", "arguments": {"text": 7}})).await;
    assert!(wrong.starts_with("Invalid arguments for tool: mcp__s__echo\n"), "{wrong}");
    let unknown = called("call_tool", json!({"name": "mcp__s__ecco"})).await;
    assert!(unknown.starts_with("Unknown tool: mcp__s__ecco. Did you mean mcp__s__echo, "), "{unknown}");
    let server = called("search_tools", json!({"query": "echo", "server": "x"})).await;
    assert_eq!(server, "Tool error (search_tools): there is no server `x`: expected one of s");
    assert_eq!(registry.definitions(), before);
    servers.close().await;
}

#[tokio::test]
async fn tools_of_an_earlier_session_need_no_server() {
    let fixture = Fixture::new().await;
    let first = fixture.servers(&[]);
    let listing = first.list(&name()).await.unwrap();
    first.close().await;
    let started = fixture.log().matches("started").count();
    let second = fixture.servers(&[]);
    second.remember(&name(), listing);
    let mut registry = ToolRegistry::new();
    assert!(second.register(&mut registry, 10_000).is_empty());
    assert_eq!(registry.names().count(), 8);
    assert_eq!(fixture.log().matches("started").count(), started);
    let call = ToolCall::from_raw("call", "mcp__s__echo", r#"{"text": "now"}"#);
    let echoed = run(&registry, &call, &fixture.context(), &RunOptions::new()).await;
    assert_eq!(echoed.result.text(), "now");
    second.close().await;
}

#[tokio::test]
async fn a_list_that_changes_is_listed_again_between_runs() {
    for faults in [&["changes"][..], &["changes", "newest"]] {
        require_new_list(&Fixture::new().await, faults).await;
    }
}

async fn require_new_list(fixture: &Fixture, faults: &[&str]) {
    let (servers, cx) = (fixture.servers(faults), fixture.context());
    let mut registry = ToolRegistry::new();
    servers.list(&name()).await.unwrap();
    assert!(servers.register(&mut registry, usize::MAX).is_empty());
    assert!(!servers.refresh().await);
    let before = registry.definitions();
    let call = ToolCall::from_raw("call", "mcp__s__echo", "{}");
    run(&registry, &call, &cx, &RunOptions::new()).await;
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    while !servers.refresh().await {
        assert!(tokio::time::Instant::now() < deadline, "the change was not told in time");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(registry.definitions(), before, "nothing changes under way");
    let mut registry = ToolRegistry::new();
    assert!(servers.register(&mut registry, usize::MAX).is_empty());
    assert_eq!(registry.names().collect::<Vec<_>>(), ["mcp__s__echo"]);
    servers.close().await;
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let fixture = Fixture::new().await;
    for faults in [&["offers"][..], &["offers", "newest", "templates"]] {
        let servers = fixture.servers(faults);
        let listing = servers.list(&name()).await.unwrap();
        assert!(listing.has_resources());
        let mut registry = ToolRegistry::new();
        assert!(servers.register(&mut registry, usize::MAX).is_empty());
        let cx = fixture.context();
        let called = async |name: &str, arguments: serde_json::Value| {
            let call = ToolCall::from_raw("call", name, arguments.to_string());
            run(&registry, &call, &cx, &RunOptions::new()).await.result
        };
        let listed = called("list_mcp_resources", json!({"server": "s"})).await.text().to_owned();
        assert!(
            listed.starts_with("s: memo:///a, a, text/plain, 5 bytes, First. Memo.\ns: memo:///0, n0\n"),
            "{listed}"
        );
        assert!(listed.ends_with("more: narrow the list with `server` or `query`]"), "{listed}");
        let found = called("list_mcp_resources", json!({"query": "MEMOS"})).await.text().to_owned();
        let expected = match faults.contains(&"templates") {
            true => "s: memo:///{name}, memos, template",
            false => "There are no such resources.",
        };
        assert_eq!(found, expected, "{faults:?}");
        let read = async |uri: &str| called("read_mcp_resource", json!({"server": "s", "uri": uri})).await;
        assert_eq!(read("memo:///a").await.text(), "hello");
        assert_eq!(read("memo:///png").await.images.len(), 1);
        let large = read("memo:///bin").await;
        assert!(large.text().len() < 100_000, "it passes the limits of any tool");
        assert!(large.text().contains("[a/b, 3 bytes, not shown: "), "{}", large.text());
        let missing = read("memo:///none").await.text().to_owned();
        assert!(missing.contains("MCP server `s` answered with error -32601"), "{missing}");
        let other = called("read_mcp_resource", json!({"server": "x", "uri": ""})).await.text().to_owned();
        assert!(other.ends_with("there is no server `x` with resources: expected one of s"), "{other}");
        servers.close().await;
    }
}

#[tokio::test]
async fn no_tools_for_resources_without_a_server_that_has_some() {
    let fixture = Fixture::new().await;
    let servers = fixture.servers(&[]);
    servers.list(&name()).await.unwrap();
    let mut registry = ToolRegistry::new();
    assert!(servers.register(&mut registry, usize::MAX).is_empty());
    assert!(registry.get("list_mcp_resources").is_none());
    assert_eq!(servers.prompts(&name()).await.unwrap(), []);
    servers.close().await;
}

#[tokio::test]
async fn prompts_are_listed_and_fetched_as_messages() {
    for faults in [&["offers", "changes"][..], &["offers", "changes", "newest"]] {
        let fixture = Fixture::new().await;
        let servers = fixture.servers(faults);
        let prompts = servers.prompts(&name()).await.unwrap();
        let commands: Vec<&str> = prompts.iter().map(|prompt| prompt.command.as_str()).collect();
        assert_eq!(commands, ["mcp__s__review", "mcp__s__re_view"]);
        assert_eq!((prompts[0].name.as_str(), prompts[0].description.as_str()), ("review", "Reviews."));
        let arguments: Vec<_> =
            prompts[0].arguments.iter().map(|one| (one.name.as_str(), one.is_required)).collect();
        assert_eq!(arguments, [("file", true), ("tone", false)]);
        let arguments = BTreeMap::from([("file".to_owned(), "a.rs".to_owned())]);
        let messages = servers.prompt(&name(), "review", arguments).await.unwrap();
        let seen: Vec<_> =
            messages.iter().map(|one| (one.role, one.text.as_str(), one.images.len())).collect();
        let expected = [
            (PromptRole::User, "Review a.rs.", 0),
            (PromptRole::User, "", 1),
            (PromptRole::Assistant, "Gladly.", 0),
        ];
        assert_eq!(seen, expected);
        let error = servers.prompt(&name(), "none", BTreeMap::new()).await.unwrap_err();
        assert_eq!(error.kind(), ServerErrorKind::Answered);
        assert_eq!(servers.prompt_changes().await, 0);
        call(&servers, &fixture.context(), "echo", "").await;
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        while servers.prompt_changes().await == 0 {
            assert!(
                tokio::time::Instant::now() < deadline,
                "{faults:?}: the change was not reported in time"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        servers.close().await;
    }
}
