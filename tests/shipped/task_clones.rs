//! Clones of a task: objects that they share with the user's repository, and containers from an image.

use std::ffi::OsString;
use std::process::Command;
use std::time::{Duration, Instant};

use pintle_test_conditions::{CONTAINERS, LANDLOCK, is_full};
use pintle_testkit::Dialect;

use super::tasks::{ECOSYSTEMS, checked_task, git, task, user_with};
use super::user::{User, assert_once};
use super::worktrees::is_confined;

/// A candidate reads the objects of the user and cannot change them. Nothing of the task stays in the repository.
#[test]
fn candidates_read_the_objects_of_the_user_and_leave_nothing() {
    if !is_confined() {
        return;
    }
    // A candidate that cannot read the history, or can change it, fails its check.
    let more = "git show HEAD:check.sh >/dev/null || echo exit 1 >add.sh\n\
                touch \"$(cat .git/objects/info/alternates)/new\" && echo exit 1 >add.sh";
    let user = user_with(&ECOSYSTEMS[0], more);
    let output = checked_task(&user, "", &[]).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert!(!user.project().join(".git/objects/new").exists());
    assert_eq!(git(&user, &["for-each-ref", "refs/pintle"]), "");
    git(&user, &["fsck", "--no-dangling"]);
    assert_eq!(git(&user, &["status", "--porcelain"]), "");
}

/// All clones and sessions have the same sandbox.
#[test]
fn a_task_reports_the_level_of_its_sandbox_once() {
    if !LANDLOCK.is_present() {
        return;
    }
    let user = user_with(&ECOSYSTEMS[0], "true");
    let output = task(&user, &["--check", "sh check.sh", "--sandbox", "writes"]).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert_once(&stderr, &["the sandbox limits writes only"]);
}

/// Without an engine, with a remote host, and with a sandbox that a container cannot have, no task is created.
#[test]
fn environments_without_a_container_for_each_clone_are_refused() {
    let user = user_with(&ECOSYSTEMS[0], "true");
    for (flags, expected) in [
        (&["--env", "ssh:build.example"][..], "a task works only with --env local or --env docker:IMAGE"),
        (
            &["--env", "docker:registry.invalid/none:1"],
            "cannot start a container from the image registry.invalid/none:1",
        ),
        (&["--env", "docker:debian:12", "--sandbox", "full"], "expected the environment local"),
    ] {
        let output = task(&user, &[&["--check", "true"][..], flags].concat()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {stderr}");
        assert!(stderr.contains(expected), "{flags:?}: {stderr}");
    }
    assert_eq!(user.pintle(&["task", "list"]), "no tasks\n");
    let run = user.run_command("hello").args(["--env", "docker:debian:12"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert!(stderr.contains("only tasks start containers from an image"), "{stderr}");
    assert_eq!(run.status.code(), Some(2), "{stderr}");
}

fn docker(arguments: &[&str]) -> String {
    let output = Command::new("docker").args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the id of the user's only task, and the number of its containers.
fn only_task(user: &User) -> (String, usize) {
    let listed: serde_json::Value =
        serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    let number = count_containers(&id);
    (id, number)
}

/// Returns the number of containers of a task.
fn count_containers(id: &str) -> usize {
    let names = docker(&["ps", "--all", "--format", "{{.Names}}"]);
    let of_task = format!("pintle-task-{id}-");
    names.lines().filter(|name| name.starts_with(&of_task)).count()
}

/// Returns the flag of the test image, and the variable of its engine.
fn image_and_engine() -> Option<(String, OsString)> {
    let image = || format!("docker:{}", std::env::var("PINTLE_TEST_IMAGE").unwrap());
    CONTAINERS.is_present().then(|| (image(), std::env::var_os("DOCKER_HOST").unwrap()))
}

/// What `prepare` leaves outside of the clone is there for the candidate and for each check. A candidate that ends its container
/// does not block the task, and none can replace its clone by a link, which this machine would follow.
#[test]
fn each_clone_of_a_task_has_a_prepared_container() {
    let Some((image, engine)) = image_and_engine() else { return };
    let contract = "goal = \"Sums of negative numbers are right.\"\nprepare = \"echo 1 >>/tmp/prepared\"\n[anchor]\n\
                    kind = \"none\"\nbecause = \"the check is enough\"\n[[check]]\nname = \"check\"\n\
                    command = \"grep -qx 1 /tmp/prepared && sh check.sh\"\n[review]\nrounds = 0\n";
    let cases = [
        ("grep -qx 1 /tmp/prepared || echo exit 1 >add.sh", &[0][..]),
        // Only the files are moved, since the directory is a mount.
        ("mv ../tree ../tmp/moved && ln -s tmp ../tree", &[1]),
        ("kill 1; sleep 1000", &[0, 1]),
    ];
    for (more, codes) in cases.into_iter().take(if is_full() { 3 } else { 1 }) {
        let user = user_with(&ECOSYSTEMS[0], more);
        std::fs::write(user.at("contract.toml"), contract).unwrap();
        let contract = user.at("contract.toml").display().to_string();
        let url = user.model.base_url(Dialect::AnthropicMessages);
        let flags = ["--provider", "anthropic", "--base-url", &url, "--env", &image, "--contract", &contract];
        let mut command = user.command(&[&["task", "run"][..], &flags].concat());
        let output = command.env("DOCKER_HOST", &engine).output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(codes.contains(&output.status.code().unwrap()), "{more}: {stdout}{stderr}");
        assert_eq!(only_task(&user).1, 0, "{more}: {stdout}{stderr}");
        assert_eq!(git(&user, &["for-each-ref", "refs/pintle"]), "", "{more}");
    }
}

/// A killed process leaves no container, and the task is resumed with new ones. It is part of the long run.
#[test]
fn containers_of_a_killed_task_end_with_it() {
    let Some((image, engine)) = image_and_engine().filter(|_| is_full()) else { return };
    let user = user_with(&ECOSYSTEMS[0], "test -e again || { touch again; sleep 1000; }");
    let mut command = checked_task(&user, "", &["--env", &image]);
    let mut running = command.env("DOCKER_HOST", &engine).spawn().unwrap();
    let started = Instant::now();
    let wait = |what: &str, is_there: &dyn Fn() -> bool| {
        while !is_there() {
            assert!(started.elapsed() < Duration::from_secs(300), "{what}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let worktrees = user.at(".local/state/pintle/worktrees");
    wait("the candidate works", &|| {
        let mut tasks = std::fs::read_dir(&worktrees).into_iter().flatten().flatten();
        tasks.any(|task| task.path().join("candidates/0/tree/again").exists())
    });
    let (id, number) = only_task(&user);
    assert!(number > 0);
    running.kill().unwrap();
    running.wait().unwrap();
    wait("the containers end", &|| count_containers(&id) == 0);
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let resumed =
        ["task", "run", "--provider", "anthropic", "--base-url", &url, "--env", &image, "--task", &id];
    let output = user.command(&resumed).env("DOCKER_HOST", &engine).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    assert_eq!(only_task(&user).1, 0, "{output:?}");
    assert_eq!(git(&user, &["for-each-ref", "refs/pintle"]), "", "{output:?}");
}
