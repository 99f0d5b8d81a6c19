//! Comparing checkpoints.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::manifest::{EntryState, Manifest, ManifestEntry, Presence};

/// Result of [`Manifest::compare`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Comparison {
    /// Differences, sorted by path.
    pub changes: Vec<EntryChange>,
    /// Paths that at least one side has and whose state on one or both sides is unknown: files beyond the limits of a
    /// checkpoint, files that are ignored on one side, devices, pipes and sockets. Sorted.
    pub unknown: Vec<PathBuf>,
}

/// A path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryChange {
    /// The path relative to the root.
    pub path: PathBuf,
    /// The difference.
    pub kind: ChangeKind,
    /// The entry on the older side; `None` if the path was absent.
    pub before: Option<ManifestEntry>,
    /// The entry on the newer side; `None` if the path is absent.
    pub after: Option<ManifestEntry>,
}

/// Difference of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It exists on the newer side only.
    Added,
    /// It exists on the older side only.
    Removed,
    /// A file with another content, and maybe another mode.
    Modified,
    /// A file or directory with another mode only.
    ModeChanged,
    /// An entry of another type.
    TypeChanged,
    /// A link with another target.
    Retargeted,
}

impl ChangeKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Added, Self::Removed, Self::Modified, Self::ModeChanged, Self::TypeChanged, Self::Retargeted];

    /// Returns the name in output and in responses of the server.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Modified => "modified",
            Self::ModeChanged => "mode_changed",
            Self::TypeChanged => "type_changed",
            Self::Retargeted => "retargeted",
        }
    }
}

impl Serialize for ChangeKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl Manifest {
    /// Returns the differences between this manifest and a newer one.
    #[must_use]
    pub fn compare(&self, newer: &Self) -> Comparison {
        let mut comparison = Comparison::default();
        let paths: BTreeSet<_> = self.entries().keys().chain(newer.entries().keys()).collect();
        for path in paths {
            let (before, after) = match (self.presence(path), newer.presence(path)) {
                (Presence::Known(before), Presence::Known(after)) => (Some(before), Some(after)),
                (Presence::Known(before), Presence::Absent) => (Some(before), None),
                (Presence::Absent, Presence::Known(after)) => (None, Some(after)),
                (Presence::Absent, Presence::Absent) => (None, None),
                (Presence::Opaque(_) | Presence::Unlisted | Presence::Ignored(_), _)
                | (_, Presence::Opaque(_) | Presence::Unlisted | Presence::Ignored(_)) => {
                    comparison.unknown.push(path.clone());
                    continue;
                }
            };
            if let Some(kind) = difference(before, after) {
                let (before, after) = (before.cloned(), after.cloned());
                comparison.changes.push(EntryChange { path: path.clone(), kind, before, after });
            }
        }
        comparison
    }
}

fn difference(before: Option<&ManifestEntry>, after: Option<&ManifestEntry>) -> Option<ChangeKind> {
    let (before, after) = match (before, after) {
        (None, None) => return None,
        (None, Some(_)) => return Some(ChangeKind::Added),
        (Some(_), None) => return Some(ChangeKind::Removed),
        (Some(before), Some(after)) => (before, after),
    };
    match (&before.state, &after.state) {
        (before, after) if std::mem::discriminant(before) != std::mem::discriminant(after) => {
            Some(ChangeKind::TypeChanged)
        }
        (EntryState::File { hash: old, .. }, EntryState::File { hash: new, .. }) if old != new => {
            Some(ChangeKind::Modified)
        }
        (EntryState::Symlink { target: old }, EntryState::Symlink { target: new }) if old != new => {
            Some(ChangeKind::Retargeted)
        }
        _ if before.has_other_mode(after) => Some(ChangeKind::ModeChanged),
        _ => None,
    }
}
