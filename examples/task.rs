//! Task: a worker runs a task until its checks pass, with evidence that the model did not write.
//!
//! The sessions of a task have the rules, keys and sandbox of the user, as those of the command do. Any process with the store
//! can create a task, and any worker can run it.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::Arc;

use pintle_agent::SessionId;
use pintle_host::process_env::ProcessEnv;
use pintle_host::{GivenSettings, Host, PartialSpec, SandboxLevel};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use pintle_workflow::contract::{BaseCommit, Contract};
use pintle_workflow::repository::UserRepository;
use pintle_workflow::{HostPerformerFactory, TaskSupervisor, Worker, WorkerEvent};
use tokio::sync::Notify;

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, and the home of a user with a repository, so that the example runs anywhere. A program uses
    // `ProcessEnv::capture()` and the configuration that is there.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let home = tempfile::tempdir()?;
    let (url, project) = (server.base_url(Dialect::ChatCompletions), home.path().join("project"));
    let configuration =
        format!("provider = \"openai-compatible\"\nmodel = \"local-model\"\nbase_url = \"{url}\"\n");
    std::fs::create_dir_all(home.path().join(".config/pintle"))?;
    std::fs::write(home.path().join(".config/pintle/config.toml"), configuration)?;
    std::fs::create_dir(&project)?;
    let commit = "git init -q && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m start";
    Command::new("sh").args(["-c", commit]).current_dir(&project).env("HOME", home.path()).status()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let variables: [(&str, &OsStr); 2] = [("HOME", home.path().as_os_str()), ("PATH", path.as_os_str())];

    let mut given = PartialSpec::default();
    given.environment.dir = Some(project);
    given.environment.sandbox = Some(SandboxLevel::Off);
    let host = Host::new(ProcessEnv::from_variables(variables));
    let performers = HostPerformerFactory::open(host, GivenSettings::from(given)).await?;
    let here = performers.directory();
    let repository = UserRepository::find(Arc::clone(&here.environment), &here.path).await?;
    let base = BaseCommit::new(repository.root.display().to_string(), repository.head);
    let store = performers.sessions().shared_store();
    let supervisor = Arc::new(TaskSupervisor::new(store, Arc::new(performers)));
    supervisor.create(&SessionId::new("greeting"), Contract::parse(CONTRACT)?.with_base(base)).await?;

    // The worker runs all tasks of the store. This one stops after the first.
    let done = Notify::new();
    let report = |event: &WorkerEvent| match event {
        WorkerEvent::Ended { id, end, .. } => {
            println!("{id}: {end:?}");
            done.notify_one();
        }
        WorkerEvent::Problem(problem) => println!("{problem}"),
        _ => {}
    };
    Worker::new(supervisor).run(done.notified(), report).await;
    server.shutdown().await;
    Ok(())
}

const CONTRACT: &str = include_str!("scripts/contract.toml");
/// Responses of the model.
const SCRIPT: &str = include_str!("scripts/task.toml");
