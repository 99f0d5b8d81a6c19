//! Approval: calls that no rule settles are decided by the user.
//!
//! Every tool call passes the session's gates before it runs. A gate allows the call, denies it with a reason for the
//! model, or asks. A single denial is final, and so is a single request for approval. The user sees the exact call and,
//! for file changes, the resulting diff.

use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Decision, EventKind, ProviderProfile, Session};
use pintle_env::{ExecutionEnvironment, LocalEnvironment};
use pintle_governance::{Mode, Policy, PolicyGate, Rules};
use pintle_llm::Client;
use pintle_providers::OpenAiCompatible;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use pintle_tools::gate::Verdict;
use pintle_tools::pipeline::{Gate, PreparedCall};

/// Custom rule: changes to the manifest may add third-party code, so they need approval.
#[derive(Debug)]
struct ManifestGate;

#[async_trait]
impl Gate for ManifestGate {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        // Paths are absolute and known before the call runs, for every tool that writes files.
        if call.writes().iter().any(|path| path.ends_with("Cargo.toml")) {
            return Verdict::ask("it changes the manifest");
        }
        Verdict::ALLOW
    }
}

/// Simulates the user. A real application would show a dialog.
fn review(request: &ApprovalRequest) -> Decision {
    println!("review   {}: {}", request.tool_name, request.reason);
    // File changes have been rehearsed to compute their diff. Commands cannot be.
    let Some(dry_run) = &request.dry_run else {
        return Decision::Deny { reason: Some("ask again when it is ready".to_owned()) };
    };
    for change in &dry_run.changes {
        print!("{}", change.diff);
    }
    Decision::Approve
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider = OpenAiCompatible::builder(server.base_url(Dialect::ChatCompletions)).build()?;
    let client = Client::builder().provider(provider).build()?;

    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("Cargo.toml"), "[dependencies]\nserde = \"1\"\n")?;
    let workspace = directory.path().canonicalize()?;
    let env: Arc<dyn ExecutionEnvironment> =
        Arc::new(LocalEnvironment::with_host_env(&workspace, std::env::vars_os())?);

    // Rules name calls by tool, effect, command, path or host. This mode allows other changes of files in the workspace, and
    // asks about other commands.
    let rules = Rules::parse("rules.toml", RULES, &workspace)?;
    let policy = Policy::new(Mode::Edit, rules, &workspace);
    let session =
        Session::builder(client, ProviderProfile::openai_compatible("local-model"), Arc::clone(&env))
            .gate(PolicyGate::new(policy, env))
            .gate(ManifestGate)
            .build()?;

    let handle = session.handle();
    let mut run = session.submit("Make a release.");
    while let Some(event) = run.next().await {
        match event.kind {
            // The call waits for a decision from any handle. To be called back instead of watching events, pass an
            // `Approver` to the builder.
            EventKind::ApprovalRequested { call_id, .. } => {
                for request in handle.approvals().iter().filter(|request| request.call_id == call_id) {
                    handle.decide(&call_id, review(request))?;
                }
            }
            EventKind::ApprovalDecided { approved, .. } => println!("decided  approved: {approved}"),
            // A denied call also ends, with the text that the model receives.
            EventKind::ToolCallEnd { tool_name, output, error, .. } => {
                let text = output.to_text_lossy()?;
                println!("result   {tool_name} {error:?}: {}", text.lines().next().unwrap_or_default());
            }
            _ => {}
        }
    }
    println!("answer   {}", run.await?.text);
    session.close().await;
    server.shutdown().await;
    Ok(())
}

/// Rules of the session. An application would read them from a file.
const RULES: &str = r#"
allow = ["shell(cat *)"]
deny = ["shell(git push *)"]
"#;

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = include_str!("scripts/approval.toml");
