//! `pintle task`: from a goal to a commit, with a scripted model.

mod terminal;
mod worker;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pintle_testkit::Dialect;
use serde_json::Value;

use crate::harness::{CommandOutput, Harness, KEY, git, pintle, run};

/// Turns of every session of a task: one for the anchor writes a test, a candidate mends the sum, and a reviewer accepts. A
/// session ends once its answer has the form that is asked for.
const TURNS: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = """
case $PWD in
*/anchor/*) mkdir -p tests && printf '. src/add.sh\\ntest $(add 3 -1) -eq 2\\n' >tests/negative.sh ;;
*/candidates/*) sed -i 's/- /+ /' src/add.sh; mkdir -p target; touch target/started; WAIT ;;
esac""" }
    [[turn]]
    text = '{"command": "sh tests/negative.sh", "results": null, "report": null}'
    [[turn]]
    text = '{"findings": [], "remarks": "It is small."}'
"#;

/// An anchor without a session.
const ANCHOR: &str = "kind = \"command\"\ncommand = \". src/add.sh; test $(add 3 -1) -eq 2\"";

/// No anchor: the check is the only evidence.
const NO_ANCHOR: &str = "kind = \"none\"\nbecause = \"the check is enough\"";

/// A repository whose sums are wrong, and a state directory of its own.
struct Project {
    harness: Harness,
    state: tempfile::TempDir,
}

impl Project {
    fn new(turns: &str) -> Self {
        let project = Self {
            harness: Harness::new(Dialect::AnthropicMessages, turns),
            state: tempfile::tempdir().unwrap(),
        };
        let root = project.root();
        std::fs::create_dir(root.join("src")).unwrap();
        std::fs::write(root.join("src/add.sh"), "add() { echo $(($1 - $2)); }\n").unwrap();
        git(root, &["init", "--quiet", "--initial-branch=main"]);
        git(root, &["add", "--all"]);
        git(root, &["commit", "--quiet", "--message=first"]);
        project
    }

    fn root(&self) -> &Path {
        self.harness.directory.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = pintle(&["task"]);
        command.args(arguments).env("PINTLE_STATE_DIR", self.state.path()).current_dir(self.root());
        command
    }

    fn task(&self, arguments: &[&str]) -> CommandOutput {
        run(&mut self.command(arguments))
    }

    fn run_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&["run", "--provider", "anthropic", "--toolset", "spec"]);
        command.args(["--base-url", &self.harness.server.base_url(Dialect::AnthropicMessages)]);
        command.env("ANTHROPIC_API_KEY", KEY).args(arguments);
        command
    }

    /// Writes a contract without reviews, with this anchor and one check, and returns its name.
    fn contract(&self, anchor: &str, check: &str) -> &'static str {
        let check = Value::from(check);
        let text = format!(
            "goal = \"Sums are right.\"\nreview.rounds = 0\n[anchor]\n{anchor}\n[[check]]\nname = \"check 1\"\ncommand = {check}\n"
        );
        std::fs::write(self.root().join("contract.toml"), text).unwrap();
        "contract.toml"
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        run(&mut self.run_command(arguments))
    }

    /// Returns the only task.
    fn only(&self) -> Value {
        let output = self.task(&["list", "--output", "json"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        let tasks: Vec<Value> = serde_json::from_str(&output.stdout).unwrap();
        let [task] = tasks.as_slice() else { panic!("{tasks:?}") };
        task.clone()
    }
}

#[test]
fn a_goal_becomes_a_commit_with_evidence() {
    let project = Project::new(&TURNS.replace("WAIT", "true"));
    let output = project.run(&["Sums are right.", "--check", "sh -n src/add.sh"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let report = output.stdout.split("# Done").nth(1).unwrap_or_else(|| panic!("{output:?}"));
    for expected in [
        "* Anchor: `sh tests/negative.sh` failed three times before, and passes now, by exit code only.",
        "* Check `check 1`: `sh -n src/add.sh` passes, by exit code only.",
        "* Diff: 1 file, 1 line added, 1 removed; protected files are as they were.",
        "The reviewer found no fault.",
        "> It is small.",
    ] {
        assert!(report.contains(expected), "{expected}: {report}");
    }
    for expected in ["      anchor begins\n", "[ 0]  work begins\n", "[ 0]  evidence: all of it holds\n"] {
        assert!(output.stdout.contains(expected), "{expected}: {}", output.stdout);
    }
    assert!(!output.stdout.contains(KEY) && !output.stderr.contains(KEY));
    let task = project.only();
    assert_eq!((&task["state"], &task["title"]), (&"done".into(), &"Sums are right.".into()));
    let id = task["id"].as_str().unwrap();
    assert_eq!(
        git(project.root(), &["status", "--porcelain", "--branch"]),
        "## main\n",
        "nothing is changed"
    );
    assert!(!project.state.path().join(format!("worktrees/task-{id}")).exists(), "nothing is left");

    let shown = project.task(&["show", id]);
    assert!(shown.stdout.contains("  done\nSums are right.\n[ 0]  reached the goal\n$0."), "{shown:?}");
    let shown: Value = serde_json::from_str(&project.task(&["show", id, "--output", "json"]).stdout).unwrap();
    assert_eq!(
        (&shown["standing"]["ended"], &shown["candidates"][0]["attempts"]),
        (&"done".into(), &1.into())
    );
    let page = project.task(&["report", id, "--output", "html"]).stdout;
    for expected in [
        "<h1>Done</h1>",
        "<code>sh tests/negative.sh</code> failed three times before",
        "<h2>Diff of candidate 0, which was chosen</h2>",
        "<ins>+add() { echo $(($1 + $2)); }</ins>",
        "<td>candidate 0</td><td>evidence ends</td>",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }

    let prediction = project.task(&["report", id, "--output", "prediction", "--instance", "sums-1"]);
    let prediction: Value = serde_json::from_str(&prediction.stdout).unwrap();
    assert_eq!(prediction["instance_id"], "sums-1");
    assert!(prediction["model_patch"].as_str().unwrap().contains("+add() { echo $(($1 + $2)); }"));
    let json = project.task(&["report", id, "--output", "json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["outcome"]["done"]["candidate"], 0);

    let applied = project.task(&["apply", id, "--branch", "fix/sums", "--worktree", "../tree-of-sums"]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let log = git(project.root(), &["log", "-1", "--format=%s", "--name-only", "fix/sums"]);
    assert_eq!(log, "Sums are right.\n\nsrc/add.sh\ntests/negative.sh\n");
    let tree = project.root().parent().unwrap().join("tree-of-sums");
    assert!(tree.join("tests/negative.sh").exists());
    std::fs::remove_dir_all(tree).unwrap();
    let taken = project.task(&["apply", id, "--branch", "taken", "--worktree", "src"]);
    assert_eq!(taken.code, Some(1), "{taken:?}");
    assert!(taken.stdout.starts_with("committed ") && taken.stdout.ends_with(" to taken\n"), "{taken:?}");
    assert!(taken.stderr.contains("`git worktree add DIRECTORY taken`"), "{taken:?}");
    let again = project.task(&["apply", id, "--branch", "fix/sums"]);
    assert_eq!(again.code, Some(0), "the branch has the change: {again:?}");
    let other = project.task(&["apply", id, "--branch", "main"]);
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(
        other.stderr.contains("the branch main exists and has another commit; another name for `--branch`"),
        "{other:?}"
    );
    let unknown = project.task(&["apply", id, "--patch", "--candidate", "3"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.stderr.contains(" has no candidate 3; expected 0"), "{unknown:?}");
    let patch = project.task(&["apply", id, "--patch"]).stdout;
    assert!(patch.contains("tests/negative.sh") && patch.contains("src/add.sh"), "{patch}");
    let file = project.state.path().join("changes.patch");
    std::fs::write(&file, &patch).unwrap();
    git(project.root(), &["apply", "--check", file.to_str().unwrap()]);
    assert_eq!(project.task(&["apply", id, "--files"]).code, Some(0));
    assert!(project.harness.read("src/add.sh").contains("$1 + $2"));

    for (arguments, expected) in [
        (&["cancel", id][..], "has ended"),
        (&["steer", id, "x"], "has ended"),
        (&["decide", id, "approve"], "does not wait for a decision"),
        (&["report", "no-such"], "there is no task `no-such`"),
    ] {
        let refused = project.task(arguments);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(expected), "{refused:?}");
    }
    let sessions = run(pintle(&["sessions", "list", "--all", "--output", "json"])
        .env("PINTLE_STATE_DIR", project.state.path()));
    let sessions: Vec<Value> = serde_json::from_str(&sessions.stdout).unwrap();
    let mut ids: Vec<&str> = sessions.iter().map(|session| session["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    let expected = ["0", "anchor", "anchor-review-1", "review-0-1"].map(|name| format!("{id}-{name}"));
    assert_eq!(ids, expected, "the sessions of the task are kept, and the task is none");
}

/// Starts a task, and returns once a candidate works, with the clone of the candidate. `wait` is its last command.
fn working(wait: &str) -> (Project, Child, PathBuf) {
    let project = Project::new(&TURNS.replace("WAIT", wait));
    let contract = project.contract(ANCHOR, "sh -n src/add.sh");
    let mut child = project.run_command(&["--contract", contract]).spawn().unwrap();
    let worktrees = project.state.path().join("worktrees");
    let end = Instant::now() + Duration::from_secs(120);
    let started = || {
        let tasks = std::fs::read_dir(&worktrees).into_iter().flatten().flatten();
        let mut trees = tasks.into_iter().map(|task| task.path().join("candidates/0/tree"));
        trees.find(|tree| tree.join("target/started").exists())
    };
    let tree = loop {
        if let Some(tree) = started() {
            break tree;
        }
        assert!(Instant::now() < end && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(50));
    };
    (project, child, tree)
}

/// Starts a task whose process is killed while a candidate works.
fn killed() -> Project {
    let (project, mut child, _) = working("sleep 1000");
    child.kill().unwrap();
    child.wait().unwrap();
    project
}

#[test]
fn a_message_to_a_candidate_has_its_author_in_the_session() {
    let (project, mut child, tree) = working("until test -e target/steered; do sleep 0.05; done");
    let id = project.only()["id"].as_str().unwrap().to_owned();
    let mut steer = project.command(&["steer", &id, "be quick"]);
    let steered = run(steer.env("USER", "alice"));
    assert_eq!((steered.code, steered.stderr.as_str()), (Some(0), ""), "{steered:?}");
    let message = || {
        let mut export = pintle(&["sessions", "export", &format!("{id}-0")]);
        let record = run(export.env("PINTLE_STATE_DIR", project.state.path())).stdout;
        record.lines().find(|line| line.contains("be quick")).map(str::to_owned)
    };
    let end = Instant::now() + Duration::from_secs(120);
    let message = loop {
        if let Some(message) = message() {
            break message;
        }
        assert!(Instant::now() < end && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(message.contains("alice@"), "{message}");
    std::fs::write(tree.join("target/steered"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_task_without_a_process_is_cancelled_and_leaves_nothing() {
    let project = killed();
    let task = project.only();
    assert_eq!(task["state"], "under way");
    let id = task["id"].as_str().unwrap();
    let cancelled = project.task(&["cancel", &id[..13]]);
    assert_eq!((cancelled.code, cancelled.stderr.as_str()), (Some(0), ""), "{cancelled:?}");
    assert_eq!(project.only()["state"], "cancelled");
    assert_eq!(std::fs::read_dir(project.state.path().join("worktrees")).unwrap().count(), 0);
}

#[test]
fn a_task_whose_process_was_killed_goes_on() {
    let project = killed();
    let task = project.only();
    assert_eq!(task["state"], "under way");
    let id = task["id"].as_str().unwrap();
    let steered = project.task(&["steer", id, "be quick"]);
    assert_eq!(steered.code, Some(0), "{steered:?}");
    assert!(steered.stderr.contains("no process has the task open"), "{steered:?}");
    let output = project.run(&["--task", id]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("message to all: be quick"), "{output:?}");
    assert!(!output.stdout.contains("anchor begins"), "it is not done again: {output:?}");
    assert_eq!(project.only()["state"], "done");
}

#[test]
fn bad_input_is_refused_before_anything_is_written() {
    let project = Project::new(&TURNS.replace("WAIT", "true"));
    std::fs::write(project.root().join("wrong.toml"), "goal = \"x\"\nattempts = 9\n").unwrap();
    for (arguments, expected) in [
        (&["--contract", "wrong.toml"][..], "attempts: expected 1 to 5"),
        (&["--contract", "none.toml"], "none.toml"),
        (&["x", "--continue"], "takes no --continue"),
        (&["x", "--no-session"], "takes no --no-session"),
        (&["x", "--env", "ssh:y"], "works only with --env local or --env docker:IMAGE"),
        (
            &["x", "--env", "docker:registry.invalid/y:1"],
            "start a container from the image registry.invalid/y:1",
        ),
        (&["x", "--env", "docker:y", "--sandbox", "full"], "expected the environment local"),
        (&["x", "--candidates", "17"], "17"),
        (&["--task", "none"], "there is no task `none`"),
        (&["x", "--task", "none"], "cannot be used with"),
        (&["x"], "`--yes` takes any draft"),
        (&["x", "--yes", "--check", "true"], "cannot be used with"),
    ] {
        let refused = project.run(arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains(expected), "{arguments:?}: {refused:?}");
    }
    let without_key = run(&mut project.command(&["run", "x", "--provider", "anthropic"]));
    assert_eq!(without_key.code, Some(4), "{without_key:?}");
    let listed = project.task(&["list"]);
    assert_eq!(listed.stdout, "no tasks\n");
}

/// A candidate that repeats a call, is told so, and goes on with it, is stopped. The last turn would not end by itself.
#[test]
fn a_candidate_in_a_loop_is_stopped() {
    let call = "[[turn.call]]\ntool = \"shell\"\narguments = { command = \"false\" }\n";
    let round = format!("[[turn]]\n{}", call.repeat(10));
    let last = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"sleep 1000\" }\n";
    let project = Project::new(&format!("{round}{round}{last}"));
    let contract = project.contract(ANCHOR, "sh -n src/add.sh");
    let output = project.run(&["--contract", contract, "--output", "stream-json"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let lines = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    let report = lines.last().unwrap();
    assert_eq!(report["candidates"][0]["out"], "it repeated the same calls, and was stopped");
    assert_eq!(report["candidates"][0]["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(lines.first().unwrap()["task"]["id"], report["id"], "a program knows the task from the start");
    let id = report["id"].as_str().unwrap();
    let again: Value =
        serde_json::from_str(&project.task(&["report", id, "--output", "json"]).stdout).unwrap();
    assert_eq!(again, *report);

    // One value, although the task has not reached its goal.
    let ended = project.run(&["--task", id, "--output", "json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(serde_json::from_str::<Value>(&ended.stdout).unwrap(), *report);
    let wrong = project.run(&["x", "--output", "json", "--nonsense"]);
    let error: Value = serde_json::from_str(&wrong.stdout).unwrap();
    assert_eq!((wrong.code, &error["type"]), (Some(2), &"error".into()), "{error}");
}

/// The first attempt makes a repository, which cannot be judged. The second one removes it.
#[test]
fn a_candidate_removes_a_repository_that_it_made() {
    let made = "git init -q made && git -C made -c user.name=u -c user.email=u@example.com commit -q \
                --allow-empty -m first";
    let answer = "    [[turn]]\n    text = '{\"findings\"";
    let removed = "    [[turn]]\n    [[turn.call]]\n    tool = \"shell\"\n    arguments = { command = \"rm -rf made\" }\n";
    let turns = TURNS.replace("WAIT", made).replace(answer, &format!("{removed}{answer}"));
    let project = Project::new(&turns);
    let output = project.run(&["--contract", project.contract(NO_ANCHOR, "sh -n src/add.sh")]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("`made` is a separate repository"), "{output:?}");
    let id = project.only()["id"].as_str().unwrap().to_owned();
    let shown: Value =
        serde_json::from_str(&project.task(&["show", &id, "--output", "json"]).stdout).unwrap();
    assert_eq!(shown["candidates"][0]["attempts"], 2, "{shown}");
}

#[test]
fn a_check_that_fails_before_any_change_is_reported_with_its_output() {
    let project = Project::new(&TURNS.replace("WAIT", "true"));
    let contract = project.contract(NO_ANCHOR, "echo the reason; echo '  of it'; exit 3");
    let output = project.run(&["--contract", contract]);
    assert_eq!(output.code, Some(1), "{output:?}");
    let expected = "check `check 1` fails before any change: it exited with 3\n    the reason\n      of it\n";
    assert!(output.stderr.contains(expected), "{output:?}");
    assert!(
        output.stdout.contains("* check `check 1` failed before any change: it exited with 3"),
        "{output:?}"
    );
    let id = project.only()["id"].as_str().unwrap().to_owned();
    let shown = project.task(&["show", &id]);
    assert!(
        shown.stdout.contains("check `check 1` fails before any change: it exited with 3\n"),
        "{shown:?}"
    );
    let shown: Value =
        serde_json::from_str(&project.task(&["show", &id, "--output", "json"]).stdout).unwrap();
    assert_eq!(shown["failing_checks"], serde_json::json!(["check 1"]), "{shown}");
}

/// A task starts from local changes, but for a repository inside, and its reference goes with it.
#[test]
fn a_task_starts_from_local_changes() {
    let project = Project::new(&TURNS.replace("WAIT", "true"));
    std::fs::write(project.root().join("local.txt"), "1\n").unwrap();
    git(project.root(), &["init", "--quiet", "inside"]);
    std::fs::write(project.root().join("inside/file"), "1\n").unwrap();
    let output =
        project.run(&["Sums are right.", "--check", "sh -n src/add.sh && cat local.txt", "--changes"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("without the files of the repositories in inside/"), "{output:?}");
    assert_eq!(git(project.root(), &["for-each-ref", "refs/pintle"]), "");
    let id = project.only()["id"].as_str().unwrap().to_owned();
    let applied = project.task(&["apply", &id, "--branch", "fix/sums"]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let listed = git(project.root(), &["ls-tree", "-r", "--name-only", "fix/sums"]);
    assert_eq!(listed, "local.txt\nsrc/add.sh\ntests/negative.sh\n");
    assert!(project.root().join("inside/file").exists());
}

#[test]
fn a_cancelled_task_leaves_no_reference() {
    let project = Project::new(&TURNS.replace("WAIT", "true"));
    let contract = "goal = \"Sums are right.\"\ngates = [\"anchor\"]\n[budget]\nusd = 5.0\ntokens = 900_000\nminutes = 30\n";
    std::fs::write(project.root().join("contract.toml"), contract).unwrap();
    let mut child = project.run_command(&["--contract", "contract.toml"]).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(120);
    while !project.task(&["list"]).stdout.contains("waits for a person, running") {
        assert!(Instant::now() < end && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let id = project.only()["id"].as_str().unwrap().to_owned();
    let references = || git(project.root(), &["for-each-ref", "--format=%(refname)", "refs/pintle"]);
    assert_eq!(references(), format!("refs/pintle/tasks/{id}\n"));
    assert_eq!(project.task(&["cancel", &id]).code, Some(0));
    assert_eq!(references(), "");
}

#[test]
fn a_task_waits_for_a_person() {
    let project = Project::new(&TURNS.replace("WAIT", "true"));
    let contract = "goal = \"Sums are right.\"\ngates = [\"anchor\"]\n[budget]\nusd = 5.0\ntokens = 900_000\nminutes = 30\n";
    std::fs::write(project.root().join("contract.toml"), contract).unwrap();
    let mut child = project.run_command(&["--contract", "contract.toml"]).spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(120);
    let waits = || {
        let output = project.task(&["list"]);
        output.stdout.contains("waits for a person, running")
    };
    while !waits() {
        assert!(Instant::now() < end && child.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(100));
    }
    let task = project.only();
    let id = task["id"].as_str().unwrap();
    let refused = project.task(&["decide", id, "approve", "--words", "x"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let approved = project.task(&["decide", id, "approve"]);
    assert_eq!((approved.code, approved.stderr.as_str()), (Some(0), ""), "{approved:?}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(project.only()["state"], "done");
}

#[test]
fn a_closed_pipe_stops_a_task_that_can_go_on() {
    let project = Project::new(&TURNS.replace("WAIT", "sleep 1000"));
    let mut child = project
        .run_command(&["Sums are right.", "--check", "sh -n src/add.sh"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let task = project.only();
    assert_eq!((&task["state"], &task["running"]), (&"under way".into(), &false.into()));
}
