//! How much a call reads of the directories that it names.

/// Part of the named directories that a call reads, for gates to judge. Files that a call names are read completely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadExtent {
    /// All files below them. The default, since a tool that does not declare less may read all of them.
    #[default]
    Everything,
    /// Files that a [search](pintle_env::SearchScope) visits by default, without ignored ones. A link is followed only
    /// if it leads to a file below.
    Searched,
    /// Names and sizes of the entries, to a depth. One level contains only the direct entries.
    Names {
        /// Number of levels, from 1.
        levels: usize,
    },
}

impl ReadExtent {
    /// Returns whether the call only lists the entries of the directories, and reads no file below them.
    #[must_use]
    pub fn is_listing(self) -> bool {
        matches!(self, Self::Names { levels: 0 | 1 })
    }
}
