//! Contracts, and what is said of those that are none.

use super::*;

const WHOLE: &str = r#"
goal = "Sums of negative numbers are right."
attempts = 3
gates = ["anchor"]

[anchor]
kind = "command"
command = "sh reproduce.sh"

[[check]]
name = "tests"
command = "cargo test"
results = "cargo"
pass = "no-worse"

[[check]]
name = "lints"
command = "make lint"
timeout_s = 60

[scope]
paths = ["src/"]
except = ["src/generated/**"]
protected = ["docs/**"]

[budget]
usd = 2.5
minutes = 30

[[candidate]]
model = "small"

[[candidate]]
model = "large"
effort = "high"
prompt = "Prefer the smallest change."

[review]
rounds = 2
"#;

#[test]
fn a_file_says_what_is_proved_and_how() {
    let contract = Contract::parse(WHOLE).unwrap();
    assert_eq!((contract.checks.len(), contract.candidates.len(), contract.attempts), (2, 2, 3));
    assert_eq!((contract.checks[0].pass, contract.checks[0].runs), (PassCondition::NoWorse, 2));
    assert_eq!((contract.review.rounds, contract.gates.as_slice()), (2, [DecisionGate::Anchor].as_slice()));
    let again = Contract::parse(&toml::to_string(&contract).unwrap()).unwrap();
    assert_eq!(again, contract);
    let least = Contract::parse("goal = \"Do it.\"").unwrap();
    assert_eq!(least, Contract::new("Do it."));
}

#[test]
fn a_line_of_json_is_a_contract() {
    let line = serde_json::to_string(&Contract::parse(WHOLE).unwrap()).unwrap();
    assert_eq!(Contract::parse_json(&line).unwrap(), Contract::parse(WHOLE).unwrap());
    assert_eq!(Contract::parse_json("{\"goal\": \"Do it.\"}").unwrap(), Contract::new("Do it."));
    for (line, expected) in [
        ("{\"goal\": 1}", "at column 10"),
        ("{\"goals\": \"a\"}", "unknown field `goals`"),
        ("{\"goal\": \" \"}", "goal: expected a text"),
    ] {
        let problem = Contract::parse_json(line).unwrap_err().to_string();
        assert!(problem.contains(expected) && !problem.contains("line 1"), "{line}: {problem}");
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let problems = |text: &str| match Contract::parse(text).unwrap_err() {
        ContractError::Wrong(problems) => problems.join("\n"),
        ContractError::Syntax(error) | ContractError::Models(error) => error,
    };
    insta::assert_snapshot!(problems(r#"
        goal = " "
        attempts = 0
        [anchor]
        kind = "none"
        because = ""
        [scope]
        paths = ["src/a.rs", "tests/b.rs", "c.rs"]
        except = ["c.rs"]
        max_lines = 0
        [budget]
        usd = -1.0
        tokens = 0
        [review]
        rounds = 9
    "#), @r"
    goal: expected a text
    attempts: expected 1 to 5
    review.rounds: expected 0 to 5
    scope.max_lines: expected 1 or more
    budget.usd: expected more than 0
    budget.tokens: expected more than 0
    anchor.because: expected why nothing can fail first
    check: expected at least one, since without an anchor nothing else proves anything
    scope: `tests/b.rs` may change and is protected; expected it in `unprotected`, or not at all
    scope: `c.rs` is in `paths` and in `except`
    ");
    insta::assert_snapshot!(problems(r#"
        goal = "Do it."
        [[check]]
        name = "a"
        command = ""
        runs = 0
        pass = "no-worse"
        [[check]]
        name = "a"
        command = "true"
        results = "junit"
        [[check]]
        name = "b"
        command = "true"
        results = "tap"
        report = "out.tap"
        [[check]]
        name = "c"
        command = "true"
        results = "junit"
        report = "../out.xml"
    "#), @r"
    check `a`: command: expected a command
    check `a`: runs: expected 1 to 10
    check `a`: pass: `no-worse` needs `results`, to tell tests apart
    check `a`: expected a name that no other check has
    check `a`: report: expected the file that the results are written to
    check `b`: report: expected none, since the results are in the output
    check `c`: report: expected a path from the root of the repository, found `../out.xml`
    ");
    let unknown = problems("goal = \"Do it.\"\nbudgets = 3");
    assert!(unknown.contains("budgets") && unknown.contains("line 2"), "{unknown}");
    let judges = problems("goal = \"Do it.\"\n[scope]\njudges = [\"../x\"]");
    assert!(judges.contains("`../x` is no pattern"), "{judges}");
    for pattern in ["/etc/passwd", "../x", "a[", ""] {
        let said = problems(&format!("goal = \"Do it.\"\n[scope]\npaths = [\"{pattern}\"]"));
        assert!(said.contains("is no pattern"), "{said}");
    }
}

#[test]
fn the_directory_of_a_task_is_a_relative_path() {
    let base = |directory: &str| BaseCommit::new("/r", "1a".repeat(20)).with_directory(directory);
    for (directory, is_right) in [("", true), ("a/b", true), ("/a", false), ("a/../b", false), ("a/", false)]
    {
        let contract = Contract::new("Do it.").with_base(base(directory));
        assert_eq!(contract.check().is_ok(), is_right, "{directory}");
    }
}

#[test]
fn a_truncated_title_ends_with_an_ellipsis() {
    for (goal, expected) in [
        (" Sums.\nAll.", "Sums."),
        ("Sums are", "Sums are"),
        ("Sums are right.", "Sums ar…"),
        ("Summing ä b", "Summing…"),
    ] {
        assert_eq!(Contract::new(goal).title(8), expected);
    }
}

#[test]
fn the_scope_is_compared_with_the_files_of_the_base() {
    let files = ["src/a.rs", "check.sh"].map(str::to_owned);
    let with = |paths: &[&str], judges: Option<&[&str]>| {
        let mut scope = TaskScope::default().with_paths(paths.iter().copied());
        scope.judges = judges.map(|judges| judges.iter().map(|judge| (*judge).to_owned()).collect());
        Contract { scope, ..Contract::new("a") }.check_files(&files)
    };
    assert_eq!(with(&["src/", "*.sh", "src/a.rs"], Some(&["check.sh"])), Ok(vec![]));
    assert_eq!(with(&["src/", "docs/"], None), Ok(vec!["docs/".to_owned()]));
    assert_eq!(with(&[], Some(&[])), Ok(vec![]));
    let error = with(&[], Some(&["check.sh", "nope.sh"])).unwrap_err();
    assert_eq!(error.to_string(), "the contract is wrong: scope.judges: the commit has no nope.sh");
}
