//! Random trees of agents over random grants and budgets, with failures and kills: nothing is done that a grant does not
//! allow, and no limit is exceeded, of a tree or of the day that all of them share.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use pintle_agent::{
    ApprovalRequest, Approver, Decision, Ledgers, Limits, OutcomeStatus, Principal, ProviderProfile, Session,
    SessionConfig, SessionId, Timestamp,
};
use pintle_env::{CommandScript, ExecutionEnvironment, MemoryEnvironment, Program};
use pintle_governance::{
    BudgetPolicy, Delegation, EffectCeiling, GovernedBuilder, GovernedSession, Grant, GrantId, Mode,
    PathScope, Pattern, Policy, Rules, SessionBudget,
};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{
    Client, Error, ErrorKind, EventStream, Message, ProviderAdapter, Request, Response, RetryPolicy, Role,
    ToolCall,
};
use pintle_store::{Filter, MemoryStore, Page, SessionStore, StoredJournal, Summary, read_record};
use pintle_test_conditions::cases;
use serde_json::{Value, json};

/// Tokens that the fake provider counts for each call.
const TOKENS: u64 = 15;

/// Random numbers that depend on nothing but what they are made of.
fn dice(parts: &impl std::hash::Hash, sides: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish() % sides
}

/// A model that does random things: it writes here and there, runs commands, spawns, waits, fails, and ends.
#[derive(Debug)]
struct Wild {
    seed: u64,
    /// Number of answers, each of which was counted by the provider.
    answers: AtomicU64,
    calls: AtomicU64,
}

impl Wild {
    fn next(&self, request: &Request) -> FakeAdapter {
        let first = request.messages.iter().find(|message| message.role == Role::User);
        let task = first.map(|message| message.text()).unwrap_or_default();
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let roll = |what: &str, sides| {
            dice(&(self.seed, task.as_str(), request.messages.len(), number, what), sides)
        };
        let fake = FakeAdapter::new("anthropic");
        let calls = (0..=roll("calls", 3)).map(|index| {
            let name = format!("{}-{number}-{index}", self.seed);
            let (tool, arguments) = action(roll(&format!("action {index}"), 8), &name);
            ToolCall::from_raw(format!("call-{name}"), tool, arguments.to_string()).into()
        });
        match roll("turn", 12) {
            0 => fake.failure(Error::new(ErrorKind::Server, "overloaded")),
            1 => fake.cut("Some ", Error::new(ErrorKind::Stream, "cut")),
            2 => fake.failure(Error::new(ErrorKind::InvalidRequest, "no")),
            3 => {
                self.answers.fetch_add(1, Ordering::Relaxed);
                fake.answer("Done.")
            }
            _ => {
                self.answers.fetch_add(1, Ordering::Relaxed);
                fake.message(Message::new(Role::Assistant, calls.collect()))
            }
        }
    }
}

/// Returns a call: of what is granted in some trees and not in others.
fn action(kind: u64, name: &str) -> (&'static str, Value) {
    let write = |path: String| ("write_file", json!({"file_path": path, "content": "x"}));
    match kind {
        0 => write(format!("/w/src/{name}")),
        1 => write(format!("/w/other/{name}")),
        2 => write(format!("/w/src/../other/{name}")),
        3 => write(format!("/etc/{name}")),
        4 => ("shell", json!({"command": format!("run {name}")})),
        5 | 6 => ("spawn_agent", json!({"task": format!("task {name}")})),
        _ => ("wait", json!({"agent_id": "agent_1"})),
    }
}

#[async_trait]
impl ProviderAdapter for Wild {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    async fn complete(&self, request: &Request) -> Result<Response, Error> {
        self.next(request).complete(request).await
    }

    async fn stream(&self, request: &Request) -> Result<EventStream, Error> {
        self.next(request).stream(request).await
    }
}

#[derive(Debug)]
struct Approves;

#[async_trait]
impl Approver for Approves {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        Decision::Approve
    }
}

/// One tree: its grant, its limits, and what its model and its environment saw.
struct Tree {
    id: SessionId,
    model: Arc<Wild>,
    env: Arc<MemoryEnvironment>,
    commands: Arc<AtomicU64>,
    grant: Grant,
}

impl Tree {
    fn new(seed: u64, index: u64) -> Self {
        let roll = |what: &str, sides| dice(&(seed, index, what), sides);
        let mut grant = Grant::none(GrantId::new(format!("grant {index}")));
        grant.tools = if roll("tools", 4) == 0 {
            ["write_file", "spawn_agent", "wait"].map(Pattern::new).into()
        } else {
            [Pattern::any()].into()
        };
        grant.reads = PathScope::within(["/w"]);
        grant.writes = PathScope::within([if roll("writes", 2) == 0 { "/w" } else { "/w/src" }]);
        grant.effect = match roll("effect", 3) {
            0 => EffectCeiling::Read,
            1 => EffectCeiling::Write,
            _ => EffectCeiling::Execute,
        };
        grant.environments = [Pattern::new("local")].into();
        let depth = u32::try_from(roll("depth", 4)).unwrap();
        grant.delegation = Delegation::new(depth, u32::try_from(1 + roll("width", 3)).unwrap());
        grant.budget.tool_calls = Some(3 + roll("calls", 20));
        grant.budget.tokens = Some(8_000 + roll("tokens", 60_000));
        let commands = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&commands);
        let env = MemoryEnvironment::new("/w").with_commands(move |command| {
            if matches!(&command.program, Program::Shell(line) if line.starts_with("run ")) {
                count.fetch_add(1, Ordering::Relaxed);
            }
            CommandScript::exit(0)
        });
        let model = Wild {
            seed: dice(&(seed, index), u64::MAX),
            answers: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        };
        Self {
            id: SessionId::new(format!("tree-{index}")),
            model: Arc::new(model),
            env: Arc::new(env),
            commands,
            grant,
        }
    }

    /// A process that drives the tree, from its beginning or from its journal.
    async fn governed(&self, store: &MemoryStore, limits: BudgetPolicy) -> GovernedBuilder {
        let client = Client::builder()
            .shared_provider(Arc::clone(&self.model) as Arc<dyn ProviderAdapter>)
            .build()
            .unwrap();
        let mut config = SessionConfig::default().with_retry(
            RetryPolicy::default().with_base_delay(std::time::Duration::from_millis(1)).with_max_retries(1),
        );
        config.subagents.max_depth = 3;
        let session = Session::builder(
            client,
            ProviderProfile::anthropic("claude-opus-4-6"),
            Arc::clone(&self.env) as Arc<dyn ExecutionEnvironment>,
        )
        .with_config(config)
        .with_id(self.id.clone());
        let budget = SessionBudget::new(limits).with_ledgers(Arc::new(store.clone()) as Arc<dyn Ledgers>);
        let shared: Arc<dyn SessionStore> = Arc::new(store.clone());
        let summary = Summary::new(self.id.clone(), Timestamp::from_millis(0));
        let (writer, record) = match store.summary(&self.id).await.unwrap() {
            None => (store.create(summary.clone()).await.unwrap(), None),
            Some(_) => {
                let writer = loop {
                    // The process that had it is being taken apart.
                    match store.open(&self.id).await {
                        Ok(opened) => break opened.writer,
                        Err(_) => tokio::task::yield_now().await,
                    }
                };
                (writer, Some(read_record(shared.as_ref(), &self.id).await.unwrap()))
            }
        };
        let journal = StoredJournal::new(writer, summary).with_subagents(Arc::clone(&shared));
        let governed = GovernedSession::builder(session)
            .grant(self.grant.clone(), "local")
            .journal(journal)
            .approver(Approves)
            .principal(Principal::new("jan"))
            .policy(Policy::new(Mode::Auto, Rules::new(), "/w"))
            .budget(Arc::new(budget));
        match record {
            Some(record) => governed.resume(record),
            None => governed,
        }
    }

    /// Works, is killed at random moments, and goes on, a few times.
    async fn live(&self, seed: u64, store: &MemoryStore, limits: BudgetPolicy) {
        for process in 0..4_u64 {
            let mut session = self.governed(store, limits).await.start().await.unwrap();
            let patience = 1 + dice(&(seed, self.id.as_str(), process, "patience"), 400);
            let resumed = session.resumed();
            let work = async {
                if let Some(run) = resumed {
                    let _ = run.await;
                }
                for input in 0..3 {
                    let outcome = session.submit(format!("go {process} {input}")).await;
                    let Ok(outcome) = outcome.or_else(pintle_agent::RunError::into_outcome) else { return };
                    if outcome.status == OutcomeStatus::Failed && outcome.error.is_none() {
                        return;
                    }
                }
            };
            let killed = async {
                for _ in 0..patience {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                () = work => session.detach().await,
                () = killed => drop(session),
            }
        }
    }

    fn effects(&self) -> u64 {
        self.env.files().len() as u64 + self.commands.load(Ordering::Relaxed)
    }

    /// Holds what happened against the grant.
    fn check(&self, seed: u64) {
        let scope = &self.grant.writes;
        for path in self.env.files().keys() {
            assert!(scope.contains(path), "{seed}: {} was written under {:?}", path.display(), self.grant);
            assert!(!path.starts_with(Path::new("/etc")));
        }
        if self.grant.effect == EffectCeiling::Read {
            assert!(self.env.files().is_empty(), "{seed}");
        }
        let commands = self.commands.load(Ordering::Relaxed);
        let may_run = self.grant.effect == EffectCeiling::Execute && self.grant.allows_tool("shell");
        assert!(may_run || commands == 0, "{seed}: {commands} commands under {:?}", self.grant);
        let (effects, calls) = (self.effects(), self.grant.budget.tool_calls.unwrap());
        assert!(effects <= calls, "{seed}: {effects} effects of {calls}");
        let tokens = self.model.answers.load(Ordering::Relaxed) * TOKENS;
        assert!(tokens <= self.grant.budget.tokens.unwrap(), "{seed}: {tokens} tokens");
    }
}

/// Returns the number of generations below a session.
async fn depth_below(store: &MemoryStore, id: &SessionId) -> u32 {
    let mut level: BTreeSet<SessionId> = BTreeSet::from([id.clone()]);
    for depth in 0.. {
        let mut next = BTreeSet::new();
        for parent in &level {
            let children =
                store.list(&Filter::default().with_parent(parent.clone()), &Page::default()).await.unwrap();
            next.extend(children.into_iter().map(|summary| summary.id));
        }
        if next.is_empty() {
            return depth;
        }
        level = next;
    }
    u32::MAX
}

#[tokio::test]
async fn no_sum_over_a_tree_or_a_day_exceeds_its_limit() {
    let (mut effects, mut refused, mut subagents) = (0, 0, 0);
    let seeds = cases(12, 60);
    for seed in 0..seeds {
        let store = MemoryStore::new();
        let day = Limits::default()
            .with_tool_calls(4 + dice(&(seed, "day"), 30))
            .with_tokens(20_000 + dice(&(seed, "tokens of the day"), 80_000));
        let limits = BudgetPolicy::default().with_day(day);
        let trees = [Tree::new(seed, 0), Tree::new(seed, 1), Tree::new(seed, 2)];
        let [one, two, three] = &trees;
        tokio::join!(
            one.live(seed, &store, limits),
            two.live(seed, &store, limits),
            three.live(seed, &store, limits)
        );
        for tree in &trees {
            tree.check(seed);
            let depth = depth_below(&store, &tree.id).await;
            assert!(depth <= tree.grant.delegation.depth, "{seed}: {depth} generations");
            subagents += depth;
        }
        let total: u64 = trees.iter().map(Tree::effects).sum();
        assert!(total <= day.tool_calls.unwrap(), "{seed}: {total} effects in a day of {day:?}");
        let answers: u64 = trees.iter().map(|tree| tree.model.answers.load(Ordering::Relaxed)).sum();
        assert!(answers * TOKENS <= day.tokens.unwrap(), "{seed}: {answers} answers in a day of {day:?}");
        effects += total;
        refused += trees.iter().filter(|tree| tree.effects() == 0).count();
    }
    assert!(
        effects > seeds && refused as u64 > seeds / 12 && u64::from(subagents) > seeds / 3,
        "{effects} {refused} {subagents}: too little happened"
    );
}
