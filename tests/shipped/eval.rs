//! Agents measured on a suite, with the default sandbox.

use std::path::PathBuf;

use pintle_testkit::Dialect;
use serde_json::Value;

use super::user::{User, assert_once};
use super::worktrees::is_confined;

/// Each session runs this command, which reaches the goal of the first task only, and ends with the answer of a reviewer.
const COMMAND: &str = "sed -i 's/ - / + /' sum.sh";

/// Writes a suite with two tasks to the home of a user.
fn suite(user: &User) -> PathBuf {
    let root = user.at("suite");
    let mut text = "name = 'shell'\n".to_owned();
    for (name, wrong, right, check, hidden) in [
        ("sum", "$1 - $2", "$1 + $2", "1 2) -eq 3", "3 -1) -eq 2"),
        ("product", "$1 + $2", "$1 * $2", "2 3) -eq 6", "0 7) -eq 0"),
    ] {
        for (path, content) in [
            (format!("{name}/base/{name}.sh"), format!("run() {{ echo $(({wrong})); }}\n")),
            (format!("{name}/base/check.sh"), format!(". ./{name}.sh\ntest $(run {check}\n")),
            (format!("{name}/hidden/hidden.sh"), format!(". ./{name}.sh\ntest $(run {hidden}\n")),
            (format!("{name}/gold/{name}.sh"), format!("run() {{ echo $(({right})); }}\n")),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        text.push_str(&format!(
            "[[task]]\nid = '{name}'\nprompt = 'The {name} is right.'\nfiles = '{name}/base'\n\
             hidden = '{name}/hidden'\nrestore = ['check.sh']\n\
             fail_to_pass = ['sh check.sh', 'sh hidden.sh']\ngold.files = '{name}/gold'\n\
             contract.attempts = 1\ncontract.anchor = {{ kind = 'command', command = 'sh check.sh' }}\n"
        ));
    }
    std::fs::write(root.join("suite.toml"), text).unwrap();
    root
}

/// Returns the turns of all sessions, which call this tool.
fn turns(tool: &str) -> String {
    format!(
        "[[turn]]\n[[turn.call]]\ntool = \"{tool}\"\narguments = {{ command = \"{COMMAND}\" }}\n\
         [[turn]]\ntext = '{{\"findings\": [], \"remarks\": \"\"}}'\n"
    )
}

/// Measures an agent. Returns its report on standard output, and the notices.
fn measure(user: &User, agent: &str) -> (String, String) {
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let (suite, out) = (suite(user), user.at(agent));
    let arguments = ["eval", "run", suite.to_str().unwrap(), "--agent", agent, "--jobs", "2"];
    let mut command = user.command(&arguments);
    command.arg("--out").arg(out).args(["--provider", "anthropic", "--base-url", &url]);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_session_that_claims_too_much_is_false_done() {
    if !is_confined() {
        return;
    }
    let user = User::new(&turns("Bash"));
    let suite = suite(&user);
    let suite = suite.to_str().unwrap();
    assert_eq!(user.pintle(&["eval", "verify", suite]), "2 of 2 tasks are valid\n");

    let (report, notices) = measure(&user, "session");
    assert!(notices.contains("sum, attempt 1: done, hidden tests pass"), "{notices}");
    assert_once(&report, &["solved            1 of 2", "false done        1 of 2"]);
    assert!(report.contains("product: done, 0 of 2 hidden tests pass"), "{report}");

    // Finished attempts are kept.
    let requests = user.model.requests().len();
    let (again, notices) = measure(&user, "session");
    assert_eq!((again, user.model.requests().len()), (report, requests));
    assert!(notices.contains("attempts that had finished before: 2"), "{notices}");

    let run = user.at("session").display().to_string();
    let lines = user.pintle(&["eval", "export", &run, "--format", "predictions"]);
    let predictions: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(predictions[1]["instance_id"], "sum");
    assert!(predictions[1]["model_name_or_path"].as_str().unwrap().starts_with("claude"), "{lines}");
    assert!(predictions[1]["model_patch"].as_str().unwrap().contains("\n+run() { echo $(($1 + $2)); }\n"));
    assert_eq!(predictions[0]["model_patch"], "");
    assert!(user.pintle(&["eval", "report", &run, "--output", "html"]).starts_with("<!doctype html>"));
}

#[test]
fn a_task_without_evidence_is_blocked() {
    if !is_confined() {
        return;
    }
    let user = User::new(&turns("Bash"));
    let (report, _) = measure(&user, "task");
    assert_once(
        &report,
        &["solved            1 of 2", "false done        0 of 1", "missed            0 of 1"],
    );

    measure(&user, "session");
    let runs = ["session", "task"].map(|name| user.at(name).display().to_string());
    let compared = ["eval", "report", &runs[0], "--against", &runs[1], "--output", "json"];
    let compared: Value = serde_json::from_str(&user.pintle(&compared)).unwrap();
    let against = &compared["against"];
    assert_eq!(against["pairs"], 2, "{compared}");
    assert_eq!(against["both"], 1, "{compared}");
    assert_eq!(against["p_value"], 1.0, "{compared}");
}

#[test]
fn the_minimal_agent_runs_commands_in_the_sandbox() {
    if !is_confined() {
        return;
    }
    let user = User::new(&turns("shell"));
    let (report, _) = measure(&user, "mini");
    assert_once(&report, &["solved            1 of 2", "rounds            4"]);
}

#[test]
fn a_model_without_a_key_is_refused_before_an_attempt() {
    let user = User::new(&turns("Bash"));
    let suite = suite(&user);
    let out = user.at("out").display().to_string();
    let arguments = ["eval", "run", suite.to_str().unwrap(), "--model", "gpt-5.2", "--out", &out];
    let output = user.command(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(!user.at("out").exists() && user.model.requests().is_empty());
}
