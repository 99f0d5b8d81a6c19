//! The first task of the guide in each ecosystem, with the default sandbox.

use std::path::Path;
use std::process::{Command, Output};

use pintle_test_conditions::{BUBBLEWRAP, GO, NODE, PYTEST, Prerequisite, is_full};
use pintle_testkit::Dialect;

use super::sessions::segments;
use super::user::{User, assert_once};
use super::worktrees::is_confined;

pub(super) const GOAL: &str = "Sums of negative numbers are right.";

/// A project whose sums of negative numbers are wrong, and what the sessions of a task do in it.
pub(super) struct Ecosystem {
    name: &'static str,
    prerequisite: Option<Prerequisite>,
    files: &'static [(&'static str, &'static str)],
    /// File that a candidate changes: it replaces `WRONG` by `RIGHT`.
    source: &'static str,
    /// Test that the anchor's session writes, and the command for it.
    test: (&'static str, &'static str),
    command: &'static str,
    check: &'static str,
    candidates: &'static str,
}

pub(super) static ECOSYSTEMS: [Ecosystem; 5] = [
    Ecosystem {
        name: "shell",
        prerequisite: None,
        files: &[
            ("add.sh", "add() { echo $(($1 - $2)); }\n"),
            (
                "check.sh",
                "set -e\nfile=$(mktemp)\n. ./add.sh\nadd 1 0 >\"$file\"\ngrep -qx 1 \"$file\"\nrm \"$file\"\n",
            ),
        ],
        source: "add.sh",
        test: ("tests/negative.sh", "set -e\n. ./add.sh\ntest $(add 3 -1) -eq 2\nrm \"$(mktemp)\"\n"),
        command: "sh tests/negative.sh",
        check: "sh check.sh",
        candidates: "1",
    },
    Ecosystem {
        name: "Rust",
        prerequisite: None,
        files: &[
            (".gitignore", "/target\n"),
            (
                "Cargo.toml",
                "[package]\nname = \"sums\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
            ),
            (
                "src/lib.rs",
                "//! Sums.\n\n/// Adds numbers.\n///\n/// ```\n/// assert_eq!(sums::add(1, 0), 1);\n/// ```\n\
                 pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n",
            ),
        ],
        source: "src/lib.rs",
        test: ("tests/negative.rs", "#[test]\nfn negative() {\n    assert_eq!(sums::add(3, -1), 2);\n}\n"),
        command: "cargo test --test negative",
        check: "cargo test",
        candidates: "2",
    },
    Ecosystem {
        name: "Go",
        prerequisite: Some(GO),
        files: &[
            ("go.mod", "module sums\n\ngo 1.18\n"),
            ("sums.go", "package sums\n\nfunc Add(a, b int) int { return a - b }\n"),
            (
                "sums_test.go",
                "package sums\n\nimport \"testing\"\n\nfunc TestZero(t *testing.T) {\n\tif Add(1, 0) != 1 || t.TempDir() == \"\" {\n\
                 \t\tt.Fatal(\"zero\")\n\t}\n}\n",
            ),
        ],
        source: "sums.go",
        test: (
            "negative_test.go",
            "package sums\n\nimport \"testing\"\n\nfunc TestNegative(t *testing.T) {\n\tif Add(3, -1) != 2 {\n\t\tt.Fatal(\"negative\")\n\t}\n}\n",
        ),
        command: "go test -run TestNegative ./...",
        check: "go test ./...",
        candidates: "1",
    },
    Ecosystem {
        name: "Node",
        prerequisite: Some(NODE),
        files: &[
            ("package.json", "{ \"name\": \"sums\", \"scripts\": { \"test\": \"node --test\" } }\n"),
            ("sums.js", "exports.add = (a, b) => a - b;\n"),
            (
                "tests/zero.test.js",
                "const test = require(\"node:test\");\nconst assert = require(\"node:assert\");\nconst fs = require(\"node:fs\");\n\
                 const os = require(\"node:os\");\nconst { add } = require(\"../sums.js\");\n\ntest(\"zero\", () => {\n  \
                 fs.mkdtempSync(os.tmpdir() + \"/sums-\");\n  assert.strictEqual(add(1, 0), 1);\n});\n",
            ),
        ],
        source: "sums.js",
        test: (
            "tests/negative.test.js",
            "const test = require(\"node:test\");\nconst assert = require(\"node:assert\");\nconst { add } = require(\"../sums.js\");\n\n\
             test(\"negative\", () => assert.strictEqual(add(3, -1), 2));\n",
        ),
        command: "node --test tests/negative.test.js",
        check: "npm test",
        candidates: "1",
    },
    Ecosystem {
        name: "Python",
        prerequisite: Some(PYTEST),
        files: &[
            ("sums.py", "def add(a, b):\n    return a - b\n"),
            ("conftest.py", ""),
            (
                "tests/test_zero.py",
                "import tempfile\n\nimport sums\n\n\ndef test_zero(tmp_path):\n    with tempfile.TemporaryFile():\n        \
                 assert tmp_path.is_dir()\n    assert sums.add(1, 0) == 1\n",
            ),
        ],
        source: "sums.py",
        test: (
            "tests/test_negative.py",
            "import sums\n\n\ndef test_negative():\n    assert sums.add(3, -1) == 2\n",
        ),
        command: "pytest tests/test_negative.py",
        check: "pytest",
        candidates: "1",
    },
];

/// Returns the turns of all sessions: the one for the anchor writes a test, a candidate mends the sum, and a reviewer accepts. A
/// session ends once its answer has the form that is asked for. The candidate runs `more` as well.
fn turns(ecosystem: &Ecosystem, more: &str) -> String {
    let Ecosystem { source, test: (path, text), command, .. } = ecosystem;
    let directory = Path::new(path).parent().unwrap().display();
    let shell = format!(
        "case $PWD in\n*/anchor/*) mkdir -p './{directory}' && cat >'{path}' <<'END'\n{text}END\n;;\n\
         */candidates/*) sed -i -e 's/a - b/a + b/' -e 's/$1 - $2/$1 + $2/' '{source}'\n{more} ;;\nesac\n"
    );
    format!(
        "[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = {{ command = {} }}\n\
         [[turn]]\ntext = '{{\"command\": \"{command}\", \"results\": null, \"report\": null}}'\n\
         [[turn]]\ntext = '{{\"findings\": [], \"remarks\": \"It is small.\"}}'\n",
        serde_json::Value::from(shell)
    )
}

pub(super) fn git(user: &User, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(user.project()).env("HOME", user.at(""));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Creates a user with the project in the shell. Its candidate also runs a command.
pub(super) fn shell_user(more: &str) -> User {
    user_with(&ECOSYSTEMS[0], more)
}

/// Creates a user with the project of an ecosystem.
fn user(ecosystem: &Ecosystem) -> User {
    user_with(ecosystem, "true")
}

/// Creates a user with the project of an ecosystem, whose candidate also runs a command.
pub(super) fn user_with(ecosystem: &Ecosystem, more: &str) -> User {
    let user = User::new(&turns(ecosystem, more));
    for (path, text) in ecosystem.files {
        let path = user.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    git(&user, &["add", "--all"]);
    git(&user, &["commit", "--quiet", "--message=first"]);
    user
}

/// Returns the command that runs a task of the user with these flags.
pub(super) fn task(user: &User, flags: &[&str]) -> Command {
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let arguments = ["task", "run", "--provider", "anthropic", "--base-url", &url, GOAL];
    let mut command = user.command(&[&arguments[..], flags].concat());
    // The toolchain that builds the tests, since the user's home has none, and the programs of the system: the `python3` of a
    // version manager starts dozens of processes.
    let toolchain = Path::new(env!("CARGO")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:/usr/bin:/bin:{path}", toolchain.display()));
    command
}

/// Returns the command that runs a task with one attempt, in which the check of the project in the shell is the only evidence.
/// `more` are further keys of the contract.
pub(super) fn checked_task(user: &User, more: &str, flags: &[&str]) -> Command {
    let contract = user.at("contract.toml");
    let text = format!(
        "goal = '{GOAL}'\nattempts = 1\nreview.rounds = 0\n{more}[anchor]\nkind = 'none'\nbecause = 'the check is enough'\n\
         [[check]]\nname = 'check 1'\ncommand = 'sh check.sh'\n"
    );
    std::fs::write(&contract, text).unwrap();
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let arguments = ["task", "run", "--provider", "anthropic", "--base-url", &url, "--contract"];
    user.command(&[&arguments[..], &[contract.to_str().unwrap()], flags].concat())
}

/// Runs the first task of the guide.
fn first_task(name: &str) {
    let ecosystem = ECOSYSTEMS.iter().find(|ecosystem| ecosystem.name == name).unwrap();
    let is_present = ecosystem.prerequisite.as_ref().is_none_or(Prerequisite::is_present);
    // Each judged command compiles in a separate clone, or starts a runner of tests.
    let is_long = name != "shell" && !is_full();
    if !is_confined() || !is_present || is_long {
        return;
    }
    let user = user(ecosystem);
    let mut command = task(&user, &["--check", ecosystem.check, "--candidates", ecosystem.candidates]);
    let output = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{name}: {stdout}{stderr}");
    assert!(stdout.contains("evidence: all of it holds"), "{name}: {stdout}");
    assert!(!stderr.contains("fails before any change"), "{name}: {stderr}");
    assert!(!stdout.contains("Remarks"), "{name}: {stdout}");
    let passes = format!("* Check `check 1`: `{}` passes, ", ecosystem.check);
    let by = if name == "shell" { "by exit code only." } else { "with 2 tests." };
    assert!(stdout.contains(&format!("{passes}{by}")), "{name}: {stdout}");
    // The assertions of scripts of the shell are not known.
    for (line, is_there) in [
        ("* Controls: the test of the anchor fails", name != "shell"),
        ("* Weak control: no variant", name == "shell"),
    ] {
        assert_eq!(stdout.contains(line), is_there, "{name}: {line}: {stdout}");
    }
    let listed: serde_json::Value =
        serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    user.pintle(&["task", "apply", id, "--branch", "fix/sums"]);
    let mut expected = vec![ecosystem.source, ecosystem.test.0];
    expected.sort_unstable();
    let changed = git(&user, &["diff", "--name-only", "HEAD", "fix/sums"]);
    assert_eq!(changed.lines().collect::<Vec<_>>(), expected, "{name}");
    assert!(!user.at(&format!(".local/state/pintle/worktrees/task-{id}")).exists(), "{name}");
}

#[test]
fn the_first_task_of_a_shell_project_is_done() {
    first_task("shell");
}

#[test]
fn the_first_task_of_a_rust_project_is_done() {
    first_task("Rust");
}

#[test]
fn the_first_task_of_a_go_project_is_done() {
    first_task("Go");
}

#[test]
fn the_first_task_of_a_node_project_is_done() {
    first_task("Node");
}

#[test]
fn the_first_task_of_a_python_project_is_done() {
    first_task("Python");
}

/// A candidate that also changes the script of the check is refused. One that adds a test is not judged by the test.
#[test]
fn files_that_judge_are_compared_and_new_tests_are_kept_apart() {
    if !is_confined() {
        return;
    }
    for (more, code, expected) in [
        ("echo true >check.sh", 1, "protected files: `check.sh` changed, which is protected"),
        (
            "mkdir tests; printf 'exit 1\\n' >tests/test_new.sh",
            0,
            "Changed: `tests/test_new.sh`. It is new, and was left out of the clones in which the change was judged.",
        ),
    ] {
        let user = user_with(&ECOSYSTEMS[0], more);
        let output = checked_task(&user, "", &[]).output().unwrap();
        let report = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{report}");
        assert!(report.contains(expected), "{report}");
        assert!(report.contains("Commands name or include `check.sh`."), "{report}");
    }
}

/// The source ends each program of the project with 0, also the tests.
static ENDED_BY_ITS_SOURCE: Ecosystem = Ecosystem {
    name: "program that ends with 0",
    prerequisite: None,
    files: &[
        ("sums.py", "def add(a, b):\n    return a - b\n"),
        ("check.py", "import sums\n\nassert sums.add(1, 0) == 1\n"),
    ],
    source: "sums.py",
    test: ("tests/negative.py", "import sums\n\nassert sums.add(3, -1) == 2\n"),
    command: "PYTHONPATH=. python3 tests/negative.py",
    check: "python3 check.py",
    candidates: "1",
};

/// The cheats have another source that its tests accept. This one is part of the long run.
#[test]
fn a_source_that_ends_its_tests_with_success_is_not_done() {
    if !is_confined() || !is_full() {
        return;
    }
    let ecosystem = &ENDED_BY_ITS_SOURCE;
    let honest = "sed -i -e 's/a - b/a + b/' -e 's/$1 - $2/$1 + $2/' 'sums.py'";
    let cheat = "echo 'import os; os._exit(0)' >>sums.py";
    for (change, code) in [(honest, 0), (cheat, 1)] {
        let scripted = turns(ecosystem, "true").replace(honest, change);
        let user = user(ecosystem).with_turns(&scripted);
        let output = task(&user, &["--check", ecosystem.check]).output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{change}: {stdout}{stderr}");
        let finding = "anchor: its test with a changed expected value does not fail";
        assert_eq!(stdout.contains(finding), change == cheat, "{change}: {stdout}");
    }
}

/// The goal changes the output that a golden file records.
static GOLDEN: Ecosystem = Ecosystem {
    name: "golden file",
    prerequisite: None,
    files: &[
        ("add.sh", "add() { echo $(($1 - $2)); }\n"),
        ("check.sh", "set -e\n. ./add.sh\ntest \"$(add 1 -1)\" = \"$(cat golden/one.txt)\"\n"),
        ("golden/one.txt", "2\n"),
    ],
    source: "add.sh",
    test: ("tests/negative.sh", "set -e\n. ./add.sh\ntest $(add 3 -1) -eq 2\n"),
    command: "sh tests/negative.sh",
    check: "sh check.sh",
    candidates: "1",
};

/// The user is asked once, at the end, and `--no-wait` does not wait for the answer.
#[test]
fn a_change_of_a_golden_file_that_the_goal_forces_is_a_question() {
    if !is_confined() {
        return;
    }
    let user = user_with(&GOLDEN, "echo 0 >golden/one.txt");
    let output = task(&user, &["--check", "sh check.sh", "--no-wait"]).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    assert_once(&stderr, &["the task waits for a person"]);
    let listed: serde_json::Value =
        serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    user.pintle(&["task", "decide", id, "approve"]);
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let resumed = ["task", "run", "--provider", "anthropic", "--base-url", &url, "--task", id];
    let report = user.pintle(&resumed);
    let expected = "Changed: `golden/one.txt`, which judges. The checks fail with the original files";
    assert!(report.contains(expected), "{report}");
    let patch = user.pintle(&["task", "apply", id, "--patch"]);
    assert!(patch.contains("a/golden/one.txt") && patch.contains("$1 + $2"), "{patch}");
}

/// A task with a damaged line is shown and applied up to the damage, and does not continue.
#[test]
fn a_damaged_task_is_used_up_to_the_damage() {
    if !is_confined() {
        return;
    }
    let user = user(&ECOSYSTEMS[0]);
    let output = task(&user, &["--check", "sh check.sh", "--candidates", "1"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let listed: serde_json::Value =
        serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    let journal = segments(&user, id).pop().unwrap();
    let mut bytes = std::fs::read(&journal).unwrap();
    let ends: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place] == b'\n').collect();
    let [.., start, end, _] = ends[..] else { panic!("{} lines", ends.len()) };
    bytes[(start + end) / 2] = 0;
    std::fs::write(&journal, bytes).unwrap();

    let run = |arguments: &[&str]| {
        let output = user.command(&[&["task"][..], arguments].concat()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    assert!(user.pintle(&["task", "list"]).contains(", damaged"));
    // A patch of a candidate is complete, while the state of the task is that before the damage.
    for (arguments, code, expected) in [
        (&["show", id][..], 1, "The rest of the record cannot be read"),
        (&["show", id, "--output", "json"][..], 1, "\"damage\":"),
        (&["report", id][..], 1, "The rest of the record cannot be read"),
        (&["report", id, "--output", "html"][..], 1, "The rest of the record cannot be read"),
        (&["report", id, "--output", "json"][..], 1, "\"damage\":"),
        (&["apply", id, "--candidate", "0", "--patch"][..], 0, "$1 + $2"),
    ] {
        let (found, stdout, stderr) = run(arguments);
        assert!(found == Some(code) && stdout.contains(expected), "{arguments:?}: {stdout}{stderr}");
        assert!(stderr.contains("everything from there on is left out"), "{arguments:?}: {stderr}");
    }
    let (code, _, stderr) = run(&["steer", id, "use integers"]);
    assert!(code == Some(1) && stderr.contains("shows the task before the damage"), "{stderr}");

    // Nothing is left before the damage.
    let first = segments(&user, id).remove(0);
    let mut bytes = std::fs::read(&first).unwrap();
    let line = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    bytes[line + 10] = 0;
    std::fs::write(&first, bytes).unwrap();
    for arguments in [&["show", id][..], &["report", id], &["steer", id, "use integers"]] {
        let (code, stdout, stderr) = run(arguments);
        assert!(code == Some(1) && stdout.is_empty(), "{arguments:?}: {stdout}{stderr}");
        assert!(stderr.contains("cannot use task"), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("task report"), "{arguments:?}: {stderr}");
    }
}

/// The provider rejects the key once the first session works.
#[test]
fn a_task_whose_provider_rejects_the_key_is_failed() {
    if !is_confined() {
        return;
    }
    let user = user(&ECOSYSTEMS[0]);
    let mut command = task(&user, &["--check", ECOSYSTEMS[0].check]);
    let output: Output = command.env("ANTHROPIC_API_KEY", "sk-of-another-user").output().unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert!(report.contains("\n# Failed\n"), "{report}");
    assert_once(&report, &["The step anchor-1 failed: "]);
    assert!(!report.contains("no anchor"), "{report}");
    let listed: serde_json::Value =
        serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
    assert_eq!(listed[0]["state"], "failed");
    let shown = user.pintle(&["task", "show", listed[0]["id"].as_str().unwrap()]);
    assert_once(&shown, &["The step anchor-1 failed: "]);
}

/// The only candidate is stopped before it changes a file.
#[test]
fn a_task_at_a_limit_names_it_and_exits_with_its_code() {
    if !is_confined() {
        return;
    }
    let user = user(&ECOSYSTEMS[0]).with_turns(
        "[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = { command = 'true' }\n[[turn]]\ntext = 'Done.'\n",
    );
    let contract = format!(
        "goal = '{GOAL}'\n[anchor]\nkind = 'none'\nbecause = 'the check is enough'\n\
         [[check]]\nname = 'sums'\ncommand = 'sh check.sh'\n[[candidate]]\n"
    );
    let file = user.at("contract.toml");
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let shared = ["task", "run", "--provider", "anthropic", "--base-url", &url, "--contract"];
    for (flags, budget, code, parts) in [
        (
            &["--max-turns", "1"][..],
            "",
            1,
            ["# Blocked", "No candidate reached the goal.", "its limit on turns is reached"],
        ),
        (
            &[],
            "[budget]\ntokens = 10\n",
            3,
            [
                "# At its limit",
                "The budget of tokens does not cover the next call.",
                "its share of the budget covers no further call",
            ],
        ),
    ] {
        std::fs::write(&file, format!("{contract}{budget}")).unwrap();
        let arguments = [&shared[..], &[file.to_str().unwrap()], flags].concat();
        let output = user.command(&arguments).output().unwrap();
        let report = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{report}");
        assert_once(&report, &parts);
    }
    // The session with the budget calls no model, since it could not pay for the call.
    assert_eq!(user.model.requests().len(), 1);
}

/// The first session cannot pay for a call: that for the anchor, or that for the draft.
#[test]
fn a_task_whose_first_session_stops_at_its_budget_exits_with_the_code_of_a_limit() {
    if !is_confined() {
        return;
    }
    let user = user(&ECOSYSTEMS[0]);
    let contract = user.at("contract.toml");
    let text = format!(
        "goal = '{GOAL}'\n[[check]]\nname = 'sums'\ncommand = 'sh check.sh'\n[budget]\ntokens = 10\n"
    );
    std::fs::write(&contract, &text).unwrap();
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let shared = ["task", "run", "--provider", "anthropic", "--base-url", &url];
    for (flags, parts) in [
        (
            &["--contract", contract.to_str().unwrap()][..],
            ["# At its limit", "The budget of tokens does not cover the next call."],
        ),
        (
            &["--check", "sh check.sh", "--max-tokens", "10", GOAL],
            ["# At its limit", "The budget of its sessions does not cover the next call."],
        ),
    ] {
        let output = user.command(&[&shared[..], flags].concat()).output().unwrap();
        let report = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(3), "{report}");
        assert_once(&report, &parts);
    }
    let output =
        user.command(&[&shared[..], &["--yes", "--max-tokens", "10", GOAL]].concat()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{error}");
    assert!(error.contains("there is no draft: its session stopped at a limit of its budget"), "{error}");
    // The share of the task does not replace the limit of the user.
    std::fs::write(&contract, text.replace("tokens = 10", "tokens = 1000000")).unwrap();
    std::fs::create_dir_all(user.at(".config/pintle")).unwrap();
    std::fs::write(user.at(".config/pintle/budget.toml"), "[run]\ntokens = 10\n").unwrap();
    let flags = ["--contract", contract.to_str().unwrap()];
    let output = user.command(&[&shared[..], &flags].concat()).output().unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{report}");
    assert_once(&report, &["# At its limit", "The budget of tokens does not cover the next call."]);
    assert!(user.model.requests().is_empty());
}

/// The only check fails, with output.
#[test]
fn the_output_of_a_failed_check_reaches_the_candidate_and_the_user() {
    if !is_confined() {
        return;
    }
    let user = user(&ECOSYSTEMS[0]).with_turns(
        "[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = { command = 'echo : >>add.sh' }\n[[turn]]\ntext = 'Done.'\n\
         [[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = { command = 'cat .pintle-output/check-1.txt' }\n\
         [[turn]]\ntext = 'Done again.'\n",
    );
    let contract = format!(
        "goal = '{GOAL}'\nreview.rounds = 0\n[anchor]\nkind = 'none'\nbecause = 'the check is enough'\n\
         [[check]]\nname = 'sums'\ncommand = 'echo first; seq 20; echo the reason; \
         echo stack backtrace:; seq 30 | sed \"s/.*/  &: core::panicking/\"; exit 3'\n[[candidate]]\n"
    );
    let file = user.at("contract.toml");
    std::fs::write(&file, contract).unwrap();
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let arguments = ["task", "run", "--provider", "anthropic", "--base-url", &url, "--contract"];
    let output = user.command(&[&arguments[..], &[file.to_str().unwrap()]].concat()).output().unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{report}");
    // The end is in the report, and in the feedback for the second attempt, which reads all of it.
    assert!(report.contains("The output of check `sums` ends with:\n\n"), "{report}");
    assert!(report.contains("    the reason\n") && !report.contains("    first\n"), "{report}");
    let requests = user.model.requests();
    let feedback = requests[2].body.to_string();
    assert!(feedback.contains("the reason") && feedback.contains(".pintle-output/check-1.txt"), "{feedback}");
    assert!(!feedback.contains("first\\n1\\n2"), "{feedback}");
    let whole = requests[3].body.to_string();
    assert!(whole.contains("first\\n1\\n2"), "{whole}");

    let listed: serde_json::Value =
        serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    let logs = user.pintle(&["task", "logs", id]);
    assert!(logs.contains("baseline-1: check sums exited with 3 ("), "{logs}");
    assert!(logs.contains("evidence-0-1: check sums exited with 3 ("), "{logs}");
    let numbers = ["exited with 3 (run 1 of 2, ", "exited with 3 (run 2 of 2, "];
    assert!(numbers.iter().all(|number| logs.contains(number)), "{logs}");
    assert!(logs.contains("    the reason\n") && !logs.contains("    first\n"), "{logs}");
    let step = user.pintle(&["task", "logs", id, "evidence-0-1"]);
    assert!(step.contains("    first\n    1\n") && !step.contains("baseline"), "{step}");
    let json: serde_json::Value =
        serde_json::from_str(&user.pintle(&["task", "logs", id, "baseline-1", "--output", "json"])).unwrap();
    assert_eq!(
        (&json[0]["command"], &json[0]["output"][0]),
        (&"check sums".into(), &"first".into()),
        "{json}"
    );
    let unknown = user.command(&["task", "logs", id, "evidence-7-1"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    let error = String::from_utf8(unknown.stderr).unwrap();
    assert!(error.contains("has no finished step `evidence-7-1`"), "{error}");
    // The files for the candidate are not part of its change.
    let patch = user.pintle(&["task", "apply", id, "--candidate", "0", "--patch"]);
    assert!(patch.contains("add.sh") && !patch.contains(".pintle-output"), "{patch}");
}

/// Two candidates list the directories around their clones.
#[test]
fn a_candidate_sees_its_own_clone_only() {
    if !BUBBLEWRAP.is_present() {
        return;
    }
    let user = user(&ECOSYSTEMS[0]).with_turns(
        "[[turn]]\n[[turn.call]]\ntool = \"Bash\"\narguments = { command = 'ls .. ../.. ../../.. ../../../.. >seen.txt' }\n\
         [[turn]]\ntext = 'Done.'\n",
    );
    let contract = format!(
        "goal = '{GOAL}'\nreview.rounds = 0\n[anchor]\nkind = 'none'\nbecause = 'the check is enough'\n\
         [[check]]\nname = 'sums'\ncommand = 'sh check.sh'\n[[candidate]]\n[[candidate]]\n"
    );
    let file = user.at("contract.toml");
    std::fs::write(&file, contract).unwrap();
    let url = user.model.base_url(Dialect::AnthropicMessages);
    let arguments = ["task", "run", "--provider", "anthropic", "--base-url", &url, "--contract"];
    let output = user.command(&[&arguments[..], &[file.to_str().unwrap()]].concat()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let listed: serde_json::Value =
        serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    for candidate in ["0", "1"] {
        let patch = user.pintle(&["task", "apply", id, "--candidate", candidate, "--patch"]);
        let seen: Vec<&str> = patch
            .lines()
            .filter_map(|line| line.strip_prefix('+'))
            .filter(|line| !line.is_empty() && !line.starts_with("++") && !line.ends_with(':'))
            .collect();
        assert_eq!(seen, ["tree", candidate, "candidates", &format!("task-{id}")], "{patch}");
    }
}

/// The sessions of a task use the models that a file names for their work, and receive the index of the repository.
#[test]
fn each_session_has_its_model_and_the_index() {
    if !is_confined() {
        return;
    }
    let user = user(&ECOSYSTEMS[0]);
    let models = user.at("models.toml");
    let text = "[models]\nanchor = { model = 'claude-haiku-5-5' }\nwork = { model = 'claude-sonnet-5-5', effort = 'low' }\n\
                review = { model = 'claude-opus-5-5' }\n";
    std::fs::write(&models, text).unwrap();
    let flags = ["--check", "sh check.sh", "--models", models.to_str().unwrap()];
    let output = task(&user, &flags).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    for (prompt, model) in [
        ("Write a test that fails now", "claude-haiku-5-5"),
        ("Reach this goal in the repository", "claude-sonnet-5-5"),
        ("Review this change before it is merged", "claude-opus-5-5"),
    ] {
        let requests = user.model.requests();
        let mut found =
            requests.iter().filter(|request| request.body.to_string().contains(prompt)).peekable();
        assert!(found.peek().is_some(), "{prompt}");
        for request in found {
            let body = request.body.to_string();
            assert_eq!(request.body["model"], model, "{prompt}");
            assert!(body.contains("`add.sh`: 1 function add"), "{body}");
            assert_eq!(
                request.body["output_config"]["effort"] == "low",
                model == "claude-sonnet-5-5",
                "{body}"
            );
        }
        assert!(stdout.contains(&format!("| {model} | $")), "{stdout}");
    }
    for step in ["anchor-1", "work-0-1", "review-0-1"] {
        assert!(stdout.contains(&format!("| {step} | $")), "{step}: {stdout}");
    }
    let listed: serde_json::Value =
        serde_json::from_str(&user.pintle(&["task", "list", "--output", "json"])).unwrap();
    let tokens = listed[0]["spent"]["tokens"].as_u64().unwrap();
    let shown = user.pintle(&["task", "show", listed[0]["id"].as_str().unwrap()]);
    assert!(
        tokens > 0 && shown.contains("  work-0-1: $") && shown.contains("  model claude-opus-5-5: $"),
        "{shown}"
    );

    std::fs::write(&models, "[models]\nwork = { share = 2.0 }\n").unwrap();
    let output = task(&user, &flags).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("models.work.share: expected more than 0, and at most 1"), "{error}");
}
