//! Agents measured on a suite, with the default sandbox.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pintle_test_conditions::{BUBBLEWRAP, MOUNTS, is_full};
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
    // The directory may be relative.
    let lines = user.pintle(&["eval", "export", "../session", "--format", "predictions"]);
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
    // The list of the user's own tasks does not have them.
    let listed = user.command(&["task", "list"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "no tasks\n");
    let notices = String::from_utf8_lossy(&listed.stderr);
    assert!(notices.contains("2 tasks of `pintle eval` left out; `--all` lists them"), "{notices}");
    let all = user.pintle(&["task", "list", "--all", "--output", "json"]);
    let all: Value = serde_json::from_str(&all).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 2, "{all}");

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

#[test]
fn a_missing_agent_and_a_file_as_the_directory_are_refused() {
    let user = User::new(&turns("Bash"));
    let suite = suite(&user);
    std::fs::write(user.at("file"), "").unwrap();
    for (agent, out, expected) in [
        ("pintle-no-agent", "out", "--agent: there is no program `pintle-no-agent`"),
        ("true", "file", "file is a file; expected a directory for the run"),
    ] {
        let out = user.at(out).display().to_string();
        let arguments = ["eval", "run", suite.to_str().unwrap(), "--agent", agent, "--out", &out];
        let output = user.command(&arguments).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(expected), "{expected}: {output:?}");
    }
}

/// Writes an agent that reaches the goal of the first task. It records its starts in the home.
fn write_agent(user: &User, more: &str) -> String {
    let (file, log) = (user.at("agent.sh"), user.at("starts"));
    let script = format!(
        "echo start >>{}\ncase $1 in *sum*) {COMMAND} ;; *) {more} ;; esac\n\
         echo '{{\"cost_usd\": 0.25, \"tokens\": 10, \"rounds\": 2}}'\n",
        log.display()
    );
    std::fs::write(&file, script).unwrap();
    format!("sh {}", file.display())
}

/// Returns the finished attempts of a run with their records.
fn finished(out: &Path) -> BTreeMap<PathBuf, String> {
    let entries = std::fs::read_dir(out.join("attempts")).into_iter().flatten();
    let records = entries.map(|entry| entry.unwrap().path());
    let records = records.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    records.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// Kills the process when the test ends.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two processes share a directory, and one after the other is killed and started again: in the long run, 20 times with 300
/// attempts. The report is that of a run that nothing interrupts, and finished attempts are not repeated.
#[test]
fn killed_runs_have_the_report_of_an_undisturbed_run() {
    let (attempts, kills) = if is_full() { (150, 20) } else { (3, 2) };
    let user = User::new(&turns("Bash"));
    let (suite, agent) = (suite(&user), write_agent(&user, "true"));
    let start = |out: &str| {
        let mut command = user.command(&["eval", "run", suite.to_str().unwrap(), "--jobs", "2"]);
        command.args(["--agent", &agent, "--attempts", &attempts.to_string()]).arg("--out").arg(user.at(out));
        if !is_full() || !is_confined() {
            command.arg("--no-sandbox");
        }
        KillOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let starts = || std::fs::read_to_string(user.at("starts")).unwrap_or_default().lines().count();
    assert!(start("reference").0.wait().unwrap().success());
    let (total, first) = (2 * attempts, starts());
    assert_eq!(first, total);

    let out = user.at("killed");
    let mut processes = [start("killed"), start("killed")];
    let mut known: BTreeMap<PathBuf, String> = BTreeMap::new();
    for kill in 0..kills {
        let (until, started) = (total * (kill + 1) / (kills + 2), Instant::now());
        while finished(&out).len() < until {
            assert!(started.elapsed() < Duration::from_secs(600), "{} of {until}", finished(&out).len());
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(u64::try_from(kill * 137 % 400).unwrap()));
        let killed = &mut processes[kill % 2];
        // It may have ended.
        let _ = killed.0.kill();
        killed.0.wait().unwrap();
        *killed = start("killed");
        let now = finished(&out);
        assert!(known.iter().all(|(path, record)| now.get(path) == Some(record)), "a record has changed");
        known = now;
    }
    for process in &mut processes {
        assert!(process.0.wait().unwrap().success());
    }
    // Attempts of a process that was killed when the other one had passed them.
    assert!(start("killed").0.wait().unwrap().success());
    let repeated = starts() - first - total;
    assert!(repeated <= 2 * kills, "{repeated} attempts were repeated");
    let now = finished(&out);
    assert_eq!(now.len(), total);
    assert!(known.iter().all(|(path, record)| now.get(path) == Some(record)), "a record has changed");

    let report = |out: &str| {
        let run = user.at(out).display().to_string();
        let text = user.pintle(&["eval", "report", &run, "--output", "json"]);
        let mut report: Value = serde_json::from_str(&text).unwrap();
        report["wall_ms"] = Value::Null;
        for row in report["attempts"].as_array_mut().unwrap() {
            row["wall_ms"] = Value::Null;
        }
        report
    };
    let (killed, reference) = (report("killed"), report("reference"));
    assert_eq!(killed, reference);
    assert_eq!(killed["solved"]["count"], attempts, "{killed}");
}

/// Tests that end their parents, or every process that they can reach.
#[test]
fn tests_that_kill_processes_end_no_run() {
    if !BUBBLEWRAP.is_present() {
        return;
    }
    let user = User::new(&turns("Bash"));
    let root = user.at("odd");
    std::fs::create_dir_all(root.join("base")).unwrap();
    let task = |id: &str, command: &str| {
        format!(
            "[[task]]\nid = '{id}'\nprompt = 'p'\nfiles = 'base'\ntimeout_s = 10\n\
             fail_to_pass = ['{command}; sleep 1; exit 1']\npass_to_pass = ['true']\n"
        )
    };
    let tasks = [("all", "kill -9 -1"), ("group", "kill -9 0"), ("parent", "kill -9 $PPID")];
    let tasks: String = tasks.iter().map(|(id, command)| task(id, command)).collect();
    std::fs::write(root.join("suite.toml"), format!("name = 'odd'\n{tasks}")).unwrap();
    let out = user.at("out").display().to_string();
    let report = user.pintle(&["eval", "run", root.to_str().unwrap(), "--agent", "true", "--out", &out]);
    assert_once(&report, &["solved            0 of 3", "false done        3 of 3"]);
    let ended = finished(&user.at("out"));
    assert_eq!(ended.len(), 3);
    for record in ended.values() {
        let record: Value = serde_json::from_str(record).unwrap();
        assert_eq!(record["judgement"]["tests"][1]["passed"], true, "the next test runs: {record}");
    }
}

/// A record that cannot be written ends the run. The same command continues it when there is space.
#[test]
fn a_full_disk_ends_a_run_that_then_continues() {
    if !MOUNTS.is_present() {
        return;
    }
    let user = User::new(&turns("Bash"));
    // The change of the second task does not fit.
    let (suite, agent) = (suite(&user), write_agent(&user, "head -c 1000000 /dev/urandom >large"));
    let out = user.at("small");
    std::fs::create_dir(&out).unwrap();
    let mut run = user.command(&["eval", "run", suite.to_str().unwrap(), "--agent", &agent]);
    run.arg("--no-sandbox").arg("--out").arg(&out);
    // The file system disappears with the shell.
    let script = "mount -t tmpfs -o size=256k tmpfs \"$1\" || exit 9
        out=$1; shift
        \"$@\"; echo \"code $?\"; ls \"$out\"/attempts/*.json | wc -l
        mount -o remount,size=16m \"$out\" && \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(&out);
    command.arg(run.get_program()).args(run.get_args()).current_dir(user.project()).env_clear();
    command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (stdout, notices) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stdout.starts_with("code 1\n1\n"), "{stdout}{notices}");
    assert!(notices.contains("cannot write ") && notices.contains(".patch: git failed"), "{notices}");
    assert!(notices.contains("attempts that had finished before: 1"), "{notices}");
    assert_once(&stdout, &["solved            1 of 2"]);
    let left = std::fs::read_dir(user.at(".local/state/pintle/worktrees")).unwrap();
    assert_eq!(left.count(), 0);
}
