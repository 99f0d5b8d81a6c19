//! Changes of files.

pub use pintle_agent::ChangeKind;
use serde::{Deserialize, Serialize};

use crate::command_run::BlobReference;

/// A changed file. A renamed file counts as a deleted file and a new file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Path from the root of the repository, with `/`.
    pub path: String,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Number of added lines. 0 for binary files.
    pub added: u64,
    /// Number of removed lines. At least 1 for binary files that existed before.
    pub removed: u64,
}

/// Changes of a candidate, in the files that git does not ignore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// The patch, which git can apply to the commit with the anchor.
    pub patch: BlobReference,
    /// Changed files, in the order of their paths.
    pub files: Vec<ChangedFile>,
    /// New files below `target/`, and submodules with files, which the patch omits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
}

impl Diff {
    /// Returns a diff without changes, whose patch is not stored.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            patch: BlobReference { hash: String::new(), bytes: 0 },
            files: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// Returns a finding about the files that the patch omits, or `None` if it is complete.
    #[must_use]
    pub fn describe_dropped(&self) -> Option<String> {
        let names = (!self.dropped.is_empty()).then(|| crate::names::list_names(&self.dropped))?;
        Some(format!("not part of the change: {names} (build output and submodules are left out)"))
    }

    /// Returns the number of added and removed lines.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.files.iter().map(|file| file.added.saturating_add(file.removed)).fold(0, u64::saturating_add)
    }

    /// Returns whether a new file is probably a renamed one: as many lines were removed with another file.
    #[must_use]
    pub fn is_renamed(&self, path: &str) -> bool {
        let added = self.files.iter().find(|file| file.path == path && file.kind == ChangeKind::Added);
        let mut deleted = self.files.iter().filter(|file| file.kind == ChangeKind::Deleted);
        added.is_some_and(|added| deleted.any(|file| file.removed == added.added))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{added, diff, modified};

    #[test]
    fn a_renamed_file_is_recognized() {
        let mut old = modified("src/old.py", 0, 7);
        old.kind = ChangeKind::Deleted;
        let change = diff([old, added("src/new.py", 7), added("src/other.py", 8)]);
        assert!(change.is_renamed("src/new.py") && !change.is_renamed("src/other.py"));
    }

    #[test]
    fn changed_files_have_their_names_in_json() {
        let cases = [
            (ChangeKind::Added, "added"),
            (ChangeKind::Modified, "modified"),
            (ChangeKind::Deleted, "deleted"),
        ];
        for (kind, name) in cases {
            let file = ChangedFile { path: "a.rs".to_owned(), kind, added: 1, removed: 2 };
            let recorded = json!({"path": "a.rs", "kind": name, "added": 1, "removed": 2});
            assert_eq!(serde_json::to_value(&file).unwrap(), recorded);
            assert_eq!(serde_json::from_value::<ChangedFile>(recorded).unwrap(), file);
        }
    }
}
