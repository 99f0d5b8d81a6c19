//! Patches of several files in a message.

use super::*;
use crate::judging::TaskScope;

fn rules() -> PathRules {
    PathRules::new(&TaskScope::default()).unwrap()
}

fn file(path: &str, lines: usize, line: &str) -> String {
    let head = format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -0,0 +1,{lines} @@\n");
    head + &format!("+{line}\n").repeat(lines)
}

#[test]
fn sources_come_first_and_a_small_patch_is_whole() {
    let (notes, test, source) =
        (file("README.md", 1, "a"), file("tests/test_a.py", 1, "b"), file("src/a.py", 1, "c"));
    let shown = shorten_patch(&[&*notes, &test, &source].concat(), &rules(), PatchLimits::CHANGE);
    assert_eq!(shown, [source, notes, test].concat());
    assert_eq!(shorten_patch("", &rules(), PatchLimits::CHANGE), "");
}

#[test]
fn a_large_file_does_not_hide_a_small_one() {
    let cheat = file("src/z.c", 1, "__attribute__((constructor))");
    for large in [file("src/a.c", 100_000, "x"), file("src/a.c", 200, &"x".repeat(5_000))] {
        for patch in [[&*large, &cheat].concat(), [&*cheat, &large].concat()] {
            let shown = shorten_patch(&patch, &rules(), PatchLimits::CHANGE);
            assert!(shown.contains("+__attribute__((constructor))\n"), "{}", shown.len());
            assert!(shown.contains(" more lines of this file"), "{}", shown.len());
            assert!(shown.len() < PatchLimits::CHANGE.bytes + 1_000 && shown.lines().count() < 3_100);
        }
    }
}

#[test]
fn files_without_space_are_named() {
    let files: String = (0..3).map(|number| file(&format!("src/{number}.py"), 1, "x")).collect();
    let shown = shorten_patch(&files, &rules(), PatchLimits { bytes: 30, lines: 30 });
    assert_eq!(shown, "[not shown: src/0.py, src/1.py, src/2.py]\n");
}

#[test]
fn parts_that_are_not_used_go_to_larger_files() {
    assert_eq!(divide(100, vec![10, 90, 50]), [10, 45, 45]);
    assert_eq!(divide(100, vec![10, 20]), [10, 20]);
    assert_eq!(divide(100, vec![]), [0_usize; 0]);
}
