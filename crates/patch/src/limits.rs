//! Limits of the parser.

/// Maximum length of a patch, in bytes.
pub const MAX_PATCH_BYTES: usize = 64 * 1024 * 1024;

/// Maximum number of `@@` lines before one hunk.
pub const MAX_HINTS: usize = 32;
