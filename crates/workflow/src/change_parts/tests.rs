//! Sources, configuration and changed lines.

use super::*;
use crate::contract::TaskScope;
use crate::tests::facts::{added, diff, modified};

fn rules(paths: &[&str]) -> PathRules {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    PathRules::new(&TaskScope { paths, ..TaskScope::default() }).unwrap()
}

#[test]
fn files_beside_the_sources_are_told_apart() {
    let change = diff([
        modified("src/money.py", 1, 1),
        added("vite.config.js", 3),
        added("pytest.py", 3),
        added("src/unittest/__init__.py", 3),
        added("evil-1.dist-info/entry_points.txt", 3),
        modified("src/json.py", 1, 1),
        modified("data/rates.json", 1, 1),
    ]);
    let all =
        ["vite.config.js", "pytest.py", "src/unittest/__init__.py", "evil-1.dist-info/entry_points.txt"];
    assert_eq!(non_sources(&change, &rules(&["src/", "data/"])), all);
    assert_eq!(non_sources(&change, &rules(&[])), [&all[..], &["data/rates.json"]].concat());
}

#[test]
fn an_anchor_has_no_configuration_of_tests() {
    for path in
        ["tests/conftest.py", "pytest.ini", "tests/.babelrc", "a/vitest.config.ts", "package.json", "x.pth"]
    {
        assert!(is_test_configuration(path), "{path}");
    }
    for path in ["tests/test_a.py", "tests/data/rates.toml", "tests/a.test.js", "tests/high.c"] {
        assert!(!is_test_configuration(path), "{path}");
    }
}

#[test]
fn changed_lines_are_those_of_the_new_file() {
    let patch = b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,4 @@\n x\n-old\n+++ new\n+new\n y\n@@ -9 +10 @@ f\n-z\n+z\n\
                  \\ No newline at end of file\ndiff --git a/b.py b/b.py\n--- a/b.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
    let lines = changed_lines(patch);
    assert_eq!(lines, BTreeMap::from([("a.py".to_owned(), BTreeSet::from([2, 3, 10]))]));
}

#[test]
fn a_renamed_file_is_recognised() {
    let mut old = modified("src/old.py", 0, 7);
    old.kind = ChangeKind::Deleted;
    let change = diff([old, added("src/new.py", 7), added("src/other.py", 8)]);
    assert!(is_renamed(&change, "src/new.py") && !is_renamed(&change, "src/other.py"));
}
