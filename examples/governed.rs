//! Governed sessions: what a session may do is said before it starts, held while it works, and read back afterwards.
//!
//! A grant limits what is possible at all, a mode and rules say what happens to the rest, an approver decides on what they
//! leave open, and a budget that is shared with other sessions limits what is spent. All of it is on the session's record.

use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{
    ApprovalRequest, Approver, Decision, Ledgers, Limits, Principal, ProviderProfile, Session, SessionId,
    Timestamp,
};
use pintle_env::LocalEnvironment;
use pintle_governance::{
    Audit, BudgetPolicy, EffectCeiling, GovernedSession, Grant, GrantId, Mode, PathScope, Pattern, Policy,
    Rules, SessionBudget,
};
use pintle_llm::Client;
use pintle_providers::OpenAiCompatible;
use pintle_store::{FileStore, SessionStore, StoredJournal, Summary, read_record};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

/// Simulates whoever is asked. A real application would show a dialog.
#[derive(Debug)]
struct Reviewer;

#[async_trait]
impl Approver for Reviewer {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        println!("review   {}: {}", request.tool_name, request.reason);
        Decision::Approve
    }

    fn principal(&self) -> Option<Principal> {
        Some(Principal::new("ada"))
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider = OpenAiCompatible::builder(server.base_url(Dialect::ChatCompletions)).build()?;
    let client = Client::builder().provider(provider).build()?;

    let directory = tempfile::tempdir()?;
    let workspace = directory.path().canonicalize()?.join("work");
    std::fs::create_dir_all(workspace.join("src"))?;
    let env = LocalEnvironment::with_host_env(&workspace, std::env::vars_os())?;

    // What the session may do at all. Nothing is granted that is not named here.
    let mut grant = Grant::none(GrantId::new("fix-the-tests"));
    grant.tools = [Pattern::any()].into();
    grant.reads = PathScope::within([workspace.display().to_string()]);
    grant.writes = PathScope::within([workspace.join("src").display().to_string()]);
    grant.effect = EffectCeiling::Write;
    grant.environments = [Pattern::new("local")].into();

    // Every session that uses this store shares the budget of the day.
    let store = Arc::new(FileStore::open(directory.path().join("store"))?);
    let limits = BudgetPolicy::default().with_day(Limits::default().with_tool_calls(20));
    let budget = SessionBudget::new(limits).with_ledgers(Arc::clone(&store) as Arc<dyn Ledgers>);

    let id = SessionId::generate();
    let summary = Summary::new(id.clone(), Timestamp::from_millis(0));
    let writer = store.create(summary.clone()).await?;
    let rules = Rules::parse("rules", r#"ask = ["@write(src/main.rs)"]"#, &workspace)?;

    let session =
        Session::builder(client, ProviderProfile::openai_compatible("local-model"), env).with_id(id.clone());
    let session = GovernedSession::builder(session)
        .grant(grant, "local")
        .journal(StoredJournal::new(writer, summary))
        .approver(Reviewer)
        .principal(Principal::new("jan"))
        .policy(Policy::new(Mode::Edit, rules, &workspace))
        .budget(Arc::new(budget))
        .start()
        .await?;
    println!("answer   {}", session.submit("Fix the tests.").await?.text);
    session.close().await;
    server.shutdown().await;

    // Anybody who has the store can see what was asked, allowed and done.
    let shared: Arc<dyn SessionStore> = store;
    let audit = Audit::of_record(&read_record(shared.as_ref(), &id).await?)?;
    for call in &audit.calls {
        let step = call.decisive_step().map_or("", |step| step.gate.as_str());
        let decisions = call.approvals.iter().filter_map(|approval| approval.decision.as_ref());
        let by = decisions.filter_map(|decision| decision.by.as_ref()).map(|by| format!(", by {by}"));
        let tool = &call.proposal.tool;
        println!("audit    {tool} {}: decided by {step}{}", call.outcome.as_str(), by.collect::<String>());
    }
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = r#"
name = "fix"

[[turn]]
call = [{ tool = "write_file", arguments = { file_path = "src/lib.rs", content = "pub fn two() -> u8 { 2 }\n" } }]

[[turn]]
call = [{ tool = "write_file", arguments = { file_path = "src/main.rs", content = "fn main() {}\n" } }]

[[turn]]
call = [{ tool = "write_file", arguments = { file_path = "build.rs", content = "fn main() {}\n" } }]

[[turn]]
expect = [{ call = 0, contains = "grant fix-the-tests does not allow changing" }]
call = [{ tool = "shell", arguments = { command = "cargo test" } }]

[[turn]]
expect = [{ call = 0, contains = "grant fix-the-tests does not allow commands" }]
text = "The sources are fixed. I may not run the tests."
"#;
