use crate::syntax::HunkLine;

/// The next thing that is certain in a patch which is still being written.
///
/// The items of a text come in its order and are the patch itself: together they hold the
/// operations of the [`Patch`](crate::Patch) at the end, no more and no less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamItem {
    /// `*** Add File:`; the lines of the file follow as [`HunkLine::Add`].
    AddFile {
        /// The path of the new file, as in [`AddFile::path`](crate::AddFile::path).
        path: String,
        /// Line of the header in the patch, from 1.
        line: usize,
    },
    /// `*** Delete File:`
    DeleteFile {
        /// The path of the file, as in [`DeleteFile::path`](crate::DeleteFile::path).
        path: String,
        /// Line of the header in the patch, from 1.
        line: usize,
    },
    /// `*** Update File:`
    UpdateFile {
        /// The path of the file, as in [`UpdateFile::path`](crate::UpdateFile::path).
        path: String,
        /// Line of the header in the patch, from 1.
        line: usize,
    },
    /// `*** Move to:`, with the path where the file of the update goes.
    MoveTo(String),
    /// A hunk of the update starts; its hints and then its lines follow.
    Hunk {
        /// Its first line in the patch, from 1.
        line: usize,
    },
    /// The text of one of the `@@` lines before the lines of the hunk.
    Hint(String),
    /// A line of the hunk or of the added file.
    Line(HunkLine),
    /// `*** End of File` pins the hunk to the end of the file.
    EndOfFile,
    /// The operation is complete.
    FileEnded,
}
