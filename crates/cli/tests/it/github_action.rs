//! The workflow for GitHub of the guide: its scripts with a scripted model, a local remote and a program instead of `gh`.

mod workflow;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pintle_testkit::Dialect;

use self::workflow::{Step, steps};
use crate::harness::{CommandOutput, Harness, KEY, pintle};

/// Records its arguments and the file that a body is read from, and knows one collaborator.
const GH: &str = r#"#!/bin/sh
printf '%s\n' "$@" -- >>"$GH_LOG/arguments"
case "$1 $2" in
    "pr create") [ -z "$GH_REFUSES" ] || exit 1 ;;
    "pr list") echo "$GH_OPEN" ;;
esac
while [ $# -gt 0 ]; do
    case $1 in
        api) echo "$GH_PERMISSION" ;;
        --body-file) cp "$2" "$GH_LOG/body" ;;
    esac
    shift
done
"#;

const TITLE: &str = r#"$(touch pwned) `touch pwned`"; touch pwned; echo "${{ github.token }}"#;
const BODY: &str = "'; touch pwned; '\nEOF\n}\n$(touch pwned)\n::add-mask::the\n%s %n \\";

const CHANGE: &str = r#"
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "echo fixed >fixed.txt" }
    [[turn]]
    text = "Fixed, @everybody. Closes #1.\n::error::no"
    "#;

/// A repository with its remote, and the directories of a runner for each job.
struct Fixture {
    harness: Harness,
    root: PathBuf,
    _directory: tempfile::TempDir,
}

impl Fixture {
    fn new(turns: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_path_buf();
        for name in ["bin", "gh", "home", "runner-work", "runner-propose"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::write(root.join("bin/gh"), GH).unwrap();
        fs::set_permissions(root.join("bin/gh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink(env!("CARGO_BIN_EXE_pintle"), root.join("bin/pintle")).unwrap();
        let fixture =
            Self { harness: Harness::new(Dialect::AnthropicMessages, turns), root, _directory: directory };
        fixture.git(&["init", "--quiet", "--bare", "--initial-branch=main", "origin.git"]);
        fixture.git(&["clone", "--quiet", "origin.git", "work"]);
        fs::write(fixture.root.join("work/README.md"), "A project.\n").unwrap();
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        fixture.git(&["-C", "work", "add", "--all"]);
        fixture.git(&[&["-C", "work"][..], &author, &["commit", "--quiet", "--message", "Begin"]].concat());
        fixture.git(&["-C", "work", "push", "--quiet", "origin", "HEAD:main"]);
        fixture.git(&["clone", "--quiet", "origin.git", "propose"]);
        fixture
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(&self.root).env("HOME", self.root.join("home"));
        let output = CommandOutput::from(command.output().unwrap());
        assert_eq!(output.code, Some(0), "git {arguments:?}: {output:?}");
        output.stdout
    }

    /// Runs the script of a step as a runner does, with the variables of the step and no others of the workflow.
    fn run(&self, name: &str, changed: &[(&str, &str)]) -> CommandOutput {
        let step = steps().into_iter().find(|step| step.name == name).expect("the workflow has the step");
        // The variables of `pintle` in tests, without those of whoever runs them.
        let clean = pintle(&[]);
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &step.script]).env_clear();
        bash.envs(clean.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let path = std::env::var("PATH").unwrap();
        bash.env("PATH", format!("{}:{path}", self.root.join("bin").display()));
        bash.env("HOME", self.root.join("home")).env("RUNNER_TEMP", self.runner(&step.job));
        bash.env("GITHUB_OUTPUT", self.root.join("outputs")).env("GH_LOG", self.root.join("gh"));
        bash.env("PINTLE_TOOLSET", "spec");
        bash.env("ANTHROPIC_BASE_URL", self.harness.server.base_url(Dialect::AnthropicMessages));
        bash.envs(step.env.iter().map(|(name, value)| (name, evaluate(value))));
        bash.envs(changed.iter().copied());
        let checkout = self.root.join(&step.job);
        bash.current_dir(checkout).stdin(Stdio::null()).output().unwrap().into()
    }

    /// Runs both jobs after the check, with the artifact between them.
    fn resolve(&self, changed: &[(&str, &str)]) -> CommandOutput {
        self.work(changed);
        self.run("Open a pull request", &[])
    }

    /// Runs the first job after the check, and downloads its artifact for the other one.
    fn work(&self, changed: &[(&str, &str)]) {
        let worked = self.run("Work on the issue", changed);
        assert_eq!(worked.code, Some(0), "{worked:?}");
        assert!(!format!("{worked:?}").contains(KEY), "{worked:?}");
        assert!(!worked.stdout.contains("::"), "only the workflow writes commands: {worked:?}");
        fs::rename(self.runner("work").join("result"), self.runner("propose").join("result")).unwrap();
    }

    /// Runs the second job again, in another checkout.
    fn propose_again(&self, changed: &[(&str, &str)]) -> CommandOutput {
        fs::remove_dir_all(self.root.join("propose")).unwrap();
        self.git(&["clone", "--quiet", "origin.git", "propose"]);
        self.run("Open a pull request", changed)
    }

    fn runner(&self, job: &str) -> PathBuf {
        self.root.join(format!("runner-{job}"))
    }

    /// Returns the arguments of the calls of `gh`, one a line.
    fn calls(&self) -> Vec<Vec<String>> {
        let log = fs::read_to_string(self.root.join("gh/arguments")).unwrap_or_default();
        let calls = log.split_terminator("--\n");
        calls.map(|call| call.lines().map(ToOwned::to_owned).collect()).collect()
    }

    /// Returns the text of the last comment or pull request.
    fn body(&self) -> String {
        fs::read_to_string(self.root.join("gh/body")).unwrap()
    }

    fn branches(&self) -> String {
        self.git(&["-C", "origin.git", "branch", "--format=%(refname:short)"])
    }

    /// Requires that nothing was pushed and one comment was written, and returns it.
    fn only_comment(&self) -> String {
        assert_eq!(self.branches(), "main\n");
        let calls = self.calls();
        let first = calls.first().map(|call| call.iter().take(3).map(String::as_str).collect::<Vec<_>>());
        assert_eq!((calls.len(), first), (1, Some(vec!["issue", "comment", "7"])), "{calls:?}");
        self.body()
    }
}

/// Returns the value of a variable of the workflow, whose expressions are those of an event.
fn evaluate(value: &str) -> String {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${{ ") {
        let (expression, after) = after.split_once(" }}").expect("an expression ends");
        text.push_str(before);
        text.push_str(match expression {
            "github.token" => "ghs-token",
            "github.event.sender.login" => "maintainer",
            "github.repository" => "owner/project",
            "github.run_id" => "99",
            "github.run_attempt" => "1",
            "github.server_url" => "https://github.example",
            "github.event.repository.default_branch" => "main",
            "github.event.issue.number" => "7",
            "github.event.issue.title" => TITLE,
            "github.event.issue.body" => BODY,
            "secrets.ANTHROPIC_API_KEY" => KEY,
            unknown => panic!("the test knows no value of {unknown}"),
        });
        rest = after;
    }
    text + rest
}

/// Returns the files below a directory with this name.
fn named(directory: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(named(&path, name));
        } else if entry.file_name() == name {
            found.push(path);
        }
    }
    found
}

#[test]
fn change_becomes_a_pull_request() {
    let fixture = Fixture::new(CHANGE);
    let proposed = fixture.resolve(&[]);
    assert_eq!(proposed.code, Some(0), "{proposed:?}");
    assert_eq!(fixture.branches(), "main\npintle/issue-7-99\n");
    let changed = fixture.git(&["-C", "origin.git", "diff", "main", "pintle/issue-7-99"]);
    assert!(changed.contains("b/fixed.txt") && changed.contains("+fixed"), "{changed}");
    let message = fixture.git(&["-C", "origin.git", "log", "-1", "--format=%B", "pintle/issue-7-99"]);
    let title = format!("Issue #7: {TITLE}");
    assert_eq!(message.trim_end(), title);

    let calls = fixture.calls();
    assert_eq!(calls.len(), 1, "{calls:?}");
    let body_file = fixture.runner("propose").join("body.md");
    let expected = ["pr", "create", "--base", "main", "--head", "pintle/issue-7-99", "--title", &title];
    assert_eq!(calls[0][..8], expected);
    assert_eq!(calls[0][8..], ["--body-file", body_file.to_str().unwrap()]);
    let body = fixture.body();
    assert!(body.starts_with("Closes #7. \n"), "{body}");
    // In a code block, the words of the model mention nobody and close nothing.
    assert!(body.contains("\n    Fixed, @everybody. Closes #1.\n    ::error::no\n"), "{body}");
    assert!(body.contains("\nCost: $0.") && body.contains("/owner/project/actions/runs/99"), "{body}");
}

/// A job that failed runs again, whether its branch is there already, its pull request, or the branch with another change.
#[test]
fn failed_jobs_run_again() {
    let fixture = Fixture::new(CHANGE);
    fixture.work(&[]);
    let refused = fixture.run("Open a pull request", &[("GH_REFUSES", "1")]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(fixture.body().starts_with("The branch pintle/issue-7-99 was pushed, but no pull request"));
    let branches = fixture.branches();
    assert_eq!(branches, "main\npintle/issue-7-99\n");
    // Dates of commits have seconds.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    for (changed, is_open) in
        [(&[][..], true), (&[("GH_REFUSES", "1"), ("GH_OPEN", "5")], true), (&[("GH_REFUSES", "1")], false)]
    {
        let again = fixture.propose_again(changed);
        assert_eq!(again.code, Some(i32::from(!is_open)), "{changed:?}: {again:?}");
        assert_eq!(fixture.branches(), branches, "{changed:?}");
    }
    // All jobs ran again, with another result.
    let patch = fixture.runner("propose").join("result/changes.patch");
    let other = fs::read_to_string(&patch).unwrap().replace("+fixed", "+mended");
    fs::write(&patch, other).unwrap();
    let again = fixture.propose_again(&[("RUN_ATTEMPT", "2")]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(fixture.branches(), format!("{branches}pintle/issue-7-99-2\n"));
    let mended = fixture.git(&["-C", "origin.git", "show", "pintle/issue-7-99-2:fixed.txt"]);
    assert_eq!(mended, "mended\n");
    assert_eq!(fixture.calls().last().unwrap()[5], "pintle/issue-7-99-2");
}

/// Git adds no files of a repository inside of another one.
#[test]
fn repositories_inside_are_named_and_kept() {
    for (turns, has_commit) in
        [(CHANGE, false), (CHANGE, true), ("[[turn]]\ntext = \"Nothing to do.\"\n", false)]
    {
        let fixture = Fixture::new(turns);
        fixture.git(&["init", "--quiet", "work/inside"]);
        fs::write(fixture.root.join("work/inside/file"), "text\n").unwrap();
        if has_commit {
            let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
            let commit = ["commit", "--quiet", "--allow-empty", "--message", "Inside"];
            fixture.git(&[&["-C", "work/inside"][..], &author, &commit].concat());
        }
        let proposed = fixture.resolve(&[]);
        assert_eq!(proposed.code, Some(0), "{proposed:?}");
        let body = fixture.body();
        assert!(body.contains("\nNot part of the change: ") && body.contains("\n    inside\n"), "{body}");
        if turns == CHANGE {
            let changed =
                fixture.git(&["-C", "origin.git", "diff", "--name-only", "main", "pintle/issue-7-99"]);
            assert_eq!(changed, "fixed.txt\n");
        }
        let artifact = fixture.runner("propose").join("result/left_out.tar.gz");
        let listing = Command::new("tar").arg("--list").arg("--file").arg(artifact).output().unwrap();
        let listing = String::from_utf8(listing.stdout).unwrap();
        assert!(listing.lines().any(|line| line == "inside/file"), "{listing}");
    }
}

#[test]
fn commits_of_the_model_are_part_of_the_change() {
    let commit = "git add fixed.txt && git -c user.name=a -c user.email=a@example.org commit -qm Fix";
    let fixture = Fixture::new(&CHANGE.replace(">fixed.txt", &format!(">fixed.txt && {commit}")));
    let proposed = fixture.resolve(&[]);
    assert_eq!(proposed.code, Some(0), "{proposed:?}");
    assert_eq!(fixture.branches(), "main\npintle/issue-7-99\n");
    let changed = fixture.git(&["-C", "origin.git", "diff", "--name-only", "main", "pintle/issue-7-99"]);
    assert_eq!(changed, "fixed.txt\n");
}

#[test]
fn text_of_an_issue_is_only_text() {
    let fixture = Fixture::new(CHANGE);
    let proposed = fixture.resolve(&[]);
    assert_eq!(proposed.code, Some(0), "{proposed:?}");
    assert_eq!(named(&fixture.root, "pwned"), Vec::<PathBuf>::new());
    let requests = fixture.harness.server.requests();
    let sent = requests[0].body["messages"].to_string();
    for text in [TITLE, BODY] {
        let text = serde_json::to_string(text).unwrap();
        assert!(sent.contains(text.trim_matches('"')), "the model reads {text} unchanged: {sent}");
    }
    assert!(!format!("{requests:?}").contains("ghs-token"));
}

#[test]
fn no_change_is_no_pull_request() {
    let fixture = Fixture::new("[[turn]]\ntext = \"It works as documented, @everybody.\"\n");
    let proposed = fixture.resolve(&[]);
    assert_eq!(proposed.code, Some(0), "{proposed:?}");
    let comment = fixture.only_comment();
    assert!(comment.starts_with("Pintle changed nothing."), "{comment}");
    assert!(comment.contains("\n    It works as documented, @everybody.\n"), "{comment}");
}

#[test]
fn failed_runs_are_reported() {
    for (changed, expected) in [
        (("ANTHROPIC_API_KEY", "sk-wrong"), "Pintle failed with exit code 4.\n"),
        (("MAX_COST", "0.0001"), "Pintle stopped at a limit before the work was done.\n"),
        (("MAX_COST", "much"), "Pintle failed with exit code 2.\n"),
    ] {
        let fixture = Fixture::new(CHANGE);
        let proposed = fixture.resolve(&[changed]);
        assert_eq!(proposed.code, Some(1), "{changed:?}: {proposed:?}");
        let comment = fixture.only_comment();
        assert!(comment.starts_with(expected), "{changed:?}: {comment}");
        assert!(comment.contains("/actions/runs/99"), "{comment}");
    }
    // The first job has left no artifact.
    let fixture = Fixture::new(CHANGE);
    let proposed = fixture.run("Open a pull request", &[]);
    assert_eq!(proposed.code, Some(1), "{proposed:?}");
    assert!(fixture.only_comment().starts_with("Pintle was not started, or did not end.\n"));
}

#[test]
fn changes_of_workflows_are_not_pushed() {
    let fixture = Fixture::new(
        &CHANGE
            .replace("fixed >", "fixed >.github/workflows/")
            .replace("echo fixed", "mkdir -p .github/workflows; echo fixed"),
    );
    let proposed = fixture.resolve(&[]);
    assert_eq!(proposed.code, Some(1), "{proposed:?}");
    assert!(fixture.only_comment().starts_with("Pintle changed files in .github, which needs a person.\n"));
}

#[test]
fn labels_count_only_from_those_who_can_write() {
    for (permission, is_allowed) in
        [("admin", true), ("write", true), ("read", false), ("none", false), ("", false)]
    {
        let fixture = Fixture::new(CHANGE);
        let checked = fixture.run("Check the label's author", &[("GH_PERMISSION", permission)]);
        assert_eq!(checked.code == Some(0), is_allowed, "{permission}: {checked:?}");
        let outputs = fs::read_to_string(fixture.root.join("outputs")).unwrap_or_default();
        assert_eq!(outputs == "allowed=true\n", is_allowed, "{permission}: {outputs}");
        assert_eq!(fixture.calls()[0][1], "repos/owner/project/collaborators/maintainer/permission");
    }
}

#[test]
fn scripts_hold_no_expressions_and_tokens_are_apart() {
    let steps = steps();
    let scripts: Vec<&Step> = steps.iter().filter(|step| !step.script.is_empty()).collect();
    assert_eq!(scripts.len(), 4, "{scripts:?}");
    for step in scripts {
        assert!(!step.script.contains("${{"), "{}: {}", step.name, step.script);
        let checked = Command::new("bash").args(["-n", "-c", &step.script]).output().unwrap();
        assert!(checked.status.success(), "{}: {checked:?}", step.name);
        let has_key = step.variable("ANTHROPIC_API_KEY").is_some();
        assert_eq!(has_key, step.name == "Work on the issue");
        assert!(!has_key || step.variable("GH_TOKEN").is_none(), "{step:?}");
    }
    let text = workflow::text();
    let (before, jobs) = text.split_once("\njobs:\n").unwrap();
    assert!(before.contains("\n  issues:\n    types: [labeled]\n") && before.contains("\npermissions: {}\n"));
    let (work, propose) = jobs.split_once("\n  propose:\n").unwrap();
    assert!(work.contains("    permissions:\n      contents: read\n    outputs:\n"));
    assert!(work.contains("          persist-credentials: false\n"));
    assert!(work.contains("    if: github.event.label.name == 'pintle'\n") && !work.contains(": write\n"));
    let writes = "      contents: write\n      issues: write\n      pull-requests: write\n    steps:\n";
    assert!(propose.contains(&format!("    permissions:\n{writes}")));
    assert!(propose.contains("needs.work.outputs.allowed == 'true'"));
}
