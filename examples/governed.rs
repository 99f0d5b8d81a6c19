//! Governed sessions: what a session may do is said before it starts, held while it works, and read back afterwards.
//!
//! A grant limits what is possible at all, a mode and rules say what happens to the rest, an approver decides on what they
//! leave open, and a subagent gets a narrower grant. All of it is on the session's record.

use std::sync::Arc;

use pintle_agent::{
    Decision, ExecutionEnvironment, Principal, ProviderProfile, Session, SessionId, SubagentType, approver_fn,
};
use pintle_env::LocalEnvironment;
use pintle_governance::{
    Audit, Delegation, EffectCeiling, GovernedSession, Grant, GrantGate, GrantId, Mode, PathScope, Pattern,
    Policy, Rules,
};
use pintle_llm::Client;
use pintle_providers::OpenAiCompatible;
use pintle_store::{MemoryStore, SessionStore, StoredSession, read_record};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider = OpenAiCompatible::builder(server.base_url(Dialect::ChatCompletions)).build()?;
    let client = Client::builder().provider(provider).build()?;

    let directory = tempfile::tempdir()?;
    let workspace = directory.path().canonicalize()?.join("work");
    std::fs::create_dir_all(workspace.join("src"))?;
    let env: Arc<dyn ExecutionEnvironment> =
        Arc::new(LocalEnvironment::with_host_env(&workspace, std::env::vars_os())?);

    // What the session may do at all. Nothing is granted that is not named here.
    let mut grant = Grant::none(GrantId::new("fix-the-tests"));
    grant.tools = [Pattern::any()].into();
    grant.reads = PathScope::within([workspace.display().to_string()]);
    grant.writes = PathScope::within([workspace.join("src").display().to_string()]);
    grant.effect = EffectCeiling::Write;
    grant.environments = [Pattern::new("local")].into();

    grant.delegation = Delegation::new(1, 1);

    // A subagent of this type has the grant of the session, and in addition a narrower one that only reads.
    let id = SessionId::generate();
    let mut look = grant.clone();
    (look.id, look.effect) = (GrantId::new("look"), EffectCeiling::Read);
    let gate = GrantGate::new(Arc::new(look), id.clone(), Arc::clone(&env), "local");
    let reviewer = SubagentType::new("reviewer", "Reviews a change.").with_gate(gate);

    // For sessions that survive the process: `FileStore::open(directory)`.
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let stored = StoredSession::open_or_create(&store, &id).await?;
    let rules = Rules::parse("rules", r#"ask = ["@write(src/main.rs)"]"#, &workspace)?;
    // Simulates the user. A real application would show a dialog.
    let approver = approver_fn(|_| async { Decision::Approve });

    let profile = ProviderProfile::openai_compatible("local-model");
    let session = Session::builder(client, profile, env).with_id(id.clone()).subagent_type(reviewer);
    let session = GovernedSession::builder(session)
        .grant(grant, "local")
        .journal(stored.journal)
        .approver(approver)
        .principal(Principal::new("jan"))
        .policy(Policy::new(Mode::Edit, rules, &workspace))
        .start()
        .await?;
    println!("answer   {}", session.submit("Fix the tests.").await?.text);
    session.close().await;
    server.shutdown().await;

    // Anybody who has the store can see what was asked, allowed and done.
    let audit = Audit::of_record(&read_record(store.as_ref(), &id).await?)?;
    for call in &audit.calls {
        println!("audit    {} {}", call.proposal.tool, call.outcome.as_str());
    }
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = include_str!("scripts/governed.toml");
