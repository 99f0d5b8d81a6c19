//! The patch as far as it is certain.

use crate::parse::StreamItem;
use crate::syntax::{AddFile, DeleteFile, Hunk, HunkLine, Operation, UpdateFile};

/// Builds the operations out of the items that are yielded, so that the two cannot differ.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) operations: Vec<Operation>,
    /// The items that nobody has taken yet; none are kept where nobody will.
    pub(super) untaken: Option<Vec<StreamItem>>,
    /// Whether lines are left out of the operations.
    pub(super) is_outline: bool,
    /// The bytes of the added lines that follow directly, where that is known: room for the file that is added next.
    pub(super) room: usize,
}

impl Draft {
    pub(super) fn push(&mut self, item: StreamItem) {
        if let Some(untaken) = &mut self.untaken {
            untaken.push(item.clone());
        }
        match item {
            StreamItem::AddFile { path, line } => {
                let room = if self.is_outline { 0 } else { self.room };
                self.operations.push(Operation::Add(AddFile {
                    path,
                    content: String::with_capacity(room),
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

    /// The hunk that is being read.
    fn hunk(&mut self) -> Option<&mut Hunk> {
        match self.operations.last_mut() {
            Some(Operation::Update(update)) => update.hunks.last_mut(),
            Some(Operation::Add(_) | Operation::Delete(_)) | None => None,
        }
    }
}
