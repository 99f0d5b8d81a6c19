//! A patch and the contents of its files in, the changes out. No file is touched.

mod tree;

use std::collections::BTreeMap;

use crate::error::{ApplyError, ApplyErrorKind};
use crate::syntax::{Operation, Patch};
use crate::{ApplyOptions, Diagnostic};
use tree::Tree;

/// What a patch does to its files: all of it, or there is no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// One change for each file that differs in the end, in the order of the patch. They are
    /// independent of each other: each says what is at its path before and after.
    pub changes: Vec<Change>,
    /// What was tolerated in the patch and in matching it.
    pub diagnostics: Vec<Diagnostic>,
}

/// What happens to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The path at which the file is in the end; for a deletion, where it was.
    pub path: String,
    /// The content before: of the file at `path`, or at `from` for a rename.
    pub old: Option<Vec<u8>>,
    /// The content after; `None` for a deletion.
    pub new: Option<Vec<u8>>,
    /// What kind of change this is.
    pub kind: ChangeKind,
}

/// The kinds of [`Change`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// There was no file; there is one.
    Added,
    /// The file has another content.
    Modified,
    /// There was a file; there is none.
    Deleted,
    /// The file was at another path, where there is none in the end, and none was here. Its
    /// content may have changed too.
    Renamed {
        /// That path.
        from: String,
    },
}

/// Plans `patch` for `files`: the content of every path in [`Patch::paths`] that is a file. A path
/// that is not in the map does not exist.
///
/// The operations are applied in order, each to what the ones before it leave.
///
/// # Errors
///
/// [`ApplyError`] for the first operation that cannot be applied.
pub fn plan(
    patch: &Patch,
    files: &BTreeMap<String, Vec<u8>>,
    options: &ApplyOptions,
) -> Result<Plan, ApplyError> {
    refuse_tolerated(patch, options)?;
    let mut tree = Tree::new(files, options);
    for operation in &patch.operations {
        match operation {
            Operation::Add(add) => tree.add(add)?,
            Operation::Delete(delete) => tree.delete(delete)?,
            Operation::Update(update) => tree.update(update)?,
        }
    }
    let (changes, diagnostics) = tree.finish();
    Ok(Plan { changes, diagnostics: [patch.diagnostics.clone(), diagnostics].concat() })
}

impl Plan {
    /// The plan that undoes this one.
    pub fn inverse(&self) -> Self {
        Self { changes: self.changes.iter().map(Change::inverse).collect(), diagnostics: Vec::new() }
    }

    /// Applies the changes to `files` in memory: what applying a plan to a tree must come to.
    pub fn apply_to(&self, files: &mut BTreeMap<String, Vec<u8>>) {
        for change in &self.changes {
            match &change.kind {
                ChangeKind::Renamed { from } => files.remove(from),
                ChangeKind::Added | ChangeKind::Modified | ChangeKind::Deleted => files.remove(&change.path),
            };
        }
        for change in &self.changes {
            if let Some(new) = &change.new {
                files.insert(change.path.clone(), new.clone());
            }
        }
    }
}

impl Change {
    fn inverse(&self) -> Self {
        let (path, kind) = match &self.kind {
            ChangeKind::Added => (&self.path, ChangeKind::Deleted),
            ChangeKind::Modified => (&self.path, ChangeKind::Modified),
            ChangeKind::Deleted => (&self.path, ChangeKind::Added),
            ChangeKind::Renamed { from } => (from, ChangeKind::Renamed { from: self.path.clone() }),
        };
        Self { path: path.clone(), old: self.new.clone(), new: self.old.clone(), kind }
    }
}

/// Under strict options, refuses what only this crate's parser accepts.
fn refuse_tolerated(patch: &Patch, options: &ApplyOptions) -> Result<(), ApplyError> {
    let strange = |diagnostic: &&Diagnostic| !diagnostic.kind.is_reference_syntax();
    let Some(diagnostic) = patch.diagnostics.iter().find(strange) else { return Ok(()) };
    if options.tolerant_syntax {
        return Ok(());
    }
    let path = patch.operations.first().map_or("", Operation::path);
    let what = diagnostic.kind.to_string();
    Err(ApplyError::new(path, diagnostic.line, ApplyErrorKind::Refused { what }))
}
