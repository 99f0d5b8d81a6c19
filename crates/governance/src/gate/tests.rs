//! Calls of built-in tools, judged in a real directory.
#![expect(clippy::disallowed_methods, reason = "fixtures are written before the environment is used")]

mod random;

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicI64, Ordering};

use pintle_agent::Timestamp;
use pintle_env::LocalEnvironment;
use pintle_llm::ToolCall;
use pintle_tools::builtin::{FetchRequest, WebClient, WebError, WebErrorKind, WebFetch, WebPage};
use pintle_tools::pipeline::{JudgedCall, prepare};
use pintle_tools::{ToolRegistry, builtin};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::grant::{ArgumentScope, EffectCeiling, GrantId, Window};
use crate::network::HostScope;
use crate::pattern::Pattern;

/// Clock that a test sets, in milliseconds.
#[derive(Debug)]
struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

struct Fixture {
    directory: TempDir,
    env: Arc<LocalEnvironment>,
    registry: ToolRegistry,
    clock: Arc<TestClock>,
    revocations: Revocations,
}

impl Fixture {
    /// Creates `project` with links out of it, and beside it `secret` and `project2`.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for name in ["project/.git", "project/private", "secret", "project2"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        for (target, link) in
            [("secret", "project/out"), ("secret/key", "project/key"), ("project/private", "project/way")]
        {
            symlink(root.join(target), root.join(link)).unwrap();
        }
        let env = LocalEnvironment::with_host_env(root.join("project"), []).unwrap();
        let mut registry = ToolRegistry::new();
        builtin::register_core(&mut registry).unwrap();
        let clock = Arc::new(TestClock(AtomicI64::new(15)));
        Self { directory, env: Arc::new(env), registry, clock, revocations: Revocations::new() }
    }

    fn path(&self, name: &str) -> String {
        let root = self.directory.path().canonicalize().unwrap();
        root.join(name).to_str().unwrap().to_owned()
    }

    fn grant(&self) -> Grant {
        let mut grant = Grant::none(GrantId::new("g"));
        grant.tools = ["*_file", "shell"].map(Pattern::new).into();
        grant.arguments = vec![ArgumentScope::new(Pattern::new("shell"), "/command", [Pattern::new("ls*")])];
        grant.reads = PathScope::within([self.path("project")]).except([self.path("project/private")]);
        grant.writes = grant.reads.clone().except([self.path("project/.git")]);
        grant.effect = EffectCeiling::Execute;
        grant.environments = [Pattern::new("local")].into();
        grant.window = Window::new(Some(Timestamp::from_millis(10)), Some(Timestamp::from_millis(20)));
        grant
    }

    /// Returns why a grant denies a call, with the directory as `DIR`; `None` if it allows it.
    async fn denied(&self, grant: &Grant, tool: &str, arguments: Value) -> Option<String> {
        let env: Arc<dyn ExecutionEnvironment> = Arc::clone(&self.env) as _;
        let gate = GrantGate::new(Arc::new(grant.clone()), SessionId::new("s"), Arc::clone(&env), "local")
            .with_clock(Arc::clone(&self.clock) as _)
            .with_revocations(self.revocations.clone());
        let call = ToolCall::new("c", tool, arguments.as_object().unwrap().clone());
        match prepare(&self.registry, &[Arc::new(gate)], env.as_ref(), &call).await {
            JudgedCall::Ready { .. } => None,
            JudgedCall::Refused { error, .. } => Some(error.to_string().replace(&self.path(""), "DIR/")),
            JudgedCall::Ask { judgement, .. } => panic!("a grant does not ask: {judgement:?}"),
        }
    }
}

fn write(path: &str) -> Value {
    json!({"file_path": path, "content": "x"})
}

#[tokio::test]
async fn calls_are_held_to_the_grant() {
    let fixture = Fixture::new();
    let grant = fixture.grant();
    for (tool, arguments) in [
        ("read_file", json!({"file_path": "a"})),
        ("write_file", write("a")),
        ("write_file", write("new/deep/a")),
        ("write_file", write("./x/../a")),
        ("write_file", write(&fixture.path("project/a"))),
        ("shell", json!({"command": "ls -l"})),
    ] {
        assert_eq!(fixture.denied(&grant, tool, arguments.clone()).await, None, "{tool} {arguments}");
    }
    for (tool, arguments, reason) in [
        ("grep", json!({"pattern": "x"}), "does not allow this tool"),
        ("shell", json!({"command": "rm x"}), ": of `command` it allows only `ls*`"),
        (
            "shell",
            json!({"command": "ls; rm x"}),
            "`ls*`, as one command without expansions and redirections",
        ),
        ("shell", json!({"command": "ls $(rm x)"}), "`ls*`, as one command"),
        ("shell", json!({"command": "ls >x"}), "`ls*`, as one command"),
        ("shell", json!({"command": "ls\nrm x"}), "`ls*`, as one command"),
        ("write_file", write("../project2/a"), "does not allow changing DIR/project2/a"),
        (
            "write_file",
            write("out/a"),
            "does not allow changing DIR/project/out/a, which leads to DIR/secret/a",
        ),
        (
            "write_file",
            write("key"),
            "does not allow changing DIR/project/key, which leads to DIR/secret/key",
        ),
        (
            "write_file",
            write("way/a"),
            "does not allow changing DIR/project/way/a, which leads to DIR/project/private/a",
        ),
        ("write_file", write(".git/config"), "does not allow changing DIR/project/.git/config"),
        ("read_file", json!({"file_path": "private/a"}), "does not allow reading DIR/project/private/a"),
        ("read_file", json!({"file_path": "/etc/passwd"}), "does not allow reading /etc/passwd"),
    ] {
        let denied = fixture.denied(&grant, tool, arguments).await.unwrap();
        assert!(denied.contains(reason), "{denied}");
    }
}

#[tokio::test]
async fn ceilings_are_held() {
    let fixture = Fixture::new();
    let with = |change: fn(&mut Grant)| {
        let mut grant = fixture.grant();
        change(&mut grant);
        grant
    };
    let command = || json!({"command": "ls"});
    for (change, tool, arguments, reason) in [
        (
            (|grant| grant.effect = EffectCeiling::Write) as fn(&mut Grant),
            "shell",
            command(),
            "grant g does not allow commands",
        ),
        (
            |grant| grant.effect = EffectCeiling::Read,
            "write_file",
            write("a"),
            "grant g does not allow changes of files",
        ),
        (|grant| grant.environments.clear(), "shell", command(), "grant g does not allow work in `local`"),
        (
            |grant| grant.session = Some(SessionId::new("t")),
            "shell",
            command(),
            "grant g is for another session",
        ),
        (
            |grant| grant.arguments[0].pointer = "/other".to_owned(),
            "shell",
            command(),
            "of `other` it allows only `ls*`",
        ),
        // Both may hold the command of a call.
        (
            |grant| grant.arguments[0].pointer = "/cmd".to_owned(),
            "shell",
            json!({"command": "pwd"}),
            "of `cmd` it allows only `ls*`",
        ),
    ] {
        let denied = fixture.denied(&with(change), tool, arguments).await.unwrap();
        assert!(denied.contains(reason), "{denied}");
    }
}

/// Each call is judged at its time, so a grant that ends in the middle of a run ends there.
#[tokio::test]
async fn grants_hold_in_their_time_and_until_they_are_revoked() {
    let fixture = Fixture::new();
    let mut grant = fixture.grant();
    grant.ancestors = vec![GrantId::new("root")];
    let denied = async || fixture.denied(&grant, "shell", json!({"command": "ls"})).await;
    for (now, reason) in [(9, Some("does not hold yet")), (10, None), (19, None), (20, Some("has expired"))] {
        fixture.clock.0.store(now, Ordering::Relaxed);
        let found = denied().await;
        assert_eq!(found.is_some(), reason.is_some(), "{now}: {found:?}");
        assert!(found.unwrap_or_default().contains(reason.unwrap_or_default()));
    }
    fixture.clock.0.store(15, Ordering::Relaxed);
    fixture.revocations.revoke(GrantId::new("other"));
    assert_eq!(denied().await, None);
    fixture.revocations.revoke(GrantId::new("root"));
    assert!(denied().await.unwrap().contains("grant g was revoked"));
    let other = Fixture { revocations: Revocations::new(), ..fixture };
    other.revocations.revoke_before(0);
    assert_eq!(other.denied(&grant, "shell", json!({"command": "ls"})).await, None);
    other.revocations.revoke_before(1);
    other.revocations.revoke_before(0);
    assert!(other.denied(&grant, "shell", json!({"command": "ls"})).await.is_some());
}

#[tokio::test]
async fn commands_leave_the_sandbox_only_if_the_grant_says_so() {
    let mut fixture = Fixture::new();
    fixture.registry.offer_outside_sandbox().unwrap();
    let call = |outside: bool| json!({"command": "ls", "outside_sandbox": outside});
    let mut grant = fixture.grant();
    assert_eq!(fixture.denied(&grant, "shell", call(false)).await, None);
    let denied = fixture.denied(&grant, "shell", call(true)).await.unwrap();
    assert!(denied.contains("grant g does not allow commands outside of the sandbox"), "{denied}");
    grant.outside_sandbox = true;
    let denied = fixture.denied(&grant, "shell", call(true)).await.unwrap();
    assert!(denied.contains("grant g does not allow the network"), "{denied}");
    grant.network = crate::NetworkScope::All;
    let gate = GrantGate::new(Arc::new(grant), SessionId::new("s"), Arc::clone(&fixture.env) as _, "local")
        .with_clock(Arc::clone(&fixture.clock) as _)
        .with_revocations(fixture.revocations.clone());
    let tool_call = ToolCall::new("c", "shell", call(true).as_object().unwrap().clone());
    let prepared = prepare(&fixture.registry, &[Arc::new(gate)], fixture.env.as_ref(), &tool_call).await;
    assert!(matches!(prepared, JudgedCall::Ask { .. }), "it does not run by the grant alone: {prepared:?}");
}

/// A client that only names hosts.
#[derive(Debug)]
struct NamedHosts;

#[async_trait]
impl WebClient for NamedHosts {
    fn host(&self, url: &str) -> Option<String> {
        url.strip_prefix("https://")?.split('/').next().map(str::to_owned)
    }

    async fn fetch(&self, _: FetchRequest) -> Result<WebPage, WebError> {
        Err(WebError::new(WebErrorKind::Failed, "there is no web here"))
    }
}

#[tokio::test]
async fn web_tools_reach_only_hosts_of_the_grant() {
    let mut fixture = Fixture::new();
    fixture.registry.register(WebFetch::new(Arc::new(NamedHosts))).unwrap();
    let mut grant = fixture.grant();
    grant.tools = [Pattern::new("web_fetch")].into();
    let hosts = HostScope::parse(["*.example"], ["b.example"]).unwrap();
    for (network, url, objection) in [
        (NetworkScope::None, "https://a.example/", Some("grant g does not allow the network")),
        (NetworkScope::All, "https://a.test/", None),
        (NetworkScope::Hosts(hosts.clone()), "https://a.example/", None),
        (
            NetworkScope::Hosts(hosts.clone()),
            "https://b.example/",
            Some("grant g does not allow the host b.example"),
        ),
        (
            NetworkScope::Hosts(hosts.clone()),
            "https://a.test/",
            Some("grant g does not allow the host a.test"),
        ),
        (
            NetworkScope::Hosts(hosts),
            "ftp://a.example/",
            Some("grant g does not allow calls that do not name their hosts"),
        ),
    ] {
        grant.network = network;
        let denied = fixture.denied(&grant, "web_fetch", json!({ "url": url })).await;
        match (&denied, objection) {
            (None, None) => {}
            (Some(found), Some(objection)) => assert!(found.contains(objection), "{url}: {found}"),
            (None | Some(_), _) => panic!("{url}: {denied:?}"),
        }
    }
}
