//! Tasks at a terminal: contracts that a model drafts, and decisions.

use super::*;
use crate::terminal::Terminal;

/// The turns, and a draft of a contract at their end.
fn turns() -> String {
    let draft = r#"
    [[turn]]
    text = '{"goal": "Sums of negative numbers are right.", "checks": [{"name": "syntax", "command": "sh -n src/add.sh", "results": null}], "nothing_fails_first": null, "paths": ["src/**"]}'
    "#;
    TURNS.replace("WAIT", "true") + draft
}

fn at_terminal(command: &Command) -> Terminal {
    Terminal::run(command, 120, 40, |_| {})
}

#[test]
fn a_draft_is_shown_edited_and_accepted() {
    let project = Project::new(&turns());
    let mut command = project.run_command(&["The sums of issue 7 are wrong."]);
    command.env("VISUAL", "sed -i 's/^goal = .*/goal = \"Sums are right, and that is all.\"/'");
    let mut terminal = at_terminal(&command);
    terminal.wait_for_text("[e]dit, [n]o:");
    let shown = terminal.output();
    assert!(shown.contains("command = \"sh -n src/add.sh\""), "{shown}");
    terminal.type_keys("e\n");
    terminal.wait_for("the edited contract", |screen| {
        screen.contains("Sums are right, and that is all.") && screen.trim_end().ends_with("[e]dit, [n]o:")
    });
    terminal.type_keys("y\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    let task = project.only();
    assert_eq!(
        (&task["state"], &task["title"]),
        (&"done".into(), &"Sums are right, and that is all.".into())
    );
    let id = task["id"].as_str().unwrap();
    let report = project.task(&["report", id, "--output", "json"]);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let drafted = &report["contract"]["drafted"];
    assert_eq!(drafted["session"], format!("{id}-draft"));
    let (draft, all) =
        (drafted["spent"]["tokens"].as_u64().unwrap(), report["spent"]["tokens"].as_u64().unwrap());
    assert!(draft > 0 && all > draft, "the draft is on the bill: {report}");
    assert!(!project.state.path().join(format!("worktrees/task-{id}")).exists(), "nothing is left");
}

#[test]
fn a_draft_that_nobody_wants_is_no_task() {
    let project = Project::new(&turns());
    let command = project.run_command(&["The sums of issue 7 are wrong.", "--candidates", "2"]);
    let log = project.harness.path("log");
    let mut terminal = Terminal::run(&command, 120, 60, |command| {
        command.stdout(std::fs::File::create(&log).unwrap());
    });
    let screen = terminal.wait_for_text("[e]dit, [n]o:");
    assert_eq!(screen.matches("[[candidate]]").count(), 2, "what is accepted is what runs: {screen}");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "", "the draft is beside its question");
    terminal.type_keys("n\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("no task was started"), "{screen}");
    assert_eq!(project.task(&["list"]).stdout, "no tasks\n");
}

#[test]
fn any_draft_is_taken_without_a_terminal_if_that_is_wanted() {
    let project = Project::new(&turns());
    let output = project.run(&["The sums of issue 7 are wrong.", "--yes", "--candidates", "2"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("> Sums of negative numbers are right."), "{output:?}");
    assert!(output.stdout.contains("[ 1]  work begins"), "{output:?}");
}

#[test]
fn an_anchor_of_the_contract_is_approved_or_refused_and_not_changed() {
    let project = Project::new(&turns());
    let contract = "goal = \"Sums are right.\"\ngates = [\"anchor\"]\n[anchor]\nkind = \"command\"\n\
                    command = \". src/add.sh; test $(add 3 -1) -eq 2\"\n";
    std::fs::write(project.root().join("contract.toml"), contract).unwrap();
    let mut terminal = at_terminal(&project.run_command(&["--contract", "contract.toml"]));
    terminal.wait_for_text("[a]pprove or [r]efuse for good:");
    let id = project.only()["id"].as_str().unwrap().to_owned();
    let words = project.task(&["decide", &id, "refuse", "--words", "test zero too"]);
    assert_eq!(words.code, Some(2), "{words:?}");
    assert!(words.stderr.contains("the contract names the anchor"), "{words:?}");
    terminal.type_keys("test zero too\n");
    terminal.wait_for("the question again", |screen| {
        screen.contains("expected a or r") && screen.matches("[r]efuse for good:").count() == 2
    });
    terminal.type_keys("r\n");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(1), "{screen}");
    assert_eq!(project.only()["state"], "blocked");
}

/// The answer at the terminal, and one from elsewhere, which ends the question.
#[test]
fn decisions_are_asked_for_where_the_task_runs() {
    let project = Project::new(&turns());
    let contract = "goal = \"Sums are right.\"\ngates = [\"anchor\", \"result\"]\n[[check]]\nname = \"a\"\ncommand = \"true\"\n";
    std::fs::write(project.root().join("contract.toml"), contract).unwrap();
    let mut terminal = at_terminal(&project.run_command(&["--contract", "contract.toml"]));
    let screen = terminal.wait_for_text("or what to change:");
    assert!(screen.contains("It adds to tests/negative.sh."), "{screen}");
    terminal.type_keys("a\n");
    terminal.wait_for_text("Candidate 0 has its evidence.");
    let id = project.only()["id"].as_str().unwrap().to_owned();
    assert_eq!(project.task(&["decide", &id, "allow"]).code, Some(0), "the word for calls");
    let (code, screen, _) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(project.only()["state"], "done");
}
