//! The changes of a fix, and the calls that make them.

use std::path::Path;

use pintle_testkit::Call;

use super::program::Tree;
use super::rewrite::Rewrite;
use crate::test_profile::TestProfile;

/// Change of one file by a fix. Texts are as a model sees them: without a byte-order mark, with `\n` as line end, and
/// with replacement characters for bytes that are not UTF-8.
pub(super) enum Change {
    Add { path: String, content: String },
    Delete { path: String },
    Update { path: String, before: String, after: String },
}

/// Returns the changes from one tree to the other.
pub(super) fn changes(before: &Tree, after: &Tree) -> Vec<Change> {
    let mut changes = Vec::new();
    for (path, file) in &before.0 {
        let (path, before) = (path.clone(), seen(&file.bytes));
        match after.0.get(&path) {
            None => changes.push(Change::Delete { path }),
            Some(fixed) if fixed.bytes == file.bytes => {}
            Some(fixed) => changes.push(Change::Update { path, before, after: seen(&fixed.bytes) }),
        }
    }
    for (path, file) in after.0.iter().filter(|(path, _)| !before.0.contains_key(*path)) {
        changes.push(Change::Add { path: path.clone(), content: seen(&file.bytes) });
    }
    changes
}

impl Change {
    /// Returns the calls of this profile's tools that make the changes, in order.
    pub(super) fn calls(
        changes: &[Self],
        profile_under_test: TestProfile,
        directory: &Path,
    ) -> Result<Vec<Call>, String> {
        if profile_under_test.patches() {
            return Ok(vec![profile_under_test.patch(&patch(changes)?)]);
        }
        let mut calls = Vec::new();
        for change in changes {
            // These tools need absolute paths.
            let absolute = |path: &str| directory.join(path).to_str().unwrap().to_owned();
            match change {
                Self::Add { path, content } => calls.push(profile_under_test.write(&absolute(path), content)),
                Self::Delete { path } => calls.push(profile_under_test.run(&format!("rm '{path}'"))),
                // An empty file has no text to replace.
                Self::Update { path, before, after } if before.is_empty() => {
                    calls.push(profile_under_test.write(&absolute(path), after));
                }
                Self::Update { path, before, after } => {
                    let replacements = Rewrite::of_pieces(before, after).replacements();
                    for (old, new) in replacements.map_err(|problem| format!("{path}: {problem}"))? {
                        calls.push(profile_under_test.edit(&absolute(path), &old, &new));
                    }
                }
            }
        }
        Ok(calls)
    }
}

fn patch(changes: &[Change]) -> Result<String, String> {
    let mut patch = String::from("*** Begin Patch\n");
    for change in changes {
        match change {
            Change::Add { path, content } => {
                patch.push_str(&format!("*** Add File: {path}\n"));
                patch.extend(content.lines().map(|line| format!("+{line}\n")));
            }
            Change::Delete { path } => patch.push_str(&format!("*** Delete File: {path}\n")),
            Change::Update { path, before, after } => {
                patch.push_str(&format!("*** Update File: {path}\n"));
                let hunks = Rewrite::of_lines(before, after).hunks();
                patch.push_str(&hunks.map_err(|problem| format!("{path}: {problem}"))?);
            }
        }
    }
    Ok(patch + "*** End Patch\n")
}

fn seen(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    text.strip_prefix('\u{FEFF}').map(str::to_owned).unwrap_or(text)
}
