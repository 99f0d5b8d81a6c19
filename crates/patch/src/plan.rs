//! Planning: computes the changes from a patch and the contents of its files, without file access.

mod tree;

use std::collections::BTreeMap;

use crate::error::{ApplyError, ApplyErrorKind};
use crate::syntax::{Operation, Patch};
use crate::{ApplyOptions, Diagnostic};
use tree::Tree;

/// The effect of a patch on its files. A patch that does not apply completely has no plan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// One change for each file that differs in the end, in the order of the patch. The changes are independent: each
    /// contains the contents at its path before and after.
    pub changes: Vec<Change>,
    /// Deviations that were accepted while parsing and matching the patch.
    pub diagnostics: Vec<Diagnostic>,
}

/// Change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The path of the file after the change; for a deletion, the path before.
    pub path: String,
    /// The content before: of the file at `path`, or at `from` for a rename.
    pub old: Option<Vec<u8>>,
    /// The content after; `None` for a deletion.
    pub new: Option<Vec<u8>>,
    /// The kind of change.
    pub kind: ChangeKind,
}

/// The kinds of [`Change`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// A file was created.
    Added,
    /// The content of the file changed.
    Modified,
    /// The file was deleted.
    Deleted,
    /// The file was moved from a path that has no file any more to a path that had none before. Its content may have
    /// changed too.
    Renamed {
        /// The path before the change.
        from: String,
    },
}

/// Plans `patch` for `files`, which must contain the content of every path in [`Patch::paths`] that is a file. A path
/// that is not in the map does not exist.
///
/// The operations are applied in order, each to the result of the previous ones.
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
    /// Returns the plan that undoes this one.
    pub fn inverse(&self) -> Self {
        Self { changes: self.changes.iter().map(Change::inverse).collect(), diagnostics: Vec::new() }
    }

    /// Applies the changes to `files` in memory. Applying a plan to a directory must have the same result.
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

/// Refuses, under strict options, syntax that only this crate's parser accepts.
fn refuse_tolerated(patch: &Patch, options: &ApplyOptions) -> Result<(), ApplyError> {
    let is_extension = |diagnostic: &&Diagnostic| !diagnostic.kind.is_reference_syntax();
    let Some(diagnostic) = patch.diagnostics.iter().find(is_extension) else { return Ok(()) };
    if options.tolerant_syntax {
        return Ok(());
    }
    let path = patch.operations.first().map_or("", Operation::path);
    let what = diagnostic.kind.to_string();
    Err(ApplyError::new(path, diagnostic.line, ApplyErrorKind::Refused { what }))
}
