//! Matching policy.

/// Policy for planning a patch where implementations differ.
///
/// The default is the policy of this crate. [`ApplyOptions::reference`] is the policy of the reference implementation.
/// Each field is one choice and can be changed independently.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplyOptions {
    /// The search for a hunk starts at the line that its `@@` hint names, so the hint may repeat
    /// a line of the hunk. Otherwise it starts after that line. Default: true.
    pub search_hinted_line: bool,
    /// Several `@@` lines before one hunk narrow the search step by step. Otherwise they are
    /// refused. Default: true.
    pub stacked_hints: bool,
    /// The first of several loose matches is taken, preferring a match of all lines over one that lacks empty lines at
    /// the end. Otherwise the hunk is refused as ambiguous and the matches are listed. Default: false.
    pub take_first_loose_match: bool,
    /// The last old line may be missing in the file if it is empty, whether removed or kept. Of several empty lines,
    /// only the last may be missing. Otherwise only empty context lines may be missing, and then all of them. Default:
    /// false.
    pub allow_missing_last_line: bool,
    /// A hunk with additions only is appended to the file regardless of its hint. Otherwise it is inserted after the
    /// hinted line. Default: false.
    pub additions_at_end: bool,
    /// New lines keep the indentation of the patch even if the old lines are indented differently in the
    /// file. Otherwise they are re-indented, and the hunk is refused if that is ambiguous. Default: false.
    pub keep_given_indentation: bool,
    /// Hunks that are out of file order are placed if each matches at exactly one position.
    /// Default: true.
    pub out_of_order: bool,
    /// Canonically equivalent Unicode matches at the loosest level. Default: true.
    pub canonical_unicode: bool,
    /// An update always ends the file with a newline. Otherwise a missing final newline is kept, unless
    /// the patch changes the last line. Default: false.
    pub always_final_newline: bool,
    /// New lines take the line end of the file's first line. Otherwise they take the line end of their neighbours.
    /// Default: false.
    pub first_line_end: bool,
    /// A byte-order mark is preserved and ignored in matching. Otherwise it is part of line 1. Default: true.
    pub skip_byte_order_mark: bool,
    /// Add and Move may replace an existing file. Otherwise they are refused. Default: false.
    pub overwrite: bool,
    /// Moving a file onto itself deletes it. Otherwise it is a plain update. Default: false.
    pub self_move_deletes: bool,
    /// A move without a hunk is a plain rename. Otherwise it is refused. Default: true.
    pub pure_rename: bool,
    /// Deviations that this parser accepts and the reference does not are allowed, and a hint may match
    /// only the start of a line. Otherwise both are refused. Default: true.
    pub tolerant_syntax: bool,
}

impl ApplyOptions {
    /// Returns the policy of the reference implementation, with its option that preserves the end of each line.
    ///
    /// Remaining differences: a plan is complete or an error, so that no patch is applied in part; an update that is
    /// already applied is reported as such; a file that is not UTF-8 is patched if the patched lines are ASCII; and an
    /// empty line that is the only old line may not be missing.
    pub fn reference() -> Self {
        Self {
            search_hinted_line: false,
            stacked_hints: false,
            take_first_loose_match: true,
            allow_missing_last_line: true,
            additions_at_end: true,
            keep_given_indentation: true,
            out_of_order: false,
            canonical_unicode: false,
            always_final_newline: true,
            first_line_end: true,
            skip_byte_order_mark: false,
            overwrite: true,
            self_move_deletes: true,
            pure_rename: false,
            tolerant_syntax: false,
        }
    }
}

impl Default for ApplyOptions {
    fn default() -> Self {
        Self {
            search_hinted_line: true,
            stacked_hints: true,
            take_first_loose_match: false,
            allow_missing_last_line: false,
            additions_at_end: false,
            keep_given_indentation: false,
            out_of_order: true,
            canonical_unicode: true,
            always_final_newline: false,
            first_line_end: false,
            skip_byte_order_mark: true,
            overwrite: false,
            self_move_deletes: false,
            pure_rename: true,
            tolerant_syntax: true,
        }
    }
}
