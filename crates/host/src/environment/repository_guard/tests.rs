#![expect(clippy::disallowed_methods, reason = "the tests change files as commands do")]

use std::ffi::OsStr;
use std::fs;

use pintle_llm::ToolCall;
use pintle_tools::pipeline::{JudgedCall, prepare};
use pintle_tools::{ToolRegistry, builtin};
use serde_json::json;

use super::*;
use crate::environment::watch_record::WatchRecord;
use crate::environment::workspace_search::SearchedWorkspace;

/// A git directory, its guard, and a prepared command.
struct Fixture {
    root: PathBuf,
    process_env: ProcessEnv,
    gate: GuardedWatch,
    command: PreparedCall,
    _directory: TempDir,
}

impl Fixture {
    /// Guards a repository, and has the gate judge a command.
    async fn new() -> Self {
        Self::with_state(|_| {}).await
    }

    /// Guards a repository, with a state directory that the function changes.
    async fn with_state(change: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let workspace = root.join("project");
        for name in ["objects/ab", "refs/heads"] {
            fs::create_dir_all(workspace.join(".git").join(name)).unwrap();
        }
        for (name, content) in
            [("HEAD", "ref: refs/heads/main\n"), ("refs/heads/main", "1\n"), ("objects/ab/1", "1")]
        {
            fs::write(workspace.join(".git").join(name), content).unwrap();
        }
        let state = root.join("state");
        fs::create_dir(&state).unwrap();
        change(&state);
        let process_env = ProcessEnv::from_variables([("PINTLE_STATE_DIR", state.as_os_str())]);
        let env = Arc::new(process_env.local_environment(&workspace).unwrap());
        let searched = SearchedWorkspace {
            environment: process_env.local_environment(&workspace).unwrap(),
            settings_directories: Vec::new(),
            writable_roots: Vec::new(),
            is_disposable: false,
            is_protected: false,
        };
        let record = WatchRecord::open(&workspace, true, &process_env).unwrap();
        let search = Arc::new(WorkspaceSearch::new(searched, &record, &process_env).await.unwrap());
        let guard = RepositoryGuard::new(Arc::clone(&search), &workspace, true, &process_env);
        let gate = guard.with_watch(ProtectedPathWatch::new(env.clone(), [""; 0]), Some(search));
        let mut registry = ToolRegistry::new();
        builtin::register_core(&mut registry).unwrap();
        let call = ToolCall::from_raw("c", "shell", json!({ "command": "true" }).to_string());
        let gates: [Arc<dyn Gate>; 1] = [Arc::new(gate.clone())];
        let JudgedCall::Ready { call: command, .. } = prepare(&registry, &gates, env.as_ref(), &call).await
        else {
            panic!("the command is refused")
        };
        Self { root, process_env, gate, command, _directory: directory }
    }

    /// Returns the names of the backed-up files below `objects`.
    fn objects(&self) -> Vec<String> {
        let (mut found, mut pending) = (Vec::new(), vec![self.root.join("state")]);
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    pending.push(path);
                } else if path.components().any(|part| part.as_os_str() == OsStr::new("objects")) {
                    found.push(path.file_name().unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        found.sort();
        found
    }
}

#[tokio::test]
async fn a_backup_is_updated_once_per_command_right_before_it_runs() {
    let fixture = Fixture::new().await;
    let (gate, command) = (&fixture.gate, &fixture.command);
    assert_eq!(gate.check(command).await, Verdict::ALLOW);
    assert_eq!(fixture.objects(), [""; 0], "a judgement changes nothing");
    gate.before_run(command).await;
    assert_eq!(fixture.objects(), ["1"]);
    fs::write(fixture.root.join("project/.git/objects/ab/2"), "2").unwrap();
    assert_eq!(gate.check(command).await, Verdict::ALLOW);
    assert_eq!(fixture.objects(), ["1"]);
    gate.before_run(command).await;
    assert_eq!(fixture.objects(), ["1", "2"]);
}

/// A command in the background may remove files while the next command is judged.
#[tokio::test]
async fn files_that_are_missing_before_a_command_are_restored_and_reported() {
    for removed in ["objects", "refs", "refs/heads/main"] {
        let fixture = Fixture::new().await;
        let (gate, command) = (&fixture.gate, &fixture.command);
        gate.before_run(command).await;
        let path = fixture.root.join("project/.git").join(removed);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap()
        } else {
            fs::remove_file(&path).unwrap()
        }
        assert_eq!(gate.check(command).await, Verdict::ALLOW);
        gate.before_run(command).await;
        assert!(path.exists(), "{removed}");
        let reason = gate.stop_after(command).await.unwrap_or_default();
        assert!(reason.contains("removed part of the git history"), "{removed}: {reason}");
        assert_eq!(gate.stop_after(command).await, None, "{removed}");
    }
}

/// The command passes no gate.
#[tokio::test]
async fn a_command_of_the_user_has_the_guard_and_a_later_command_is_not_stopped_for_it() {
    let fixture = Fixture::new().await;
    let (gate, command) = (&fixture.gate, &fixture.command);
    let git = fixture.root.join("project/.git");
    let (result, report) = gate.run_user_command(async { fs::remove_dir_all(&git) }).await;
    result.unwrap();
    let report = report.unwrap_or_default();
    assert!(report.contains("removed part of the git history"), "{report}");
    assert!(git.join("objects/ab/1").exists() && git.join("refs/heads/main").exists(), "{report}");
    assert_eq!(gate.check(command).await, Verdict::ALLOW);
    gate.before_run(command).await;
    let change = async {
        fs::create_dir_all(git.join("hooks")).unwrap();
        fs::write(git.join("hooks/pre-commit"), "x").unwrap();
    };
    let ((), report) = gate.run_user_command(change).await;
    assert!(report.unwrap_or_default().contains("hooks/pre-commit"));
    assert_eq!(gate.stop_after(command).await, None);
    assert_eq!(gate.run_user_command(async {}).await, ((), None));
}

#[tokio::test]
async fn a_program_that_passes_no_gate_starts_after_the_backup() {
    let fixture = Fixture::new().await;
    let environment = fixture.process_env.local_environment(&fixture.root.join("project")).unwrap();
    let guarded = fixture.gate.repositories.guard_programs(Arc::new(environment));
    guarded.initialize().await.unwrap();
    let removal = guarded.exec_command(pintle_env::ExecRequest::new("rm -r .git/objects")).await.unwrap();
    assert!(removal.success(), "{removal:?}");
    let reason = fixture.gate.stop_at_end().await.unwrap_or_default();
    assert!(reason.contains("removed part of the git history"), "{reason}");
    assert!(fixture.root.join("project/.git/objects/ab/1").exists(), "{reason}");
    guarded.cleanup().await.unwrap();
}

#[tokio::test]
async fn a_missing_backup_is_reported_once_and_names_the_repository() {
    let fixture = Fixture::with_state(|state| fs::write(state.join(DIRECTORY), "").unwrap()).await;
    let (gate, command) = (&fixture.gate, &fixture.command);
    for _ in 0..2 {
        assert_eq!(gate.check(command).await, Verdict::ALLOW);
        gate.before_run(command).await;
        assert_eq!(gate.stop_after(command).await, None);
    }
    let notices = fixture.process_env.notices().take();
    let [notice] = &notices[..] else { panic!("{notices:?}") };
    let git = fixture.root.join("project/.git").display().to_string();
    assert!(notice.text().starts_with(&format!("cannot back up the git history of {git}: ")), "{notice:?}");
}
