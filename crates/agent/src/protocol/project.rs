//! Project documents and skills, as events and contexts list them.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Project documents and skills in a prompt, without their texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct LoadedProject {
    /// Documents, the root's first.
    #[serde(default)]
    pub documents: Vec<LoadedDocument>,
    /// Skills that the prompt lists, sorted by name.
    #[serde(default)]
    pub skills: Vec<Skill>,
    /// Files that exist and could not be used.
    #[serde(default)]
    pub skipped: Vec<SkippedFile>,
}

/// A project document in a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct LoadedDocument {
    /// Absolute path.
    pub path: String,
    /// Size of its text in the prompt, in bytes.
    pub bytes: usize,
    /// Whether the file is longer.
    pub truncated: bool,
}

/// One skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Skill {
    /// Name: at most 64 letters, digits, `-` and `_`.
    pub name: String,
    /// Description: one line of at most 1,024 characters.
    pub description: String,
    /// Absolute path of its `SKILL.md`. Bytes that are not UTF-8 are replaced.
    pub path: String,
}

/// A document, a skill or a directory of skills that exists and could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SkippedFile {
    /// Absolute path. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Reason, for a person to read.
    pub reason: String,
}

impl LoadedProject {
    /// Returns whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty() && self.skills.is_empty() && self.skipped.is_empty()
    }
}

impl Skill {
    /// Creates a skill whose `SKILL.md` is at `path`.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>, path: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), path: path.into() }
    }
}

impl SkippedFile {
    pub(crate) fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_string_lossy().into_owned(), reason: reason.into() }
    }
}
