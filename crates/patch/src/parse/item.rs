use crate::syntax::HunkLine;

/// Next part of a patch that is still being written, yielded once it is certain.
///
/// Items are yielded in the order of the text. Together they are exactly the operations of the final
/// [`Patch`](crate::Patch).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamItem {
    /// `*** Add File:`. The lines of the file follow as [`HunkLine::Add`].
    AddFile {
        /// Path of the new file, as in [`AddFile::path`](crate::AddFile::path).
        path: String,
        /// Line of the header in the patch, from 1.
        line: usize,
    },
    /// `*** Delete File:`
    DeleteFile {
        /// Path of the file, as in [`DeleteFile::path`](crate::DeleteFile::path).
        path: String,
        /// Line of the header in the patch, from 1.
        line: usize,
    },
    /// `*** Update File:`
    UpdateFile {
        /// Path of the file, as in [`UpdateFile::path`](crate::UpdateFile::path).
        path: String,
        /// Line of the header in the patch, from 1.
        line: usize,
    },
    /// `*** Move to:`, with the destination path of the updated file.
    MoveTo(String),
    /// Start of a hunk of the update. Its hints and then its lines follow.
    Hunk {
        /// First line of the hunk in the patch, from 1.
        line: usize,
    },
    /// Text of one of the `@@` lines before the lines of the hunk.
    Hint(String),
    /// A line of the hunk or of the added file.
    Line(HunkLine),
    /// `*** End of File`, which anchors the hunk to the end of the file.
    EndOfFile,
    /// The operation is complete.
    FileEnded,
}
