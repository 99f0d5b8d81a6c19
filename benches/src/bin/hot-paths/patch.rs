//! The patch engine.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pintle_patch::{ApplyOptions, parse, plan};

const LINES: usize = 10_000;
const HUNKS: usize = 100;

/// Plans hunks spread over a file.
pub(crate) fn plan_hunks() {
    let lines: Vec<String> = (0..LINES).map(|at| format!("    let value_{at} = compute({at});")).collect();
    let mut patch = String::from("*** Begin Patch\n*** Update File: a.rs\n");
    for at in (0..HUNKS).map(|hunk| hunk * (LINES / HUNKS) + 50) {
        let line = |at: usize| lines.get(at).map_or("", String::as_str);
        writeln!(patch, "@@\n {}\n-{}\n+    changed_{at}();\n {}", line(at), line(at + 1), line(at + 2))
            .expect("a string takes it");
    }
    patch.push_str("*** End Patch\n");
    let files = BTreeMap::from([("a.rs".to_owned(), (lines.join("\n") + "\n").into_bytes())]);
    let patch = parse(&patch).expect("the patch is well formed");
    let plan = plan(&patch, &files, &ApplyOptions::default()).expect("the patch applies");
    assert_eq!(plan.changes.len(), 1);
}
