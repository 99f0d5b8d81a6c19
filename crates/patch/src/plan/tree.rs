//! The files of a patch, with its operations applied so far.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;

use super::{Change, ChangeKind};
use crate::error::{Action, ApplyError, ApplyErrorKind};
use crate::syntax::{AddFile, DeleteFile, UpdateFile};
use crate::update::update;
use crate::{ApplyOptions, Diagnostic, DiagnosticKind};

/// Maximum number of bytes of files that are re-read because an earlier operation changed them: a few seconds of work.
const MAX_REREAD: usize = 128 * 1024 * 1024;

pub(super) struct Tree<'a> {
    files: &'a BTreeMap<String, Vec<u8>>,
    options: &'a ApplyOptions,
    /// The paths in the operations, in order of first appearance.
    entries: Vec<TreeEntry<'a>>,
    /// Index of each path in `entries`.
    indices: HashMap<&'a str, usize, RandomState>,
    diagnostics: Vec<Diagnostic>,
    /// Bytes of files re-read so far.
    reread: usize,
}

struct TreeEntry<'a> {
    path: &'a str,
    /// Content before the patch.
    before: Option<&'a [u8]>,
    /// State after the last operation on the path, if any.
    staged: Option<StagedFile>,
}

/// State of a path after an operation.
struct StagedFile {
    content: Option<Vec<u8>>,
    /// Index of the entry where this file was before the patch, if it existed.
    origin: Option<usize>,
    /// Patch line of the operation.
    line: usize,
}

impl TreeEntry<'_> {
    fn content(&self) -> Option<&[u8]> {
        match &self.staged {
            Some(staged) => staged.content.as_deref(),
            None => self.before,
        }
    }
}

impl<'a> Tree<'a> {
    pub(super) fn new(files: &'a BTreeMap<String, Vec<u8>>, options: &'a ApplyOptions) -> Self {
        let (entries, indices, diagnostics) = (Vec::new(), HashMap::default(), Vec::new());
        Self { files, options, entries, indices, diagnostics, reread: 0 }
    }

    pub(super) fn add(&mut self, add: &'a AddFile) -> Result<(), ApplyError> {
        let content = add.content.as_bytes();
        let entry = self.entry(&add.path);
        if let Some(existing) = self.content(entry)
            && !self.options.overwrite
        {
            let identical = existing == content;
            let kind = ApplyErrorKind::Exists { action: Action::Add, identical };
            return Err(ApplyError::new(&add.path, add.line, kind));
        }
        self.stage(entry, StagedFile { content: Some(content.to_vec()), origin: None, line: add.line });
        Ok(())
    }

    pub(super) fn delete(&mut self, delete: &'a DeleteFile) -> Result<(), ApplyError> {
        let entry = self.entry(&delete.path);
        self.existing(entry, delete.line, Action::Delete)?;
        self.remove(entry, delete.line);
        Ok(())
    }

    pub(super) fn update(&mut self, section: &'a UpdateFile) -> Result<(), ApplyError> {
        let UpdateFile { path, line, .. } = section;
        let index = self.entry(path);
        let length = self.existing(index, *line, Action::Update)?.len();
        let staged = self.entries.get(index).and_then(|entry| entry.staged.as_ref());
        let origin = staged.map_or(Some(index), |staged| staged.origin);
        if staged.is_some() {
            self.reread = self.reread.saturating_add(length);
        }
        if self.reread > MAX_REREAD {
            return Err(ApplyError::new(path, *line, ApplyErrorKind::TooManySections));
        }
        if section.hunks.is_empty() && !self.options.pure_rename {
            let what = "a move without a hunk".to_owned();
            return Err(ApplyError::new(path, *line, ApplyErrorKind::Refused { what }));
        }
        let content = self.content(index).unwrap_or_default();
        let original = origin.and_then(|origin| self.entries.get(origin)?.before).unwrap_or(content);
        let mut diagnostics = Vec::new();
        let content = update(section, content, original, self.options, &mut diagnostics)?;
        self.diagnostics.extend(diagnostics);
        let staged = StagedFile { content: Some(content), origin, line: *line };
        match section.move_to.as_deref() {
            Some(to) if to == path => self.move_onto_itself(section, index, staged),
            Some(to) => self.move_file(section, index, to, staged)?,
            None => self.stage(index, staged),
        }
        Ok(())
    }

    fn move_onto_itself(&mut self, section: &UpdateFile, entry: usize, staged: StagedFile) {
        if self.options.self_move_deletes {
            return self.remove(entry, section.line);
        }
        let note = Diagnostic::new(DiagnosticKind::MoveOntoItself, section.line);
        self.diagnostics.push(note.with_path(&section.path));
        self.stage(entry, staged);
    }

    fn move_file(
        &mut self,
        section: &UpdateFile,
        from: usize,
        to: &'a str,
        staged: StagedFile,
    ) -> Result<(), ApplyError> {
        let target = self.entry(to);
        if self.content(target).is_some() && !self.options.overwrite {
            let action = Action::MoveHere { from: section.path.clone() };
            let kind = ApplyErrorKind::Exists { action, identical: false };
            return Err(ApplyError::new(to, section.line, kind));
        }
        self.remove(from, section.line);
        self.stage(target, staged);
        Ok(())
    }

    /// Returns the index of the entry of `path`, and creates the entry if needed.
    fn entry(&mut self, path: &'a str) -> usize {
        let next = self.entries.len();
        let index = *self.indices.entry(path).or_insert(next);
        if index == next {
            let before = self.files.get(path).map(Vec::as_slice);
            self.entries.push(TreeEntry { path, before, staged: None });
        }
        index
    }

    fn existing(&self, index: usize, line: usize, action: Action) -> Result<&[u8], ApplyError> {
        self.content(index).ok_or_else(|| {
            let entry = self.entries.get(index);
            let removed_at = entry.and_then(|entry| entry.staged.as_ref()).map(|staged| staged.line);
            let kind = ApplyErrorKind::Missing { action, removed_at };
            ApplyError::new(entry.map_or("", |entry| entry.path), line, kind)
        })
    }

    fn content(&self, index: usize) -> Option<&[u8]> {
        self.entries.get(index)?.content()
    }

    fn remove(&mut self, index: usize, line: usize) {
        self.stage(index, StagedFile { content: None, origin: None, line });
    }

    fn stage(&mut self, index: usize, staged: StagedFile) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.staged = Some(staged);
        }
    }

    /// Returns the net changes, regardless of intermediate steps, and the diagnostics.
    pub(super) fn finish(mut self) -> (Vec<Change>, Vec<Diagnostic>) {
        let sources: Vec<Option<usize>> = self.entries.iter().map(|entry| self.renamed_from(entry)).collect();
        let mut renamed = vec![false; self.entries.len()];
        for source in sources.iter().flatten() {
            if let Some(renamed) = renamed.get_mut(*source) {
                *renamed = true;
            }
        }
        let originals: Vec<(&str, Option<&[u8]>)> =
            self.entries.iter().map(|entry| (entry.path, entry.before)).collect();
        let mut changes = Vec::new();
        for ((entry, source), is_renamed) in self.entries.into_iter().zip(sources).zip(renamed) {
            let Some(StagedFile { content: new, line, .. }) = entry.staged else { continue };
            let (old, kind) = match (entry.before, &new) {
                (None, None) => continue,
                (None, Some(_)) => match source.and_then(|source| originals.get(source)) {
                    Some((from, old)) => (*old, ChangeKind::Renamed { from: (*from).to_owned() }),
                    None => (None, ChangeKind::Added),
                },
                (Some(_), None) if is_renamed => continue,
                (Some(old), None) => (Some(old), ChangeKind::Deleted),
                (Some(old), Some(new)) if old == new => {
                    let note = Diagnostic::new(DiagnosticKind::NoChange, line);
                    self.diagnostics.push(note.with_path(entry.path));
                    continue;
                }
                (Some(old), Some(_)) => (Some(old), ChangeKind::Modified),
            };
            changes.push(Change { path: entry.path.to_owned(), old: old.map(<[u8]>::to_vec), new, kind });
        }
        (changes, self.diagnostics)
    }

    /// Returns the index of the entry from which the file of `entry` was renamed. No file remains there, and `entry`
    /// had none before.
    fn renamed_from(&self, entry: &TreeEntry<'_>) -> Option<usize> {
        let staged = entry.staged.as_ref().filter(|staged| staged.content.is_some())?;
        let origin = staged.origin?;
        (self.content(origin).is_none() && entry.before.is_none()).then_some(origin)
    }
}
