//! What governance costs: a round that is judged, recorded and sandboxed, a call that a thousand rules are about, and a signed
//! grant.
#![expect(clippy::disallowed_methods, reason = "measures sessions without a host")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Approver, Decision, Principal, Session, SessionId, Timestamp};
use pintle_env::{ExecutionEnvironment, MemoryEnvironment, Protection, SandboxLevel, SandboxedEnvironment};
use pintle_governance::{
    CallFacts, Delegation, GovernedSession, Grant, GrantId, GrantRecipient, GrantTrust, Mode, Policy,
    PrivateKey, Rule, Rules, SignedChain, WorkspacePolicy,
};
use pintle_store::{FileStore, SessionStore as _, StoredJournal, Summary};
use pintle_tools::gate::Permission;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::measure::{Aim, Comparison, Moment, Row};
use crate::model::{Endpoint, ModelServer};
use crate::plan::Plan;
use crate::report::{Bound, Fact, Report};
use crate::sessions;

const ROUNDS: u32 = 200;
const RULES: usize = 1_000;
const JUDGEMENTS: u32 = 2_000;
const SIGNED_GRANTS: u32 = 5;
const VERIFICATIONS: u32 = 100;

const GOVERNED: &str =
    "200 rounds with a shell command, governed, kept in files and sandboxed at the level writes";
const ADDED: &str = "200 rounds with a shell command at the level writes, governed and kept in files";
const JUDGED: &str = "1,000 rules: time to judge a call, in microseconds";
const VERIFIED: &str = "5 signed grants in a chain: time to verify it, in microseconds";

pub(crate) fn run(wanted: &str) -> Report {
    let mut report = Report::default();
    let rows = [
        (GOVERNED, "the same without any of it", Work::Bare),
        (ADDED, "the same, in the sandbox alone", Work::Sandboxed),
    ];
    for (name, baseline, work) in rows.into_iter().filter(|(name, ..)| name.contains(wanted)) {
        let bench = Bench { runtime: crate::runtime(), model: ModelServer::start(None) };
        report.rows.push(bench.governed(name, baseline, work));
    }
    if JUDGED.contains(wanted) {
        report.facts.push(judged());
    }
    if VERIFIED.contains(wanted) {
        report.facts.push(verified());
    }
    report
}

/// Configuration of the session that makes the rounds.
#[derive(Clone, Copy)]
enum Work {
    /// A session alone.
    Bare,
    /// A session in a sandbox.
    Sandboxed,
    /// A session in a sandbox, governed and recorded.
    Governed,
}

struct Bench {
    runtime: Runtime,
    model: ModelServer,
}

/// Nobody is asked in these sessions.
#[derive(Debug)]
struct Denies;

#[async_trait]
impl Approver for Denies {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        Decision::Deny { reason: None }
    }
}

impl Bench {
    fn governed(&self, name: &'static str, baseline: &'static str, work: Work) -> Row {
        let side = |work: Work| {
            let endpoint = self.model.endpoint(&Plan::rounds("shell", ROUNDS as usize));
            let directory = TempDir::new().expect("there is room for a directory");
            let begun = Moment::now();
            self.runtime.block_on(async {
                match work {
                    Work::Bare => {
                        let environment = sessions::environment(directory.path());
                        ungoverned_work(&endpoint, environment).await;
                    }
                    Work::Sandboxed => {
                        let (environment, _workspace) = sandbox(directory.path());
                        ungoverned_work(&endpoint, environment).await;
                    }
                    Work::Governed => governed_work(&endpoint, directory.path()).await,
                }
            });
            begun.until(Moment::now()).per(f64::from(ROUNDS))
        };
        Comparison::new(name, baseline, Aim::Cpu(1.3))
            .with_rounds(11)
            .compare(|| side(work), || side(Work::Governed))
    }
}

async fn ungoverned_work(endpoint: &Endpoint, environment: Arc<dyn ExecutionEnvironment>) {
    let session = Session::builder(sessions::client(endpoint), sessions::profile(), environment)
        .with_config(sessions::config())
        .build()
        .expect("it is complete");
    sessions::submit(&session, "Do what there is to do.").await;
    session.close().await;
}

/// Returns an environment whose commands are held at the level *writes*, and its working directory.
fn sandbox(directory: &Path) -> (Arc<dyn ExecutionEnvironment>, PathBuf) {
    let workspace = directory.join("work");
    let temporary = directory.join("temporary");
    for directory in [&workspace, &temporary] {
        std::fs::create_dir(directory).expect("the directory can be written");
    }
    let local = sessions::local(&workspace);
    let sandboxed = SandboxedEnvironment::new(local)
        .with_level(SandboxLevel::Writes)
        .with_writable(&workspace)
        .with_temporary(&temporary)
        .with_accepted(Protection::Descriptors);
    (Arc::new(sandboxed), workspace)
}

async fn governed_work(endpoint: &Endpoint, directory: &Path) {
    let (environment, workspace) = sandbox(directory);
    let store = FileStore::open(directory.join("store")).expect("the directory can be written");
    let id = SessionId::generate();
    let summary = Summary::new(id.clone(), Timestamp::from_millis(0));
    let writer = store.create(summary.clone()).await.expect("there is room for a session");
    let session = Session::builder(sessions::client(endpoint), sessions::profile(), environment)
        .with_config(sessions::config())
        .with_id(id);
    let session = GovernedSession::builder(session)
        .grant(Grant::all(GrantId::new("bench")), "local")
        .journal(StoredJournal::new(writer, summary))
        .approver(Denies)
        .principal(Principal::new("bench"))
        .policy(Policy::new(Mode::Auto, rules(30, &workspace), &workspace))
        .workspace(WorkspacePolicy::new().with_hidden([directory.join("keys")]))
        .start()
        .await
        .expect("it is complete");
    sessions::submit(&session, "Do what there is to do.").await;
    session.close().await;
}

/// Returns rules about commands, paths and hosts, none of which names the calls here.
fn rules(number: usize, workspace: &Path) -> Rules {
    let mut rules = Rules::new();
    let permissions = [Permission::Deny, Permission::Ask, Permission::Allow].into_iter().cycle();
    for (index, permission) in (0..number).zip(permissions) {
        let text = match index % 4 {
            0 => format!("shell(tool-{index} *)"),
            1 => format!("@write(src/module_{index}/**)"),
            2 => format!("web_fetch(host-{index}.example)"),
            _ => format!("@execute(git remote-{index} *)"),
        };
        let rule = Rule::parse(&text, workspace).expect("the rule is well formed");
        rules.add(permission, rule, "bench");
    }
    rules
}

fn judged() -> Fact {
    let environment = MemoryEnvironment::new("/workspace");
    let rules = rules(RULES, environment.working_directory());
    let calls = [
        "shell(cargo test --workspace && git push origin main)",
        "write_file(src/main.rs)",
        "web_fetch(docs.rs)",
    ];
    let runtime = crate::runtime();
    let calls = calls
        .map(|call| runtime.block_on(CallFacts::parse(call, &environment)).expect("the call is well formed"));
    let values = (0..11).map(|_| {
        let begun = Instant::now();
        for _ in 0..JUDGEMENTS {
            for call in &calls {
                std::hint::black_box(rules.judge(std::hint::black_box(call)));
            }
        }
        begun.elapsed().as_secs_f64() * 1e6 / f64::from(JUDGEMENTS) / 3.0
    });
    Fact::new(JUDGED, "µs", Bound::AtMost(50.0), values.collect())
}

fn verified() -> Fact {
    let keys: Vec<PrivateKey> =
        (0..=SIGNED_GRANTS).map(|_| PrivateKey::generate().expect("there are random numbers")).collect();
    let mut chain: Option<SignedChain> = None;
    for ((pair, number), depth) in keys.windows(2).zip(1u32..).zip((0..=SIGNED_GRANTS).rev()) {
        let [key, next] = pair else { continue };
        let recipient = GrantRecipient::new("bench", ["bench"]).with_holder(next.public());
        let mut grant = Grant::all(GrantId::new(number.to_string()));
        grant.delegation = Delegation::new(depth, 1);
        let signed = match &chain {
            None => SignedChain::issue(key, recipient, grant),
            Some(chain) => chain.attenuate(key, recipient, grant),
        };
        chain = Some(signed.expect("the grant narrows"));
    }
    let text = chain.expect("there is a grant").to_json();
    let mut trust = GrantTrust::default();
    trust.roots = keys.iter().take(1).map(PrivateKey::public).collect();
    trust.audience = ["bench".to_owned()].into();
    trust.subjects = ["bench".to_owned()].into();
    let values = (0..11).map(|_| {
        let start = Instant::now();
        for _ in 0..VERIFICATIONS {
            let chain = SignedChain::parse(std::hint::black_box(&text)).expect("the chain is valid");
            trust.verify(&chain, Timestamp::from_millis(0)).expect("the root is pinned");
        }
        start.elapsed().as_secs_f64() * 1e6 / f64::from(VERIFICATIONS)
    });
    Fact::new(VERIFIED, "µs", Bound::AtMost(1_000.0), values.collect())
}
