//! A patch and the contents of its files in, the changes out. No file is touched.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::error::{Action, ApplyError, ApplyErrorKind};
use crate::syntax::{AddFile, DeleteFile, Operation, Patch, UpdateFile};
use crate::update::update;
use crate::{ApplyOptions, Diagnostic, DiagnosticKind};

/// How many bytes of files may be read again because an earlier operation has changed them: some
/// seconds' work.
const MAX_REREAD: usize = 128 * 1024 * 1024;

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
    let changes = tree.changes();
    let diagnostics = [patch.diagnostics.clone(), tree.diagnostics].concat();
    Ok(Plan { changes, diagnostics })
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

/// The files as the operations so far leave them.
struct Tree<'a> {
    files: &'a BTreeMap<String, Vec<u8>>,
    options: &'a ApplyOptions,
    entries: HashMap<&'a str, Entry<'a>>,
    /// The paths in `entries`, in the order in which they were first touched.
    order: Vec<&'a str>,
    diagnostics: Vec<Diagnostic>,
    /// Bytes of files that were read again.
    reread: usize,
}

struct Entry<'a> {
    content: Option<Vec<u8>>,
    /// Where this file was before the patch, if it was.
    origin: Option<&'a str>,
    /// Patch line of the operation that left it so.
    line: usize,
}

impl<'a> Tree<'a> {
    fn new(files: &'a BTreeMap<String, Vec<u8>>, options: &'a ApplyOptions) -> Self {
        let (entries, order, diagnostics) = (HashMap::new(), Vec::new(), Vec::new());
        Self { files, options, entries, order, diagnostics, reread: 0 }
    }

    fn add(&mut self, add: &'a AddFile) -> Result<(), ApplyError> {
        let content: Vec<u8> =
            add.lines.iter().flat_map(|line| [line.as_bytes(), b"\n"]).flatten().copied().collect();
        if let Some(existing) = self.content(&add.path)
            && !self.options.overwrite
        {
            let identical = existing == content;
            let kind = ApplyErrorKind::Exists { action: Action::Add, identical };
            return Err(ApplyError::new(&add.path, add.line, kind));
        }
        let entry = Entry { content: Some(content), origin: None, line: add.line };
        self.set(&add.path, entry);
        Ok(())
    }

    fn delete(&mut self, delete: &'a DeleteFile) -> Result<(), ApplyError> {
        self.existing(&delete.path, delete.line, Action::Delete)?;
        self.remove(&delete.path, delete.line);
        Ok(())
    }

    fn update(&mut self, section: &'a UpdateFile) -> Result<(), ApplyError> {
        let UpdateFile { path, line, .. } = section;
        let length = self.existing(path, *line, Action::Update)?.len();
        if self.entries.contains_key(path.as_str()) {
            self.reread = self.reread.saturating_add(length);
        }
        if self.reread > MAX_REREAD {
            return Err(ApplyError::new(path, *line, ApplyErrorKind::TooManySections));
        }
        let content = self.existing(path, *line, Action::Update)?;
        if section.hunks.is_empty() && !self.options.pure_rename {
            let what = "a move without a hunk".to_owned();
            return Err(ApplyError::new(path, *line, ApplyErrorKind::Refused { what }));
        }
        let origin = self.origin(path);
        let original = origin.and_then(|origin| self.files.get(origin)).map_or(content, Vec::as_slice);
        let mut notes = Vec::new();
        let content = update(section, content, original, self.options, &mut notes)?;
        self.diagnostics.extend(notes);
        let entry = Entry { content: Some(content), origin, line: *line };
        match section.move_to.as_deref() {
            Some(to) if to == path => self.move_onto_itself(section, entry),
            Some(to) => self.move_file(section, to, entry)?,
            None => self.set(path, entry),
        }
        Ok(())
    }

    fn move_onto_itself(&mut self, section: &'a UpdateFile, entry: Entry<'a>) {
        if self.options.self_move_deletes {
            return self.remove(&section.path, section.line);
        }
        let note = Diagnostic::new(DiagnosticKind::MoveOntoItself, section.line);
        self.diagnostics.push(note.with_path(&section.path));
        self.set(&section.path, entry);
    }

    fn move_file(
        &mut self,
        section: &'a UpdateFile,
        to: &'a str,
        entry: Entry<'a>,
    ) -> Result<(), ApplyError> {
        if self.content(to).is_some() && !self.options.overwrite {
            let action = Action::MoveHere { from: section.path.clone() };
            let kind = ApplyErrorKind::Exists { action, identical: false };
            return Err(ApplyError::new(to, section.line, kind));
        }
        self.remove(&section.path, section.line);
        self.set(to, entry);
        Ok(())
    }

    fn existing(&self, path: &str, line: usize, action: Action) -> Result<&[u8], ApplyError> {
        self.content(path).ok_or_else(|| {
            let taken_at = self.entries.get(path).map(|entry| entry.line);
            ApplyError::new(path, line, ApplyErrorKind::Missing { action, taken_at })
        })
    }

    fn content(&self, path: &str) -> Option<&[u8]> {
        match self.entries.get(path) {
            Some(entry) => entry.content.as_deref(),
            None => self.files.get(path).map(Vec::as_slice),
        }
    }

    fn origin(&self, path: &'a str) -> Option<&'a str> {
        match self.entries.get(path) {
            Some(entry) => entry.origin,
            None => self.files.contains_key(path).then_some(path),
        }
    }

    fn remove(&mut self, path: &'a str, line: usize) {
        self.set(path, Entry { content: None, origin: None, line });
    }

    fn set(&mut self, path: &'a str, entry: Entry<'a>) {
        if self.entries.insert(path, entry).is_none() {
            self.order.push(path);
        }
    }

    /// What differs in the end, however it came about.
    fn changes(&mut self) -> Vec<Change> {
        let renamed: HashSet<&str> = self.order.iter().filter_map(|path| self.renamed_from(path)).collect();
        let mut changes = Vec::new();
        for path in &self.order {
            let Some(entry) = self.entries.get(path) else { continue };
            let old = self.files.get(*path);
            let new = entry.content.as_deref();
            let (old, kind) = match (old, new) {
                (None, None) => continue,
                (None, Some(_)) => match self.renamed_from(path) {
                    Some(from) => (self.files.get(from), ChangeKind::Renamed { from: from.to_owned() }),
                    None => (None, ChangeKind::Added),
                },
                (Some(_), None) if renamed.contains(path) => continue,
                (Some(old), None) => (Some(old), ChangeKind::Deleted),
                (Some(old), Some(new)) if old.as_slice() == new => {
                    let note = Diagnostic::new(DiagnosticKind::NoChange, entry.line);
                    self.diagnostics.push(note.with_path(path));
                    continue;
                }
                (Some(old), Some(_)) => (Some(old), ChangeKind::Modified),
            };
            let (old, new) = (old.cloned(), new.map(<[u8]>::to_vec));
            changes.push(Change { path: (*path).to_owned(), old, new, kind });
        }
        changes
    }

    /// The path from which the file at `path` was renamed: nothing is left there, and nothing
    /// was at `path`.
    fn renamed_from(&self, path: &str) -> Option<&'a str> {
        let entry = self.entries.get(path)?;
        let origin = entry.origin.filter(|_| entry.content.is_some())?;
        let gone = self.content(origin).is_none();
        (gone && !self.files.contains_key(path)).then_some(origin)
    }
}
