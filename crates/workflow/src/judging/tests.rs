//! Files that judge, by their names and by commands.

use std::collections::BTreeMap;

use super::*;
use crate::contract::{PathRules, TaskScope};
use crate::diff::{ChangeKind, ChangedFile};
use crate::tests::facts::{added, modified};

/// Commands and files that include others.
const COMMANDS: [&str; 3] = ["sh check.sh", "make -j2 test", "python -m pytest -rA check_foo.py"];

const FILES: [(&str, &str); 4] = [
    ("Makefile", "include rules.mk\n-include config.mk\ntest:\n\t@sh scripts/all.sh\n"),
    ("check.sh", "#!/bin/sh\nset -e\n. ./lib.sh\ncargo clippy\nsh scripts/lint.sh\n"),
    ("scripts/lint.sh", "grep -q x README.md\nsh -n src/add.sh\n"),
    ("scripts/all.sh", "cd tools && ./run\n"),
];

/// Searches the files of a repository that has these files and those of the commands.
fn scan(paths: &[&str]) -> CommandScan {
    let texts: BTreeMap<&str, &str> = FILES.into_iter().collect();
    let own = ["lib.sh", "README.md", "src/add.sh", "tools/run", "tests/test_a.py", "src/a.py"];
    let all = texts.keys().copied().chain(own).chain(paths.iter().copied());
    let mut scan = CommandScan::new(all.map(str::to_owned));
    COMMANDS.iter().for_each(|command| scan.add_command(command));
    while let Some(path) = scan.next_file() {
        scan.add_file(&path, texts.get(path.as_str()).copied().unwrap_or_default());
    }
    scan
}

fn rules(scope: &TaskScope) -> PathRules {
    PathRules::new(scope).unwrap()
}

/// Returns the treatment of a file: frozen, compared in part (`ask`), or free.
fn treatment(path: &str) -> &'static str {
    let scan = scan(&[path]);
    match rules(&TaskScope::default()).role(path) {
        role if role.is_frozen() || scan.judges().contains(path) || scan.is_shadow(path) => "frozen",
        FileRole::Manifest(_) | FileRole::ToolSettings(_) | FileRole::Uncertain => "ask",
        FileRole::Test
        | FileRole::Fixture
        | FileRole::Snapshot
        | FileRole::Settings
        | FileRole::ContinuousIntegration
        | FileRole::Lock
        | FileRole::Source => "free",
    }
}

#[test]
fn names_have_their_treatment() {
    for (path, expected) in [
        ("check.sh", "frozen"),
        ("lib.sh", "frozen"),
        ("rules.mk", "frozen"),
        ("other.mk", "ask"),
        ("check_foo.py", "frozen"),
        ("check_bar.py", "free"),
        ("pytest.py", "frozen"),
        ("src/pytest.py", "free"),
        ("tools/run", "frozen"),
        ("README.md", "free"),
        ("src/add.sh", "free"),
        ("TESTS/a.py", "frozen"),
        ("a/FIXTURES/b.json", "frozen"),
        ("src/contest.rs", "free"),
        ("src/latest.js", "free"),
        ("src/attestation.rs", "free"),
        ("src/spectrum.py", "free"),
        ("makefile", "frozen"),
        ("Makefile", "ask"),
        ("crates/a/Cargo.toml", "ask"),
        ("web/package.json", "ask"),
        ("pyproject.toml", "ask"),
        ("tests/conftest.py", "frozen"),
        ("evil.pth", "frozen"),
        ("a.egg-info/entry_points.txt", "frozen"),
        ("src/app.approved.txt", "frozen"),
        ("packages/a/vite.config.mts", "frozen"),
        ("go.work", "frozen"),
        ("Containerfile", "ask"),
        ("src/golden.rs", "free"),
    ] {
        assert_eq!(treatment(path), expected, "{path}");
    }
}

/// The table of names lies beside the repository.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test reads a table that is no part of the crate")]
fn names_of_the_shared_table_have_their_treatment() {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/facts/judging-files.tsv");
    // `sitecustomize.py` may be new for a reason. It runs before each judged program, so it is frozen.
    let own = "sitecustomize.py\tpython\ttest-config\tno\task\t\n".to_owned();
    let text = std::fs::read_to_string(table).unwrap_or(own);
    let mut wrong = Vec::new();
    for row in text.lines().filter(|row| !row.starts_with("path\t")) {
        let cells: Vec<&str> = row.split('\t').collect();
        let (path, expected, found) = (cells[0], cells[4], treatment(cells[0]));
        if found != expected && !(path == "sitecustomize.py" && found == "frozen") {
            wrong.push(format!("{path}: {found} instead of {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn roles_that_an_anchor_may_add_have_no_settings() {
    let rules = rules(&TaskScope::default());
    for (path, expected) in [
        ("tests/test_a.py", true),
        ("tests/fixtures/a/package.json", true),
        ("src/__snapshots__/a.snap", true),
        ("tests/data/rates.toml", true),
        ("tests/a.test.js", true),
        ("tests/high.c", true),
        ("tests/conftest.py", false),
        ("tests/pytest.ini", false),
        ("src/a.py", false),
    ] {
        assert_eq!(rules.is_test(path), expected, "{path}");
    }
    for path in [
        "tests/conftest.py",
        "pytest.ini",
        "tests/.babelrc",
        "a/vitest.config.ts",
        "src/setupTests.js",
        "package.json",
        "x.pth",
    ] {
        assert!(rules.is_configuration(path) && !rules.is_test(path), "{path}");
    }
}

#[test]
fn an_included_file_that_the_anchor_uses_is_under_test() {
    let mut scan = scan(&[]);
    assert!(scan.judges().contains("lib.sh"));
    scan.remove_included_in("set -e\n. ./other.sh\n");
    assert!(scan.judges().contains("lib.sh"));
    scan.remove_included_in("set -e\n. ./lib.sh\n");
    assert!(!scan.judges().contains("lib.sh"));
    let mut direct = CommandScan::new(["add.sh".to_owned()]);
    direct.add_command(". ./add.sh; test $(add 1 2) -eq 3");
    assert!(direct.judges().is_empty());
}

#[test]
fn commands_that_run_the_product_do_not_freeze_it() {
    let files =
        ["Makefile", "package.json", "sums.c", "check.c", "index.js", "tools/all.js", "calc.py", "a.md"];
    for (command, expected) in [
        ("cc -o t sums.c check.c && ./t", "check.c"),
        ("make test", ""),
        ("npm test", "tools/all.js"),
        ("timeout -k 5 60 nice -n 10 npm test", "tools/all.js"),
        ("npm run build", ""),
        ("python3 calc.py --selftest", "calc.py"),
        ("python3 -m py_compile calc.py", ""),
        ("ruff check calc.py && grep -q x a.md", ""),
        ("env A=1 nice python3 ./calc.py", "calc.py"),
        ("cd tools && node all.js", "tools/all.js"),
    ] {
        let mut scan = CommandScan::new(files.map(str::to_owned));
        scan.add_command(command);
        while let Some(path) = scan.next_file() {
            let text = match path.as_str() {
                "Makefile" => "test:\n\t$(CC) -o t sums.c\n\t./t\n",
                _ => r#"{"scripts": {"test": "node tools/all.js", "start": "node index.js"}}"#,
            };
            scan.add_file(&path, text);
        }
        assert_eq!(Vec::from_iter(scan.judges()).join(" "), expected, "{command}");
    }
}

#[test]
fn commands_run_in_the_directory_of_the_task() {
    let files = ["apps/a/check.sh", "apps/a/sums.py", "check.sh", "Makefile", "apps/Makefile"];
    let mut scan = CommandScan::new(files.map(str::to_owned)).with_directory("apps/a");
    ["sh check.sh", "make -C .. test", "python3 -m pytest"]
        .iter()
        .for_each(|command| scan.add_command(command));
    assert_eq!(Vec::from_iter(scan.judges()), ["apps/a/check.sh"]);
    let searched: Vec<String> = std::iter::from_fn(|| scan.next_file()).collect();
    assert_eq!(searched, ["apps/a/check.sh", "apps/Makefile"]);
    for (path, is_shadow) in [
        ("apps/a/pytest.py", true),
        ("apps/a/pytest/__init__.py", true),
        ("pytest.py", true),
        ("apps/pytest.py", false),
        ("apps/a/src/pytest.py", false),
    ] {
        assert_eq!(scan.is_shadow(path), is_shadow, "{path}");
    }
}

fn text(path: &str, before: &str, after: &str) -> ChangedText {
    ChangedText { path: path.to_owned(), before: Some(before.to_owned()), after: Some(after.to_owned()) }
}

fn assessed(scope: &TaskScope, files: &[ChangedFile], texts: &[ChangedText]) -> JudgingFacts {
    let (rules, scan) = (rules(scope), scan(&["Cargo.lock", "Cargo.toml", "clippy.toml", "deny.toml"]));
    let anchor = ["tests/test_anchor.py".to_owned()];
    ChangeAssessment { rules: &rules, scan: &scan, anchor: &anchor }.assess(files, texts)
}

fn paths(parts: &[JudgingPart]) -> Vec<&str> {
    parts.iter().map(|part| part.path.as_str()).collect()
}

#[test]
fn new_tests_are_kept_apart_unless_they_collide() {
    for (path, is_apart) in [
        ("tests/test_b.py", true),
        ("tests/deep/__init__.py", true),
        ("tests/fixtures/b.json", true),
        ("tests/test_a.js", false),
        ("tests/TEST_A.py", false),
        ("src/t/test_a.py", false),
        ("tests/conftest.py", false),
        ("tests/test_anchor.py", false),
        ("src/b.py", false),
    ] {
        let facts = assessed(&TaskScope::default(), &[added(path, 1)], &[]);
        assert_eq!(facts.apart == [path], is_apart, "{path}: {facts:?}");
    }
    let facts = assessed(&TaskScope::default(), &[modified("tests/test_a.py", 1, 1)], &[]);
    assert!(facts.apart.is_empty() && !facts.is_allowed("tests/test_a.py"));
}

#[test]
fn manifests_are_compared_and_lock_files_follow() {
    let (manifest, lock) = (modified("Cargo.toml", 1, 0), modified("Cargo.lock", 1, 0));
    let before = "[package]\nname = \"a\"\n";
    let with = |after: &str| {
        let texts = [text("Cargo.toml", before, after)];
        assessed(&TaskScope::default(), &[lock.clone(), manifest.clone()], &texts)
    };
    let facts = with("[package]\nname = \"a\"\n[dependencies]\nb = \"1\"\n");
    assert_eq!(
        (facts.unaffected, facts.parts),
        (vec!["Cargo.lock".to_owned(), "Cargo.toml".to_owned()], vec![])
    );
    let facts = with("[package]\nname = \"a\"\nautotests = false\n");
    let said: Vec<String> = facts.describe_parts().collect();
    assert_eq!(said, ["`Cargo.toml` changed in `package.autotests`, which judges the change"]);
    let alone = assessed(&TaskScope::default(), &[lock], &[]);
    assert!(!alone.is_allowed("Cargo.lock"));

    let none = |path: &str, kind: ChangeKind| {
        let file = ChangedFile { path: path.to_owned(), kind, added: 1, removed: 0 };
        paths(&assessed(&TaskScope::default(), &[file], &[]).parts).len()
    };
    assert_eq!(none("crates/new/Cargo.toml", ChangeKind::Added), 0);
    assert_eq!(none("src/Cargo.toml", ChangeKind::Added), 1);
    assert_eq!(none("Cargo.toml", ChangeKind::Deleted), 1);
    // A command runs clippy, and none cargo-deny.
    assert_eq!(none("clippy.toml", ChangeKind::Modified), 1);
    assert_eq!(none("deny.toml", ChangeKind::Modified), 0);
}

#[test]
fn a_manifest_that_a_command_names_is_compared() {
    let mut scan = CommandScan::new(["requirements.txt".to_owned()]);
    scan.add_command("pip install -r requirements.txt");
    let rules = rules(&TaskScope::default());
    for (after, is_allowed) in [("a==2\nb\n", true), ("./fake\n", false)] {
        let texts = [text("requirements.txt", "a==1\n", after)];
        let assessment = ChangeAssessment { rules: &rules, scan: &scan, anchor: &[] };
        let facts = assessment.assess(&[modified("requirements.txt", 1, 1)], &texts);
        assert!(facts.is_named("requirements.txt") && facts.restorable.is_empty(), "{facts:?}");
        assert_eq!(facts.is_allowed("requirements.txt"), is_allowed, "{after}");
        assert_eq!(facts.has_part("requirements.txt"), !is_allowed, "{after}");
    }
}

#[test]
fn a_named_file_in_the_scope_may_change() {
    let file = [modified("check.sh", 1, 1)];
    let facts = assessed(&TaskScope::default(), &file, &[]);
    assert!(facts.is_named("check.sh") && !facts.is_allowed("check.sh"));
    let scope = TaskScope { paths: vec!["check.sh".to_owned()], ..TaskScope::default() };
    assert_eq!(assessed(&scope, &file, &[]).in_scope, ["check.sh"]);
    let scope = TaskScope { unprotected: vec!["check.sh".to_owned()], ..TaskScope::default() };
    assert!(!assessed(&scope, &file, &[]).is_named("check.sh"));
    let scope = TaskScope { judges: Some(vec!["src/a.py".to_owned()]), ..TaskScope::default() };
    let facts = assessed(&scope, &file, &[]);
    assert!(facts.is_named("src/a.py") && facts.is_named("scripts/lint.sh") && !facts.is_named("check.sh"));
}

#[test]
fn inline_tests_judge_unless_their_file_is_unprotected() {
    let (file, before) = ([modified("src/lib.rs", 1, 1)], "#[test]\nfn a() { assert!(true); }\n");
    let texts = [text("src/lib.rs", before, "#[test]\nfn a() {}\n")];
    let facts = assessed(&TaskScope::default(), &file, &texts);
    assert_eq!(
        facts.parts,
        [JudgingPart { path: "src/lib.rs".to_owned(), parts: vec!["test a".to_owned()] }]
    );
    let scope = TaskScope { unprotected: vec!["src/".to_owned()], ..TaskScope::default() };
    assert!(assessed(&scope, &file, &texts).parts.is_empty());
}

#[test]
fn the_list_has_both_reasons() {
    let (rules, scan) = (rules(&TaskScope::default()), scan(&["Cargo.lock"]));
    let list = ChangeAssessment { rules: &rules, scan: &scan, anchor: &[] }.list();
    assert_eq!(list.by_command, ["check.sh", "lib.sh", "scripts/all.sh", "scripts/lint.sh", "tools/run"]);
    assert_eq!(
        (list.by_name, list.omitted),
        (vec!["Cargo.lock".to_owned(), "tests/test_a.py".to_owned()], 0)
    );
    assert!(JudgingList::default().is_empty());
}

#[test]
fn new_files_that_commands_use_if_they_exist_judge() {
    let found = |path: &str| {
        let mut scan = CommandScan::new(["Makefile", "check.sh", "t.c", "lib/a.c"].map(str::to_owned));
        ["make test", "sh check.sh"].into_iter().for_each(|command| scan.add_command(command));
        while let Some(file) = scan.next_file() {
            let text = match file.as_str() {
                "Makefile" => "-include local.mk\nCC := cc\n.PHONY: docs\ntest all lib docs: t\n\t./t\n",
                _ => "if [ -f env.sh ]; then . ./env.sh; fi\n",
            };
            scan.add_file(&file, text);
        }
        let rules = rules(&TaskScope::default());
        let facts =
            ChangeAssessment { rules: &rules, scan: &scan, anchor: &[] }.assess(&[added(path, 1)], &[]);
        facts.has_part(path)
    };
    for (path, expected) in [
        ("local.mk", true),
        ("other.mk", false),
        ("env.sh", true),
        ("src/env.sh", false),
        ("test", true),
        ("all", true),
        ("all/notes", true),
        ("lib/b.c", false),
        ("docs", false),
        ("docs/notes", false),
        ("CC", false),
        ("notes", false),
    ] {
        assert_eq!(found(path), expected, "{path}");
    }
    let mut scan = CommandScan::new(["Makefile".to_owned()]);
    scan.add_command("make");
    let file = scan.next_file().unwrap();
    scan.add_file(&file, "include $(wildcard *.mk)\n");
    assert!(scan.is_awaited("new.mk") && !scan.is_awaited("new.c"));
}
