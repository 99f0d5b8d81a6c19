//! A project with a fault, and what lets a task on it run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{Money, SessionId};
use pintle_env::{
    ExecRequest, ExecutionEnvironment, LocalEnvironment, SandboxLevel, SandboxSupport, SandboxedEnvironment,
};
use pintle_evidence::results::ResultsFormat;
use pintle_store::{MemoryStore, SessionStore};
use pintle_test_conditions::{BUBBLEWRAP, LANDLOCK};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::contract::{
    AnchorPlan, BaseCommit, CandidatePlan, Contract, PassCondition, ReviewPlan, TaskCheck, TaskScope,
};
use crate::perform::RepositoryPerformer;
use crate::repository::UserRepository;
use crate::session_runner::{
    OpenWorkspace, SessionAssignment, SessionRunner, SteeringMessage, WorkError, WorkResult, Workspace,
    WorkspaceFactory,
};
use crate::task::{Task, TaskOutcome, WorkCost, WorkEnd};
use crate::{LocalTaskHost, Performer, read_task};

/// Time limit of a whole task.
pub(super) const PATIENCE: Duration = Duration::from_secs(900);

/// Time limit of a command.
const COMMAND_PATIENCE: Duration = Duration::from_secs(300);

/// Runner of tests that prints TAP. It runs hundreds of times, so it imports only modules that the interpreter has loaded anyway, and
/// one small module.
const RUNNER: &str = r#"import os, sys, types
sys.path.insert(0, "src")
names = [name for name in os.listdir("tests") if name.startswith("test_") and name.endswith(".py")]
paths = sys.argv[1:] or sorted("tests/" + name for name in names)
tests = []
for path in paths:
    module = types.ModuleType(os.path.basename(path)[:-3])
    exec(compile(open(path).read(), path, "exec"), vars(module))
    found = [(name, test) for name, test in vars(module).items() if name.startswith("test_")]
    tests += [(module.__name__ + "." + name, test) for name, test in found]
print("1.." + str(len(tests)))
code = 0
for number, (name, test) in enumerate(tests, 1):
    try:
        test()
        print("ok", number, "-", name)
    except AssertionError:
        code = 1
        print("not ok", number, "-", name)
sys.exit(code)
"#;

/// Change that is wrong for the anchor.
pub(super) const WRONG: &str = "sed -i 's/abs(b)/-b/' src/sums.py";

/// The anchor that the script proposes.
const ANCHOR: &str = "import sums\n\ndef test_negative():\n    assert sums.add(3, -1) == 2\n    assert sums.add(-2, -2) == -4\n";

/// Files of the project. Its sums of negative numbers are wrong.
pub(super) const FILES: [(&str, &str); 7] = [
    ("src/sums.py", "def add(a, b):\n    return a + abs(b)\n"),
    ("tests/run.py", RUNNER),
    (
        "tests/test_sums.py",
        "import sums\n\ndef test_positive():\n    assert sums.add(1, 2) == 3\n\ndef test_zero():\n    assert sums.add(0, 0) == 0\n",
    ),
    ("Makefile", "test:\n\tpython3 tests/run.py\n"),
    (".github/workflows/ci.yml", "on: push\n"),
    ("poetry.lock", "# locked\n"),
    ("README.md", "# Sums\n"),
];

/// Words that lead to the goal.
pub(super) const RIGHT: &str = "sed -i 's/abs(b)/b/' src/sums.py";

/// A repository with the project.
#[derive(Debug)]
pub(super) struct Project {
    directory: tempfile::TempDir,
    elsewhere: Option<std::path::PathBuf>,
    pub(super) machine: Arc<dyn ExecutionEnvironment>,
    /// Whether sandboxes have a temporary directory outside of the directory of the task, as those of the command.
    pub(super) has_own_temporary: bool,
}

/// Sessions that run commands of the shell in their place.
#[derive(Debug, Default)]
pub(super) struct SessionScripts {
    /// Commands and answers by the end of a session's id, one for each time that it works. The last one is repeated.
    scripts: BTreeMap<String, Vec<(String, Option<Value>)>>,
    /// Sessions that end with an error of their provider.
    pub(super) failing: Vec<String>,
    /// Sessions that stop at a limit of their budget.
    pub(super) at_limit: Vec<String>,
    pub(super) messages: Mutex<Vec<(String, String)>>,
    /// Model and effort of each session, after its name.
    pub(super) models: Mutex<Vec<String>>,
    pub(super) steered: Mutex<Vec<String>>,
}

/// Returns the variables of this process, with the programs of the system first: the `python3` of a version manager is a script
/// that starts dozens of processes.
fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().map(|(name, value)| {
        if name != "PATH" {
            return (name, value);
        }
        let mut path = OsString::from("/usr/bin:/bin:");
        path.push(value);
        (name, path)
    })
}

/// Returns the environment of a user of this machine.
fn machine(directory: &Path) -> LocalEnvironment {
    LocalEnvironment::with_host_env(directory, variables()).unwrap()
}

/// Sandboxes of this machine, which are probed once: a probe starts up to three processes.
static SUPPORT: OnceCell<SandboxSupport> = OnceCell::const_new();

/// Environments on this machine, in its strictest sandbox.
#[derive(Debug)]
pub(super) struct SandboxedWorkspaces {
    level: Option<SandboxLevel>,
    support: SandboxSupport,
    /// Whether the temporary directory of each sandbox is outside of the directory of the task.
    has_own_temporary: bool,
}

impl SandboxedWorkspaces {
    async fn find(machine: &LocalEnvironment) -> Self {
        let level = if BUBBLEWRAP.is_present() {
            Some(SandboxLevel::Full)
        } else {
            LANDLOCK.is_present().then_some(SandboxLevel::Writes)
        };
        let support =
            SUPPORT.get_or_init(|| async { SandboxSupport::probe(machine).await.unwrap() }).await.clone();
        Self { level, support, has_own_temporary: false }
    }
}

#[async_trait]
impl WorkspaceFactory for SandboxedWorkspaces {
    async fn open(&self, workspace: &Workspace) -> Result<OpenWorkspace, WorkError> {
        let wrong = |error: &dyn std::fmt::Display| WorkError(error.to_string());
        let of_workspace = workspace.variables.iter().map(|(name, value)| (name.into(), value.into()));
        let local = LocalEnvironment::with_host_env(&workspace.root, variables().chain(of_workspace));
        let local = local.map_err(|error| wrong(&error))?;
        let Self { level, support, has_own_temporary } = self;
        // As the command has it, or one that tests find.
        let own = has_own_temporary.then(tempfile::tempdir).transpose().map_err(|error| wrong(&error))?;
        let temporary =
            own.as_ref().map_or_else(|| workspace.directory().join("tmp"), |own| own.path().to_owned());
        let environment: Arc<dyn ExecutionEnvironment> = match level {
            None => Arc::new(local),
            Some(level) => {
                let sandbox = SandboxedEnvironment::new(local)
                    .with_level(*level)
                    .with_support(support.clone())
                    .with_writable(&workspace.root)
                    .with_temporary(temporary);
                Arc::new(workspace.readable.iter().fold(sandbox, SandboxedEnvironment::with_readable))
            }
        };
        environment.initialize().await.map_err(|error| wrong(&error))?;
        Ok(OpenWorkspace::new(environment, own))
    }
}

impl SessionScripts {
    pub(super) fn new() -> Self {
        let answer = json!({
            "command": "python3 tests/run.py tests/test_negative.py", "results": "tap", "report": null,
        });
        let write = format!("cat >tests/test_negative.py <<'END'\n{ANCHOR}END");
        let review = json!({ "findings": [], "remarks": "" });
        Self::default().with_session("anchor", &write, Some(answer)).with_session(
            "anchor-review-1",
            "true",
            Some(review),
        )
    }

    /// Adds notes to the answers of the session of the anchor.
    pub(super) fn with_notes(mut self, notes: &[&str]) -> Self {
        let anchor = self.scripts.get_mut("anchor").unwrap();
        anchor.iter_mut().filter_map(|(_, answer)| answer.as_mut()).for_each(|answer| {
            answer["notes"] = json!(notes);
        });
        self
    }

    /// Adds work of a session.
    pub(super) fn with_session(mut self, session: &str, command: &str, answer: Option<Value>) -> Self {
        self.scripts.entry(session.to_owned()).or_default().push((command.to_owned(), answer));
        self
    }
}

/// A worker with the environments that its commands run in.
#[derive(Debug)]
struct ScriptedRunner(Arc<SessionScripts>, Arc<SandboxedWorkspaces>);

#[async_trait]
impl SessionRunner for ScriptedRunner {
    async fn run(
        &self,
        assignment: SessionAssignment,
        cancel: &CancellationToken,
    ) -> Result<WorkResult, WorkError> {
        let Self(scripted, workspace_factory) = self;
        let name = assignment.session.strip_prefix("t-").unwrap_or(&assignment.session).to_owned();
        for SteeringMessage { text, .. } in &assignment.steering {
            scripted.steered.lock().unwrap().push(format!("{} at its beginning: {text}", assignment.session));
        }
        let SessionAssignment { model, effort, .. } = &assignment;
        let named: Vec<&str> = [Some(&name), model.as_ref(), effort.as_ref()]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        scripted.models.lock().unwrap().push(named.join(" "));
        let times = {
            let mut messages = scripted.messages.lock().unwrap();
            messages.push((name.clone(), assignment.message.clone()));
            messages.iter().filter(|(session, _)| *session == name).count()
        };
        let script = scripted.scripts.get(&name).and_then(|all| all.get(times - 1).or(all.last()));
        let (command, answer) = script.cloned().ok_or_else(|| WorkError(format!("no script for {name}")))?;
        let open = workspace_factory.open(&assignment.workspace).await?;
        let request = ExecRequest::new(command).with_timeout(COMMAND_PATIENCE);
        let request = request.with_env("MESSAGE", &assignment.message);
        tokio::select! {
            done = open.environment().exec_command(request) => {
                let done = done.map_err(|error| WorkError(error.to_string()))?;
                assert!(!done.timed_out, "{name}");
            }
            () = cancel.cancelled() => {}
        }
        open.environment().cleanup().await.map_err(|error| WorkError(error.to_string()))?;
        let spent = WorkCost { cost: Money::from_dollars(0.01), tokens: 10, ..WorkCost::default() };
        let error = scripted.failing.contains(&name).then(|| "overloaded".to_owned());
        let end = if scripted.at_limit.contains(&name) { WorkEnd::Limit } else { WorkEnd::Finished };
        Ok(WorkResult::new(end, spent).with_answer(answer).with_error(error))
    }

    async fn steer(&self, session: &str, SteeringMessage { text, .. }: SteeringMessage) -> bool {
        self.0.steered.lock().unwrap().push(format!("{session}: {text}"));
        true
    }
}

impl Project {
    pub(super) async fn new() -> Self {
        Self::with_files(&FILES).await
    }

    pub(super) async fn with_files(files: &[(&str, &str)]) -> Self {
        let project = Self::empty();
        for (path, text) in files {
            project.write(path, text).await;
        }
        project
            .sh("git init -q -b main && git add -A && git -c user.name=a -c user.email=b commit -qm first")
            .await;
        project
    }

    /// A directory without a repository.
    pub(super) fn empty() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let machine = Arc::new(machine(directory.path()));
        // As a user's own repository would have it.
        std::fs::create_dir(directory.path().join("project")).unwrap();
        Self { directory, elsewhere: None, machine, has_own_temporary: false }
    }

    /// The project that another process has made in this directory, which stays when this is dropped.
    pub(super) fn open(directory: &Path) -> Self {
        let machine = Arc::new(machine(directory));
        let temporary = tempfile::tempdir().unwrap();
        Self {
            directory: temporary,
            elsewhere: Some(directory.to_owned()),
            machine,
            has_own_temporary: false,
        }
    }

    pub(super) fn root(&self) -> std::path::PathBuf {
        self.directory().join("project")
    }

    pub(super) async fn write(&self, path: &str, text: &str) {
        self.machine.write(&self.root().join(path), text.as_bytes()).await.unwrap();
    }

    pub(super) async fn sh(&self, line: &str) -> String {
        let request = ExecRequest::new(line).with_working_dir(self.root()).with_timeout(COMMAND_PATIENCE);
        let done = self.machine.exec_command(request).await.unwrap();
        assert!(done.success(), "{line}: {}", done.output.to_text_lossy().unwrap());
        done.stdout.to_text_lossy().unwrap()
    }

    /// A contract without reviews, with the tests as check.
    pub(super) async fn contract(&self, candidates: usize) -> Contract {
        let found = UserRepository::find(Arc::clone(&self.machine), &self.root()).await.unwrap();
        let mut check = TaskCheck::new("tests", "python3 tests/run.py")
            .with_results(ResultsFormat::Tap)
            .with_pass(PassCondition::NoWorse);
        check.timeout_s = COMMAND_PATIENCE.as_secs() as u32;
        let scope = TaskScope::default().with_paths(["src/"]);
        Contract::new("Sums of negative numbers are right.")
            .with_base(BaseCommit::new(found.root.display().to_string(), found.head))
            .with_check(check)
            .with_scope(scope)
            .with_attempts(1)
            .with_review(ReviewPlan { rounds: 0, model: None })
            .with_candidates(vec![CandidatePlan::default(); candidates])
    }

    /// As [`contract`](Self::contract), with the tests as the only evidence.
    pub(super) async fn contract_without_anchor(&self, candidates: usize) -> Contract {
        let none = AnchorPlan::None { because: "the checks are enough".to_owned() };
        self.contract(candidates).await.with_anchor(none)
    }

    pub(super) fn directory(&self) -> &Path {
        self.elsewhere.as_deref().unwrap_or(self.directory.path())
    }

    pub(super) async fn performer(
        &self,
        store: &dyn SessionStore,
        scripted: &Arc<SessionScripts>,
    ) -> RepositoryPerformer {
        let mut held = SandboxedWorkspaces::find(&machine(self.directory())).await;
        held.has_own_temporary = self.has_own_temporary;
        let workspace_factory = Arc::new(held);
        let session_runner = Arc::new(ScriptedRunner(Arc::clone(scripted), Arc::clone(&workspace_factory)));
        let blobs = Arc::from(store.blobs(&SessionId::new("t")));
        let directory = self.directory().join("task");
        RepositoryPerformer::builder("t", directory, Arc::clone(&self.machine), blobs)
            .build(workspace_factory, session_runner)
    }

    /// Runs a task to its end, and returns how it ended with its state.
    pub(super) async fn run(&self, contract: Contract, scripted: SessionScripts) -> (TaskOutcome, Task) {
        let (outcome, task, _) = self.run_with_messages(contract, scripted).await;
        (outcome, task)
    }

    /// Runs a task to its end, and also returns the messages to its sessions, each with the session.
    pub(super) async fn run_with_messages(
        &self,
        contract: Contract,
        scripted: SessionScripts,
    ) -> (TaskOutcome, Task, Vec<(String, String)>) {
        let (store, id) = (MemoryStore::new(), SessionId::new("t"));
        let scripted = Arc::new(scripted);
        let mut host = LocalTaskHost::create(&store, id.clone(), contract.clone()).await.unwrap();
        let performer = Arc::new(self.performer(&store, &scripted).await);
        let outcome = tokio::time::timeout(PATIENCE, host.run(performer.clone())).await.unwrap().unwrap();
        drop(host);
        Performer::clean(performer.as_ref(), &contract).await.unwrap();
        assert!(!self.directory.path().join("task").exists(), "nothing is left");
        let messages = scripted.messages.lock().unwrap().clone();
        (outcome, read_task(&store, &id).await.unwrap(), messages)
    }
}

/// Returns words of the shell that wait until a file is there, and give up after four minutes.
pub(super) fn wait_for(path: &str) -> String {
    format!("w=0; until test -e {path}; do test $w -lt 2400 || exit 1; w=$((w + 1)); sleep 0.1; done")
}

/// Returns a test that fails before the goal is reached, with other commands of the session that writes it.
pub(super) fn anchor_after(commands: &str) -> SessionScripts {
    let write = "printf 'import sums\\n\\ndef test_negative():\\n    assert sums.add(3, -1) == 2\\n' >tests/test_negative.py";
    let command = "python3 tests/run.py tests/test_negative.py";
    let answer = json!({"command": command, "results": "tap", "report": null});
    SessionScripts::default().with_session("anchor", &format!("{commands}; {write}"), Some(answer))
}
