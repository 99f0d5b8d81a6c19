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
        ContractError::Syntax(error) => error,
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
fn files_that_judge_are_protected() {
    let scope = TaskScope {
        paths: vec!["src/**".to_owned(), "lib/".to_owned()],
        except: vec!["src/generated/**".to_owned()],
        protected: vec!["src/frozen.rs".to_owned()],
        unprotected: vec!["**/Cargo.lock".to_owned()],
        ..TaskScope::default()
    };
    let rules = PathRules::new(&scope).unwrap();
    for (path, in_scope, protected, test) in [
        ("src/main.rs", true, false, false),
        ("src/deep/down.rs", true, false, false),
        ("lib/a/b.py", true, false, false),
        ("src/generated/a.rs", false, false, false),
        ("docs/a.md", false, false, false),
        ("src/frozen.rs", true, true, false),
        ("src/parse_test.go", true, true, true),
        ("tests/it/main.rs", false, true, true),
        ("crates/a/tests/x.rs", false, true, true),
        ("web/a.test.ts", false, true, true),
        ("conftest.py", false, true, false),
        (".github/workflows/ci.yml", false, true, false),
        ("sub/.gitattributes", false, true, false),
        ("Cargo.lock", false, false, false),
        ("package-lock.json", false, true, false),
        ("src/contest.rs", true, false, false),
    ] {
        let found = (rules.is_in_scope(path), rules.is_protected(path), rules.is_test(path));
        assert_eq!(found, (in_scope, protected, test), "{path}");
    }
}

#[test]
fn patterns_are_relative_to_the_directory_of_the_task() {
    let scope = TaskScope {
        paths: vec!["src/".to_owned(), "*.md".to_owned()],
        unprotected: vec!["tests/data/".to_owned()],
        ..TaskScope::default()
    };
    let rules = PathRules::in_directory(&scope, "apps/a[1]").unwrap();
    for (path, in_scope, protected) in [
        ("apps/a[1]/src/main.rs", true, false),
        ("apps/a[1]/notes.md", true, false),
        ("src/main.rs", false, false),
        ("apps/a1/src/main.rs", false, false),
        ("apps/a[1]/tests/data/x.json", false, false),
        ("tests/data/x.json", false, true),
        ("apps/a[1]/tests/b.rs", false, true),
    ] {
        assert_eq!((rules.is_in_scope(path), rules.is_protected(path)), (in_scope, protected), "{path}");
    }
    let base = |directory: &str| BaseCommit::new("/r", "1a".repeat(20)).with_directory(directory);
    for (directory, is_right) in [("", true), ("a/b", true), ("/a", false), ("a/../b", false), ("a/", false)]
    {
        let contract = Contract::new("Do it.").with_base(base(directory));
        assert_eq!(contract.check().is_ok(), is_right, "{directory}");
    }
}

/// A tool that reads a protected file reads one of these instead, or besides.
#[test]
fn files_read_instead_of_protected_ones_are_protected() {
    let rules = PathRules::new(&TaskScope::default()).unwrap();
    for path in [
        "GNUmakefile",
        "makefile",
        "sub/GNUmakefile",
        "justfile",
        ".justfile",
        "Justfile",
        "Taskfile.yml",
        "taskfile.dist.yaml",
        "CMakeUserPresets.json",
        ".pytest.ini",
        "pytest.toml",
        ".pytest.toml",
        "tox.toml",
        "uv.toml",
        ".coveragerc",
        ".mypy.ini",
        ".ruff.toml",
        ".npmrc",
        ".yarnrc.yml",
        "jest.config.cjs",
        "jest.config.mjs",
        "vitest.config.mts",
        "vitest.workspace.ts",
        ".cargo/config",
        ".cargo/config.toml",
        ".config/nextest.toml",
        "rust-toolchain",
        "npm-shrinkwrap.json",
        "go.work",
        ".gitea/workflows/ci.yml",
    ] {
        assert!(rules.is_protected(path), "{path}");
        assert!(!rules.is_test(path), "{path}");
    }
    for path in ["src/makefile.rs", "src/taskfile.rs", "Taskfile.md", "docs/justfile.md", "src/ruff.py"] {
        assert!(!rules.is_protected(path), "{path}");
    }
}
