//! How far a call reads into the directories that it names.

/// Part of the named directories that a call reads, for gates to judge. Files that a call names are read whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadExtent {
    /// Everything below them. The default: a tool that declares no less may read all of it.
    #[default]
    Everything,
    /// Files that a [search](pintle_env::SearchScope) visits by default: ignored ones are left out. A link is followed only if
    /// it leads to a file below.
    Searched,
    /// Names and sizes of their entries, to a depth: with one level, only of their own entries.
    Names {
        /// Number of levels, from 1.
        levels: usize,
    },
}

impl ReadExtent {
    /// Returns whether the call only lists the entries of the directories, and reads nothing below.
    #[must_use]
    pub fn is_listing(self) -> bool {
        matches!(self, Self::Names { levels: 0 | 1 })
    }
}
