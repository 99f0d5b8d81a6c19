//! Builds the operations of a patch from its items.

use crate::parse::StreamItem;
use crate::syntax::{AddFile, DeleteFile, Hunk, HunkLine, Operation, UpdateFile};

/// Builds the operations from the items of a stream, so that the two always agree.
#[derive(Debug, Default)]
pub(super) struct PatchBuilder {
    pub(super) operations: Vec<Operation>,
    /// Items that were not yielded yet; `None` if items are not collected.
    pub(super) pending_items: Option<Vec<StreamItem>>,
    /// Whether the lines of hunks and added files are omitted.
    pub(super) is_outline: bool,
    /// Size in bytes of the added lines that directly follow, if known: the initial capacity of the next added file.
    pub(super) added_bytes_ahead: usize,
}

impl PatchBuilder {
    pub(super) fn push(&mut self, item: StreamItem) {
        if let Some(pending_items) = &mut self.pending_items {
            pending_items.push(item.clone());
        }
        match item {
            StreamItem::AddFile { path, line } => {
                let capacity = if self.is_outline { 0 } else { self.added_bytes_ahead };
                self.operations.push(Operation::Add(AddFile {
                    path,
                    content: String::with_capacity(capacity),
                    line,
                }));
            }
            StreamItem::DeleteFile { path, line } => {
                self.operations.push(Operation::Delete(DeleteFile { path, line }));
            }
            StreamItem::UpdateFile { path, line } => {
                self.operations
                    .push(Operation::Update(UpdateFile { line, ..UpdateFile::new(path, Vec::new()) }));
            }
            StreamItem::MoveTo(path) => {
                if let Some(Operation::Update(update)) = self.operations.last_mut() {
                    update.move_to = Some(path);
                }
            }
            StreamItem::Hunk { line } => {
                if let Some(Operation::Update(update)) = self.operations.last_mut() {
                    update.hunks.push(Hunk { line, ..Hunk::new(Vec::new()) });
                }
            }
            StreamItem::Hint(hint) => {
                if let Some(hunk) = self.hunk() {
                    hunk.hints.push(hint);
                }
            }
            StreamItem::Line(line) => self.line(line),
            StreamItem::EndOfFile => {
                if let Some(hunk) = self.hunk() {
                    hunk.end_of_file = true;
                }
            }
            StreamItem::FileEnded => {}
        }
    }

    fn line(&mut self, line: HunkLine) {
        if self.is_outline {
            return;
        }
        if let Some(hunk) = self.hunk() {
            hunk.lines.push(line);
        } else if let (Some(Operation::Add(file)), HunkLine::Add(text)) = (self.operations.last_mut(), line) {
            file.push_line(&text);
        }
    }

    /// Returns the hunk being read.
    fn hunk(&mut self) -> Option<&mut Hunk> {
        match self.operations.last_mut() {
            Some(Operation::Update(update)) => update.hunks.last_mut(),
            Some(Operation::Add(_) | Operation::Delete(_)) | None => None,
        }
    }
}
