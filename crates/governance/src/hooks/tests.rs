//! External hooks as real commands in temporary directories.
#![expect(clippy::disallowed_methods, reason = "fixtures are written before the environment is used")]

mod answers;
mod faults;
mod files;
mod guide;
mod inputs;

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use pintle_agent::SubagentOrigin;
use pintle_env::{LocalEnvironment, Output};
use pintle_llm::{ToolCall, ToolResult};
use pintle_tools::pipeline::{JudgedCall, prepare};
use pintle_tools::{ToolErrorKind, ToolRegistry, builtin};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// Duration of the calls in these tests.
const TOOK: Duration = Duration::from_millis(70);

/// Directory with scripts, in which hooks run.
struct Fixture {
    directory: TempDir,
    env: Arc<LocalEnvironment>,
    runs: Arc<Mutex<Vec<HookRun>>>,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let variables = [("PATH", "/usr/bin:/bin"), ("PLAIN", "seen"), ("X_API_KEY", "not to be seen")];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let env = LocalEnvironment::with_host_env(root, variables).unwrap();
        Self { directory, env: Arc::new(env), runs: Arc::default() }
    }

    fn root(&self) -> String {
        self.env.working_directory().to_str().unwrap().to_owned()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn hooks_of(&self, commands: HookCommands) -> ExternalHooks {
        let runs = Arc::clone(&self.runs);
        let env: Arc<dyn ExecutionEnvironment> = Arc::clone(&self.env) as _;
        ExternalHooks::new(commands, env)
            .with_observer(move |run| runs.lock().unwrap_or_else(PoisonError::into_inner).push(run))
    }

    /// Returns the hooks of one event that are these scripts, in this order.
    fn scripts(&self, event: HookEvent, scripts: &[&str]) -> ExternalHooks {
        let mut commands = HookCommands::new();
        for (number, script) in scripts.iter().enumerate() {
            let name = format!("{number}.sh");
            self.write(&name, script);
            commands.add(HookCommand::new(event, format!("sh {name}"), format!("hook {number}")));
        }
        self.hooks_of(commands)
    }

    /// Returns the runs since the last time.
    fn runs(&self) -> Vec<HookRun> {
        std::mem::take(&mut *self.runs.lock().unwrap())
    }

    fn session(&self) -> HookSession {
        HookSession::new(SessionId::new("s"), self.root(), None)
    }

    fn subagent(&self) -> HookSession {
        let origin =
            json!({"agent_id": "agent_1", "session_id": "s1", "parent": "s", "depth": 1, "role": "explorer"});
        let origin: SubagentOrigin = serde_json::from_value(origin).unwrap();
        HookSession::new(SessionId::new("s1"), format!("{}/sub", self.root()), Some(origin))
    }

    async fn call(&self, tool: &str, arguments: Value) -> PreparedCall {
        let mut registry = ToolRegistry::new();
        builtin::register_core(&mut registry).unwrap();
        let call = ToolCall::new("c", tool, arguments.as_object().unwrap().clone());
        match prepare(&registry, &[], self.env.as_ref(), &call).await {
            JudgedCall::Ready { call, .. } => call,
            other @ (JudgedCall::Ask { .. } | JudgedCall::Refused { .. }) => panic!("{other:?}"),
        }
    }

    async fn shell(&self) -> PreparedCall {
        self.call("shell", json!({"command": "ls"})).await
    }

    async fn before_call(&self, hooks: &ExternalHooks) -> CallAnswer {
        hooks.before_call(&self.session(), &self.shell().await, &Judgement::new()).await
    }
}

fn succeeded() -> Execution {
    Execution::new(ToolResult::new("c", "a\nb", false), Output::from("a\nb"))
}

fn failed() -> Execution {
    let mut execution = Execution::new(ToolResult::new("c", "no such file", true), Output::default());
    execution.error = Some(ToolErrorKind::Failed);
    execution.exit_code = Some(1);
    execution
}

/// Returns whether a process of this id still runs.
fn is_alive(id: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(id.trim()).join("stat"));
    // A process that nobody has waited for is not gone, but runs no more.
    stat.is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')))
}
