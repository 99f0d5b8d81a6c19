//! A gate with approval: what the host's rules do not settle, a person decides.
//!
//! Every call of a tool passes the session's gates before it runs. A gate allows, denies with a reason for the model,
//! or asks; one denial is enough, and so is one question. Who is asked sees the exact call and, for a change of files,
//! the diff that it would make.

use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{ApprovalRequest, Decision, EventKind, ProviderProfile, Session};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::OpenAiCompatible;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use pintle_tools::gate::{CommandGate, Permission, Verdict};
use pintle_tools::pipeline::{Gate, PreparedCall};

/// A rule of the host's own: a new dependency is code of strangers, so somebody looks at it first.
#[derive(Debug)]
struct ManifestGate;

#[async_trait]
impl Gate for ManifestGate {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        // The paths are absolute and known before the call runs, whichever tool it is that writes them.
        if call.writes().iter().any(|path| path.ends_with("Cargo.toml")) {
            return Verdict::Ask { reason: "it changes the manifest".to_owned() };
        }
        Verdict::Allow
    }
}

/// Stands for the person, whom a real host would show a dialog.
fn review(request: &ApprovalRequest) -> Decision {
    println!("asked    {}, because {}", request.tool_name, request.reason);
    // A change of files was made where nothing is kept, to find out what it would be. A command cannot be tried so.
    let Some(dry_run) = &request.dry_run else {
        return Decision::Deny { reason: Some("ask me again when it is ready".to_owned()) };
    };
    for change in &dry_run.changes {
        print!("{}", change.diff);
    }
    Decision::Approve
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The model is a script, so that this runs offline. Yours comes from `Client::from_env()`.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider = OpenAiCompatible::builder(server.base_url(Dialect::ChatCompletions)).build()?;
    let client = Client::builder().provider(provider).build()?;

    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("Cargo.toml"), "[dependencies]\nserde = \"1\"\n")?;
    let env = LocalEnvironment::with_host_env(folder.path(), std::env::vars_os())?;

    // The ready gates judge by command, effect, tool or path; what no rule of this one names is asked about.
    let commands = CommandGate::new()
        .with("git push *", Permission::Deny)?
        .with("cat *", Permission::Allow)?
        .otherwise(Permission::Ask);
    let session = Session::builder(client, ProviderProfile::openai_compatible("local-model"), Arc::new(env))
        .gate(commands)
        .gate(ManifestGate)
        .build()?;

    let handle = session.handle();
    let mut run = session.submit("Make a release.");
    while let Some(event) = run.next().await {
        match event.kind {
            // The call waits until somebody decides, here or anywhere else that a handle is. A host that would rather be
            // called than watch gives the builder an `Approver`.
            EventKind::ApprovalRequested { call_id, .. } => {
                for request in handle.approvals().iter().filter(|request| request.call_id == call_id) {
                    handle.decide(&call_id, review(request))?;
                }
            }
            EventKind::ApprovalDecided { approved, .. } => println!("decided  approved: {approved}"),
            // A call that is refused has an end as well, with what the model is told.
            EventKind::ToolCallEnd { tool_name, output, error, .. } => {
                let said = output.to_text_lossy()?;
                println!("result   {tool_name} {error:?}: {}", said.lines().next().unwrap_or_default());
            }
            _ => {}
        }
    }
    println!("answer   {}", run.await?.text);
    session.close().await;
    server.shutdown().await;
    Ok(())
}

/// What the model says, and what it must have been told before it says it.
const SCRIPT: &str = r#"
name = "release"

[[turn]]
call = [{ tool = "edit_file", arguments = { file_path = "Cargo.toml", old_string = "\"1\"", new_string = "\"2\"" } }]

[[turn]]
call = [{ tool = "shell", arguments = { command = "cat Cargo.toml" } }]

[[turn]]
expect = [{ call = 0, contains = "serde = \"2\"" }]
call = [{ tool = "shell", arguments = { command = "cargo publish" } }]

[[turn]]
expect = [{ call = 0, contains = "when it is ready" }]
call = [{ tool = "shell", arguments = { command = "git tag v2 && git push origin v2" } }]

[[turn]]
expect = [{ call = 0, contains = "git push *" }]
text = "The manifest is ready. Publishing and pushing are for you to do."
"#;
