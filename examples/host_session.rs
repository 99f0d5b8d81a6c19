//! Host: opens a session like `pintle` does, with the rules, keys, sandbox, instructions and MCP servers of the user.
//!
//! A specification has the settings of the session. Its defaults are the defaults of the command. A surface has the parts of the
//! program: here the user, whose decisions arrive through the handle of the session.

use std::ffi::OsStr;
use std::sync::Arc;

use pintle_agent::{Decision, EventKind};
use pintle_governance::Mode;
use pintle_host::attendant::ClientAttendant;
use pintle_host::process_env::ProcessEnv;
use pintle_host::{BaseUrl, Host, SessionSpec, Surface};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model and a user without files, so that the example runs anywhere. A program uses `ProcessEnv::capture()`, and
    // leaves the model to the keys of the user.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let directory = tempfile::tempdir()?;
    let (home, project) = (directory.path().join("home"), directory.path().join("project"));
    std::fs::create_dir(&home)?;
    std::fs::create_dir(&project)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let variables: [(&str, &OsStr); 2] = [("HOME", home.as_os_str()), ("PATH", path.as_os_str())];
    let mut spec = SessionSpec::default();
    spec.model.provider = Some("openai-compatible".to_owned());
    spec.model.name = Some("local-model".to_owned());
    spec.model.base_url = Some(BaseUrl::new(server.base_url(Dialect::ChatCompletions)));

    let host = Host::new(ProcessEnv::from_variables(variables));
    spec.environment.dir = Some(project.clone());
    spec.policy.mode = Mode::Ask;
    let user = ClientAttendant::without_approver(Some(host.process_env().principal()));
    let opened = host.open(spec, Surface::new(Arc::new(user))).await?;
    let handle = opened.session.handle();
    let mut run = opened.session.submit("Write a note.");
    while let Some(event) = run.next().await {
        match event.kind {
            EventKind::ApprovalRequested { call_id, tool_name, .. } => {
                println!("approve  {tool_name}");
                handle.decide(&call_id, Decision::Approve)?;
            }
            EventKind::ToolCallEnd { tool_name, error, .. } => println!("call     {tool_name} {error:?}"),
            _ => {}
        }
    }
    println!("answer   {}", run.await?.text);
    opened.close().await?;

    print!("note.md  {}", std::fs::read_to_string(project.join("note.md"))?);
    server.shutdown().await;
    Ok(())
}

/// Responses of the model.
const SCRIPT: &str = r#"
name = "note"

[[turn]]
call = [{ tool = "write_file", arguments = { file_path = "note.md", content = "Buy bread.\n" } }]

[[turn]]
text = "The note is written."
"#;
