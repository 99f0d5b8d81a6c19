//! The files of a patch as its operations leave them.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;

use super::{Change, ChangeKind};
use crate::error::{Action, ApplyError, ApplyErrorKind};
use crate::syntax::{AddFile, DeleteFile, UpdateFile};
use crate::update::update;
use crate::{ApplyOptions, Diagnostic, DiagnosticKind};

/// How many bytes of files may be read again because an earlier operation has changed them: some
/// seconds' work.
const MAX_REREAD: usize = 128 * 1024 * 1024;

pub(super) struct Tree<'a> {
    files: &'a BTreeMap<String, Vec<u8>>,
    options: &'a ApplyOptions,
    /// The paths that the operations name, in the order in which they do.
    entries: Vec<Entry<'a>>,
    /// Where the entry of a path is.
    numbers: HashMap<&'a str, usize, RandomState>,
    diagnostics: Vec<Diagnostic>,
    /// Bytes of files that were read again.
    reread: usize,
}

struct Entry<'a> {
    path: &'a str,
    /// What is there before the patch.
    before: Option<&'a [u8]>,
    /// What an operation has left there.
    touched: Option<Touched>,
}

struct Touched {
    content: Option<Vec<u8>>,
    /// The entry at which this file was before the patch, if it was.
    origin: Option<usize>,
    /// Patch line of the operation.
    line: usize,
}

impl Entry<'_> {
    fn content(&self) -> Option<&[u8]> {
        match &self.touched {
            Some(touched) => touched.content.as_deref(),
            None => self.before,
        }
    }
}

impl<'a> Tree<'a> {
    pub(super) fn new(files: &'a BTreeMap<String, Vec<u8>>, options: &'a ApplyOptions) -> Self {
        let (entries, numbers, diagnostics) = (Vec::new(), HashMap::default(), Vec::new());
        Self { files, options, entries, numbers, diagnostics, reread: 0 }
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
        self.touch(entry, Touched { content: Some(content.to_vec()), origin: None, line: add.line });
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
        let number = self.entry(path);
        let length = self.existing(number, *line, Action::Update)?.len();
        let touched = self.entries.get(number).and_then(|entry| entry.touched.as_ref());
        let origin = touched.map_or(Some(number), |touched| touched.origin);
        if touched.is_some() {
            self.reread = self.reread.saturating_add(length);
        }
        if self.reread > MAX_REREAD {
            return Err(ApplyError::new(path, *line, ApplyErrorKind::TooManySections));
        }
        if section.hunks.is_empty() && !self.options.pure_rename {
            let what = "a move without a hunk".to_owned();
            return Err(ApplyError::new(path, *line, ApplyErrorKind::Refused { what }));
        }
        let content = self.content(number).unwrap_or_default();
        let original = origin.and_then(|origin| self.entries.get(origin)?.before).unwrap_or(content);
        let mut notes = Vec::new();
        let content = update(section, content, original, self.options, &mut notes)?;
        self.diagnostics.extend(notes);
        let touched = Touched { content: Some(content), origin, line: *line };
        match section.move_to.as_deref() {
            Some(to) if to == path => self.move_onto_itself(section, number, touched),
            Some(to) => self.move_file(section, number, to, touched)?,
            None => self.touch(number, touched),
        }
        Ok(())
    }

    fn move_onto_itself(&mut self, section: &UpdateFile, entry: usize, touched: Touched) {
        if self.options.self_move_deletes {
            return self.remove(entry, section.line);
        }
        let note = Diagnostic::new(DiagnosticKind::MoveOntoItself, section.line);
        self.diagnostics.push(note.with_path(&section.path));
        self.touch(entry, touched);
    }

    fn move_file(
        &mut self,
        section: &UpdateFile,
        from: usize,
        to: &'a str,
        touched: Touched,
    ) -> Result<(), ApplyError> {
        let target = self.entry(to);
        if self.content(target).is_some() && !self.options.overwrite {
            let action = Action::MoveHere { from: section.path.clone() };
            let kind = ApplyErrorKind::Exists { action, identical: false };
            return Err(ApplyError::new(to, section.line, kind));
        }
        self.remove(from, section.line);
        self.touch(target, touched);
        Ok(())
    }

    /// The number of the entry of `path`.
    fn entry(&mut self, path: &'a str) -> usize {
        let next = self.entries.len();
        let number = *self.numbers.entry(path).or_insert(next);
        if number == next {
            let before = self.files.get(path).map(Vec::as_slice);
            self.entries.push(Entry { path, before, touched: None });
        }
        number
    }

    fn existing(&self, number: usize, line: usize, action: Action) -> Result<&[u8], ApplyError> {
        self.content(number).ok_or_else(|| {
            let entry = self.entries.get(number);
            let taken_at = entry.and_then(|entry| entry.touched.as_ref()).map(|touched| touched.line);
            let kind = ApplyErrorKind::Missing { action, taken_at };
            ApplyError::new(entry.map_or("", |entry| entry.path), line, kind)
        })
    }

    fn content(&self, number: usize) -> Option<&[u8]> {
        self.entries.get(number)?.content()
    }

    fn remove(&mut self, number: usize, line: usize) {
        self.touch(number, Touched { content: None, origin: None, line });
    }

    fn touch(&mut self, number: usize, touched: Touched) {
        if let Some(entry) = self.entries.get_mut(number) {
            entry.touched = Some(touched);
        }
    }

    /// What differs in the end, however it came about, and what was tolerated.
    pub(super) fn finish(mut self) -> (Vec<Change>, Vec<Diagnostic>) {
        let sources: Vec<Option<usize>> = self.entries.iter().map(|entry| self.renamed_from(entry)).collect();
        let mut renamed = vec![false; self.entries.len()];
        for source in sources.iter().flatten() {
            if let Some(renamed) = renamed.get_mut(*source) {
                *renamed = true;
            }
        }
        let places: Vec<(&str, Option<&[u8]>)> =
            self.entries.iter().map(|entry| (entry.path, entry.before)).collect();
        let mut changes = Vec::new();
        for ((entry, source), is_renamed) in self.entries.into_iter().zip(sources).zip(renamed) {
            let Some(Touched { content: new, line, .. }) = entry.touched else { continue };
            let (old, kind) = match (entry.before, &new) {
                (None, None) => continue,
                (None, Some(_)) => match source.and_then(|source| places.get(source)) {
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

    /// The entry from which the file of `entry` was renamed: nothing is left there, and nothing was
    /// here.
    fn renamed_from(&self, entry: &Entry<'_>) -> Option<usize> {
        let touched = entry.touched.as_ref().filter(|touched| touched.content.is_some())?;
        let origin = touched.origin?;
        (self.content(origin).is_none() && entry.before.is_none()).then_some(origin)
    }
}
