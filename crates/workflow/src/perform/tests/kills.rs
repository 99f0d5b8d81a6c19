//! Processes that are killed at random, with a real repository. `KILLS` is the number of kills; by default there is
//! one, and 20 in the long run.
#![expect(clippy::disallowed_methods, reason = "the test starts and kills itself")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use pintle_agent::SessionId;
use pintle_store::{FileStore, SessionStore as _};
use pintle_test_conditions::cases;

use super::crashes::{contract, report, script};
use super::project::Project;
use crate::task::TaskOutcome;
use crate::{LocalTaskHost, read_task};

/// Variable with the directory of the project, for the child; everything that it starts inherits it.
const CHILD: &str = "PINTLE_TEST_KILLED";

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(600);

/// Kills the child when the test ends.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The child: goes on with the task until it has ended.
#[tokio::test]
async fn process_that_is_killed() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let directory = Path::new(&directory);
    let project = Project::open(directory);
    let (store, id) = (FileStore::open(directory.join("store")).unwrap(), SessionId::new("t"));
    let mut host = match store.summary(&id).await.unwrap() {
        // Killed before the contract was on record, it is no task yet.
        Some(_) if read_task(&store, &id).await.is_ok() => LocalTaskHost::open(&store, &id).await.unwrap(),
        known => {
            if known.is_some() {
                store.delete(&id).await.unwrap();
            }
            LocalTaskHost::create(&store, id.clone(), contract(&project).await).await.unwrap()
        }
    };
    let performer = Arc::new(project.performer(&store, &Arc::new(script())).await);
    let outcome = host.run(performer.clone()).await.unwrap();
    drop(host);
    performer.clean().await.unwrap();
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{outcome:?}");
}

fn start(directory: &Path) -> KillOnDrop {
    let name = concat!(module_path!(), "::process_that_is_killed");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name.split_once("::").unwrap().1]).env(CHILD, directory);
    KillOnDrop(command.stdout(Stdio::null()).spawn().unwrap())
}

/// Returns the processes that have the directory in their environment.
fn left_behind(directory: &Path) -> Vec<u32> {
    let wanted = format!("{CHILD}={}", directory.display());
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()).then_some(pid)
    });
    processes.collect()
}

/// Goes on with a task until it has ended, and kills it at random until `kills` are used up.
async fn survives(kills: &mut u32, random: &mut u64) {
    let project = Project::new().await;
    let directory = project.directory();
    let mut longest = Duration::from_secs(4);
    loop {
        let mut child = start(directory);
        // Numerical Recipes' generator is random enough for times.
        *random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let time = longest.mul_f64((*random >> 16 & 0xFFFF) as f64 / 65_536.0);
        let (started, is_killed) = (Instant::now(), *kills > 0);
        while started.elapsed() < if is_killed { time } else { PATIENCE } {
            if let Some(status) = child.0.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                return check(&project).await;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(is_killed, "the task does not end");
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        *kills -= 1;
        let end = Instant::now() + PATIENCE;
        while !left_behind(directory).is_empty() {
            assert!(Instant::now() < end, "{:?}", left_behind(directory));
            std::thread::sleep(Duration::from_millis(20));
        }
        // A task that is killed ever again before its longest step has ended never ends.
        longest = longest.mul_f64(1.1);
    }
}

/// Checks that the task has ended as one that nobody killed, with each step on record once.
async fn check(project: &Project) {
    let store = FileStore::open(project.directory().join("store")).unwrap();
    let id = SessionId::new("t");
    let task = read_task(&store, &id).await.unwrap();
    assert!(matches!(task.outcome(), Some(TaskOutcome::Done(_))), "{}", report(&task));
    let mut finished: BTreeMap<String, usize> = BTreeMap::new();
    for line in pintle_store::read_objects(&store, &id).await.unwrap() {
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        if let Some(step) = line["task_input"]["finished"].get("step") {
            *finished.entry(step.to_string()).or_default() += 1;
        }
    }
    assert_eq!((finished.len(), finished.values().max()), (8, Some(&1)), "{finished:?}");
    assert_eq!(task.spent().tokens, 60, "each session is paid for once");
    assert!(!project.directory().join("task").exists(), "nothing is left");
    assert_eq!(left_behind(project.directory()), [0_u32; 0]);
    assert_eq!(project.sh("git status --porcelain; git branch").await, "* main\n");
}

#[tokio::test]
async fn a_task_survives_kills_at_random() {
    let default = cases(1, 20);
    let mut kills = std::env::var("KILLS").map_or(default, |kills| kills.parse().unwrap());
    let mut random = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    eprintln!("{kills} kills, beginning with {random}");
    let mut tasks = 0;
    while kills > 0 {
        survives(&mut kills, &mut random).await;
        tasks += 1;
    }
    eprintln!("{tasks} tasks have reached their goal");
}
