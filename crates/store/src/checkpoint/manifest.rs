//! The list of files of a checkpoint, and its format as a blob.
//!
//! The blob is JSON lines: a header, one object per entry, and one per ignored path, each sorted by path. Bytes of a
//! path that are not UTF-8, and the percent sign, are written as `%XX`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::ops::Bound;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use pintle_env::FileIdentity;
use serde::{Deserialize, Serialize};

use super::error::CheckpointError;
use crate::blob::Blobs;
use crate::hash::Hash;

/// Version of the format.
const VERSION: u64 = 1;

/// Name that is never in a manifest, so that a restore cannot change git's own data.
const REPOSITORY: &str = ".git";

/// Files, directories and links below a directory at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    entries: BTreeMap<PathBuf, ManifestEntry>,
    ignored: BTreeSet<PathBuf>,
    unreadable: BTreeSet<PathBuf>,
    unlisted: Option<ListingLimit>,
}

/// Entry of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManifestEntry {
    /// Type and content.
    pub state: EntryState,
    /// Permission bits (`0o7777`) of a file or directory, if the environment has them.
    pub mode: Option<u32>,
    /// Identity of a file, by which the next checkpoint recognizes it. `None` if the environment has no identities, or
    /// if the file was so new that it could have the same identity after a later change.
    pub identity: Option<FileIdentity>,
}

/// Type and content of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryState {
    /// A regular file.
    File {
        /// Hash of its content, which is a blob.
        hash: Hash,
        /// Size in bytes.
        size: u64,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// Its target as it is stored.
        target: PathBuf,
    },
    /// A device, pipe or socket, which checkpoints leave alone.
    Other,
    /// A file or link whose content is not part of the checkpoint.
    Unknown(ContentGap),
}

/// Reason why the content of a file or link is not part of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentGap {
    /// It is larger than [`CheckpointLimits::max_file_size`](super::CheckpointLimits::max_file_size).
    TooLarge,
    /// It could not be read.
    Unreadable,
    /// The time limit was reached before the file was read.
    Time,
}

/// Limit that ended the listing of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ListingLimit {
    /// [`CheckpointLimits::max_files`](super::CheckpointLimits::max_files).
    Files,
    /// [`CheckpointLimits::time`](super::CheckpointLimits::time).
    Time,
}

/// Entry of a manifest for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence<'a> {
    /// The path and its content.
    Known(&'a ManifestEntry),
    /// The path did not exist.
    Absent,
    /// The path existed and was ignored or excluded, or is below such a path; contains the ignored or excluded path.
    Ignored(&'a Path),
    /// The path existed, but its content is unknown.
    Opaque(&'a ManifestEntry),
    /// Unknown: the path may have existed.
    Unlisted,
}

impl ManifestEntry {
    /// Creates an entry without an identity.
    #[must_use]
    pub fn new(state: EntryState, mode: Option<u32>) -> Self {
        Self { state, mode, identity: None }
    }

    /// Returns true for a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.state == EntryState::Directory
    }

    /// Returns whether both have the same type, content and mode. Modes of links, and modes that one of them does not
    /// have, are not compared.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.state == other.state && !self.has_other_mode(other)
    }

    /// Returns whether both are files or directories and their modes differ.
    pub(super) fn has_other_mode(&self, other: &Self) -> bool {
        match (self.mode_if_any(), other.mode_if_any()) {
            (Some(left), Some(right)) => left != right,
            (None, _) | (_, None) => false,
        }
    }

    /// Returns the mode of a file or directory.
    pub(super) fn mode_if_any(&self) -> Option<u32> {
        match self.state {
            EntryState::File { .. } | EntryState::Directory => self.mode,
            EntryState::Symlink { .. } | EntryState::Other | EntryState::Unknown(_) => None,
        }
    }
}

impl Manifest {
    pub(super) fn new(
        entries: BTreeMap<PathBuf, ManifestEntry>,
        ignored: BTreeSet<PathBuf>,
        unreadable: BTreeSet<PathBuf>,
        unlisted: Option<ListingLimit>,
    ) -> Self {
        Self { entries, ignored, unreadable, unlisted }
    }

    /// Loads the manifest of a checkpoint.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Removed`], [`CheckpointError::InvalidManifest`], [`CheckpointError::Version`] and
    /// [`CheckpointError::Store`].
    pub async fn load(blobs: &dyn Blobs, id: &Hash) -> Result<Self, CheckpointError> {
        Self::decode(&blobs.get(id).await?.ok_or(CheckpointError::Removed(*id))?)
    }

    /// Returns this list with these paths relative to the root, and all paths below them, as ignored. They are neither
    /// compared nor restored, whether they exist or not. Paths that a manifest cannot contain are skipped.
    #[must_use]
    pub fn with_ignored(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        for path in paths.into_iter().filter(|path| is_listable(path)) {
            // The paths below an entry directly follow it.
            let from: (Bound<&Path>, Bound<&Path>) = (Bound::Included(&path), Bound::Unbounded);
            let below = self.entries.range::<Path, _>(from).map(|(entry, _)| entry);
            let below: Vec<PathBuf> = below.take_while(|entry| entry.starts_with(&path)).cloned().collect();
            for entry in below {
                self.entries.remove(&entry);
            }
            self.ignored.insert(path);
        }
        self
    }

    /// Returns the entries by their paths relative to the root, sorted; a directory precedes its own entries.
    #[must_use]
    pub fn entries(&self) -> &BTreeMap<PathBuf, ManifestEntry> {
        &self.entries
    }

    /// Returns whether files or the contents of files are missing: see [`gaps`](Self::gaps),
    /// [`unreadable_directories`](Self::unreadable_directories) and [`unlisted`](Self::unlisted).
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.unlisted.is_some() || !self.unreadable.is_empty() || self.gaps().next().is_some()
    }

    /// Returns the files and links whose content is missing.
    pub fn gaps(&self) -> impl Iterator<Item = (&Path, ContentGap)> {
        self.entries.iter().filter_map(|(path, entry)| match entry.state {
            EntryState::Unknown(gap) => Some((path.as_path(), gap)),
            EntryState::File { .. }
            | EntryState::Directory
            | EntryState::Symlink { .. }
            | EntryState::Other => None,
        })
    }

    /// Returns the ignored files and directories, sorted, and the [excluded](super::CheckpointLimits::excluded) paths,
    /// which may not exist. Files below an ignored directory are not listed. Their contents are not part of the
    /// checkpoint.
    #[must_use]
    pub fn ignored(&self) -> &BTreeSet<PathBuf> {
        &self.ignored
    }

    /// Returns the directories whose entries are unknown. The empty path is the root.
    pub fn unreadable_directories(&self) -> impl Iterator<Item = &Path> {
        self.unreadable.iter().map(PathBuf::as_path)
    }

    /// Returns the limit that ended the listing. Paths that are not listed may then exist.
    #[must_use]
    pub fn unlisted(&self) -> Option<ListingLimit> {
        self.unlisted
    }

    /// Returns the hashes of the contents that a restore of the checkpoint needs.
    pub fn blobs(&self) -> impl Iterator<Item = Hash> {
        self.entries.values().filter_map(|entry| match entry.state {
            EntryState::File { hash, .. } => Some(hash),
            EntryState::Directory
            | EntryState::Symlink { .. }
            | EntryState::Other
            | EntryState::Unknown(_) => None,
        })
    }

    /// Returns the entry of a path relative to the root, as far as the manifest knows it.
    #[must_use]
    pub fn presence(&self, path: &Path) -> Presence<'_> {
        match self.entries.get(path) {
            Some(entry) => match entry.state {
                EntryState::File { .. } | EntryState::Directory | EntryState::Symlink { .. } => {
                    Presence::Known(entry)
                }
                EntryState::Other | EntryState::Unknown(_) => Presence::Opaque(entry),
            },
            None => self.presence_of_unlisted(path),
        }
    }

    fn presence_of_unlisted(&self, path: &Path) -> Presence<'_> {
        if let Some(ignored) = path.ancestors().find_map(|above| self.ignored.get(above)) {
            return Presence::Ignored(ignored);
        }
        let is_unknown =
            self.unlisted.is_some() || path.ancestors().any(|above| self.unreadable.contains(above));
        if is_unknown { Presence::Unlisted } else { Presence::Absent }
    }

    /// Encodes the manifest as a blob.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let header = ManifestHeader {
            pintle_checkpoint: VERSION,
            unlisted: self.unlisted,
            unreadable: self.unreadable.iter().map(|path| escape(path)).collect(),
        };
        let mut text = serde_json::to_string(&header).unwrap_or_default();
        for (path, entry) in &self.entries {
            text.push('\n');
            text.push_str(&serde_json::to_string(&ManifestLine::new(path, entry)).unwrap_or_default());
        }
        for path in &self.ignored {
            text.push('\n');
            text.push_str(
                &serde_json::to_string(&ManifestLine::empty(path, ManifestLineKind::Ignored))
                    .unwrap_or_default(),
            );
        }
        text.push('\n');
        text.into_bytes()
    }

    /// Decodes the manifest from a blob.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::InvalidManifest`], also for a path that a manifest cannot contain, such as one outside the
    /// root; [`CheckpointError::Version`].
    pub fn decode(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let text = std::str::from_utf8(bytes).map_err(|_| invalid(1, "not UTF-8"))?;
        let mut lines = text.lines().enumerate();
        let (_, header) = lines.next().ok_or_else(|| invalid(1, "no header"))?;
        let header: ManifestHeader = serde_json::from_str(header).map_err(|_| invalid(1, "not a header"))?;
        if header.pintle_checkpoint != VERSION {
            return Err(CheckpointError::Version { found: header.pintle_checkpoint, expected: VERSION });
        }
        let unreadable = header.unreadable.iter().map(|path| unescape(path));
        let unreadable = unreadable.collect::<Option<_>>().ok_or_else(|| invalid(1, "not a path"))?;
        let (mut entries, mut ignored) = (BTreeMap::new(), BTreeSet::new());
        for (index, line) in lines {
            let failed = |problem| invalid(index + 1, problem);
            let line: ManifestLine = serde_json::from_str(line).map_err(|_| failed("not an entry"))?;
            let path = unescape(&line.path).ok_or_else(|| failed("not a path"))?;
            if line.kind == ManifestLineKind::Ignored && is_listable(&path) {
                ignored.insert(path);
                continue;
            }
            check_path(&path, &entries).map_err(failed)?;
            let entry = line.entry().ok_or_else(|| failed("not an entry"))?;
            if entries.insert(path, entry).is_some() {
                return Err(failed("a second entry of a path"));
            }
        }
        Ok(Self { entries, ignored, unreadable, unlisted: header.unlisted })
    }
}

/// Checks that a restore of the path stays below the root and does not touch git's data.
fn check_path(path: &Path, entries: &BTreeMap<PathBuf, ManifestEntry>) -> Result<(), &'static str> {
    if !is_listable(path) {
        return Err("a path that no checkpoint has");
    }
    match path.parent() {
        None => Err("an empty path"),
        Some(parent) if parent.as_os_str().is_empty() => Ok(()),
        Some(parent) if entries.get(parent).is_some_and(ManifestEntry::is_directory) => Ok(()),
        Some(_) => Err("an entry outside of a directory"),
    }
}

/// Returns whether a manifest can contain a path: it must be below the root and not be part of git's data.
fn is_listable(path: &Path) -> bool {
    let mut components = path.components().peekable();
    components.peek().is_some()
        && components.all(|component| matches!(component, Component::Normal(name) if name != REPOSITORY))
}

fn invalid(line: usize, problem: &'static str) -> CheckpointError {
    CheckpointError::InvalidManifest { line, problem }
}

#[derive(Serialize, Deserialize)]
pub(super) struct ManifestHeader {
    pintle_checkpoint: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unlisted: Option<ListingLimit>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ManifestLine {
    path: String,
    kind: ManifestLineKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<Hash>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gap: Option<ContentGap>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<FileIdentity>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ManifestLineKind {
    File,
    Directory,
    Symlink,
    Other,
    Unknown,
    Ignored,
}

impl ManifestLine {
    fn empty(path: &Path, kind: ManifestLineKind) -> Self {
        let path = escape(path);
        Self { path, kind, mode: None, hash: None, size: None, target: None, gap: None, identity: None }
    }

    fn new(path: &Path, entry: &ManifestEntry) -> Self {
        let mut line =
            Self { mode: entry.mode, identity: entry.identity, ..Self::empty(path, ManifestLineKind::Other) };
        match &entry.state {
            EntryState::File { hash, size } => {
                (line.kind, line.hash, line.size) = (ManifestLineKind::File, Some(*hash), Some(*size));
            }
            EntryState::Directory => line.kind = ManifestLineKind::Directory,
            EntryState::Symlink { target } => {
                (line.kind, line.target) = (ManifestLineKind::Symlink, Some(escape(target)))
            }
            EntryState::Other => {}
            EntryState::Unknown(gap) => (line.kind, line.gap) = (ManifestLineKind::Unknown, Some(*gap)),
        }
        line
    }

    fn entry(self) -> Option<ManifestEntry> {
        let state = match self.kind {
            ManifestLineKind::File => EntryState::File { hash: self.hash?, size: self.size? },
            ManifestLineKind::Directory => EntryState::Directory,
            ManifestLineKind::Symlink => EntryState::Symlink { target: unescape(&self.target?)? },
            ManifestLineKind::Other => EntryState::Other,
            ManifestLineKind::Unknown => EntryState::Unknown(self.gap?),
            ManifestLineKind::Ignored => return None,
        };
        Some(ManifestEntry { state, mode: self.mode, identity: self.identity })
    }
}

/// Writes a path as text that [`unescape`] reads.
fn escape(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn unescape(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn any_path_comes_back() {
        for bytes in [b"a/b".as_slice(), b"100%", b"%41", b"\xff%\xfe\xc3\xa4", "ä\n\"\\".as_bytes(), b""] {
            let path = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(unescape(&escape(path)).as_deref(), Some(path), "{path:?}");
        }
        assert_eq!(escape(Path::new(OsStr::from_bytes(b"a%\xff"))), "a%25%FF");
        for text in ["%", "%4", "%zz", "a%+1"] {
            assert!(unescape(text).is_none() || text == "a%+1", "{text}");
        }
    }

    #[test]
    fn manifest_comes_back_with_everything_it_has() {
        let identity = Some(FileIdentity { inode: u64::MAX, changed_ns: -1 });
        let hash = Hash::of(b"content");
        let entries = BTreeMap::from([
            (PathBuf::from("a"), ManifestEntry::new(EntryState::Directory, Some(0o755))),
            (
                "a/b".into(),
                ManifestEntry {
                    identity,
                    ..ManifestEntry::new(EntryState::File { hash, size: 7 }, Some(0o644))
                },
            ),
            ("a/c".into(), ManifestEntry::new(EntryState::Symlink { target: "../x%".into() }, None)),
            ("d".into(), ManifestEntry::new(EntryState::Other, None)),
            ("e".into(), ManifestEntry::new(EntryState::Unknown(ContentGap::TooLarge), Some(0o600))),
        ]);
        let manifest = Manifest::new(
            entries,
            BTreeSet::from(["a/i".into()]),
            BTreeSet::from(["a".into()]),
            Some(ListingLimit::Time),
        );
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes).unwrap(), manifest);
        assert_eq!(manifest.blobs().collect::<Vec<_>>(), [hash]);
        assert!(manifest.is_partial());
        let first = String::from_utf8(bytes).unwrap();
        assert_eq!(
            first.lines().next().unwrap(),
            r#"{"pintle_checkpoint":1,"unlisted":"time","unreadable":["a"]}"#
        );
        assert_eq!(Manifest::decode(&Manifest::default().encode()).unwrap(), Manifest::default());
        assert!(!Manifest::default().is_partial());
    }

    #[test]
    fn manifest_with_a_dangerous_path_is_refused() {
        let header = r#"{"pintle_checkpoint":1}"#;
        let directory = r#"{"path":"d","kind":"directory"}"#;
        let link = r#"{"path":"l","kind":"symlink","target":"/"}"#;
        for path in ["../x", "/x", "", ".", "a/../x", "d/.git/hooks", ".git", "gone/x", "l/x", "d/..", "d"] {
            let entry = format!(r#"{{"path":"{path}","kind":"other"}}"#);
            let text = [header, directory, link, &entry].join("\n");
            let decoded = Manifest::decode(text.as_bytes());
            assert!(
                matches!(decoded, Err(CheckpointError::InvalidManifest { line: 4, .. })),
                "{path}: {decoded:?}"
            );
        }
        for (text, is_version) in [("", false), ("{}", false), (r#"{"pintle_checkpoint":2}"#, true)] {
            let error = Manifest::decode(text.as_bytes()).unwrap_err();
            assert_eq!(matches!(error, CheckpointError::Version { found: 2, .. }), is_version, "{text}");
        }
    }

    #[test]
    fn ignored_paths_replace_their_entries() {
        let file = |text: &str| {
            ManifestEntry::new(EntryState::File { hash: Hash::of(text.as_bytes()), size: 1 }, None)
        };
        let entries = BTreeMap::from([
            (PathBuf::from("d"), ManifestEntry::new(EntryState::Directory, None)),
            ("d/a".into(), file("a")),
            ("d/b".into(), file("b")),
            ("d-a".into(), file("c")),
            ("e".into(), file("d")),
        ]);
        let manifest = Manifest::new(entries, BTreeSet::new(), BTreeSet::new(), None);
        let paths = ["d/a", "e", "gone/below", "", "../x", "d/.git/config"].map(PathBuf::from);
        let manifest = manifest.with_ignored(paths);
        assert_eq!(Manifest::decode(&manifest.encode()).unwrap(), manifest);
        let left: Vec<_> = manifest.entries().keys().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(left, ["d", "d/b", "d-a"]);
        let ignored: Vec<_> = manifest.ignored().iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(ignored, ["d/a", "e", "gone/below"]);
        let whole = manifest.with_ignored([PathBuf::from("d")]);
        assert_eq!(whole.entries().keys().map(PathBuf::as_path).collect::<Vec<_>>(), [Path::new("d-a")]);
    }

    #[test]
    fn absent_paths_of_a_partial_manifest_are_unknown() {
        let entries = BTreeMap::from([
            (PathBuf::from("d"), ManifestEntry::new(EntryState::Directory, None)),
            ("s".into(), ManifestEntry::new(EntryState::Directory, None)),
            ("o".into(), ManifestEntry::new(EntryState::Unknown(ContentGap::Time), None)),
        ]);
        let manifest = Manifest::new(
            entries.clone(),
            BTreeSet::from(["d/i".into()]),
            BTreeSet::from(["s".into()]),
            None,
        );
        assert!(matches!(manifest.presence(Path::new("d")), Presence::Known(_)));
        assert!(matches!(manifest.presence(Path::new("o")), Presence::Opaque(_)));
        assert_eq!(manifest.presence(Path::new("d/x")), Presence::Absent);
        for path in ["d/i", "d/i/x"] {
            assert_eq!(manifest.presence(Path::new(path)), Presence::Ignored(Path::new("d/i")));
        }
        assert_eq!(manifest.presence(Path::new("s/x/y")), Presence::Unlisted);
        let cut = Manifest::new(entries, BTreeSet::new(), BTreeSet::new(), Some(ListingLimit::Files));
        assert_eq!(cut.presence(Path::new("d/x")), Presence::Unlisted);
    }
}
