//! Recorded facts about files that judge.

use serde::{Deserialize, Serialize};

/// Maximum number of listed files that judge because of their names.
const MAX_BY_NAME: usize = 200;

/// Files of the base that judge each change of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgingList {
    /// Files that a check, the anchor or the prepare command runs, reads as settings, or includes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_command: Vec<String>,
    /// Tests, test settings, fixtures, snapshots, continuous integration and lock files, by their names. At most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_name: Vec<String>,
    /// Number of further files by their names.
    #[serde(default)]
    pub omitted: usize,
}

/// Facts about the files of a change that judge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgingFacts {
    /// Files that a command of the task runs, reads as settings, or includes. They must not change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_command: Vec<String>,
    /// Changed files that a command names and that the scope contains. They may change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_scope: Vec<String>,
    /// New tests and lock files. They are part of the change, but not of the clones in which it is judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<String>,
    /// Changed manifests, lock files and settings in which no part that judges has changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unaffected: Vec<String>,
    /// Changed tests, fixtures, snapshots and manifests that judge. The change is judged without these changes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restorable: Vec<String>,
    /// Changed parts that judge: keys of manifests, and tests beside the code that they test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<JudgingPart>,
}

/// Changed parts of a file that judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgingPart {
    /// Path of the file.
    pub path: String,
    /// Names of the parts.
    pub parts: Vec<String>,
}

impl JudgingList {
    /// Creates a list. Both lists of paths are sorted.
    pub(crate) fn new(by_command: Vec<String>, mut by_name: Vec<String>) -> Self {
        let omitted = by_name.len().saturating_sub(MAX_BY_NAME);
        by_name.truncate(MAX_BY_NAME);
        Self { by_command, by_name, omitted }
    }

    /// Returns whether no file judges.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_command.is_empty() && self.by_name.is_empty()
    }
}

impl JudgingFacts {
    /// Returns whether there are no facts.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a change of this file is allowed although the file judges or may judge.
    pub(crate) fn is_allowed(&self, path: &str) -> bool {
        [&self.in_scope, &self.apart, &self.unaffected].into_iter().flatten().any(|allowed| allowed == path)
    }

    /// Returns whether a new file is left out of the judgement.
    pub(crate) fn is_apart(&self, path: &str) -> bool {
        self.apart.iter().any(|apart| apart == path)
    }

    /// Returns whether a judging part of this file has changed.
    pub(crate) fn has_part(&self, path: &str) -> bool {
        self.parts.iter().any(|part| part.path == path)
    }

    /// Returns whether a command names or includes this file.
    pub(crate) fn is_named(&self, path: &str) -> bool {
        self.by_command.iter().any(|named| named == path)
    }

    /// Returns the facts of a judgement with the changes of restorable files.
    pub(crate) fn with_allowed(mut self) -> Self {
        let restorable = self.restorable.clone();
        self.parts.retain(|part| !restorable.contains(&part.path));
        self.unaffected.extend(restorable);
        self
    }

    /// Returns the findings about changed parts.
    pub(crate) fn describe_parts(&self) -> impl Iterator<Item = String> {
        self.parts.iter().map(|JudgingPart { path, parts }| {
            let path = crate::names::escape_name(path);
            format!("`{path}` changed in {}, which judges the change", crate::names::list_names(parts))
        })
    }
}
