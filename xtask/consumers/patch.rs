//! Plans a patch for a file in memory.

use std::collections::BTreeMap;

fn main() {
    let text = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n";
    let patch = pintle_patch::parse(text).expect("a well-formed patch");
    let files = BTreeMap::from([("a.txt".to_owned(), b"one\n".to_vec())]);
    let plan = pintle_patch::plan(&patch, &files, &pintle_patch::ApplyOptions::default()).expect("it applies");
    assert_eq!(plan.summary().trim_end(), "M a.txt");
}
