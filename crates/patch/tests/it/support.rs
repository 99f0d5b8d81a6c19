//! Helpers that build patches and files from short texts.

use std::collections::BTreeMap;

use pintle_patch::{ApplyError, ApplyOptions, DiagnosticKind, Plan, parse, plan};

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Creates files from pairs of path and content.
pub(crate) fn files<const N: usize>(files: [(&str, &str); N]) -> Files {
    files.map(|(path, content)| (path.to_owned(), content.as_bytes().to_vec())).into()
}

pub(crate) fn ours() -> ApplyOptions {
    ApplyOptions::default()
}

pub(crate) fn reference() -> ApplyOptions {
    ApplyOptions::reference()
}

/// Plans the operations in `body` for `files`.
pub(crate) fn planned(files: &Files, body: &str, options: &ApplyOptions) -> Result<Plan, ApplyError> {
    let text = format!("*** Begin Patch\n{body}\n*** End Patch\n");
    let patch = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    plan(&patch, files, options)
}

/// Returns the files after the operations in `body`, and checks the inverse of the plan.
pub(crate) fn applied(before: &Files, body: &str, options: &ApplyOptions) -> Result<Files, ApplyError> {
    let plan = planned(before, body, options)?;
    let mut after = before.clone();
    plan.apply_to(&mut after);
    let mut restored = after.clone();
    plan.inverse().apply_to(&mut restored);
    assert_eq!(restored, *before, "the inverse restores every byte");
    assert_eq!(plan.inverse().inverse().changes, plan.changes);
    Ok(after)
}

/// Returns the content of the file `f` after `hunks`.
pub(crate) fn edited(content: &str, hunks: &str, options: &ApplyOptions) -> Result<String, ApplyError> {
    let after = applied(&files([("f", content)]), &format!("*** Update File: f\n{hunks}"), options)?;
    Ok(String::from_utf8(after["f"].clone()).expect("the file stays UTF-8"))
}

/// Returns the diagnostics of planning `hunks` for the file `f`, except those of syntax.
pub(crate) fn diagnostics_of(content: &str, hunks: &str) -> Vec<DiagnosticKind> {
    let plan = planned(&files([("f", content)]), &format!("*** Update File: f\n{hunks}"), &ours());
    let diagnostics = plan.expect("the patch applies").diagnostics;
    let matching = diagnostics.into_iter().filter(|diagnostic| diagnostic.path.is_some());
    matching.map(|diagnostic| diagnostic.kind).collect()
}
