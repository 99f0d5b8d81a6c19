//! Decisions about tasks: the facts that a user reads, and the effects of an answer.

use std::process::Stdio;

use pintle_testkit::Dialect;
use serde_json::Value;

use super::task_queue::wait_until;
use super::task_references::only;
use super::tasks::{GOAL, shell_user, task};
use super::worktrees::is_confined;

/// Returns the contract of a task that waits for decisions at these gates.
fn contract(gates: &str) -> String {
    format!(
        "goal = '{GOAL}'\ngates = [{gates}]\n[[check]]\nname = 'sums'\ncommand = 'sh check.sh'\n[[candidate]]\n"
    )
}

#[test]
fn a_decision_is_made_with_the_anchor_the_evidence_and_the_review() {
    if !is_confined() {
        return;
    }
    let user = shell_user("true");
    let file = user.at("contract.toml");
    std::fs::write(&file, contract("'anchor', 'result'")).unwrap();
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let run = |flags: &[&str]| {
        let arguments = ["task", "run", "--no-wait", "--provider", "anthropic", "--base-url", &url];
        let output = user.command(&[&arguments[..], flags].concat()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, report, notices) = run(&["--contract", file.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{report}{notices}");
    assert!(notices.contains("to decide about the anchor: `pintle task decide"), "{notices}");
    let (id, _) = only(&user);
    let shown = user.pintle(&["task", "show", &id]);
    assert!(shown.contains("waits for a decision about the anchor"), "{shown}");
    assert!(shown.contains("sh tests/negative.sh") && shown.contains("task report"), "{shown}");
    for text in [&report, &user.pintle(&["task", "report", &id])] {
        for part in [
            "The task waits for a decision about the anchor.",
            "* `sh tests/negative.sh` fails before the goal is reached",
            "    +test $(add 3 -1) -eq 2\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    let decide = |answer: &[&str]| {
        let output = user.command(&[&["task", "decide", id.as_str()][..], answer].concat()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, _, error) = decide(&["refuse", "--words", "  "]);
    assert!(code == Some(2) && error.contains("expected a text"), "{error}");
    let (code, confirmed, notice) = decide(&["approve"]);
    assert_eq!((code, confirmed), (Some(0), format!("approved the anchor of task {id}\n")));
    assert!(notice.contains("no process has the task open"), "{notice}");
    // No process reads the decision, and a second one would be lost.
    let (code, _, error) = decide(&["refuse"]);
    assert!(code == Some(2) && error.contains("was decided before"), "{error}");
    assert!(user.pintle(&["task", "list"]).contains("waits for a person, with unread input"));
    let (code, report, notices) = run(&["--task", &id]);
    assert_eq!(code, Some(1), "{report}{notices}");
    assert!(notices.contains("to decide about the result"), "{notices}");
    let shown = user.pintle(&["task", "show", &id]);
    assert!(shown.contains("about the result") && shown.contains("--candidate 0 --patch"), "{shown}");
    for part in [
        "The task waits for a decision about the result of candidate 0.",
        "* Check `sums`: `sh check.sh` passes, by exit code only.",
        "## Review\n\nThe reviewer found no fault.\n\n> It is small.",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
    user.pintle(&["task", "decide", &id, "approve"]);
    let (code, report, notices) = run(&["--task", &id]);
    assert_eq!(code, Some(0), "{report}{notices}");
}

/// The candidate has received a response when its task is cancelled.
#[test]
fn a_cancelled_session_is_on_the_bill() {
    if !is_confined() {
        return;
    }
    let user = shell_user("touch started; sleep 1000");
    let mut running = task(&user, &["--check", "sh check.sh"]).stdout(Stdio::null()).spawn().unwrap();
    let worktrees = user.at(".local/state/pintle/worktrees");
    wait_until("the candidate works", || {
        let mut tasks = std::fs::read_dir(&worktrees).into_iter().flatten().flatten();
        tasks.any(|task| task.path().join("candidates/0/tree/started").exists())
    });
    let (id, _) = only(&user);
    let cancelled = user.pintle(&["task", "cancel", &id]);
    assert!(cancelled.contains("is being cancelled by the process"), "{cancelled}");
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let shown: Value =
        serde_json::from_str(&user.pintle(&["task", "show", &id, "--output", "json"])).unwrap();
    let steps = shown["steps"].as_array().unwrap();
    let work = steps.iter().find(|step| step["step"]["kind"] == "work").unwrap_or_else(|| panic!("{shown}"));
    assert!(work["spent"]["tokens"].as_u64() > Some(0), "{shown}");
    assert!(user.pintle(&["task", "report", &id]).contains("| work-0-1 | "), "{shown}");
}

/// No task has the costs of a draft that cannot be used.
#[test]
fn the_costs_of_a_failed_draft_are_reported() {
    if !is_confined() {
        return;
    }
    let user = shell_user("true").with_turns("[[turn]]\ntext = 'There is nothing to do.'\n");
    let output = task(&user, &["--yes", "--output", "json"]).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stderr.contains("the draft cost ") && stderr.contains("there is no draft"), "{stderr}");
    let line = stdout.lines().find(|line| line.contains("not drafted")).expect("a line with the costs");
    let value: Value = serde_json::from_str(line).unwrap();
    assert!(value["spent"]["tokens"].as_u64() > Some(0), "{value}");
    assert_eq!(user.pintle(&["task", "list"]), "no tasks\n");
}

/// No model is called for a contract that names files, programs and models which are not there.
#[test]
fn a_contract_that_cannot_be_fulfilled_costs_nothing() {
    if !is_confined() {
        return;
    }
    let user = shell_user("true");
    let file = user.at("contract.toml");
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let arguments = ["task", "run", "--provider", "anthropic", "--base-url", &url, "--contract"];
    let run = |more: &str| {
        let text = format!(
            "goal = '{GOAL}'\n[anchor]\nkind = 'none'\nbecause = 'the check is enough'\n\
             [[check]]\nname = 'sums'\ncommand = 'no-such-program --all'\n[[candidate]]\n{more}"
        );
        std::fs::write(&file, text).unwrap();
        let output = user.command(&[&arguments[..], &[file.to_str().unwrap()]].concat()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, _, error) = run("[scope]\njudges = ['nope.sh']\n");
    assert!(code == Some(2) && error.contains("scope.judges: the commit has no nope.sh"), "{error}");
    assert_eq!(user.pintle(&["task", "list"]), "no tasks\n");
    let models = "[models]\nwork = { model = 'nope-2', effort = 'gigantic' }\n";
    let (code, report, notices) = run(&format!("[scope]\npaths = ['missing/']\n{models}"));
    assert_eq!(code, Some(1), "{report}{notices}");
    assert!(report.contains("the program `no-such-program` is not found, so no change can pass"), "{report}");
    for part in [
        "scope.paths: no file matches missing/",
        "model `nope-2` is not in the catalog",
        "effort `gigantic` is sent as it is: known efforts are minimal, low, medium",
    ] {
        assert!(notices.contains(part), "{part}: {notices}");
    }
    assert!(user.model.requests().is_empty());
}

/// The message of the provider is the name alone.
#[test]
fn a_model_that_the_provider_does_not_have_is_named() {
    if !is_confined() {
        return;
    }
    let body = r#"{"type": "error", "error": {"type": "not_found_error", "message": "model: nope-2"}}"#;
    let user = shell_user("true")
        .with_turns(&format!("[[turn]]\nfailure = [{{ status = 404, body = '{body}' }}]\ntext = 'one'\n"));
    let output = task(&user, &["--check", "sh check.sh"]).output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(report.contains("the provider does not find the model `"), "{report}");
}
