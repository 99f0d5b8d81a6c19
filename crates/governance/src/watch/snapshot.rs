//! State of watched files, and its record between sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pintle_env::{ExecutionEnvironment, FileContent, FileIdentity};
use serde::{Deserialize, Serialize};

use super::locations::{GitEntry, Locations};

/// State of all watched files.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) locations: Locations,
    pub(super) files: BTreeMap<PathBuf, FileState>,
}

/// State of a file.
#[derive(Clone, Debug)]
pub(super) struct FileState {
    pub(super) content: Content,
    /// Permission bits, if they are compared.
    mode: Option<u32>,
}

/// Compared content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    /// Not read, since it is too large.
    Unread {
        size: Option<u64>,
        identity: Option<FileIdentity>,
    },
    /// Number of files that are not read.
    Counted(u64),
    Link,
    Other,
    /// As an earlier session recorded it.
    Recorded(String),
}

/// Record of watched files for the next session, with hashes instead of contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedFiles {
    /// Paths named `.git`, of repositories in the working directory and below.
    repositories: BTreeSet<PathBuf>,
    /// Hashed state of each file at the previous check; `None` if the session reached its last check.
    files: Option<BTreeMap<PathBuf, String>>,
}

impl WatchedFiles {
    /// Returns the record without the state of the files: no command changes them after the last check of a session.
    #[must_use]
    pub fn without_states(self) -> Self {
        Self { files: None, ..self }
    }

    /// Returns the record with the repositories of `found` added.
    #[must_use]
    pub fn with_repositories(mut self, found: &Self) -> Self {
        self.repositories.extend(found.repositories.iter().cloned());
        self
    }

    /// Returns whether the recording session reached its last check.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.files.is_none()
    }

    pub(super) fn locations(&self) -> Locations {
        let entries = self.repositories.iter().map(|path| (path.clone(), GitEntry::Missing));
        Locations { entries: entries.collect(), ..Locations::default() }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let state = |hash: &String| FileState::from(Content::Recorded(hash.clone()));
        let files = self.files.iter().flatten().map(|(path, hash)| (path.clone(), state(hash)));
        Snapshot { locations: self.locations(), files: files.collect() }
    }
}

impl Snapshot {
    pub(super) fn recorded(&self) -> WatchedFiles {
        let entries = self.locations.entries.iter().filter(|(_, entry)| **entry != GitEntry::Missing);
        WatchedFiles {
            repositories: entries.map(|(path, _)| path.clone()).collect(),
            files: Some(self.files.iter().map(|(path, state)| (path.clone(), state.hash())).collect()),
        }
    }
}

impl FileState {
    /// Returns whether it is a file without content, which runs nothing. Sandboxes of other sessions create such files as mount
    /// points for protected paths that do not exist, and remove them.
    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.content, Content::Bytes(bytes) if bytes.is_empty())
    }

    /// Returns the state of a file with this content; `None` for a missing file. Modes are read if `with_mode` is set.
    pub(super) async fn read(
        env: &dyn ExecutionEnvironment,
        path: &Path,
        content: FileContent,
        with_mode: bool,
    ) -> Option<Self> {
        let is_read = matches!(content, FileContent::Bytes(_));
        let has_metadata =
            (is_read && with_mode) || matches!(content, FileContent::TooLarge | FileContent::Skipped);
        let metadata = if has_metadata { env.metadata(path).await.ok() } else { None };
        let content = match content {
            FileContent::Bytes(bytes) => Content::Bytes(bytes),
            FileContent::TooLarge | FileContent::Skipped => Content::Unread {
                size: metadata.as_ref().map(|metadata| metadata.len),
                identity: metadata.as_ref().and_then(|metadata| metadata.identity),
            },
            FileContent::Missing => return None,
            FileContent::NotAFile | FileContent::Unreadable => Content::Other,
        };
        let mode = metadata.and_then(|metadata| metadata.mode).filter(|_| with_mode);
        Some(Self { content, mode })
    }

    /// Returns the text of a file that may be missing; `None` if it is not known.
    pub(super) fn text(state: Option<&Self>) -> Option<String> {
        match state.map(|state| &state.content) {
            None => Some(String::new()),
            Some(Content::Bytes(bytes)) => String::from_utf8(bytes.clone()).ok(),
            Some(
                Content::Unread { .. }
                | Content::Counted(_)
                | Content::Link
                | Content::Other
                | Content::Recorded(_),
            ) => None,
        }
    }

    /// Returns the modes of two states of a file, if both are known and differ.
    pub(super) fn differing_modes(&self, other: &Self) -> Option<(u32, u32)> {
        Some((self.mode?, other.mode?)).filter(|(one, other)| one != other)
    }

    fn hash(&self) -> String {
        let content = match &self.content {
            Content::Recorded(hash) => return hash.clone(),
            Content::Bytes(bytes) => blake3::hash(bytes).to_hex().to_string(),
            Content::Unread { size, identity } => {
                let identity = identity.map(|identity| format!("{} {}", identity.inode, identity.changed_ns));
                format!("unread {} {}", size.unwrap_or_default(), identity.unwrap_or_default())
            }
            Content::Counted(number) => format!("{number} files"),
            Content::Link => "link".to_owned(),
            Content::Other => "other".to_owned(),
        };
        match self.mode {
            Some(mode) => format!("{content} {mode:o}"),
            None => content,
        }
    }
}

impl From<Content> for FileState {
    fn from(content: Content) -> Self {
        Self { content, mode: None }
    }
}

impl PartialEq for FileState {
    fn eq(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (Content::Recorded(_), _) | (_, Content::Recorded(_)) => self.hash() == other.hash(),
            (one, another) => one == another && self.mode == other.mode,
        }
    }
}
