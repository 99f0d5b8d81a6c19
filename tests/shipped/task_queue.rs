//! Tasks of a team: queued together, run by a worker, and pushed.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Output};
use std::time::{Duration, Instant};

use pintle_test_conditions::is_full;
use pintle_testkit::Dialect;
use serde_json::Value;

use super::tasks::{GOAL, checked_task, git, shell_user};
use super::user::User;
use super::worktrees::is_confined;

/// Time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(120);

/// A worker, which is ended with its test.
pub(super) struct Worker(Child);

impl Worker {
    pub(super) fn start(user: &User) -> Self {
        let url = user.model.base_url(Dialect::AnthropicMessages);
        let mut command = user.command(&["worker", "--provider", "anthropic", "--base-url", &url]);
        let log = std::fs::File::create(user.at("worker.log")).unwrap();
        Self(command.stdout(log).spawn().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a condition holds.
#[track_caller]
pub(super) fn wait_until(what: &str, mut is_met: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_met() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the tasks of a user by their goals.
fn listed(user: &User) -> Vec<(String, String)> {
    let tasks: Value = serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
    let text = |task: &Value, name: &str| task[name].as_str().unwrap().to_owned();
    let mut tasks: Vec<(String, String)> =
        tasks.as_array().unwrap().iter().map(|task| (text(task, "title"), text(task, "state"))).collect();
    tasks.sort();
    tasks
}

fn failed(output: &Output, code: i32, expected: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(code) && error.contains(expected), "{expected}: {output:?}");
}

#[test]
fn queued_tasks_are_run_by_a_worker() {
    if !is_confined() {
        return;
    }
    let user = shell_user("true");
    let issues = user.at("issues");
    std::fs::create_dir(&issues).unwrap();
    std::fs::write(issues.join("1.md"), "Sums are right.\n\nAlso negative ones.\n").unwrap();
    std::fs::write(issues.join("2.toml"), format!("goal = '{GOAL}'\nattempts = 1\n")).unwrap();
    std::fs::write(issues.join("notes.txt"), "no task").unwrap();
    let from = issues.to_str().unwrap();
    let added = user.pintle(&["task", "add", "--from", from, "--check", "sh check.sh", "--output", "json"]);
    let added: Value = serde_json::from_str(&added).unwrap();
    assert_eq!((&added[0]["title"], &added[1]["title"]), (&"Sums are right.".into(), &GOAL.into()));
    let queued = |state: &str| {
        vec![("Sums are right.".to_owned(), state.to_owned()), (GOAL.to_owned(), state.to_owned())]
    };
    assert_eq!(listed(&user), queued("queued"));
    let id = added[0]["id"].as_str().unwrap();
    assert!(user.pintle(&["task", "show", id]).starts_with(&format!("{id}  queued\n")), "as in the list");
    let shown: Value = serde_json::from_str(&user.pintle(&["task", "show", id, "--output", "json"])).unwrap();
    assert_eq!(shown["state"], "queued");
    assert!(user.model.requests().is_empty());
    let _worker = Worker::start(&user);
    wait_until("the tasks are done", || listed(&user) == queued("done"));
    let log = || std::fs::read_to_string(user.at("worker.log")).unwrap();
    wait_until("the worker reports the ends", || log().matches(" is done: ").count() == 2);
    for part in
        [format!("task {id} starts: Sums are right.\n"), format!("task {id} is done: Sums are right.\n")]
    {
        assert!(log().contains(&part), "{part}: {}", log());
    }
    let report = user.pintle(&["task", "report", id]);
    let commit = git(&user, &["rev-parse", "HEAD"]);
    for expected in [
        format!("* Id: `{id}`\n").as_str(),
        &format!("* Base: commit `{}` of ", commit.trim()),
        "* Check `check 1`: `sh check.sh` passes, by exit code only.",
        " of wall time.",
        "| work-0-1 | ",
    ] {
        assert!(report.contains(expected), "{expected}: {report}");
    }
}

#[test]
fn mistakes_in_the_files_of_a_task_are_one_line_with_their_place() {
    let user = shell_user("true");
    for (flag, text, expected) in [
        (
            "--contract",
            "goal = 'a'\n[plan]\nrounds = -3\n",
            "terms.toml: the contract cannot be read: line 3, column 10: expected `auto`, or 0 to 50",
        ),
        (
            "--models",
            "[models]\nwriter = {}\n",
            "terms.toml: the models cannot be read: line 2, column 1: unknown field",
        ),
        (
            "--models",
            "[models]\nwork = { share = 0.5 }\n",
            "terms.toml: the contract is wrong: models: expected a `[budget]`",
        ),
    ] {
        let file = user.at("terms.toml");
        std::fs::write(&file, text).unwrap();
        let mut command = user.command(&["task", "add", flag, file.to_str().unwrap()]);
        if flag == "--models" {
            command.arg("Sums are right.");
        }
        let output = command.output().unwrap();
        failed(&output, 2, expected);
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{output:?}");
    }
    assert_eq!(user.pintle(&["task", "list"]), "no tasks\n");
}

#[test]
fn tasks_are_queued_together_or_not_at_all() {
    let user = shell_user("true");
    let add = |from: &str| user.command(&["task", "add", "--from", from]).output().unwrap();
    let lines = user.at("tasks.jsonl");
    let file = lines.to_str().unwrap();
    let good = "{\"goal\": \"One.\"}\n\n{\"goal\": \"Two.\", \"check\": [{\"name\": \"a\", \"command\": \"true\"}]}\n";
    std::fs::write(&lines, format!("{good}{{\"goal\": \"Three.\"")).unwrap();
    let broken = add(file);
    failed(&broken, 2, "no task is queued: 1 of 3 cannot be read");
    failed(&broken, 2, &format!("{file}, line 4: the contract cannot be read"));
    let directory = user.at("issues");
    std::fs::create_dir(&directory).unwrap();
    failed(&add(directory.to_str().unwrap()), 2, "has no tasks");
    std::fs::write(directory.join("a.md"), "One.\n").unwrap();
    std::fs::write(directory.join("b.toml"), "goal = 'Two.'\n\nbudgets = 3\n").unwrap();
    let broken = add(directory.to_str().unwrap());
    failed(&broken, 2, "b.toml: the contract cannot be read");
    failed(&broken, 2, "line 3");
    std::fs::write(directory.join("c.md"), [0xff]).unwrap();
    let broken = add(directory.to_str().unwrap());
    failed(&broken, 2, "b.toml: the contract cannot be read: line 3, column 1: unknown field `budgets`");
    failed(&broken, 2, "c.md is not valid UTF-8 at byte 1");
    failed(&add(user.at("missing").to_str().unwrap()), 2, "cannot be read");
    failed(&user.command(&["task", "add", "x", "--from", file]).output().unwrap(), 2, "cannot be used with");
    assert_eq!(user.pintle(&["task", "list"]), "no tasks\n");
    std::fs::write(&lines, good).unwrap();
    assert!(add(file).status.success());
    let queued = |goal: &str| (goal.to_owned(), "queued".to_owned());
    assert_eq!(listed(&user), [queued("One."), queued("Two.")]);
}

/// Stands in for the GitHub CLI.
pub(super) const GH: &str = "#!/bin/sh\n[ \"$1\" != --version ] || exit 0\necho \"$GH_TOKEN $ANTHROPIC_API_KEY\" >\"$HOME/gh\"\n\
                  printf '%s\\n' \"$@\" >>\"$HOME/gh\"\necho https://example.org/pull/1\n";

/// Writes a program `gh` for the user, and returns the variable `PATH` with which it is found.
pub(super) fn install_gh(user: &User, text: &str) -> String {
    let programs = user.at("programs");
    std::fs::create_dir_all(&programs).unwrap();
    let path = programs.join("gh");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", programs.display(), std::env::var("PATH").unwrap())
}

#[test]
fn a_result_is_pushed_and_a_pull_request_is_opened() {
    if !is_confined() {
        return;
    }
    let user = shell_user("true");
    let output = checked_task(&user, "", &[]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let tasks: Value = serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
    let id = tasks[0]["id"].as_str().unwrap();
    let path = install_gh(&user, "#!/bin/sh\nexit 127\n");
    let apply = |flags: &[&str]| {
        let mut command = user.command(&[&["task", "apply", id][..], flags].concat());
        command.env("PATH", &path).env("GH_TOKEN", "token-of-gh").output().unwrap()
    };
    failed(&apply(&["--push"]), 2, "the repository has no remote to push to");
    let remote = user.at("remote.git");
    git(&user, &["init", "--quiet", "--bare", remote.to_str().unwrap()]);
    git(&user, &["remote", "add", "work", remote.to_str().unwrap()]);
    failed(&apply(&["--push", "--pr"]), 1, "`--pr` needs the GitHub CLI");
    failed(&apply(&["--push", "--remote", "origin"]), 2, "expected work");
    let wrong = std::fs::read_to_string(user.project().join("add.sh")).unwrap();
    std::fs::write(user.project().join("add.sh"), "add() { :; }\n").unwrap();
    failed(&apply(&["--push"]), 2, "has 1 local change, which the pushed branch would not contain");
    std::fs::write(user.project().join("add.sh"), wrong).unwrap();
    failed(&apply(&["--branch", "x", "--pr"]), 2, "--push");
    for flags in [
        &["--push", "--files"][..],
        &["--files", "--pr"],
        &["--files", "--remote", "work"],
        &["--files", "--worktree", "w"],
        &["--patch", "--pr"],
        &["--patch", "--remote", "work"],
        &["--patch", "--worktree", "w"],
    ] {
        failed(&apply(flags), 2, "cannot be used with");
    }
    let report = user.command(&["task", "report", id, "--instance", "x"]).output().unwrap();
    failed(&report, 2, "expected `--output prediction`");
    assert_eq!(git(&user, &["for-each-ref", "refs/heads/pintle", "refs/heads/x"]), "", "nothing was made");

    install_gh(&user, &GH.replace("echo https", "exit 1; echo https"));
    let failing = apply(&["--push", "--pr"]);
    failed(&failing, 1, "the same command opens the pull request with its text");
    install_gh(&user, GH);
    let branch = format!("pintle/{id}");
    // Also after the branch was committed.
    for flags in [&["--push"][..], &["--push", "--pr"]] {
        let pushed = apply(flags);
        let text = String::from_utf8_lossy(&pushed.stdout).into_owned();
        assert!(pushed.status.success() && text.contains(&format!("pushed {branch} to work")), "{pushed:?}");
        assert_eq!(text.contains("https://example.org/pull/1"), flags.len() == 2, "{text}");
    }
    let remote = format!("--git-dir={}", remote.display());
    let shown = git(&user, &[&remote, "show", "--stat", "--format=%s%n%an <%ae>, %cn <%ce>", &branch]);
    assert!(shown.starts_with(GOAL) && shown.contains("add.sh"), "{shown}");
    assert!(shown.contains("A User <user@example.org>, A User <user@example.org>"), "{shown}");
    let gh = std::fs::read_to_string(user.at("gh")).unwrap();
    // It has the variables of the user, and no keys of models.
    assert!(gh.starts_with("token-of-gh \npr\ncreate\n--head\n"), "{gh}");
    for expected in [branch.as_str(), GOAL, "## Evidence", "* Check `check 1`: `sh check.sh` passes"] {
        assert!(gh.contains(expected), "{expected}: {gh}");
    }
    assert!(!gh.contains(user.project().to_str().unwrap()) && !gh.contains("## Bill"), "{gh}");
}

/// A repository with several projects, one of which has the task.
fn monorepo(more: &str) -> User {
    let command =
        format!("case $PWD in */candidates/*/apps/sums) sed -i 's/$1 - $2/$1 + $2/' add.sh; {more} ;; esac");
    let user = User::new(&format!(
        "[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = {{ command = {} }}\n[[turn]]\ntext = 'Done.'\n",
        Value::from(command)
    ));
    for (path, text) in [
        ("check.sh", "exit 1\n"),
        ("apps/sums/add.sh", "add() { echo $(($1 - $2)); }\n"),
        ("AGENTS.md", "Instructions of the repository.\n"),
        ("apps/sums/check.sh", ". ./add.sh\ntest $(add 3 -1) -eq 2\n"),
        ("apps/sums/AGENTS.md", "Instructions of the sums.\n"),
        ("apps/other/AGENTS.md", "Instructions of another project.\n"),
    ] {
        let path = user.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    git(&user, &["add", "--all"]);
    git(&user, &["commit", "--quiet", "--message=first"]);
    let contract = format!(
        "goal = '{GOAL}'\nattempts = 1\nreview.rounds = 0\nscope.paths = ['add.sh']\n[anchor]\nkind = 'none'\n\
         because = 'the check fails'\n[[check]]\nname = 'sums'\ncommand = 'sh check.sh'\n[[candidate]]\n"
    );
    std::fs::write(user.at("contract.toml"), contract).unwrap();
    user
}

#[test]
fn a_task_works_in_the_subdirectory_in_which_it_started() {
    if !is_confined() {
        return;
    }
    for (more, code, expected) in [
        ("true", 0, "* Check `sums`: `sh check.sh` passes, by exit code only."),
        ("echo x >notes.md", 1, "`apps/sums/notes.md`"),
    ] {
        let user = monorepo(more);
        let contract = user.at("contract.toml");
        let url = user.model.base_url(Dialect::AnthropicMessages);
        let arguments = ["task", "run", "--provider", "anthropic", "--base-url", &url, "--contract"];
        let mut command = user.command(&[&arguments[..], &[contract.to_str().unwrap()]].concat());
        let output = command.current_dir(user.project().join("apps/sums")).output().unwrap();
        let report = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(report.contains(expected) && report.contains(", in `apps/sums`"), "{report}");
        let request = user.request(0);
        for (text, is_there) in [
            ("Instructions of the sums.", true),
            ("Instructions of the repository.", true),
            ("Is git repository: true", true),
            ("another project", false),
        ] {
            assert_eq!(request.contains(text), is_there, "{text}: {request}");
        }
        let tasks: Value = serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
        let id = tasks[0]["id"].as_str().unwrap();
        let patch = user.pintle(&["task", "apply", id, "--candidate", "0", "--patch"]);
        assert!(patch.contains("diff --git a/apps/sums/add.sh b/apps/sums/add.sh"), "{patch}");
    }
    let user = monorepo("true");
    std::fs::create_dir(user.project().join("new")).unwrap();
    let mut command = user.command(&["task", "add", GOAL]);
    let refused = command.current_dir(user.project().join("new")).output().unwrap();
    failed(&refused, 2, "`new` is not in the commit from which the task starts");
}

/// Sessions and checks in a subdirectory read the rest of the clone and its history. They cannot write there.
#[test]
fn a_task_in_a_subdirectory_reads_the_whole_clone() {
    if !is_confined() {
        return;
    }
    let command = "sed -i 's/$1 - $2/$1 + $2/' add.sh; git log --format=title-%s; touch ../other/new || echo refused-to-write";
    let user = monorepo("true").with_turns(&format!(
        "[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = {{ command = {} }}\n\
         [[turn.call]]\ntool = \"Read\"\narguments = {{ file_path = '../other/AGENTS.md' }}\n[[turn]]\ntext = 'Done.'\n",
        Value::from(command)
    ));
    let contract = user.at("contract.toml");
    let check =
        "sh check.sh && grep -q another ../other/AGENTS.md && git log --oneline && ! touch ../other/new";
    let text = std::fs::read_to_string(&contract).unwrap().replace("sh check.sh", check);
    std::fs::write(&contract, text).unwrap();
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let arguments = ["task", "run", "--provider", "anthropic", "--base-url", &url, "--contract"];
    let mut command = user.command(&[&arguments[..], &[contract.to_str().unwrap()]].concat());
    let output = command.current_dir(user.project().join("apps/sums")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let results = user.request(1);
    for part in ["title-first", "refused-to-write", "Instructions of another project."] {
        assert!(results.contains(part), "{part}: {results}");
    }
}

/// The project is built for each clean clone, so this is part of the long run.
#[test]
fn the_task_of_the_demo_is_done() {
    if !is_full() {
        return;
    }
    let user = User::new("[[turn]]\ntext = \"Done.\"\n");
    let toolchain = std::path::Path::new(env!("CARGO")).parent().unwrap();
    let path = format!("{}:{}", toolchain.display(), std::env::var("PATH").unwrap());
    let mut command = user.command(&["demo", "--task", "--dir"]);
    let output = command.arg(user.at("roman")).env("PATH", path).output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for expected in ["Candidate 0 reached the goal.", "(`nine_is_parsed`)", "src/outline.rs"] {
        assert!(report.contains(expected), "{expected}: {report}");
    }
    assert!(!report.contains("unknown cost"), "a script costs nothing: {report}");
    let notices = String::from_utf8_lossy(&output.stderr);
    let hint = notices.lines().find(|line| line.contains("task apply")).unwrap_or_default();
    let state =
        hint.split("PINTLE_STATE_DIR='").nth(1).and_then(|rest| rest.split('\'').next()).unwrap_or_default();
    let listed = user.command(&["task", "list"]).env("PINTLE_STATE_DIR", state).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("  done  "), "{hint}: {listed:?}");
    assert_eq!(user.pintle(&["task", "list"]), "no tasks\n", "the task of the demo is kept apart");
}
