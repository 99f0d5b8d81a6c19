//! Host: opens a session like `pintle` does, with the rules, keys, sandbox, instructions and MCP servers of the user.
//!
//! The host merges the configuration of the user with the settings that the program gives. A surface has the parts of the
//! program: here the user, whose decisions arrive through the handle of the session.

use std::ffi::OsStr;
use std::sync::Arc;

use pintle_agent::{Decision, EventKind};
use pintle_host::attendant::ClientAttendant;
use pintle_host::process_env::ProcessEnv;
use pintle_host::{GivenSettings, Host, PartialSpec, SettingSources, Surface};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model and the home of a user, so that the example runs anywhere. A program uses `ProcessEnv::capture()` and the
    // configuration that is there.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let directory = tempfile::tempdir()?;
    let (home, project) = (directory.path().join("home"), directory.path().join("project"));
    std::fs::create_dir_all(home.join(".config/pintle"))?;
    std::fs::create_dir(&project)?;
    let configuration = format!(
        "provider = \"openai-compatible\"\nmodel = \"local-model\"\nbase_url = \"{}\"\nmode = \"ask\"\n",
        server.base_url(Dialect::ChatCompletions)
    );
    std::fs::write(home.join(".config/pintle/config.toml"), configuration)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let variables: [(&str, &OsStr); 2] = [("HOME", home.as_os_str()), ("PATH", path.as_os_str())];

    let host = Host::new(ProcessEnv::from_variables(variables));
    let mut given = PartialSpec::default();
    given.environment.dir = Some(project.clone());
    let resolved = host.resolve(SettingSources::from(GivenSettings::from(given))).await?;
    let user = ClientAttendant::without_approver(Some(host.process_env().principal()));
    let opened = host.open(resolved, Surface::new(Arc::new(user))).await?;
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
const SCRIPT: &str = include_str!("scripts/host_session.toml");
