//! Tasks that are carried out in steps, with a scripted planner.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pintle_testkit::Dialect;
use serde_json::Value;

use super::task_queue::{GH, install_gh};
use super::user::User;
use super::worktrees::is_confined;

/// Each session has the turns from the first one. Those that work on a step change files first, and a session whose answer has
/// another form is asked again, so that they skip the answers of the planner.
const TURNS: &str = r#"
[[turn]]
[[turn.call]]
tool = "Bash"
arguments = { command = '''
case $PWD in
*/steps/1-*) echo 'double() { add $1 $1; }' >double.sh ;;
*/steps/2-*) test -f double.sh && sed -i 's/$1 - $2/$1 + $2/' add.sh ;;
esac
''' }
[[turn]]
text = '{"next": {"goal": "Add a double.", "paths": ["double.sh"], "checks": ["grep -q add double.sh"], "size": "small", "leaves_failing": []}, "remaining": ["Add as usual."], "go_back": false}'
[[turn]]
text = '{"confidence": "high", "needs_replan": null}'
[[turn]]
text = '{"next": {"goal": "Add as usual.", "paths": [], "checks": [". ./double.sh; . ./add.sh; test $(double 3) -eq 6"], "size": "small", "leaves_failing": []}, "remaining": [], "go_back": false}'
[[turn]]
text = '{"next": null, "remaining": [], "go_back": false}'
"#;

const CONTRACT: &str = "goal = 'Sums and doubles are right.'\nreview.rounds = 0\ngates = ['anchor']\n\
    [anchor]\nkind = 'none'\nbecause = 'the check is enough'\n\
    [[check]]\nname = 'sums'\ncommand = 'sh check.sh'\n[plan]\nrounds = 4\n";

fn git(user: &User, arguments: &[&str]) {
    let mut command = Command::new("git");
    let status = command.args(arguments).current_dir(user.project()).env("HOME", user.at("")).status();
    assert!(status.unwrap().success(), "{arguments:?}");
}

fn user() -> User {
    let user = User::new(TURNS);
    let check = "set -e\n. ./add.sh\ntest $(add 1 0) -eq 1\n";
    for (path, text) in [("add.sh", "add() { echo $(($1 - $2)); }\n"), ("check.sh", check)] {
        std::fs::write(user.project().join(path), text).unwrap();
    }
    git(&user, &["add", "--all"]);
    git(&user, &["commit", "--quiet", "--message=first"]);
    std::fs::write(user.at("contract.toml"), CONTRACT).unwrap();
    user
}

/// Waits until the only task waits for a user, and returns its id.
fn wait_for_gate(user: &User) -> String {
    let started = Instant::now();
    loop {
        let listed: Value =
            serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
        if listed[0]["state"] == "waits for a person" {
            return listed[0]["id"].as_str().unwrap().to_owned();
        }
        assert!(started.elapsed() < Duration::from_secs(120), "{listed}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_large_goal_is_reached_in_steps_whose_backlog_a_user_edits() {
    if !is_confined() {
        return;
    }
    let user = user();
    let (url, contract) = (user.model.base_url(Dialect::AnthropicMessages), user.at("contract.toml"));
    let arguments = ["task", "run", "--provider", "anthropic", "--base-url", &url, "--contract"];
    let mut run = user.command(&[&arguments[..], &[contract.to_str().unwrap()]].concat());
    let running = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = wait_for_gate(&user);
    assert_eq!(user.pintle(&["task", "plan", &id]), "no steps yet\n");
    let editor = |script: &str| {
        let mut command = user.command(&["task", "plan", &id, "--edit"]);
        command.env("EDITOR", script).output().unwrap()
    };
    let unchanged = editor("true");
    assert!(String::from_utf8_lossy(&unchanged.stderr).contains("unchanged"), "{unchanged:?}");
    let edited = editor("sed -i '1i Mind the callers.'");
    assert!(edited.status.success(), "{edited:?}");
    user.pintle(&["task", "decide", &id, "approve"]);
    let output = running.wait_with_output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    for part in [
        "      a person edited the plan\n",
        "step 1: plan: Add a double. (1 more)  ($",
        "[ 0]  step 1: evidence: it holds\n",
        "step 2: plan: Add as usual. (0 more)  ($",
        "step 3: plan: nothing is left to do  ($",
        "[ 0]  evidence: all of it holds\n",
        "## Plan\n",
        "| 1 | Add a double. | holds | 1 |",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}{stderr}");
    }
    assert!(
        !stderr.contains("worked in another directory"),
        "the planner has a clone in each round: {stderr}"
    );
    let requests = user.model.requests();
    let first = requests[0].body.to_string();
    assert!(first.contains("Mind the callers."), "the planner has the edit: {first}");
    assert!(requests.iter().any(|request| request.body.to_string().contains("Step 1 holds: Add a double.")));

    let plan: Value = serde_json::from_str(&user.pintle(&["task", "plan", &id, "--output", "json"])).unwrap();
    assert_eq!((&plan["steps"][1]["state"], &plan["open"]), (&"holds".into(), &false.into()), "{plan}");
    let logs = user.pintle(&["task", "logs", &id, "r1-evidence-0-1"]);
    assert!(logs.contains("after the step, `grep -q add double.sh` exited with 0"), "{logs}");
    let late = editor("true");
    assert_eq!(late.status.code(), Some(2), "{late:?}");
    user.pintle(&["task", "apply", &id, "--files"]);
    assert!(user.project().join("double.sh").exists());
    let sums = std::fs::read_to_string(user.project().join("add.sh")).unwrap();
    assert_eq!(sums, "add() { echo $(($1 + $2)); }\n");
}

/// The steps that hold are the change of a task that is blocked before its last step.
#[test]
fn the_steps_of_a_blocked_plan_are_applied() {
    if !is_confined() {
        return;
    }
    let user = user();
    let contract = CONTRACT.replace("rounds = 4", "rounds = 1").replace("gates = ['anchor']\n", "");
    std::fs::write(user.at("contract.toml"), contract).unwrap();
    let (url, contract) = (user.model.base_url(Dialect::AnthropicMessages), user.at("contract.toml"));
    let arguments = ["task", "run", "--provider", "anthropic", "--base-url", &url, "--contract"];
    let output = user.command(&[&arguments[..], &[contract.to_str().unwrap()]].concat()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    assert!(stdout.contains("The plan has reached its limit of 1 step. Still planned: 1 step."), "{stdout}");
    let listed: Value = serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    assert!(!user.project().join("double.sh").exists());
    for part in [
        "Remaining steps. The limit of the plan is 1 step.\n\n* Add as usual.\n",
        &format!("`pintle task apply {id} --candidate 0 --branch NAME` commits the steps that hold.\n"),
        "| stopped; the steps that hold are its change | 1 |",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    for (flags, expected) in [
        (&["--files"][..], "`--candidate 0` applies its change, which lacks evidence"),
        (&["--files", "--candidate", "3"], "has no candidate 3; expected 0"),
    ] {
        let refused = user.command(&[&["task", "apply", id][..], flags].concat()).output().unwrap();
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(2) && error.contains(expected), "{expected}: {error}");
    }
    push_incomplete(&user, id);
    user.pintle(&["task", "apply", id, "--candidate", "0", "--files"]);
    assert!(user.project().join("double.sh").exists());
}

/// Pushes the steps that hold: the pull request is a draft, and names the state, the steps and what remains.
fn push_incomplete(user: &User, id: &str) {
    let remote = user.at("remote.git");
    git(user, &["init", "--quiet", "--bare", remote.to_str().unwrap()]);
    git(user, &["remote", "add", "origin", remote.to_str().unwrap()]);
    let path = install_gh(user, GH);
    let mut command = user.command(&["task", "apply", id, "--candidate", "0", "--push", "--pr"]);
    let pushed = command.env("PATH", path).output().unwrap();
    assert!(pushed.status.success(), "{pushed:?}");
    let gh = std::fs::read_to_string(user.at("gh")).unwrap();
    for part in [
        "--title\nIncomplete: Sums and doubles are right.\n",
        "\n--draft\n",
        "## State\n\nThe goal is not reached. The plan has",
        "1. Add a double. (holds)\n",
        "* Add as usual.\n",
    ] {
        assert!(gh.contains(part), "{part}: {gh}");
    }
}
