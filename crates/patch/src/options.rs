//! The choices of a matching policy.

/// How a patch is planned where implementations differ.
///
/// The default is this crate's own policy; [`ApplyOptions::reference`] is that of the reference
/// implementation. Every field states one choice and can be changed alone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApplyOptions {
    /// The search for a hunk starts at the line that its `@@` hint names, so the hint may repeat
    /// a line of the hunk. Otherwise it starts after that line. Default: true.
    pub search_hinted_line: bool,
    /// Several `@@` lines before one hunk narrow the search step by step. Otherwise they are
    /// refused. Default: true.
    pub stacked_hints: bool,
    /// Of several places that match loosely the first is taken, and one with all lines before
    /// one that lacks empty lines at the end. Otherwise they are refused and named.
    /// Default: false.
    pub first_loose_match: bool,
    /// An empty line at the end of the old lines may be missing in the file, be it removed or kept;
    /// of several only the last. Otherwise only empty context may, and all of it. Default: false.
    pub last_line_may_miss: bool,
    /// A hunk with additions only goes to the end of the file whatever its hint says. Otherwise
    /// it goes after the hinted line. Default: false.
    pub additions_at_end: bool,
    /// New lines keep the indentation that the patch gives them, although the old lines were found
    /// with another one. Otherwise they are indented as the file is, and refused where that cannot be
    /// told. Default: false.
    pub given_indentation: bool,
    /// Hunks that are out of file order are placed when each fits exactly one place.
    /// Default: true.
    pub out_of_order: bool,
    /// Canonically equal Unicode matches at the loosest level. Default: true.
    pub canonical_unicode: bool,
    /// An update always ends the file with a line end. Otherwise the file keeps what it had,
    /// unless the patch touches its last line. Default: false.
    pub always_final_newline: bool,
    /// New lines take the first line end of the file. Otherwise they take their neighbours'.
    /// Default: false.
    pub first_line_end: bool,
    /// A byte-order mark is kept and ignored. Otherwise it is a part of line 1. Default: true.
    pub skip_byte_order_mark: bool,
    /// Add and Move may replace a file that exists. Otherwise they are refused. Default: false.
    pub overwrite: bool,
    /// Moving a file onto itself deletes it. Otherwise it is a plain update. Default: false.
    pub self_move_deletes: bool,
    /// A move without a hunk is a plain rename. Otherwise it is refused. Default: true.
    pub pure_rename: bool,
    /// What the parser tolerated beyond the reference's own leniency is accepted, and a hint may
    /// be only the start of a line. Otherwise both are refused. Default: true.
    pub tolerant_syntax: bool,
}

impl ApplyOptions {
    /// The choices of the reference implementation, with its option that keeps each line's own
    /// end.
    ///
    /// What differs all the same: a plan is made as a whole, so nothing is applied in part; an
    /// update that was applied before is called by that name when it is refused; a file that is
    /// not UTF-8 is patched where it is ASCII; and an empty line that is all of the old lines may
    /// not be missing.
    pub fn reference() -> Self {
        Self {
            search_hinted_line: false,
            stacked_hints: false,
            first_loose_match: true,
            last_line_may_miss: true,
            additions_at_end: true,
            given_indentation: true,
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
            first_loose_match: false,
            last_line_may_miss: false,
            additions_at_end: false,
            given_indentation: false,
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
